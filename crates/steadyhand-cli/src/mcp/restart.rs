//! `steadyhand mcp restart`: a server of the running steadyhand is started anew.

use std::time::Duration;

use serde_json::Value;

use super::super::error::{Exit, Failed};
use super::super::remote::{Remote, in_path};
use super::super::starting::{LOOK, Starting, is_on_its_way, millis, text};
use super::super::{Interrupts, Session, value};

/// Three attempts of the usual limit, their waits, and a little more.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) async fn run(session: &Session<'_>, name: &str) -> Result<(), Failed> {
    let Some(remote) = Remote::find(session).await else {
        return Err(Failed::new(
            Exit::NotReachable,
            "no_server",
            "no server of this configuration runs, so there is nothing to restart",
        )
        .help(format!(
            "steadyhand serve starts one, and the MCP servers with it\nsteadyhand mcp test {name} starts {name} once, here"
        )));
    };
    let mut interrupts = Interrupts::listen();
    let path = format!("/v1/servers/{}/restart", in_path(name));
    let before = remote.post(&path, None).await?.body["servers"][0].clone();
    let patience = session.time_left().unwrap_or(PATIENCE);
    let ended = tokio::select! {
        ended = tokio::time::timeout(patience, over(session, &remote, name, &before)) => ended,
        code = interrupts.next() => return Err(Failed::interrupted(code).help("It is started all the same: steadyhand mcp list")),
    };
    let now = match ended {
        Ok(now) => now?,
        Err(_) => return Err(Failed::timed_out(patience)),
    };
    if session.screen.json {
        session.screen.json(&now);
    }
    if text(&now, "phase") == "down" {
        let reason = text(&now, "reason");
        let failed = Failed::new(
            Exit::NotReachable,
            "mcp_start_failed",
            format!("{name} did not start: {reason}"),
        );
        let failed = failed
            .detail("server", name.into())
            .detail("failure", now["failure"].clone());
        return Err(failed.help(format!(
            "{}\nMore: steadyhand mcp logs {name}",
            text(&now["failure"], "help")
        )));
    }
    if !session.screen.json {
        let tools = value::counted(now["tools"].as_u64().unwrap_or(0) as usize, "tool");
        session.screen.answer(&format!(
            "{name} {}: {tools}, {}",
            text(&now, "status"),
            millis(&now["start_ms"])
        ));
    }
    Ok(())
}

/// How the server fares once it has been tried again.
async fn over(
    session: &Session<'_>,
    remote: &Remote,
    name: &str,
    before: &Value,
) -> Result<Value, Failed> {
    let mut starting = Starting::new(session.screen);
    loop {
        let listed = remote.get("/v1/servers").await?;
        let servers = listed["servers"].as_array().cloned().unwrap_or_default();
        let Some(now) = servers.into_iter().find(|server| server["name"] == name) else {
            return Err(Failed::new(
                Exit::NotReachable,
                "no_such_server",
                format!("{name} is no longer configured"),
            ));
        };
        starting.show(std::slice::from_ref(&now));
        if now["tries"].as_u64() > before["tries"].as_u64() && !is_on_its_way(&now) {
            return Ok(now);
        }
        tokio::time::sleep(LOOK).await;
    }
}
