//! `steadyhand tools changes`, `accept` and `reject`: what MCP servers say of themselves that is another than before.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::error::{Exit, Failed};
use super::remote::{Remote, in_path};
use super::{Interrupts, Session, not_written_down, starting, user_name};
use steadyhand_runtime::audit::{AuditEvent, AuditLog};
use steadyhand_runtime::pins::{NotDecided, Pins, SeenDefinition};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::http::pins::state_after;

/// Servers that are started for it have so long to list what is beside their tools.
const LISTING: Duration = Duration::from_millis(700);

/// Where definitions are compared: in a server of this configuration, or in this process.
enum Place {
    There(Remote),
    Here(Runtime, Pins, AuditLog),
}

pub(super) async fn list(session: &Session<'_>) -> Result<(), Failed> {
    let place = Place::find(session).await?;
    let view = place.changes().await;
    place.end(session).await;
    let view = view?;
    if session.screen.json {
        session.screen.json(&view);
        return Ok(());
    }
    let changes = view["changes"].as_array().cloned().unwrap_or_default();
    if changes.is_empty() {
        session.screen.note("Everything is as it was accepted.");
        return Ok(());
    }
    let lines: Vec<String> = changes.iter().flat_map(in_words).collect();
    session
        .screen
        .answer(&session.screen.foreign(&lines.join("\n")));
    Ok(())
}

fn in_words(change: &Value) -> Vec<String> {
    let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
    let is = |name: &str| change[name] == true;
    let state = match (is("rejected"), is("quarantined"), is("hints_held")) {
        (true, _, _) => "  (rejected, kept away)",
        (false, true, _) => "  (kept away until it is accepted)",
        (false, false, true) => "  (in use; its hints are not, until it is accepted)",
        (false, false, false) => "",
    };
    let mut lines = vec![format!("{} of {}{state}", text("tool"), text("source"))];
    if is("is_new") {
        lines.push("  it is new".to_owned());
    }
    for word in change["suspicious"].as_array().into_iter().flatten() {
        lines.push(format!("  ! {}", word.as_str().unwrap_or_default()));
    }
    for one in change["differences"].as_array().into_iter().flatten() {
        lines.push(format!("  {}", one["at"].as_str().unwrap_or_default()));
        lines.push(format!("  - {}", one["before"]));
        lines.push(format!("  + {}", one["after"]));
    }
    if let Some(hash) = change["definition_hash"].as_str() {
        lines.push(format!("  {hash}"));
    }
    lines
}

/// A name of a server stands for all that waits of it. Nothing but what is shown is accepted, and nothing but what was
/// seen earlier if that is named.
pub(super) async fn accept(
    session: &Session<'_>,
    subject: &str,
    seen: Option<&str>,
) -> Result<(), Failed> {
    let place = Place::find(session).await?;
    let accepted = accept_at(session, &place, subject, seen).await;
    place.end(session).await;
    accepted
}

async fn accept_at(
    session: &Session<'_>,
    place: &Place,
    subject: &str,
    seen: Option<&str>,
) -> Result<(), Failed> {
    let view = place.changes().await?;
    for change in wanted(&view, subject, seen)? {
        for line in in_words(change) {
            session.screen.note(&line);
        }
        let name = change["tool"].as_str().unwrap_or_default();
        let shown = change["definition_hash"].as_str();
        let answer = place.decide(name, Decision::Accept, shown).await?;
        match session.screen.json {
            true => session.screen.json(&answer),
            false => session
                .screen
                .note(&format!("{name} counts as it is shown here.")),
        }
    }
    Ok(())
}

/// The changes that a name stands for.
fn wanted<'a>(
    view: &'a Value,
    subject: &str,
    seen: Option<&str>,
) -> Result<Vec<&'a Value>, Failed> {
    let changes = view["changes"].as_array().into_iter().flatten();
    let changes: Vec<&Value> = changes.collect();
    let is_of_server = |change: &&&Value| change["source"] == subject && change["rejected"] != true;
    let of_server: Vec<&Value> = changes.iter().filter(is_of_server).copied().collect();
    let is_it = |change: &&&Value| change["tool"] == subject;
    let wanted = match changes.iter().find(is_it) {
        Some(one) => vec![*one],
        None => of_server,
    };
    if wanted.is_empty() {
        return Err(nothing_waits(subject));
    }
    let is_seen = |change: &&Value| seen.is_none_or(|seen| change["definition_hash"] == seen);
    match wanted.iter().find(|change| !is_seen(change)) {
        None => Ok(wanted),
        Some(other) => {
            let name = other["tool"].as_str().unwrap_or_default();
            let hash = other["definition_hash"].as_str().unwrap_or_default();
            Err(changed_since(name, hash))
        }
    }
}

pub(super) async fn reject(
    session: &Session<'_>,
    subject: &str,
    seen: Option<&str>,
) -> Result<(), Failed> {
    let place = Place::find(session).await?;
    let rejected = place.decide(subject, Decision::Reject, seen).await;
    place.end(session).await;
    let rejected = rejected?;
    match session.screen.json {
        true => session.screen.json(&rejected),
        false => session.screen.note(&format!(
            "{subject} is rejected, and stays away until its server gives it another definition."
        )),
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Decision {
    Accept,
    Reject,
}

impl Decision {
    /// As a route, and as its answer says it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Decision::Accept => ("accept", "accepted"),
            Decision::Reject => ("reject", "rejected"),
        }
    }
}

impl Place {
    async fn find(session: &Session<'_>) -> Result<Place, Failed> {
        if let Some(remote) = Remote::find(session).await {
            return Ok(Place::There(remote));
        }
        let mut configuration = session.configuration()?;
        configuration.tools.retain(|table| table.is_server());
        for table in &mut configuration.tools {
            table.set_start("when", json!("boot"));
            table.set_start("waits", json!(["0s"]));
        }
        let pins = session.pins(configuration.file.as_deref());
        let runtime = session.runtime_of(configuration, |options| {
            options.pins = Some(pins.clone());
            options.degraded = Arc::new(|_, _| {});
        });
        let runtime = runtime.await?;
        starting::waited_for(session, &runtime).await?;
        tokio::time::sleep(LISTING).await;
        for server in runtime.servers() {
            runtime.renew(&server.name).await;
        }
        // They are listed by this very command.
        pins.take_untold();
        let log = session.audit_log(&runtime.generation().configuration);
        Ok(Place::Here(runtime, pins, log))
    }

    async fn changes(&self) -> Result<Value, Failed> {
        match self {
            Place::There(remote) => remote.get("/v1/tool-changes").await,
            Place::Here(_, pins, _) => {
                let changes = pins.changes();
                Ok(json!({"count": changes.len(), "changes": changes}))
            }
        }
    }

    /// Decides about the definition with this hash.
    async fn decide(
        &self,
        subject: &str,
        decision: Decision,
        hash: Option<&str>,
    ) -> Result<Value, Failed> {
        let (verb, done) = decision.words();
        match self {
            Place::There(remote) => {
                let path = format!("/v1/tool-changes/{}/{verb}", in_path(subject));
                let seen = hash.map(|hash| json!({"definition_hash": hash}));
                Ok(remote.post(&path, seen.as_ref()).await?.body)
            }
            Place::Here(_, pins, log) => {
                let changes = pins.changes();
                let before = changes.iter().find(|change| change.tool == subject);
                let before = before.and_then(|change| serde_json::to_value(change).ok());
                let event = AuditEvent::of_command(&format!("pin.{verb}"), user_name()).on(subject);
                let asked = event.clone().changed(before.clone(), None);
                let asked = log.before(asked.result("asked")).await;
                asked.map_err(|why| not_written_down(&why))?;
                let seen = hash.map_or(SeenDefinition::Any, SeenDefinition::Hash);
                let decided = match decision {
                    Decision::Accept => pins.accept(subject, seen),
                    Decision::Reject => pins.reject(subject, seen),
                };
                log.note(match &decided {
                    Ok(change) => event.changed(before, Some(state_after(change))),
                    Err(_) => event.changed(before, None).result("refused"),
                });
                log.flush().await;
                let change = decided.map_err(|why| match why {
                    NotDecided::NoSuchChange => nothing_waits(subject),
                    NotDecided::AnotherDefinition {
                        definition_hash, ..
                    } => changed_since(subject, &definition_hash),
                })?;
                Ok(json!({
                    "name": subject, "source": change.source, done: true, "definition_hash": change.definition_hash,
                }))
            }
        }
    }

    async fn end(&self, session: &Session<'_>) {
        if let Place::Here(runtime, ..) = self {
            session.stop(runtime, &mut Interrupts::listen()).await;
        }
    }
}

fn changed_since(subject: &str, hash: &str) -> Failed {
    let message = format!("the definition of {subject:?} is another than the one that was seen");
    Failed::new(Exit::Refused, "definition_changed", message)
        .help("Nothing was accepted or rejected. Look at it again: steadyhand tools changes")
        .detail("definition_hash", json!(hash))
}

fn nothing_waits(subject: &str) -> Failed {
    let message = format!("no change of {subject:?} waits to be accepted or rejected");
    Failed::new(Exit::ToolError, "TOOL_NOT_FOUND", message)
        .help("steadyhand tools changes lists those that do")
}
