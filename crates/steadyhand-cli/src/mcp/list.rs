//! `steadyhand mcp list`: every server on one line.

use std::sync::Arc;

use anstyle::AnsiColor;
use serde_json::{Value, json};

use super::super::error::Failed;
use super::super::remote::Remote;
use super::super::starting::{self, is_on_its_way, millis, name_width, text};
use super::super::{Interrupts, Session, value};
use steadyhand_server::views;

pub(super) async fn run(session: &Session<'_>) -> Result<(), Failed> {
    let listed = match Remote::find(session).await {
        Some(remote) => remote.get("/v1/servers").await?,
        None => started_here(session).await?,
    };
    if session.screen.json {
        session.screen.json(&listed);
        return Ok(());
    }
    let servers = listed["servers"].as_array().cloned().unwrap_or_default();
    if servers.is_empty() {
        session.screen.note(
            "No MCP servers. Add one: steadyhand mcp add NAME -- COMMAND ARGS\nOr see what other programs have: steadyhand mcp import",
        );
        return Ok(());
    }
    session
        .screen
        .answer(&match session.screen.stdout_is_terminal {
            true => for_people(session, &servers),
            false => for_pipes(session, &servers),
        });
    tell_what_is_missing(session, &servers);
    Ok(())
}

/// Starts all servers here, waits until each is up or known to be down, and stops them again.
async fn started_here(session: &Session<'_>) -> Result<Value, Failed> {
    let mut configuration = session.configuration()?;
    // One look is enough: who wants to know more tests the server.
    for table in configuration.tools.iter_mut().filter(|it| it.is_server()) {
        table.set_start("waits", json!(["0s"]));
    }
    configuration.tools.retain(|table| table.is_server());
    let runtime = session.runtime_of(configuration, |options| {
        // The list says it.
        options.degraded = Arc::new(|_, _| {});
        options.pins = None;
    });
    let runtime = runtime.await?;
    starting::waited_for(session, &runtime).await?;
    let listed = views::servers::list(&runtime);
    session.stop(&runtime, &mut Interrupts::listen()).await;
    Ok(listed)
}

fn for_people(session: &Session<'_>, servers: &[Value]) -> String {
    let screen = session.screen;
    let width = name_width(servers.iter());
    let cells: Vec<[String; 4]> = servers.iter().map(cells).collect();
    let widest =
        |place: usize| value::column_width(cells.iter().map(|row| row[place].chars().count()));
    let widths = [0, 1, 2].map(widest);
    let mut lines = Vec::new();
    for (server, [tools, start, place, reason]) in servers.iter().zip(&cells) {
        let mark = starting::mark(server, screen.plain);
        let mark = match text(server, "phase") {
            "running" if server["unstable"].is_string() => screen.colored(mark, AnsiColor::Yellow),
            "running" => screen.colored(mark, AnsiColor::Green),
            "down" => screen.colored(mark, AnsiColor::Red),
            _ => mark.to_owned(),
        };
        let line = format!(
            "  {mark} {:width$}  {:11}  {tools:>w0$}  {start:>w1$}  {place:w2$}  {}",
            screen.foreign(text(server, "name")),
            text(server, "status"),
            screen.foreign(reason),
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2],
        );
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

fn for_pipes(session: &Session<'_>, servers: &[Value]) -> String {
    let row = |server: &Value| {
        let [_, start, place, reason] = cells(server);
        let tools = server["tools"].to_string();
        let (name, status) = (text(server, "name"), text(server, "status"));
        vec![
            name.to_owned(),
            status.to_owned(),
            tools,
            start,
            place,
            reason,
        ]
    };
    value::columns(session.screen, servers.iter().map(row).collect())
}

/// Tools, the time of its start, where it is configured, and why it does not run.
fn cells(server: &Value) -> [String; 4] {
    let tools = server["tools"].as_u64().unwrap_or(0) as usize;
    let is_known = text(server, "phase") == "running" || tools > 0;
    let reason = match text(server, "phase") {
        "running" if server["unstable"].is_string() => "unstable".to_owned(),
        "running" => String::new(),
        _ if is_on_its_way(server) => server["step"].as_str().unwrap_or_default().to_owned(),
        _ => text(server, "reason").to_owned(),
    };
    let start = match text(server, "phase") {
        "running" => millis(&server["start_ms"]),
        _ => String::new(),
    };
    let tools = match is_known {
        true => value::counted(tools, "tool"),
        false => String::new(),
    };
    [tools, start, text(server, "place").to_owned(), reason]
}

fn tell_what_is_missing(session: &Session<'_>, servers: &[Value]) {
    let is = |phase: &'static str| move |server: &&Value| text(server, "phase") == phase;
    let wanted = servers.len() - servers.iter().filter(is("disabled")).count();
    let mut down = servers.iter().filter(is("down"));
    if let Some(first) = down.next() {
        let running = servers.iter().filter(is("running")).count();
        session.screen.note(&format!(
            "\n{running} of {} run{}. See why: steadyhand mcp test {}",
            value::counted(wanted, "server"),
            if running == 1 { "s" } else { "" },
            text(first, "name")
        ));
    }
    let is_unstable = |server: &&Value| server["unstable"].is_string();
    for server in servers.iter().filter(is_unstable) {
        let (name, how) = (text(server, "name"), text(server, "unstable"));
        session.screen.note(&format!(
            "\n{name} is unstable: it {how}. See what it printed: steadyhand mcp logs {name}"
        ));
    }
}
