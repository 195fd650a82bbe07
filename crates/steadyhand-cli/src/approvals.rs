//! `steadyhand approvals`, `approve`, `deny`: calls that wait for a person.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::alerts::server;
use super::error::{Exit, Failed};
use super::remote::{Remote, in_path};
use super::{Session, value};
use steadyhand_runtime::approvals::{HiddenPart, in_words};

#[derive(Args)]
pub(super) struct ApprovalsArgs {
    /// Those that were decided lately, too
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
pub(super) struct ApproveArgs {
    /// The approval, as `steadyhand approvals` lists it
    id: String,
    /// Only if the arguments have this hash; those it has now if not said
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// Approve the parts of the arguments that are not shown, too
    #[arg(long)]
    unseen: bool,
}

#[derive(Args)]
pub(super) struct DenyArgs {
    /// The approval, as `steadyhand approvals` lists it
    id: String,
    /// Why not; the model is told
    #[arg(long)]
    reason: Option<String>,
}

pub(super) async fn list(session: &Session<'_>, args: &ApprovalsArgs) -> Result<(), Failed> {
    let remote = server(session, "calls wait for a yes").await?;
    let mut view = remote.get("/v1/approvals").await?;
    if let (false, Some(approvals)) = (args.all, view["approvals"].as_array_mut()) {
        approvals.retain(|approval| approval["state"] == "waiting");
        view["count"] = approvals.len().into();
    }
    if session.screen.json {
        session.screen.json(&view);
        return Ok(());
    }
    if let Some(link) = remote.login_link() {
        session.screen.note(&format!(
            "To decide in a browser, open {link} (once, within 10 minutes)"
        ));
    }
    let approvals = view["approvals"].as_array().cloned().unwrap_or_default();
    if approvals.is_empty() {
        session.screen.note("Nothing waits for a yes.");
        return Ok(());
    }
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        let names = ["ID", "TOOL", "ARGUMENTS", "ASKED BY", "STATE", "EXPIRES"];
        rows.push(names.map(str::to_owned).to_vec());
    }
    rows.extend(approvals.iter().map(|approval| row(session, approval)));
    session.screen.answer(&value::columns(session.screen, rows));
    Ok(())
}

fn row(session: &Session<'_>, approval: &Value) -> Vec<String> {
    let text = |name: &str| approval[name].as_str().unwrap_or("-").to_owned();
    vec![
        text("id"),
        text("tool"),
        session
            .screen
            .foreign(&(approval["arguments"].to_string() + &not_shown(approval))),
        text("caller"),
        text("state"),
        super::alerts::moment(&approval["expires_ms"]),
    ]
}

/// The parts of the arguments that are not shown, with their sizes and hashes.
fn not_shown(approval: &Value) -> String {
    let hidden = approval["hidden"].as_array().into_iter().flatten();
    let hidden: Vec<HiddenPart> = hidden
        .filter_map(|part| HiddenPart::deserialize(part).ok())
        .collect();
    match hidden.is_empty() {
        true => String::new(),
        false => format!(" (not shown: {})", in_words(&hidden)),
    }
}

pub(super) async fn approve(session: &Session<'_>, args: &ApproveArgs) -> Result<(), Failed> {
    let remote = server(session, "calls wait for a yes").await?;
    let approval = find(&remote, &args.id).await?;
    let hash = args
        .hash
        .clone()
        .map_or_else(|| approval["arguments_hash"].clone(), Value::from);
    let decision = json!({"decision": "approve", "arguments_hash": hash, "unseen": args.unseen});
    decide(session, &remote, &args.id, &decision, "approved").await
}

pub(super) async fn deny(session: &Session<'_>, args: &DenyArgs) -> Result<(), Failed> {
    let remote = server(session, "calls wait for a yes").await?;
    let approval = find(&remote, &args.id).await?;
    let hash = &approval["arguments_hash"];
    let decision = json!({"decision": "deny", "arguments_hash": hash, "reason": args.reason});
    decide(session, &remote, &args.id, &decision, "denied").await
}

async fn find(remote: &Remote, id: &str) -> Result<Value, Failed> {
    let view = remote.get("/v1/approvals").await?;
    let approvals = view["approvals"].as_array().cloned().unwrap_or_default();
    let found = approvals.into_iter().find(|approval| approval["id"] == id);
    found.ok_or_else(|| {
        Failed::new(
            Exit::Usage,
            "no_such_approval",
            format!("there is no approval {id:?}"),
        )
        .help("steadyhand approvals lists those that wait")
    })
}

async fn decide(
    session: &Session<'_>,
    remote: &Remote,
    id: &str,
    decision: &Value,
    word: &str,
) -> Result<(), Failed> {
    let path = format!("/v1/approvals/{}", in_path(id));
    let approval = remote.post(&path, Some(decision)).await?.body;
    if session.screen.json {
        session.screen.json(&approval);
        return Ok(());
    }
    let tool = approval["tool"].as_str().unwrap_or_default();
    let arguments = value::shown(session.screen, &approval["arguments"]);
    session.screen.note(&format!("{tool} {word}"));
    session.screen.note(&arguments);
    Ok(())
}
