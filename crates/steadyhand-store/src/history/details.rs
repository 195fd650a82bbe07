//! What is kept of a call besides what a list shows: put together, hidden, cut to size and written as JSON, once.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;
use steadyhand::redact::{self, Secrets};
use steadyhand::{Coercion, Cut, Failure, Outcome, Output, cut};

use super::pending::Open;
use super::record::{ApprovalWait, Stage, Try};
use super::stages::{micros, stages};

/// How a hidden secret reads, and what lies too deep to look for one.
const NOT_WHOLE: [&str; 2] = ["[redacted]", "[too deep]"];
const EMPTY: &str = "{}";
/// Cut a little later than kept, then hidden, then cut: half a secret would not be recognised.
const SLACK_BYTES: usize = 2 * 1024;

/// [`CallDetails`](super::CallDetails) as they are written: the same fields, borrowed where they can be. The result
/// follows them: how long it is shows when it is written.
#[derive(Serialize, Default)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "is_false")]
    arguments_incomplete: bool,
    #[serde(skip_serializing_if = "<[Coercion]>::is_empty")]
    coerced: &'a [Coercion],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    dropped_arguments: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a ApprovalWait>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_text: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    result_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Cut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "<[Try]>::is_empty")]
    tries: &'a [Try],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stages: Vec<Stage>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// How a call ended, as it may be written down.
pub(super) struct End<'a> {
    pub(super) outcome: &'a Outcome,
    /// The failure of the outcome, if it is one, without secrets.
    pub(super) error: Option<&'a Failure>,
    pub(super) secrets: &'a Secrets,
}

/// Of a call that runs.
pub(super) fn of_running(open: &Open, limit: usize) -> String {
    let arguments = open.arguments.as_deref();
    json(&begun(open, arguments, limit))
}

/// Of a call that has ended.
pub(super) fn of_ended(
    open: &mut Open,
    arguments: Option<&Value>,
    end: &End<'_>,
    limit: usize,
) -> String {
    let took_ms = micros(end.outcome.execution_time.as_secs_f64() * 1e3);
    let stages = stages(open, took_ms, end.error);
    let mut written = Written {
        coerced: &end.outcome.coerced,
        dropped_arguments: &end.outcome.dropped_arguments,
        error: end.error,
        stages,
        ..begun(open, arguments, limit)
    };
    let Some(output) = end.outcome.output() else {
        return json(&written);
    };
    let result = written.keep(output, end.secrets, limit);
    with_result(json(&written), result, output)
}

fn begun<'a>(open: &'a Open, arguments: Option<&'a Value>, limit: usize) -> Written<'a> {
    let arguments = arguments.map(|value| cut::value(value, limit));
    let is_whole =
        |value: &Cow<'_, Value>| matches!(value, Cow::Borrowed(value) if is_whole(value));
    Written {
        traceparent: open.traceparent.as_deref(),
        arguments_incomplete: !arguments.as_ref().is_none_or(is_whole),
        arguments,
        approval: open.approval.as_ref(),
        tries: &open.tries,
        notes: &open.notes,
        ..Written::default()
    }
}

impl<'a> Written<'a> {
    /// What is kept of the output; gives back the result.
    fn keep(&mut self, output: &'a Output, secrets: &Secrets, limit: usize) -> Cow<'a, Value> {
        let first = cut::value(output.value(), limit + SLACK_BYTES);
        let is_cut = matches!(first, Cow::Owned(_));
        let shown = match first {
            Cow::Borrowed(value) => secrets.shown_in(value),
            Cow::Owned(value) => Cow::Owned(secrets.hide_in(&value)),
        };
        let (kept, is_cut_again) = fitted(shown, limit);
        self.result_cut = is_cut || is_cut_again;
        self.truncated = output.cut();
        self.result_text = output.own_text().map(|text| {
            let shown = cut::text(text, limit + SLACK_BYTES);
            cut::text(&secrets.hide(redact::text(&shown).into_owned()), limit)
        });
        kept
    }
}

/// An object of JSON with two more fields: the result, and how long the whole of it is.
fn with_result(json: String, result: Cow<'_, Value>, output: &Output) -> String {
    let mut json = json.into_bytes();
    json.pop();
    if json.len() > 1 {
        json.push(b',');
    }
    json.extend_from_slice(b"\"result\":");
    let start = json.len();
    if serde_json::to_writer(&mut json, &result).is_err() {
        json.truncate(start);
        json.extend_from_slice(b"null");
    }
    let bytes = match result {
        Cow::Borrowed(_) => json.len() - start,
        Cow::Owned(_) => cut::json_bytes(output.value(), usize::MAX),
    };
    let _ = write!(json, ",\"result_bytes\":{bytes}}}");
    String::from_utf8(json).unwrap_or_else(|_| EMPTY.to_owned())
}

/// Cut to its size; whether it had to be.
fn fitted(value: Cow<'_, Value>, limit: usize) -> (Cow<'_, Value>, bool) {
    let smaller = match cut::value(&value, limit) {
        Cow::Borrowed(_) => None,
        Cow::Owned(smaller) => Some(smaller),
    };
    match smaller {
        Some(smaller) => (Cow::Owned(smaller), true),
        None => (value, false),
    }
}

/// Arguments with a hidden part cannot be sent again.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            !text.contains('[') || !NOT_WHOLE.iter().any(|mark| text.contains(mark))
        }
        Value::Array(items) => items.iter().all(is_whole),
        Value::Object(fields) => fields.values().all(is_whole),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn json(written: &Written<'_>) -> String {
    serde_json::to_string(written).unwrap_or_else(|_| EMPTY.to_owned())
}
