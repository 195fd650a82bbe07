//! `steadyhand serve`: the tools over HTTP, until a signal ends it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::error::{Exit, Failed};
use super::rehearsal::RehearsalArgs;
use super::{Interrupts, Session, elsewhere, screen, starting, value};
use steadyhand_dashboard as dashboard;
use steadyhand_proxy::Proxy;
use steadyhand_runtime::approvals::Desk;
use steadyhand_runtime::audit::{AuditEvent, AuditLog};
use steadyhand_runtime::runtime::{Degraded, Options, Runtime};
use steadyhand_runtime::source::command;
use steadyhand_server::http::ServerParts;
use steadyhand_server::serve::{self, CannotServe, DRAIN_MAX, Drained, Fault, Server, Waiting};

/// Calls that are named while they are waited for; the others are counted.
const NAMED_MAX: usize = 5;
/// How long the files of other programs are looked at before the server says that it is there.
const LOOK_MAX: Duration = Duration::from_millis(300);

#[derive(Args)]
pub(super) struct ServeArgs {
    /// Address and port, such as 127.0.0.1:7400 or localhost:7400, or a port of this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = steadyhand_config::listen::listen_option)]
    listen: Option<SocketAddr>,
    /// Without a steadyhand.toml: no calls but yours
    #[arg(long)]
    no_demo_traffic: bool,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

/// Writes down that the server ends; on the disk when this returns, if that can be.
async fn note_stop(audit: &AuditLog, how: &str) {
    let event = AuditEvent::of_server("server.stop");
    let how = serde_json::json!({"how": how});
    audit.note(event.changed(None, Some(how)));
    audit.flush().await;
}

pub(super) async fn run(session: &Session<'_>, args: &ServeArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::without_hangup();
    command::adopt_orphans();
    serve::outlive_limits_of_files();
    let rehearsal = args.rehearsal.read(session)?;
    let configuration = session.configuration()?;
    session.log_as(&configuration);
    for warning in &configuration.warnings {
        tracing::warn!("{}", warning.on_one_line());
    }
    let mut settings = serve::settings_of(&configuration, &session.surroundings)
        .map_err(|cannot| failed(cannot, Exit::Config))?;
    let by_flag = args.listen.is_some();
    settings.listen = args.listen.unwrap_or(settings.listen);
    let usage = if by_flag { Exit::Usage } else { Exit::Config };
    let door = session.door_of_server(&configuration);
    settings
        .check(settings.listen, &door.keys)
        .map_err(|cannot| failed(cannot, usage))?;
    // The address first: a port that is taken is said before anything is started.
    let listener = serve::listen(&settings)
        .await
        .map_err(|cannot| failed(cannot, Exit::NotReachable))?;
    let keys = session.keys(configuration.file.as_deref());
    keys.check_soon();
    let desk = Desk::default();
    let pins = session.pins(configuration.file.as_deref());
    let is_demo = configuration.is_demo;
    let tells_starts = session.screen.tells_starts(&configuration.root.log) && !is_demo;
    let adapt = |options: &mut Options| {
        options.degraded = told(session, tells_starts);
        options.keys = Some(Arc::clone(&keys) as _);
        options.relays = true;
        options.desk = Some(desk.clone());
        options.pins = Some(pins.clone());
        rehearsal.apply(options);
    };
    let runtime = tokio::select! {
        runtime = session.runtime_of(configuration, adapt) => runtime?,
        code = interrupts.next() => {
            let message = "interrupted before the server was up";
            return Err(Failed::new(Exit::Signal(code), "interrupted", message));
        }
    };
    let history = session.history(&runtime.generation().configuration, &settings.history);
    if let Err(error) = history.attach(runtime.executor()) {
        session.screen.note(&format!(
            "Calls are not written down: no thread for it: {error}"
        ));
    }
    let take = rehearsal.begin(session, &runtime)?;
    let parts = ServerParts {
        door,
        desk,
        pins,
        proxy: Arc::new(Proxy::new(runtime.state())),
        pages: dashboard::PAGES,
    };
    let server = Server::new(listener, runtime.clone(), history, &settings, parts)
        .map_err(|cannot| failed(cannot, Exit::NotReachable))?;
    server.note_start();
    let audit = server.audit();
    if let Err(error) = server.announce(&session.state()) {
        session.screen.note(&format!(
            "Commands will not find this server: {} cannot be written: {}",
            session.state().display(),
            steadyhand_config::document::plain(&error)
        ));
    }
    let _watching = runtime.watch();
    tell_what_is_served(session, &runtime, &server, settings.dashboard).await;
    let is_quiet = !is_demo || args.no_demo_traffic;
    let ended = tokio::select! {
        never = server.accept() => match never {},
        never = server.follow(&session.surroundings) => match never {},
        never = server.watch() => match never {},
        never = session.follow_log_settings(&runtime) => match never {},
        never = starting::told(session, &runtime) => match never {},
        never = super::demo_traffic::traffic(server.app()), if !is_quiet => match never {},
        failure = runtime.required_failed() => Err(failure),
        code = interrupts.next() => Ok(code),
    };
    let drained = tokio::select! {
        drained = server.drain(|waiting| tell_what_is_waited_for(session, waiting)) => drained,
        code = interrupts.next() => {
            session.screen.note("Stopped at once; calls that still ran were cut off.");
            session.stop(&runtime, &mut interrupts).await;
            take.end(session).await;
            session.close_keys(Some(keys)).await;
            note_stop(&audit, "at once; calls that still ran were cut off").await;
            return Err(ended_by(code));
        }
    };
    session.stop(&runtime, &mut interrupts).await;
    take.end(session).await;
    session.close_keys(Some(keys)).await;
    note_stop(&audit, "every call was waited for").await;
    let code = match ended {
        Ok(code) => code,
        Err(failure) => {
            let name = &failure.server;
            let message = format!(
                "{name} is required, and did not start: {}",
                failure.summary()
            );
            return Err(Failed::new(Exit::NotReachable, "mcp_start_failed", message)
                .detail("server", name.as_str().into())
                .help(format!(
                    "steadyhand mcp test {name}; without required = true, the rest would be served"
                )));
        }
    };
    match drained {
        Drained { cancelled: 0 } => {
            session.screen.note("Stopped. Every call was answered.");
            Ok(())
        }
        Drained { cancelled } => {
            session.screen.note(&format!(
                "Stopped. {} did not end within {}, and was told so.",
                value::counted(cancelled, "call"),
                humantime::format_duration(DRAIN_MAX)
            ));
            Err(ended_by(code))
        }
    }
}

/// A server that did not start: what goes on working (SPEC V17), then what else is known. What is broken on purpose
/// needs no alarm.
fn told(session: &Session<'_>, tells_starts: bool) -> Degraded {
    let plain = session.screen.plain;
    Arc::new(move |text, failure| {
        if tells_starts {
            let (text, server) = (screen::marked(text, plain), &failure.server);
            let more = format!(
                "More: steadyhand mcp logs {server}     Again: steadyhand mcp restart {server}"
            );
            let detail = failure.detail_after_v17(&more);
            screen::line(&format!("{text}\n\n{detail}\n"));
        }
    })
}

fn ended_by(code: u8) -> Failed {
    Failed::silent(Exit::Signal(code))
}

fn failed(cannot: CannotServe, otherwise: Exit) -> Failed {
    let (exit, code) = match cannot.fault {
        Fault::Secret => (Exit::SignIn, "secret_missing"),
        Fault::Settings => (otherwise, "server_settings"),
        Fault::Address => (Exit::NotReachable, "address_unavailable"),
    };
    Failed::new(exit, code, cannot.message).help(cannot.help)
}

async fn tell_what_is_served(
    session: &Session<'_>,
    runtime: &Runtime,
    server: &Server,
    has_dashboard: bool,
) {
    let (address, scheme) = (server.address(), server.scheme());
    session.tell_problems(runtime);
    let generation = runtime.generation();
    let tools = value::counted(runtime.manager().len(), "tool");
    let ready_ms = session.started.elapsed().as_millis();
    if session.screen.json {
        session.screen.json(&serde_json::json!({
            "address": address.to_string(),
            "tools": runtime.manager().len(),
            "login": server.login_link(),
            "configuration": generation.configuration.file,
            "demo": generation.configuration.is_demo,
            "ready_ms": ready_ms as u64,
        }));
        return;
    }
    let mut text = match &generation.configuration.file {
        Some(file) => format!("{}: {tools}.\n", session.surroundings.shown(file).display()),
        None => format!(
            "No steadyhand.toml here, so this is the demo set ({tools}, and an MCP server that is broken on purpose; nothing leaves this machine).\n"
        ),
    };
    text.push('\n');
    if has_dashboard {
        text.push_str(&format!("  Dashboard  {scheme}://{address}/\n"));
    }
    if let Some(link) = server.login_link() {
        text.push_str(&format!(
            "  Log in     {link}      (once, to approve calls there)\n"
        ));
    }
    text.push_str(&format!("  MCP        {scheme}://{address}/mcp\n"));
    text.push_str(&format!("  REST       {scheme}://{address}/v1/tools\n"));
    if generation.configuration.is_demo {
        text.push_str(&what_to_try(session).await);
    } else if let Some(example) = example(runtime) {
        text.push_str(&format!("\n  Try        {example}\n"));
    }
    text.push_str(&format!("\nReady in {ready_ms} ms. Ctrl-C stops."));
    if !session.screen.quiet {
        session.screen.answer(&text);
    }
}

/// The first minute, and the way to tools of one's own.
async fn what_to_try(session: &Session<'_>) -> String {
    let surroundings = session.surroundings.clone();
    let look = move || {
        let found = elsewhere::everywhere(&surroundings, &surroundings.current);
        elsewhere::summary(&found)
    };
    // Files of other programs may be large, or lie on a slow disk: nobody waits for that.
    let looked = tokio::time::timeout(LOOK_MAX, tokio::task::spawn_blocking(look)).await;
    let found = looked.ok().and_then(Result::ok).flatten();
    let found = found.map_or("writes a steadyhand.toml".to_owned(), |found| {
        format!("found {found}")
    });
    format!(
        "\n  Try        steadyhand call weather city=Oslo\n             steadyhand chat \"Will it rain in Oslo?\"\n  Own tools  steadyhand init      ({found})\n"
    )
}

/// A call that would work, to begin with.
fn example(runtime: &Runtime) -> Option<String> {
    let tools = runtime.manager().list();
    let tool = tools
        .iter()
        .filter(|tool| runtime.unavailable(tool.name()).is_none())
        .min_by_key(|tool| tool.name() != "math_eval")?;
    let arguments = steadyhand::example_arguments(tool.schema())?;
    Some(value::as_command(tool.name(), &arguments))
}

fn tell_what_is_waited_for(session: &Session<'_>, waiting: &[Waiting]) {
    let named: Vec<String> = waiting
        .iter()
        .take(NAMED_MAX)
        .map(|call| {
            format!(
                "{} {} of {}",
                call.tool,
                value::duration(call.elapsed),
                value::duration(call.deadline)
            )
        })
        .collect();
    let more = match waiting.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    session.screen.note(&format!(
        "Stopping: waiting for {}, up to {}: {}{more}. Ctrl-C again ends at once.",
        value::counted(waiting.len(), "call"),
        humantime::format_duration(DRAIN_MAX.max(Duration::from_secs(1))),
        named.join(", ")
    ));
}
