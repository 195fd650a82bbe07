//! A call that a running server makes for us.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::FailureCode;
use tokio::time::sleep;

use super::super::chat::{self, asking};
use super::super::error::{Exit, Failed};
use super::super::outcome::{self, Ended};
use super::super::remote::{Remote, Reply, in_path};
use super::super::{Interrupts, STOPPING_MAX, Session};
use super::{CallArgs, View, read_call};
use steadyhand_server::http::status::{CODE_HEADER, FALLBACK_HEADER};

/// How often it is looked whether the call waits for a person.
const LOOK_FOR_APPROVALS: Duration = Duration::from_millis(500);

/// Lets a server run the call; an interrupt cancels it there.
pub(super) async fn run(
    session: &Session<'_>,
    args: &CallArgs,
    remote: &Remote,
    interrupts: &mut Interrupts,
) -> Result<(), Failed> {
    let tool = remote
        .get(&format!("/v1/tools/{}", in_path(&args.tool)))
        .await;
    // Without a tool of this name, the outcome says so.
    let tool = tool.unwrap_or_default();
    let call = read_call(session, args, &tool["schema"])?;
    let view = match session.screen.json {
        true => args.view,
        false => View::Structured,
    };
    let path = format!("/v1/calls?view={}", view.as_str());
    let body = json!(call);
    let may_wait = tool["policy"]["approval"]["value"] != "never";
    let answer = remote.post(&path, Some(&body));
    tokio::pin!(answer);
    let (reply, signal) = tokio::select! {
        reply = &mut answer => (reply?, None),
        never = tell_of_waiting(session, remote, &call.id), if may_wait => match never {},
        signal = interrupts.next() => {
            let _ = remote.delete(&format!("/v1/calls/{}", in_path(&call.id))).await;
            let stopped = tokio::time::timeout(STOPPING_MAX, answer).await;
            let too_late = Failed::new(Exit::Signal(signal), "interrupted", "interrupted; the server did not say what became of the call");
            (stopped.unwrap_or(Err(too_late))?, Some(signal))
        }
    };
    if session.screen.json {
        session.screen.json(&reply.body);
    }
    let shown = match view {
        View::Structured => {
            let mut ended = Ended::read(&reply.body)?;
            ended.settings_at = tool["kind"].as_str().map(|kind| {
                let name = tool["name"].as_str().unwrap_or(&args.tool);
                outcome::settings_place(kind, tool["source"].as_str(), name)
            });
            outcome::show(session, &ended).map_err(|failed| of_a_server(failed, &ended, &tool))
        }
        View::Flat | View::Message => by_headers(&reply),
    };
    shown.map_err(|failed| failed.by_signal(signal))
}

/// Says once that a call waits for a yes: nobody would know why nothing happens.
async fn tell_of_waiting(session: &Session<'_>, remote: &Remote, call: &str) -> Infallible {
    loop {
        sleep(LOOK_FOR_APPROVALS).await;
        let listed = remote.get("/v1/approvals").await.unwrap_or_default();
        let mut approvals = listed["approvals"].as_array().into_iter().flatten();
        let own = approvals.find(|one| one["call_id"] == call && one["state"] == "waiting");
        let Some((one, id)) = own.and_then(|one| Some((one, one["id"].as_str()?))) else {
            continue;
        };
        session.screen.note(&format!(
            "It waits for a yes: steadyhand approve {id}     or not: steadyhand deny {id}"
        ));
        if chat::can_ask(session) {
            decide_here(session, remote, one, id).await;
        }
        return pending().await;
    }
}

/// Asks the person at the terminal, and tells the server what they say. Somebody else may be faster: then the call ends.
async fn decide_here(session: &Session<'_>, remote: &Remote, approval: &Value, id: &str) {
    let (is_yes, reason) = asking::ask(approval, "this command").await;
    let decision = if is_yes { "approve" } else { "deny" };
    let hash = &approval["arguments_hash"];
    // The person was asked a second time where something is not shown.
    let body =
        json!({"decision": decision, "arguments_hash": hash, "unseen": is_yes, "reason": reason});
    let path = format!("/v1/approvals/{}", in_path(id));
    if let Err(failed) = remote.post(&path, Some(&body)).await {
        session
            .screen
            .note(&format!("The server did not take the answer: {failed}"));
    }
}

/// What an MCP server printed tells more about its failure than we can.
fn of_a_server(failed: Failed, ended: &Ended, tool: &Value) -> Failed {
    let failure = ended.failure.as_ref();
    let is_away = failure.is_some_and(|failure| failure.code == FailureCode::NetworkError);
    match (tool["kind"].as_str(), tool["source"].as_str()) {
        (Some("mcp"), Some(server)) if is_away => failed.help(format!(
            "More: steadyhand mcp logs {server}     Again: steadyhand mcp restart {server}"
        )),
        _ => failed,
    }
}

/// The views that do not have the code of a failure: the answer's headers do.
fn by_headers(reply: &Reply) -> Result<(), Failed> {
    let header = |name: &str| reply.headers.get(name)?.to_str().ok();
    let code = header(CODE_HEADER).and_then(|code| serde_json::from_value(json!(code)).ok());
    let Some(code): Option<FailureCode> = code else {
        return Ok(());
    };
    if header(FALLBACK_HEADER).is_some() {
        return Ok(());
    }
    let text = reply.body.get("error").or(reply.body.get("content"));
    let message = text.and_then(Value::as_str).unwrap_or(code.as_str());
    Err(Failed::new(Exit::of(code), code.as_str(), message))
}
