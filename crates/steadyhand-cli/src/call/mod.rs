//! `steadyhand call`: run one tool, show its answer, end with the exit code of its outcome.

mod named_server;
mod there;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};
use steadyhand::{Call, Effect, Event, Failure, FailureCode, Outcome};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::chat::asking::{Asking, Denier};
use super::error::{Exit, Failed};
use super::outcome::{self, Ended};
use super::rehearsal::RehearsalArgs;
use super::remote::Remote;
use super::screen;
use super::{Interrupts, Session, arguments, chat, complete, starting, written};
use steadyhand_config::progress::Progress;
use steadyhand_runtime::approvals::Desk;
use steadyhand_runtime::runtime::Runtime;
use steadyhand_runtime::source::{command, mcp};
use steadyhand_server::views;

/// How long a call waits for its tool where nothing is said: as long as its deadline usually is.
const ARRIVAL_MAX: Duration = Duration::from_secs(60);

#[derive(Args, Clone)]
pub(super) struct CallArgs {
    /// The tool; or PROGRAM:SERVER of another program, such as claude-code:weather, and then the tool
    #[arg(add = ArgValueCandidates::new(complete::tool_names))]
    tool: String,
    /// name=value by the tool's schema, name:=JSON, name=@file, or - for JSON on stdin
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// All arguments as one JSON object
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// The shape of the answer with --json
    #[arg(long, value_enum, default_value_t = View::Structured)]
    view: View,
    /// The call's id; made up if not given
    #[arg(long)]
    id: Option<String>,
    /// The limit for the whole call, waits and retries included, such as 10s
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    deadline: Option<Duration>,
    /// A key that is handed to the tool, so that its service runs calls with the same one once
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// One attempt only
    #[arg(long)]
    no_retry: bool,
    /// The bare error instead of a fallback's answer
    #[arg(long)]
    no_fallback: bool,
    /// Allow a tool that needs approval: a name, or a pattern
    #[arg(long, value_name = "NAME")]
    approve: Vec<String>,
    /// Ask this MCP server, without any configuration: its command line, in quotes
    #[arg(long, value_name = "COMMAND")]
    mcp: Option<String>,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum View {
    Structured,
    Flat,
    Message,
}

impl View {
    fn as_str(self) -> &'static str {
        match self {
            View::Structured => "structured",
            View::Flat => "flat",
            View::Message => "message",
        }
    }
}

pub(super) async fn run(session: &Session<'_>, args: &CallArgs) -> Result<(), Failed> {
    let (args, elsewhere) = named_server::taken_apart(args, &session.surroundings)?;
    let args = &args;
    let mut interrupts = Interrupts::listen();
    // What is allowed or left out for one call cannot be told to a server.
    let is_special = args.no_fallback
        || !args.approve.is_empty()
        || args.mcp.is_some()
        || args.rehearsal.is_asked_for();
    if !is_special && let Some(remote) = Remote::find(session).await {
        return there::run(session, args, &remote, &mut interrupts).await;
    }
    if is_special
        && args.mcp.is_none()
        && let Ok(remote) = Remote::look(session, "cli").await
    {
        session.screen.note(&format!(
            "Running in this process, not in the server at {}: --no-fallback, --approve, --record, --replay and --chaos are for one call here",
            remote.address()
        ));
    }
    let rehearsal = args.rehearsal.read(session)?;
    // Programs whose parents are gone become our children, so that none can slip away.
    command::adopt_orphans();
    let (configuration, servers) = match (elsewhere, &args.mcp) {
        (Some(server), _) => named_server::beside_nothing(server, &session.surroundings),
        (None, Some(command)) => named_server::of(command, &session.surroundings)?,
        (None, None) => (session.configuration()?, Vec::new()),
    };
    // A person who sits in front of it is asked.
    let desk = chat::can_ask(session).then(Desk::default);
    if let Some(desk) = &desk {
        desk.set_wait(configuration.approval_wait());
    }
    let audit = desk
        .as_ref()
        .map(|desk| session.audit_approvals(desk, &configuration, None));
    let keys = args.idempotency_key.is_some().then(|| {
        let found = session.found().map(|found| found.path);
        session.keys(found.as_deref())
    });
    let runtime = session.runtime_of(configuration, |options| {
        options.approved.clone_from(&args.approve);
        options.desk.clone_from(&desk);
        options.without_fallbacks = args.no_fallback;
        options.only = Some(args.tool.clone());
        options.servers = servers;
        // It is said with the call's own end.
        options.degraded = Arc::new(|_, _| {});
        options.keys = keys.clone().map(|keys| keys as _);
        rehearsal.apply(options);
    });
    let runtime = tokio::select! {
        runtime = runtime => runtime?,
        code = interrupts.next() => return Err(before_the_call(code)),
    };
    let take = rehearsal.begin(session, &runtime)?;
    let asking = desk.map(|desk| Asking::new(desk, "this command"));
    let ended = run_here(session, args, &runtime, asking, &mut interrupts).await;
    // Whatever became of the call, nothing that was started for it stays.
    session.stop(&runtime, &mut interrupts).await;
    take.end(session).await;
    session.close_keys(keys).await;
    if let Some(audit) = audit {
        audit.flush().await;
    }
    ended
}

async fn run_here(
    session: &Session<'_>,
    args: &CallArgs,
    runtime: &Runtime,
    asking: Option<Asking>,
    interrupts: &mut Interrupts,
) -> Result<(), Failed> {
    if session.global.verbose > 0 {
        session.tell_problems(runtime);
    }
    let (since, limit) = (Instant::now(), patience(session, args));
    arrived(session, args, runtime, interrupts).await?;
    let tool = runtime.manager().find(&args.tool);
    let schema = tool.map_or(Value::Null, |tool| tool.schema().clone());
    let mut call = read_call(session, args, &schema)?.caller("cli");
    // The wait for its server is a part of the call's time.
    (call.waiting_since, call.deadline) = (Some(since), limit);
    let history = session.remember(runtime);
    let watch = tell_attempts(session, runtime);
    let (outcome, signal) = execute(session, runtime, call, asking, interrupts).await;
    wait_for(watch).await;
    if session.screen.json {
        match args.view {
            View::Structured => session.screen.json(&outcome.structured()),
            View::Flat => session.screen.json(&outcome.flat()),
            View::Message => session.screen.json(&outcome.message()),
        }
    }
    for server in runtime.servers() {
        if let Some((text, _)) = runtime.degradation(&server.name) {
            let text = screen::marked(&text, session.screen.plain);
            session.screen.note(&format!("{text}\n"));
        }
    }
    written(session, history).await;
    let mut ended = Ended::from(&outcome);
    ended.settings_at = settings_place(args, runtime);
    outcome::show(session, &ended)
        .map_err(|failed| explained(session, failed, &ended, args, runtime).by_signal(signal))
}

/// Waits for a tool of a server that is still starting: its schema says how arguments are read. Why a tool does not
/// come, its call says.
async fn arrived(
    session: &Session<'_>,
    args: &CallArgs,
    runtime: &Runtime,
    interrupts: &mut Interrupts,
) -> Result<(), Failed> {
    let patience = patience(session, args).unwrap_or(ARRIVAL_MAX);
    tokio::select! {
        _ = tokio::time::timeout(patience, runtime.arrival(&args.tool)) => Ok(()),
        code = interrupts.next() => Err(before_the_call(code)),
        never = starting::shown(session, runtime) => match never {},
    }
}

fn before_the_call(code: u8) -> Failed {
    let message = "interrupted before the tool was called";
    Failed::new(Exit::Signal(code), "interrupted", message)
}

/// Where to write what the call needs; a server that is configured nowhere has only options.
fn settings_place(args: &CallArgs, runtime: &Runtime) -> Option<String> {
    if args.mcp.is_some() {
        return Some("in a configuration (steadyhand mcp add), or here with --timeout".to_owned());
    }
    let tool = runtime.manager().find(&args.tool)?;
    let place = outcome::settings_place(tool.kind(), tool.source(), tool.name());
    Some(place)
}

/// More than the call itself could know: the whole story of a server that did not start, or what is missing.
fn explained(
    session: &Session<'_>,
    failed: Failed,
    ended: &Ended,
    args: &CallArgs,
    runtime: &Runtime,
) -> Failed {
    let Some(failure) = &ended.failure else {
        return failed;
    };
    if failure.code == FailureCode::NetworkError
        && failure.effect == Effect::None
        && let Some(start) = runtime.failed_start_of(&args.tool)
    {
        let server = &start.server;
        // One that is configured nowhere has no other commands.
        let more = match args.mcp {
            Some(_) => format!("More: steadyhand mcp logs {server}"),
            None => format!(
                "More: steadyhand mcp logs {server}     Again: steadyhand mcp test {server}"
            ),
        };
        return Failed::of_start(&start, &more, !session.screen.quiet)
            .detail("tool", json!(ended.tool_name))
            .detail("call_id", json!(ended.call_id))
            .detail("effect", json!(failure.effect));
    }
    let is_too_late = failure.code == FailureCode::Timeout && failure.effect == Effect::None;
    let mut starting = runtime.servers().into_iter();
    let failing = starting.find_map(|server| {
        let is_late = is_too_late && server.phase.is_on_its_way();
        server.failure.filter(|_| is_late)
    });
    // More time would not help a server that ends.
    let failed = match failing {
        Some(start) if args.mcp.is_some() => failed.help(format!("Check: {}", start.hints(&[]))),
        Some(start) => failed.help(format!(
            "See every step of its start: steadyhand mcp test {}",
            start.server
        )),
        None => failed,
    };
    with_problems(session, failed, ended, runtime)
}

/// The tool of a server that was asked for by its bare name. That server was not started for it; what is known of its
/// tools from earlier times tells which it is.
fn tool_of_a_server(session: &Session<'_>, runtime: &Runtime, name: &str) -> Option<String> {
    let generation = runtime.generation();
    let configuration = &generation.configuration;
    let kept = mcp::Kept::new(configuration, &session.surroundings).in_state(runtime.state());
    let servers = configuration.tools.iter().filter(|table| table.is_server());
    let names: Vec<String> = servers
        .clone()
        .flat_map(|table| kept.tool_names(table))
        .collect();
    let near = views::tools::near_of(name, names.iter().map(String::as_str));
    match (near, servers.map(|table| &table.name).next()) {
        (Some(near), _) => Some(format!("Did you mean {near}?\nsteadyhand tools list")),
        (None, Some(server)) if !name.contains("__") => Some(format!(
            "A tool of an MCP server has the server's name before its own, such as {server}__{name}\nsteadyhand tools list"
        )),
        (None, _) => None,
    }
}

/// A tool that is not there may be one of a source that could not be loaded.
fn with_problems(
    session: &Session<'_>,
    failed: Failed,
    ended: &Ended,
    runtime: &Runtime,
) -> Failed {
    let is_unknown = |failure: &&Failure| failure.code == FailureCode::ToolNotFound;
    let Some(failure) = ended.failure.as_ref().filter(is_unknown) else {
        return failed;
    };
    let help = match failure.suggestions.is_empty() {
        true => tool_of_a_server(session, runtime, &ended.tool_name),
        false => None,
    };
    let failed = match help {
        Some(help) => failed.help(help),
        None => failed,
    };
    let left_out = runtime.left_out().into_iter();
    let left_out = left_out.filter(|(_, it)| it.name == ended.tool_name);
    let failed = left_out.fold(failed, |failed, (_, it)| {
        failed.evidence(it.name, it.reason)
    });
    let problems = &runtime.generation().problems;
    problems.iter().fold(failed, |failed, problem| {
        failed.evidence(&problem.name, &problem.reason)
    })
}

fn read_call(session: &Session<'_>, args: &CallArgs, schema: &Value) -> Result<Call, Failed> {
    let folder = &session.surroundings.current;
    let arguments = arguments::read(&args.arguments, args.args.as_deref(), schema, folder)?;
    let mut call = Call::new(&args.tool, arguments);
    if let Some(id) = &args.id {
        call = call.id(id);
    }
    if let Some(deadline) = patience(session, args) {
        call = call.deadline(deadline);
    }
    if let Some(key) = &args.idempotency_key {
        call = call.idempotency_key(key);
    }
    if args.no_retry {
        call = call.no_retry();
    }
    Ok(call)
}

/// How long the call may take, where that is said.
fn patience(session: &Session<'_>, args: &CallArgs) -> Option<Duration> {
    let said = [args.deadline, session.time_left()];
    said.into_iter().flatten().min()
}

/// Runs the call; an interrupt cancels it, and what it started is given a moment to stop.
async fn execute(
    session: &Session<'_>,
    runtime: &Runtime,
    call: Call,
    mut asking: Option<Asking>,
    interrupts: &mut Interrupts,
) -> (Outcome, Option<u8>) {
    let token = CancellationToken::new();
    let name = call.name.clone();
    let policy = runtime.manager().policy(&name);
    let deadline = call
        .deadline
        .or(policy.map(|policy| policy.deadline))
        .unwrap_or_default();
    let call = call.cancellation(token.clone());
    let execution = runtime.executor().execute(call);
    tokio::pin!(execution);
    let denier = asking.as_ref().map(Asking::denier);
    let may_ask = asking.is_some() && needs_approval(runtime, &name);
    let attending = async {
        match &mut asking {
            Some(asking) => asking.attend(session, |_| {}).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(attending);
    let running = async {
        // A question and a bar that is drawn again and again do not go together.
        match may_ask {
            true => std::future::pending().await,
            false => show_that_it_runs(session, runtime, &name, deadline).await,
        }
    };
    tokio::pin!(running);
    let signal = loop {
        tokio::select! {
            outcome = &mut execution => return (outcome, None),
            signal = interrupts.next() => {
                // A question is answered with no; the next signal ends the rest.
                if !denier.as_ref().is_some_and(Denier::deny) {
                    break signal;
                }
            }
            never = &mut running => match never {},
            never = &mut attending => match never {},
        }
    };
    token.cancel();
    (execution.await, Some(signal))
}

fn needs_approval(runtime: &Runtime, name: &str) -> bool {
    let tool = views::tools::one(runtime, name).unwrap_or_default();
    tool["policy"]["approval"]["value"] != "never"
}

/// What runs shows its time, its deadline and how to stop it.
async fn show_that_it_runs(
    session: &Session<'_>,
    runtime: &Runtime,
    name: &str,
    deadline: Duration,
) -> std::convert::Infallible {
    // Its server may have to start first.
    starting::shown_until_up(session, runtime).await;
    let shown = Running {
        progress: session.screen.live_progress(),
        what: format!("{name} runs, Ctrl-C stops it: seconds"),
    };
    for seconds in 0.. {
        shown
            .progress
            .step(&shown.what, seconds, deadline.as_secs());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    std::future::pending().await
}

struct Running {
    progress: Progress,
    what: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.progress.finished(&self.what);
    }
}

/// While it runs: one line for every attempt that failed and every fallback.
fn tell_attempts(session: &Session<'_>, runtime: &Runtime) -> Option<steadyhand::Watch> {
    if session.screen.quiet || session.screen.json {
        return None;
    }
    let mark = if session.screen.plain { "!" } else { "▲" };
    let tell = move |event: &Event| match event {
        Event::AttemptFailed {
            attempt,
            message,
            retry_in_ms: Some(wait),
            ..
        } => {
            line(&format!(
                "  {mark} {message}; attempt {attempt}, next in {wait:.0} ms"
            ));
        }
        Event::FallbackStarted { tool_name, .. } => {
            line(&format!("  {mark} {tool_name} failed, asking its fallback"));
        }
        Event::FallbackFailed { message, .. } => {
            line(&format!("  {mark} the fallback failed too: {message}"));
        }
        _ => {}
    };
    runtime.executor().observe(tell).ok()
}

#[allow(clippy::print_stderr, reason = "what happens goes to stderr")]
fn line(text: &str) {
    eprintln!("{}", screen::visible(text));
}

/// The lines about attempts come before the answer.
async fn wait_for(watch: Option<steadyhand::Watch>) {
    for _ in 0..100 {
        if watch.as_ref().is_none_or(steadyhand::Watch::is_up_to_date) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
