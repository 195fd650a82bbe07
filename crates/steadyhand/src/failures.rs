//! The failures of a call, in words: one function per way to fail.

use std::time::Duration;

use serde_json::Value;

use crate::call::Call;
use crate::cut;
use crate::failure::{Effect, Failure, FailureCode};
use crate::guard::attempt::contained;
use crate::manager::Entry;
use crate::redact;
use crate::tool_error::{ToolError, friendly_text};

/// A failure's text is cut to this size.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// What a refusal quotes of the failure behind it.
const CAUSE_BYTES_MAX: usize = 200;

/// A call that names no tool, or could not be read at all: no tool is looked for.
pub(crate) fn malformed(call: &Call) -> Option<Box<Failure>> {
    let fault = match &call.fault {
        Some(fault) => fault.as_str(),
        None if call.name.trim().is_empty() => "it names no tool",
        None => return None,
    };
    let message = format!("Invalid call: {fault}");
    let friendly = "The assistant asked for a tool in a way that cannot be understood.";
    let failure = Failure::new(FailureCode::ValidationError, Effect::None, message);
    Some(Box::new(failure.for_people(friendly)))
}

/// A tool's own error, read by its type, its classifier, its words.
pub(crate) fn read_error(error: ToolError, entry: &Entry, args: &Value) -> Box<Failure> {
    let error = match &entry.policy.classifier {
        None => error,
        Some(classify) => match contained(|| classify(&error)) {
            Ok(Some(category)) => error.reclassified(category),
            Ok(None) => error,
            Err(panic) => {
                tracing::warn!(tool = entry.tool.name(), panic, "its classifier panicked");
                error
            }
        },
    };
    let mut failure = error.into_failure(entry.tool.name());
    failure.message = tidy(failure.message, args);
    failure.user_message = tidy(failure.user_message, args);
    for problem in &mut failure.problems {
        problem.message = tidy(std::mem::take(&mut problem.message), args);
        problem.got = problem.got.take().map(|got| tidy(got, args));
    }
    Box::new(failure)
}

pub(crate) fn panicked(text: &str, entry: &Entry, args: &Value) -> Box<Failure> {
    let message = tidy(format!("the tool panicked: {text}"), args);
    of(
        FailureCode::ToolExecutionError,
        Effect::Unknown,
        entry,
        message,
    )
}

pub(crate) fn timed_out(entry: &Entry, after: Duration, by_timeout: bool) -> Box<Failure> {
    let which = match by_timeout {
        true => "its time limit",
        false => "the call's deadline",
    };
    // What a deadline leaves is never round.
    let after = match after.as_millis() {
        0..10 => after,
        _ => Duration::from_millis((after.as_secs_f64() * 1000.0).round() as u64),
    };
    let message = format!(
        "'{}' was stopped after {after:?} by {which}",
        entry.tool.name()
    );
    of(FailureCode::Timeout, Effect::Unknown, entry, message)
}

pub(crate) fn cancelled(entry: &Entry, effect: Effect) -> Box<Failure> {
    let message = match effect {
        Effect::None => format!("cancelled before '{}' was started", entry.tool.name()),
        Effect::Unknown | Effect::Done => {
            format!("cancelled after '{}' was started", entry.tool.name())
        }
    };
    of(FailureCode::Cancelled, effect, entry, message)
}

pub(crate) fn no_room(entry: &Entry) -> Box<Failure> {
    let limit = entry.policy.limit;
    let message = format!(
        "{} calls of '{}' run and {} wait; there is no room for more",
        limit.concurrent,
        entry.tool.name(),
        limit.queue
    );
    refused(FailureCode::Overloaded, entry, message)
}

pub(crate) fn too_late(entry: &Entry) -> Box<Failure> {
    let message = format!(
        "the deadline passed before '{}' could be started",
        entry.tool.name()
    );
    let mut failure = refused(FailureCode::Timeout, entry, message);
    // It waited for us, not for the tool.
    failure.neutral = true;
    failure
}

pub(crate) fn circuit_open(entry: &Entry) -> Box<Failure> {
    let failures = entry
        .breaker
        .as_ref()
        .map_or(0, |breaker| breaker.failures());
    let last = entry.last_failure().map_or(String::new(), |last| {
        let said = cut::text(&last.message, CAUSE_BYTES_MAX);
        format!(", the last one: {said}")
    });
    let message = format!(
        "the breaker of '{}' is open after {failures} failures in a row{last}",
        entry.tool.name()
    );
    refused(FailureCode::CircuitOpen, entry, message)
}

/// A refusal of ours: the tool was not started.
pub(crate) fn refused(code: FailureCode, entry: &Entry, message: String) -> Box<Failure> {
    of(code, Effect::None, entry, message)
}

pub(crate) fn of(
    code: FailureCode,
    effect: Effect,
    entry: &Entry,
    message: String,
) -> Box<Failure> {
    let friendly = friendly_text(code, entry.tool.name());
    Box::new(Failure::new(code, effect, message).for_people(friendly))
}

/// The tool's own words: secrets removed, and not endless.
fn tidy(message: String, args: &Value) -> String {
    cut::text(&redact::text_about(message, args), MESSAGE_BYTES_MAX)
}
