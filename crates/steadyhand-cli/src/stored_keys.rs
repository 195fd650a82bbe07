//! `steadyhand calls keys`: how the file of idempotency keys fares, and a person's decision to go on after a loss.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use super::error::{Exit, Failed};
use super::{Session, not_written_down};
use steadyhand_runtime::audit::{AuditEvent, AuditLog};
use steadyhand_store::history::inspect::{Soundness, soundness_of_keys};
use steadyhand_store::history::{ACCEPT_COMMAND, KeysUsage};

/// How long the file is looked through.
const LOOK_MAX: Duration = Duration::from_secs(5);

#[derive(Subcommand)]
pub(super) enum StoredKeysCommand {
    /// Go on although keys of earlier calls are lost; such a call may run again if it is repeated
    AcceptLoss,
}

pub(super) async fn run(
    session: &Session<'_>,
    command: Option<&StoredKeysCommand>,
) -> Result<(), Failed> {
    let found = session.found().map(|found| found.path);
    let options = session.keys_options(found.as_deref());
    let path = options.path().to_owned();
    match command {
        None => {
            let looking = move || match soundness_of_keys(&options, LOOK_MAX) {
                fares @ (Soundness::Sound | Soundness::Unfinished) => (fares, options.usage()),
                fares => (fares, None),
            };
            let looked = tokio::task::spawn_blocking(looking).await;
            let (fares, usage) = looked.map_err(|error| failed(error.to_string()))?;
            show(session, path, fares, usage);
            Ok(())
        }
        Some(StoredKeysCommand::AcceptLoss) => {
            let event = AuditEvent::of_command("idempotency_keys.accept_loss", session.user());
            let log = session.configuration().map(|it| session.audit_log(&it));
            let log = log.unwrap_or_else(|_| AuditLog::off());
            let asked = log.before(event.clone().result("asked")).await;
            asked.map_err(|why| not_written_down(&why))?;
            let accepting = tokio::task::spawn_blocking(move || options.accept_loss()).await;
            let accepted = accepting.map_err(|error| failed(error.to_string()))?;
            let accepted = accepted.map_err(|error| failed(error.to_string()))?;
            let reason = accepted
                .as_ref()
                .map(|accepted| json!({"reason": accepted.reason}));
            let kept = accepted
                .as_ref()
                .map(|accepted| json!({"kept": accepted.kept}));
            log.note(event.changed(reason, kept));
            log.flush().await;
            let screen = session.screen;
            let Some(accepted) = accepted else {
                if screen.json {
                    screen.json(&json!({"accepted": false, "path": path}));
                } else {
                    screen.note("Nothing is lost: calls with an idempotency key are taken.");
                }
                return Ok(());
            };
            if screen.json {
                screen.json(&json!({
                    "accepted": true,
                    "path": path,
                    "reason": accepted.reason,
                    "kept": accepted.kept,
                    "set_aside": accepted.set_aside,
                }));
                return Ok(());
            }
            screen.note(&format!("What was wrong: {}.", accepted.reason));
            if let Some(aside) = &accepted.set_aside {
                screen.note(&format!(
                    "The file that was there is now {}.",
                    aside.display()
                ));
            }
            screen.note(&format!(
                "Calls with an idempotency key are taken again. Keys that are still known: {}.",
                accepted.kept
            ));
            Ok(())
        }
    }
}

fn show(session: &Session<'_>, path: PathBuf, fares: Soundness, usage: Option<KeysUsage>) {
    let (state, reason) = match fares {
        Soundness::Absent => ("unused", None),
        Soundness::Sound | Soundness::Unfinished => ("ok", None),
        Soundness::Broken(why) => ("lost", Some(why)),
        Soundness::Unusable(why) => ("unusable", Some(why)),
    };
    let screen = session.screen;
    if screen.json {
        let mut said = json!({"state": state, "path": path, "reason": reason});
        if let Some(usage) = usage {
            said["usage"] = json!(usage);
        }
        screen.json(&said);
        return;
    }
    let path = path.display();
    screen.answer(&match reason {
        None if state == "unused" => format!("No call had an idempotency key yet; {path} is made with the first"),
        None => {
            let usage = usage.map(|usage| format!("\n{usage}")).unwrap_or_default();
            format!("Calls with an idempotency key are taken; {path} is whole{usage}")
        }
        Some(why) if state == "lost" => format!(
            "Calls with an idempotency key are refused: {why}.\nPut the newest copy of the file back, or run {ACCEPT_COMMAND} once no caller repeats a call from before."
        ),
        Some(why) => format!("Calls with an idempotency key are refused: {why}."),
    });
}

fn failed(why: String) -> Failed {
    Failed::new(Exit::Unexpected, "keys_unavailable", why)
        .help("Check the file and its permissions; --state DIR names another folder")
}
