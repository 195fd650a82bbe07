//! How a call ended, for people and as an exit code: what happened, the evidence, the next step.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Effect, Failure, FailureCode, Outcome};

use super::error::{Exit, Failed};
use super::{Session, value};
use steadyhand_config::document::escaped;
use steadyhand_config::words::dotted;

/// An outcome of a call that ran here, or of one that a server ran.
pub(super) struct Ended {
    pub(super) tool_name: String,
    pub(super) call_id: String,
    pub(super) output: Option<Value>,
    pub(super) failure: Option<Failure>,
    pub(super) took: Duration,
    attempts: u32,
    is_fallback: bool,
    dropped_arguments: Vec<String>,
    /// Where the tool's settings stand; see [`settings_place`].
    pub(super) settings_at: Option<String>,
}

impl From<&Outcome> for Ended {
    fn from(outcome: &Outcome) -> Ended {
        Ended {
            tool_name: outcome.tool_name.clone(),
            call_id: outcome.call_id.clone(),
            output: outcome.output().map(|output| output.value().clone()),
            failure: outcome.failure().cloned(),
            took: outcome.execution_time,
            attempts: outcome.attempts,
            is_fallback: outcome.fallback.is_some(),
            dropped_arguments: outcome.dropped_arguments.clone(),
            settings_at: None,
        }
    }
}

impl Ended {
    /// Out of the structured view.
    pub(super) fn read(view: &Value) -> Result<Ended, Failed> {
        let text = |name: &str| view[name].as_str().map(str::to_owned);
        let failure = match view.get("error") {
            None => Ok(None),
            Some(error) => serde_json::from_value(error.clone()).map(Some),
        };
        match (text("toolName"), text("callId"), failure) {
            (Some(tool_name), Some(call_id), Ok(failure)) => Ok(Ended {
                tool_name,
                call_id,
                output: view.get("output").cloned(),
                failure,
                took: millis(&view["executionTime"]),
                attempts: view["attempts"].as_u64().unwrap_or(0) as u32,
                is_fallback: view["fallbackUsed"] == true,
                dropped_arguments: serde_json::from_value(view["droppedArguments"].clone())
                    .unwrap_or_default(),
                settings_at: None,
            }),
            _ => Err(Failed::unexpected("the server's answer is no outcome")),
        }
    }

    /// Whether the command that ran it may end well: a fallback's answer is an answer.
    pub(super) fn is_answered(&self) -> bool {
        self.failure.is_none() || self.is_fallback
    }
}

fn millis(ms: &Value) -> Duration {
    Duration::try_from_secs_f64(ms.as_f64().unwrap_or(0.0) / 1000.0).unwrap_or_default()
}

/// Prints the answer for people; notes and failures go to stderr.
pub(super) fn show(session: &Session<'_>, ended: &Ended) -> Result<(), Failed> {
    let screen = session.screen;
    if !screen.json
        && let Some(output) = &ended.output
    {
        match value::shown(screen, output) {
            text if text.is_empty() => screen.note("The tool answered with no content."),
            text => screen.exact(&text),
        }
    }
    if !ended.dropped_arguments.is_empty() {
        screen.note(&format!(
            "Not passed on, since {} does not take it: {}",
            ended.tool_name,
            ended.dropped_arguments.join(", ")
        ));
    }
    let took = value::duration(ended.took);
    let Some(failure) = &ended.failure else {
        screen.note(&format!("{}, {took}", ended.tool_name));
        return Ok(());
    };
    if ended.is_fallback {
        let message = format!(
            "degraded: {} failed after {took}: {}",
            ended.tool_name,
            failure.message_with_effect()
        );
        match screen.json {
            true => screen.line_to_stderr(
                &json!({"warning": {"code": "fallback_used", "message": message}}).to_string(),
            ),
            false => screen.note(&message),
        }
        return Ok(());
    }
    Err(failed(ended, failure))
}

/// The failure of a call as the failure of a command.
pub(super) fn failed(ended: &Ended, failure: &Failure) -> Failed {
    let tool = &ended.tool_name;
    let failed = match failure.code {
        FailureCode::ValidationError if !failure.problems.is_empty() => {
            bad_arguments(tool, failure)
        }
        FailureCode::ValidationError if tool.is_empty() => Failed::new(
            Exit::of(failure.code),
            failure.code.as_str(),
            failure.message.clone(),
        )
        .help("A call is an object such as {\"name\": \"echo\", \"args\": {}}"),
        FailureCode::ToolNotFound => Failed::new(
            Exit::of(failure.code),
            failure.code.as_str(),
            format!("there is no tool {tool}"),
        )
        .evidence("effect", failure.effect_sentence())
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
            if ended.attempts > 1 {
                failed = failed.evidence("attempts", ended.attempts.to_string());
            }
            failed
                .evidence("took", value::duration(ended.took))
                .evidence("effect", failure.effect_sentence())
                .help(next_step(code, tool, ended.settings_at.as_deref()))
        }
    };
    failed
        .detail("tool", json!(tool))
        .detail("call_id", json!(ended.call_id))
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
    let message = match failure.effect {
        Effect::None => format!("{tool} was not run: {words} not fit"),
        Effect::Done | Effect::Unknown => {
            format!("{tool} did not accept its arguments: {words} not fit")
        }
    };
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
    if failure.effect != Effect::None {
        failed = failed.evidence("effect", failure.effect_sentence());
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
    if failure.effect == Effect::None && failure.code != FailureCode::Cancelled {
        return "was not run";
    }
    match failure.code {
        FailureCode::Timeout => "timed out",
        FailureCode::Cancelled => "was cancelled",
        FailureCode::AuthenticationError => "has no valid key",
        FailureCode::RateLimitError => "was called too often",
        FailureCode::NetworkError
        | FailureCode::ToolExecutionError
        | FailureCode::ToolNotFound
        | FailureCode::ValidationError
        | FailureCode::CircuitOpen
        | FailureCode::Overloaded
        | FailureCode::ApprovalDenied
        | FailureCode::ApprovalExpired
        | FailureCode::IdempotencyConflict => "failed",
    }
}

/// Where the settings of a tool stand in the configuration: `under [tools.weather]`, or for one of several tools of a
/// source `under [mcp.files], as each.files__read = { … }`.
pub(super) fn settings_place(kind: &str, source: Option<&str>, tool: &str) -> String {
    let section = if kind == "mcp" { "mcp" } else { "tools" };
    match source.filter(|source| section == "mcp" || *source != tool) {
        Some(source) => {
            let (table, key) = (
                dotted(&format!("/{section}/{}", escaped(source))),
                key(tool),
            );
            format!("under [{table}], as each.{key} = {{ … }}")
        }
        None => format!("under [{}]", dotted(&format!("/tools/{}", escaped(tool)))),
    }
}

fn key(name: &str) -> String {
    dotted(&format!("/{}", escaped(name)))
}

fn next_step(code: FailureCode, tool: &str, settings_at: Option<&str>) -> String {
    let there = settings_at.unwrap_or("where it is configured");
    match code {
        // A tool of a server that is away is not there to be shown.
        FailureCode::NetworkError if tool.contains("__") => {
            "Is its server up? steadyhand mcp list".to_owned()
        }
        FailureCode::NetworkError => {
            format!("Is the service behind it up? steadyhand tools show {tool}")
        }
        FailureCode::Timeout => {
            format!("Give it longer: timeout (one attempt) or deadline (the call) {there}")
        }
        FailureCode::AuthenticationError => {
            "Set the key it needs; steadyhand config check names it".to_owned()
        }
        FailureCode::RateLimitError => {
            format!("Try again later; limits = {{ rate = \"10/s\" }} {there} keeps below its limit")
        }
        FailureCode::CircuitOpen => {
            format!(
                "Until when: steadyhand tools show {tool}. To try it now: steadyhand tools reset {tool}"
            )
        }
        FailureCode::Overloaded => {
            format!(
                "If it is the queue: raise limits = {{ concurrency = …, queue = … }} {there}, or call it less often"
            )
        }
        FailureCode::ApprovalDenied | FailureCode::ApprovalExpired => {
            format!("Allow it: --approve {tool}, or approval = \"never\" {there}")
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
