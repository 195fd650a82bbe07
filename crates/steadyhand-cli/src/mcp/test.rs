//! `steadyhand mcp test`: one start of one server, every step of it, and what it offers.

use std::sync::Arc;

use serde_json::{Value, json};
use steadyhand_mcp::{Phase, ServerState};

use super::super::error::{Exit, Failed};
use super::super::screen;
use super::super::starting::{self, text};
use super::super::{Interrupts, Session, value};
use super::no_such_server;
use steadyhand_config::Configuration;
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::views;

pub(super) async fn run(session: &Session<'_>, name: &str) -> Result<(), Failed> {
    let configuration = only(session.configuration()?, name)?;
    let runtime = session.runtime_of(configuration, |options| {
        // It is told here, in its place.
        options.degraded = Arc::new(|_, _| {});
        options.pins = None;
    });
    let runtime = runtime.await?;
    starting::waited_for(session, &runtime).await?;
    let shown = show(session, &runtime, name);
    session.stop(&runtime, &mut Interrupts::listen()).await;
    shown
}

/// One attempt of this server; of the rest only what costs nothing, to be named as what goes on working.
fn only(mut configuration: Configuration, name: &str) -> Result<Configuration, Failed> {
    let is_it = |table: &steadyhand_config::ToolTable| table.is_server() && table.name == name;
    let off = |reason: String| {
        let failed = Failed::new(Exit::NotReachable, "server_disabled", reason);
        failed.detail("server", name.into())
    };
    let Some(table) = configuration.tools.iter_mut().find(|table| is_it(table)) else {
        let mut imported = configuration.imported.servers.iter();
        return Err(match imported.find(|server| server.name == name) {
            Some(server) => off(format!("{name} is switched off in {}", server.origin)),
            None => no_such_server(&configuration, name),
        });
    };
    if table.own.get("disabled") == Some(&json!(true)) {
        let place = table.place.clone().unwrap_or_default();
        return Err(off(format!(
            "{name} is switched off: disabled = true ({place})"
        )));
    }
    table.set_start("waits", json!(["0s"]));
    table.set_start("when", json!("boot"));
    configuration
        .tools
        .retain(|table| is_it(table) || !table.kind.brings_many);
    Ok(configuration)
}

fn show(session: &Session<'_>, runtime: &Runtime, name: &str) -> Result<(), Failed> {
    let Some(server) = runtime.server(name) else {
        return Err(not_built(runtime, name));
    };
    let state = server.state();
    tell_steps(session, &state);
    if let Some((v17, failure)) = runtime.degradation(name) {
        let v17 = screen::marked(&v17, session.screen.plain);
        session.screen.note(&format!("{v17}\n"));
        let more =
            format!("More: steadyhand mcp logs {name}     Again: steadyhand mcp test {name}");
        return Err(Failed::of_start(&failure, &more, !session.screen.quiet));
    }
    if state.phase != Phase::Running {
        let at = state
            .step
            .map(|step| format!(" at {step}"))
            .unwrap_or_default();
        let known = state.so_far().map(|known| format!("; {known}"));
        let message = format!(
            "{name} was still {}{at} when the time was up{}",
            state.phase.word(),
            known.unwrap_or_default()
        );
        let failed = Failed::new(Exit::TimedOut, "timed_out", message);
        return Err(failed.help("Give it longer with --timeout, or start = { timeout = \"…\" }"));
    }
    let tools: Vec<Value> = tools(runtime, name);
    if session.screen.json {
        let mut view = views::servers::one(runtime, name).unwrap_or_default();
        view["offers"] = json!(tools);
        if !state.unusable.is_empty() {
            view["unusable"] = json!(state.unusable);
        }
        session.screen.json(&view);
        return Ok(());
    }
    let screen = session.screen;
    let rows = tools.iter().map(|tool| {
        let about = text(tool, "description").lines().next().unwrap_or_default();
        vec![text(tool, "name").to_owned(), about.to_owned()]
    });
    screen.answer(&value::columns(screen, rows.collect()));
    tell_remarks(session, &state);
    Ok(())
}

fn tools(runtime: &Runtime, name: &str) -> Vec<Value> {
    let tools = runtime.manager().list();
    let of_it = tools
        .iter()
        .filter(|tool| tool.kind() == "mcp" && tool.source() == Some(name));
    of_it
        .map(|tool| json!({"name": tool.name(), "description": tool.description()}))
        .collect()
}

/// Each step that was done with what it gave and how long it took.
fn tell_steps(session: &Session<'_>, state: &ServerState) {
    for done in &state.steps {
        let gave = match done.step {
            steadyhand_mcp::Step::FindCommand => state.program.clone(),
            steadyhand_mcp::Step::Start => state.pid.map(|pid| format!("pid {pid}")),
            steadyhand_mcp::Step::Connect => Some(state.command.clone()),
            steadyhand_mcp::Step::Initialize => state.greeting.as_ref().map(|greeting| {
                let said = |name: &str| greeting.server_info[name].as_str().unwrap_or_default();
                let who = format!("{} {}", said("name"), said("version"));
                format!("{}, protocol {}", who.trim(), greeting.protocol_version)
            }),
            steadyhand_mcp::Step::ListTools => Some(value::counted(state.tools, "tool")),
            steadyhand_mcp::Step::Running => None,
        };
        let took = starting::millis(&json!(done.took_ms));
        let gave = gave.unwrap_or_else(|| "ok".to_owned());
        session
            .screen
            .note(&format!("  {:13}  {gave}   {took}", done.step));
    }
    if let Some(failure) = &state.failure {
        session.screen.note(&format!(
            "  {:13}  failed, after {}\n",
            failure.step,
            value::duration(failure.elapsed)
        ));
    }
    if state.phase == Phase::Running {
        let took = starting::millis(&json!(state.start_ms));
        let noise = match state.noise_lines {
            0 => String::new(),
            lines => format!(
                "; {} on stdout that {} no MCP",
                value::counted(lines as usize, "line"),
                if lines == 1 { "is" } else { "are" }
            ),
        };
        session
            .screen
            .note(&format!("{} runs, after {took}{noise}\n", state.name));
    }
}

fn tell_remarks(session: &Session<'_>, state: &ServerState) {
    for tool in state.unusable.iter() {
        session
            .screen
            .note(&format!("cannot be used: {}: {}", tool.name, tool.reason));
    }
    for note in &state.notes {
        session.screen.note(&format!("note: {note}"));
    }
}

/// A secret is missing, or its transport is not there yet.
fn not_built(runtime: &Runtime, name: &str) -> Failed {
    let mut unused = runtime.servers_not_used().into_iter();
    let reason = unused.find(|server| server.name == name);
    let reason = reason.map(|server| server.reason).unwrap_or_default();
    Failed::new(Exit::NotReachable, "server_disabled", reason).detail("server", name.into())
}
