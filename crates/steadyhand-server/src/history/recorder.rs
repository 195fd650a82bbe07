//! From events to rows: what an executor tells of its calls is put together here, on the observer's own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use steadyhand::redact::Secrets;
use steadyhand::{
    BreakerState, Effect, Event, Failure, FailureCode, Observer, Outcome, Output, Status, cut,
};

use super::pending::{FallbackRun, Open, Row, Trip, row_at};
use super::record::{CallDetails, CallState, Stage, StageKind, Try};
use super::shared::Shared;

/// Names and ids are text from outside.
const NAME_BYTES_MAX: usize = 256;
const ID_BYTES_MAX: usize = 1024;
/// What a list shows of a failure.
const MESSAGE_BYTES_MAX: usize = 300;
/// How a hidden secret reads.
const HIDDEN: &str = "[redacted]";
/// Cut a little later than kept, then hidden, then cut: half a secret would not be recognised.
const SLACK_BYTES: usize = 2 * 1024;
/// Attempts of one call that are kept.
const TRIES_MAX: usize = 100;

/// Writes down what an executor does. Made by [`History::recorder`](super::History::recorder).
pub struct Recorder {
    shared: Arc<Shared>,
    next_tie: AtomicU64,
}

impl Recorder {
    pub(super) fn new(shared: Arc<Shared>) -> Recorder {
        // Two processes on one file begin at different numbers.
        let somewhere = uuid::Uuid::new_v4().as_u128() as u64;
        Recorder {
            shared,
            next_tie: AtomicU64::new(somewhere),
        }
    }

    fn row(&self, at_ms: u64) -> i64 {
        row_at(at_ms, self.next_tie.fetch_add(1, Ordering::Relaxed))
    }

    fn with_open(&self, number: u64, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.shared.pending().open.get_mut(&number) {
            change(open);
        }
    }

    fn ended(
        &self,
        open: Option<Open>,
        at_ms: u64,
        arguments: Arguments<'_>,
        source: Option<&Arc<str>>,
        outcome: &Outcome,
    ) -> Row {
        let open = open.unwrap_or_else(|| {
            let started_ms = at_ms.saturating_sub(outcome.execution_time.as_millis() as u64);
            unseen(self.row(started_ms), started_ms, outcome)
        });
        let limit = self.shared.options.value_bytes_max;
        let secrets = arguments.secrets;
        let mut details = details_of(&open, arguments.value, limit);
        details.coerced.clone_from(&outcome.coerced);
        if let Some(output) = outcome.output() {
            keep_result(&mut details, output, secrets, limit);
        }
        details.error = outcome.failure().map(|failure| hidden(failure, secrets));
        let took_ms = outcome.execution_time.as_secs_f64() * 1e3;
        details.stages = stages(&open, took_ms, outcome.failure());
        end_last_try(&mut details.tries, &details.stages);
        let failure = details.error.as_ref();
        Row {
            row: open.row,
            id: open.id,
            is_known: failure.is_none_or(|failure| failure.code != FailureCode::ToolNotFound),
            tool: open.tool,
            source: source.cloned().or(open.source),
            caller: open.caller,
            state: state_of(outcome),
            code: failure.map(|failure| failure.code),
            effect: failure.map(|failure| failure.effect),
            took_us: Some(outcome.execution_time.as_micros() as i64),
            ended_ms: at_ms,
            deadline_ms: open.deadline_ms,
            attempts: outcome.attempts,
            fallback_used: outcome.fallback.is_some(),
            replayed: outcome.replayed,
            replay_of: open.replay_of,
            message: failure.map(|failure| short(&failure.message)),
            details: json(&details),
        }
    }
}

impl Observer for Recorder {
    fn observe(&self, event: &Event) {
        match event {
            Event::Started {
                number,
                call_id,
                tool_name,
                at_ms,
                caller,
                traceparent,
                replay_of,
                source,
                deadline_ms,
            } => {
                let open = Open {
                    row: self.row(*at_ms),
                    started_ms: *at_ms,
                    id: clipped(call_id, ID_BYTES_MAX),
                    tool: clipped(tool_name, NAME_BYTES_MAX),
                    source: source.clone(),
                    caller: caller
                        .as_deref()
                        .map(|caller| clipped(caller, NAME_BYTES_MAX)),
                    traceparent: traceparent
                        .as_deref()
                        .map(|text| clipped(text, NAME_BYTES_MAX)),
                    replay_of: replay_of.as_deref().map(|id| clipped(id, ID_BYTES_MAX)),
                    deadline_ms: *deadline_ms,
                    arguments: None,
                    tries: Vec::new(),
                    fallback: None,
                    is_written: false,
                };
                self.shared.add(|pending| pending.open(*number, open));
            }
            Event::AttemptStarted {
                number,
                attempt,
                elapsed_ms,
                waited_ms,
                args,
                ..
            } => self.with_open(*number, |open| {
                open.arguments.clone_from(args);
                if open.tries.len() < TRIES_MAX {
                    open.tries.push((begun(*attempt, *elapsed_ms), *waited_ms));
                }
            }),
            Event::AttemptFailed {
                number,
                attempt,
                elapsed_ms,
                code,
                message,
                retry_in_ms,
                stopped,
                ..
            } => self.with_open(*number, |open| {
                let last = open
                    .tries
                    .last_mut()
                    .filter(|(last, _)| last.attempt == *attempt);
                if let Some((last, _)) = last {
                    last.end_ms = Some(*elapsed_ms);
                    last.code = Some(*code);
                    last.message = Some(short(message));
                    last.retry_in_ms = *retry_in_ms;
                    last.stopped = *stopped;
                }
            }),
            Event::FallbackStarted {
                number,
                elapsed_ms,
                fallback,
                ..
            } => self.with_open(*number, |open| {
                open.fallback = Some(FallbackRun {
                    start_ms: *elapsed_ms,
                    end_ms: None,
                    tool: fallback.clone(),
                    message: None,
                });
            }),
            Event::FallbackFailed {
                number,
                elapsed_ms,
                message,
                ..
            } => self.with_open(*number, |open| {
                if let Some(fallback) = &mut open.fallback {
                    fallback.end_ms = Some(*elapsed_ms);
                    fallback.message = Some(short(message));
                }
            }),
            Event::BreakerChanged {
                tool_name,
                to: BreakerState::Open,
                at_ms,
                ..
            } => {
                let trip = Trip {
                    tool: clipped(tool_name, NAME_BYTES_MAX),
                    at_ms: *at_ms,
                };
                self.shared.add(|pending| pending.trip(trip));
            }
            Event::BreakerChanged { .. } | Event::Progress { .. } => {}
            Event::Finished {
                number,
                at_ms,
                args,
                sent,
                source,
                secrets,
                outcome,
                kind: _,
            } => {
                let open = self.shared.pending().close(*number);
                let arguments = Arguments {
                    value: args.as_deref().or(sent.as_ref()),
                    secrets,
                };
                let row = self.ended(open, *at_ms, arguments, source.as_ref(), outcome);
                self.shared.push(row);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Arguments<'a> {
    value: Option<&'a Value>,
    secrets: &'a Secrets,
}

/// A call that runs, as a row.
pub(super) fn running(open: &Open, limit: usize) -> Row {
    let details = details_of(open, open.arguments.as_deref(), limit);
    Row {
        row: open.row,
        id: open.id.clone(),
        tool: open.tool.clone(),
        source: open.source.clone(),
        is_known: open.deadline_ms.is_some(),
        caller: open.caller.clone(),
        state: CallState::Running,
        code: None,
        effect: None,
        took_us: None,
        ended_ms: 0,
        deadline_ms: open.deadline_ms,
        attempts: open.tries.last().map_or(0, |(last, _)| last.attempt),
        fallback_used: false,
        replayed: false,
        replay_of: open.replay_of.clone(),
        message: None,
        details: json(&details),
    }
}

/// A call whose end was not seen.
pub(super) fn lost(open: &Open, now_ms: u64, limit: usize) -> Row {
    Row {
        state: CallState::Interrupted,
        effect: Some(Effect::Unknown),
        message: Some("its end was not seen: history was too far behind".to_owned()),
        ended_ms: now_ms,
        ..running(open, limit)
    }
}

/// A call whose begin was not seen.
fn unseen(row: i64, started_ms: u64, outcome: &Outcome) -> Open {
    Open {
        row,
        started_ms,
        id: clipped(&outcome.call_id, ID_BYTES_MAX),
        tool: clipped(&outcome.tool_name, NAME_BYTES_MAX),
        source: None,
        caller: None,
        traceparent: None,
        replay_of: None,
        deadline_ms: None,
        arguments: None,
        tries: Vec::new(),
        fallback: None,
        is_written: false,
    }
}

fn begun(attempt: u32, start_ms: f64) -> Try {
    Try {
        attempt,
        start_ms,
        end_ms: None,
        code: None,
        message: None,
        retry_in_ms: None,
        stopped: None,
    }
}

fn details_of(open: &Open, arguments: Option<&Value>, limit: usize) -> CallDetails {
    let kept = arguments.map(|value| cut::value(value, limit));
    let is_cut = matches!(kept, Some(std::borrow::Cow::Owned(_)));
    CallDetails {
        traceparent: open.traceparent.clone(),
        arguments_incomplete: is_cut || kept.as_deref().is_some_and(holds_hidden),
        arguments: kept.map(|value| value.into_owned()),
        tries: open.tries.iter().map(|(one, _)| one.clone()).collect(),
        ..CallDetails::default()
    }
}

fn keep_result(details: &mut CallDetails, output: &Output, secrets: &Secrets, limit: usize) {
    let first = cut::value(output.value(), limit + SLACK_BYTES);
    let shown = secrets.hide_in(&first);
    let kept = cut::value(&shown, limit);
    details.result_cut =
        matches!(first, std::borrow::Cow::Owned(_)) || matches!(kept, std::borrow::Cow::Owned(_));
    details.result = Some(kept.into_owned());
    details.result_bytes = Some(cut::json_bytes(output.value(), usize::MAX) as u64);
    details.truncated = output.cut();
    details.result_text = output.own_text().map(|text| {
        let shown = cut::text(text, limit + SLACK_BYTES);
        cut::text(
            &secrets.hide(steadyhand::redact::text(&shown).into_owned()),
            limit,
        )
    });
}

/// The failure as it may be written down. The engine has tidied its texts; what it says of the arguments may still
/// quote them.
fn hidden(failure: &Failure, secrets: &Secrets) -> Failure {
    let shown = serde_json::to_value(failure).map(|value| secrets.hide_in(&value));
    let shown = shown.and_then(serde_json::from_value);
    shown.unwrap_or_else(|_| {
        let mut shown = failure.clone();
        (shown.problems, shown.example) = (Vec::new(), None);
        shown
    })
}

/// Arguments with a hidden part cannot be sent again.
fn holds_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HIDDEN),
        Value::Array(items) => items.iter().any(holds_hidden),
        Value::Object(fields) => fields.values().any(holds_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn state_of(outcome: &Outcome) -> CallState {
    let Some(failure) = outcome.failure() else {
        return CallState::Ok;
    };
    match failure.code {
        FailureCode::Cancelled => CallState::Cancelled,
        FailureCode::ApprovalDenied | FailureCode::ApprovalExpired => CallState::Rejected,
        _ if outcome.attempts == 0 && failure.effect == Effect::None => CallState::Rejected,
        _ if outcome.status() == Status::Timeout => CallState::Timeout,
        _ => CallState::Error,
    }
}

/// Where the time went.
fn stages(open: &Open, took_ms: f64, failure: Option<&Failure>) -> Vec<Stage> {
    let mut stages = Vec::new();
    let mut add = |kind, start_ms: f64, end_ms: f64, attempt, tool, message| {
        let start_ms = start_ms.max(0.0);
        if end_ms > start_ms || kind == StageKind::Attempt {
            let end_ms = end_ms.max(start_ms);
            stages.push(Stage {
                kind,
                start_ms,
                end_ms,
                attempt,
                tool,
                message,
            });
        }
    };
    let end = open
        .fallback
        .as_ref()
        .map_or(took_ms, |fallback| fallback.start_ms);
    let mut at = 0.0;
    for (one, waited_ms) in &open.tries {
        let attempt = Some(one.attempt);
        let ready = one.start_ms - waited_ms;
        let before = match one.attempt {
            1 => StageKind::Validate,
            _ => StageKind::Backoff,
        };
        add(before, at, ready, attempt, None, None);
        add(StageKind::Queue, ready, one.start_ms, attempt, None, None);
        at = one.end_ms.unwrap_or(end);
        add(
            StageKind::Attempt,
            one.start_ms,
            at,
            attempt,
            None,
            one.message.clone(),
        );
    }
    let rest = match (open.tries.last(), failure) {
        // Withdrawn or out of time while it waited.
        (Some((last, _)), _) => last.retry_in_ms.map(|_| StageKind::Backoff),
        (None, Some(failure)) if waited_in_vain(failure.code) => Some(StageKind::Queue),
        (None, _) => Some(StageKind::Validate),
    };
    if let Some(rest) = rest {
        add(rest, at, end, None, None, None);
    }
    if let Some(fallback) = &open.fallback {
        let end = fallback.end_ms.unwrap_or(took_ms);
        let (tool, message) = (fallback.tool.clone(), fallback.message.clone());
        add(
            StageKind::Fallback,
            fallback.start_ms,
            end,
            None,
            tool,
            message,
        );
    }
    stages
}

fn waited_in_vain(code: FailureCode) -> bool {
    matches!(
        code,
        FailureCode::Timeout | FailureCode::Overloaded | FailureCode::Cancelled
    )
}

/// An attempt that worked has no event of its own: its end is where its stage ends.
fn end_last_try(tries: &mut [Try], stages: &[Stage]) {
    let Some(last) = tries.last_mut().filter(|last| last.end_ms.is_none()) else {
        return;
    };
    let stage = stages
        .iter()
        .rev()
        .find(|stage| stage.kind == StageKind::Attempt);
    last.end_ms = stage.map(|stage| stage.end_ms);
}

fn json(details: &CallDetails) -> String {
    serde_json::to_string(details).unwrap_or_else(|_| "{}".to_owned())
}

fn short(message: &str) -> String {
    cut::text(message, MESSAGE_BYTES_MAX)
}

fn clipped(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
