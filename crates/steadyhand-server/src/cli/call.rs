//! `steadyhand call`: run one tool, show its answer, end with the exit code of its outcome.

use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};
use steadyhand::{Call, Effect, Event, Failure, FailureCode, Outcome};
use tokio_util::sync::CancellationToken;

use super::error::{Exit, Failed};
use super::{Interrupts, STOPPING_MAX, Session, arguments, complete, value};
use crate::progress::Progress;
use crate::runtime::Runtime;
use crate::source::command;

#[derive(Args)]
pub(super) struct CallArgs {
    /// The tool
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
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum View {
    Structured,
    Flat,
    Message,
}

pub(super) async fn run(session: &Session<'_>, args: &CallArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    // Programs whose parents are gone become our children, so that none can slip away.
    command::adopt_orphans();
    let runtime = session.runtime(|options| {
        options.approved.clone_from(&args.approve);
        options.without_fallbacks = args.no_fallback;
        options.only = Some(args.tool.clone());
    });
    let runtime = tokio::select! {
        runtime = runtime => runtime?,
        code = interrupts.next() => {
            let failed = Failed::new(Exit::Signal(code), "interrupted", "interrupted before the tool was called");
            return Err(failed);
        }
    };
    if session.global.verbose > 0 {
        session.tell_problems(&runtime);
    }
    let call = read_call(session, args, &runtime)?;
    let watch = tell_attempts(session, &runtime);
    let (outcome, signal) = execute(session, &runtime, call, &mut interrupts).await;
    wait_for(watch).await;
    // A second interrupt does not wait for programs to tidy up: they are killed when the runtime ends.
    tokio::select! {
        () = runtime.settle(STOPPING_MAX) => {}
        _ = interrupts.next() => {}
    }
    show(session, args, &outcome, &runtime).map_err(|failed| failed.by_signal(signal))
}

fn read_call(session: &Session<'_>, args: &CallArgs, runtime: &Runtime) -> Result<Call, Failed> {
    let tool = runtime.manager().find(&args.tool);
    let schema = tool.map_or(Value::Null, |tool| tool.schema().clone());
    let folder = &session.surroundings.current;
    let arguments = arguments::read(&args.arguments, args.args.as_deref(), &schema, folder)?;
    let mut call = Call::new(&args.tool, arguments);
    if let Some(id) = &args.id {
        call = call.id(id);
    }
    let patience = [args.deadline, session.time_left()]
        .into_iter()
        .flatten()
        .min();
    if let Some(deadline) = patience {
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

/// Runs the call; an interrupt cancels it, and what it started is given a moment to stop.
async fn execute(
    session: &Session<'_>,
    runtime: &Runtime,
    call: Call,
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
    let signal = tokio::select! {
        outcome = &mut execution => return (outcome, None),
        signal = interrupts.next() => signal,
        never = show_that_it_runs(session, &name, deadline) => match never {},
    };
    token.cancel();
    (execution.await, Some(signal))
}

/// What runs shows its time, its deadline and how to stop it.
async fn show_that_it_runs(
    session: &Session<'_>,
    name: &str,
    deadline: Duration,
) -> std::convert::Infallible {
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
    eprintln!("{text}");
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

fn show(
    session: &Session<'_>,
    args: &CallArgs,
    outcome: &Outcome,
    runtime: &Runtime,
) -> Result<(), Failed> {
    let screen = session.screen;
    if screen.json {
        match args.view {
            View::Structured => screen.json(&outcome.structured()),
            View::Flat => screen.json(&outcome.flat()),
            View::Message => screen.json(&outcome.message()),
        }
    } else if let Some(output) = outcome.output() {
        match value::shown(screen, output.value()) {
            text if text.is_empty() => screen.note("The tool answered with no content."),
            text => screen.answer(&text),
        }
    }
    let took = value::duration(outcome.execution_time);
    let Some(failure) = outcome.failure() else {
        screen.note(&format!("{}, {took}", outcome.tool_name));
        return Ok(());
    };
    if outcome.fallback.is_some() {
        let message = format!(
            "degraded: {} failed after {took}: {}",
            outcome.tool_name, failure.message
        );
        match screen.json {
            true => screen.line_to_stderr(
                &json!({"warning": {"code": "fallback_used", "message": message}}).to_string(),
            ),
            false => screen.note(&message),
        }
        return Ok(());
    }
    let failed = failed(outcome, failure, &took);
    // A tool that is not there may be one of a source that could not be loaded.
    let problems = runtime.generation().problems.clone();
    Err(match failure.code {
        FailureCode::ToolNotFound => problems.iter().fold(failed, |failed, problem| {
            failed.evidence(&problem.name, &problem.reason)
        }),
        _ => failed,
    })
}

fn failed(outcome: &Outcome, failure: &Failure, took: &str) -> Failed {
    let tool = &outcome.tool_name;
    let failed = match failure.code {
        FailureCode::ValidationError if !failure.problems.is_empty() => {
            bad_arguments(tool, failure)
        }
        FailureCode::ToolNotFound => Failed::new(
            Exit::of(failure.code),
            failure.code.as_str(),
            format!("there is no tool {tool}"),
        )
        .help(match failure.suggestions.first() {
            Some(near) => format!("Did you mean {near}?\nsteadyhand tools list"),
            None => "steadyhand tools list".to_owned(),
        }),
        code => {
            let mut failed = Failed::new(
                Exit::of(code),
                code.as_str(),
                format!("{tool} {}", ending(failure)),
            )
            .evidence("reason", &failure.message)
            .evidence("code", code.as_str());
            if outcome.attempts > 1 {
                failed = failed.evidence("attempts", outcome.attempts.to_string());
            }
            failed = failed.evidence("took", took);
            // After the tool's own "no" there is no doubt that it answered.
            let is_answer = code == FailureCode::ToolExecutionError && !failure.retryable;
            if failure.effect != Effect::None && !is_answer {
                failed = failed.evidence("effect", effect(failure.effect));
            }
            failed.help(next_step(code, tool))
        }
    };
    failed
        .detail("tool", json!(tool))
        .detail("call_id", json!(outcome.call_id))
        .detail("retryable", json!(failure.retryable))
        .detail("effect", json!(failure.effect))
}

fn bad_arguments(tool: &str, failure: &Failure) -> Failed {
    let count = failure.problems.len();
    let words = if count == 1 {
        "1 argument does"
    } else {
        &format!("{count} arguments do")
    };
    let message = format!("{tool} was not called: {words} not fit");
    let mut failed = Failed::new(Exit::Usage, failure.code.as_str(), message);
    for problem in &failure.problems {
        let name = problem.at.trim_start_matches('/').replace('/', ".");
        let name = if name.is_empty() {
            "arguments".to_owned()
        } else {
            name
        };
        failed = failed.evidence(name, &problem.message);
    }
    let example = failure
        .example
        .as_ref()
        .map(|example| value::as_command(tool, example));
    let example = example
        .map(|example| format!("{example}\n"))
        .unwrap_or_default();
    failed.help(format!("{example}steadyhand tools show {tool}"))
}

/// What became of the tool, as the end of a sentence.
fn ending(failure: &Failure) -> &'static str {
    match failure.code {
        FailureCode::Timeout => "timed out",
        FailureCode::Cancelled => "was cancelled",
        FailureCode::AuthenticationError => "has no valid key",
        FailureCode::RateLimitError => "was called too often",
        FailureCode::NetworkError | FailureCode::ToolExecutionError => match failure.effect {
            Effect::None => "was not run",
            Effect::Unknown | Effect::Done => "failed",
        },
        FailureCode::ToolNotFound
        | FailureCode::ValidationError
        | FailureCode::CircuitOpen
        | FailureCode::Overloaded
        | FailureCode::ApprovalDenied
        | FailureCode::ApprovalExpired
        | FailureCode::IdempotencyConflict => "was not run",
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "none: it never reached the tool",
        Effect::Unknown => "unknown: it may have run",
        Effect::Done => "done: it ran",
    }
}

fn next_step(code: FailureCode, tool: &str) -> String {
    match code {
        FailureCode::NetworkError => {
            format!("Is the service behind it up? steadyhand tools show {tool}")
        }
        FailureCode::Timeout => {
            format!("Give it longer: timeout = \"…\" under [tools.{tool}], or --deadline")
        }
        FailureCode::AuthenticationError => {
            "Set the key it needs; steadyhand config check names it".to_owned()
        }
        FailureCode::RateLimitError => {
            "Try again later; limits = { rate = \"…\" } keeps below its limit".to_owned()
        }
        FailureCode::CircuitOpen => {
            "It has failed several times in a row; it is tried again after its cooldown".to_owned()
        }
        FailureCode::Overloaded => {
            "Raise limits = { concurrency = …, queue = … }, or call it less often".to_owned()
        }
        FailureCode::ApprovalDenied | FailureCode::ApprovalExpired => {
            format!("Allow it: --approve {tool}, or approval = \"never\" under [tools.{tool}]")
        }
        FailureCode::IdempotencyConflict => {
            "Use another --idempotency-key for other arguments".to_owned()
        }
        FailureCode::ValidationError => format!("steadyhand tools show {tool}"),
        FailureCode::ToolExecutionError | FailureCode::ToolNotFound => {
            format!("More detail: steadyhand call {tool} … -v")
        }
        FailureCode::Cancelled => "It was interrupted; what it started has been stopped".to_owned(),
    }
}
