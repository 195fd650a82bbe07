//! From events to rows: what an executor tells of its calls is put together here, on the observer's own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use steadyhand::redact::Secrets;
use steadyhand::{BreakerState, Effect, Event, FailureCode, Observer, Outcome, Status, cut};
use tokio::time::Instant;

use super::details::{self, End};
use super::pending::{FallbackRun, Open, Row, Trip, row_at};
use super::record::{ApprovalWait, CallState, Try};
use super::shared::Shared;
use super::stages::micros;
use steadyhand_config::marks::ON_PURPOSE;

/// Names and ids are text from outside.
const NAME_BYTES_MAX: usize = 256;
const ID_BYTES_MAX: usize = 1024;
/// What a list shows of a failure.
const MESSAGE_BYTES_MAX: usize = 300;
/// Attempts of one call that are kept.
const TRIES_MAX: usize = 100;

/// Notes of one call that are kept.
const NOTES_MAX: usize = 20;

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

    fn ended(&self, mut open: Open, at_ms: u64, arguments: Option<&Value>, end: Told<'_>) -> Row {
        let Told {
            outcome,
            secrets,
            source,
            replay_of,
        } = end;
        let replay_of = replay_of.map(|id| clipped(id, ID_BYTES_MAX));
        let error = outcome
            .failure()
            .map(|failure| failure.without_secrets(secrets));
        let failure = error.as_ref();
        let end = End {
            outcome,
            error: failure,
            secrets,
        };
        let limit = self.shared.options.value_bytes_max;
        let details = details::of_ended(&mut open, arguments, &end, limit);
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
            approval_us: Some(outcome.approval_time.as_micros() as i64).filter(|us| *us > 0),
            waiting_for_approval: false,
            ended_ms: at_ms,
            deadline_ms: open.deadline_ms,
            attempts: outcome.attempts,
            fallback_used: outcome.fallback.is_some(),
            replayed: outcome.replayed,
            replay_of: open.replay_of.or(replay_of),
            message: failure.map(|failure| short(&failure.message)),
            details,
        }
    }
}

/// What is told of the end of a call.
struct Told<'a> {
    outcome: &'a Outcome,
    secrets: &'a Secrets,
    source: Option<&'a Arc<str>>,
    /// The call it repeats: for one with an idempotency key it is known only at the end.
    replay_of: Option<&'a str>,
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
                let asked = Asked {
                    id: call_id,
                    tool: tool_name,
                    caller,
                    traceparent,
                    replay_of,
                };
                let open = Open {
                    source: source.clone(),
                    deadline_ms: *deadline_ms,
                    ..asked.opened(self.row(*at_ms))
                };
                self.shared.add(|pending| pending.open(*number, open));
            }
            Event::ApprovalAsked {
                number,
                elapsed_ms,
                args,
                ..
            } => self.shared.add(|pending| {
                pending.change(*number, |open| {
                    open.arguments.clone_from(args);
                    open.approval = Some(ApprovalWait {
                        start_ms: micros(*elapsed_ms),
                        end_ms: None,
                        approved_by: None,
                    });
                });
            }),
            Event::Approved {
                number,
                elapsed_ms,
                waited_ms,
                by,
                ..
            } => self.shared.add(|pending| {
                pending.change(*number, |open| {
                    open.counts_since = Instant::now();
                    open.approval = Some(ApprovalWait {
                        start_ms: micros(elapsed_ms - waited_ms),
                        end_ms: Some(micros(*elapsed_ms)),
                        approved_by: Some(clipped(by, NAME_BYTES_MAX)),
                    });
                });
            }),
            Event::AttemptStarted {
                number,
                attempt,
                elapsed_ms,
                waited_ms,
                args,
                ..
            } => self.with_open(*number, |open| {
                open.arguments.clone_from(args);
                // A gate may let a call pass without saying who decided.
                if let Some(wait) = open.approval.as_mut().filter(|it| it.end_ms.is_none()) {
                    wait.end_ms = Some(micros(elapsed_ms - waited_ms));
                    open.counts_since = Instant::now();
                }
                if open.tries.len() < TRIES_MAX {
                    open.tries.push(begun(*attempt, *elapsed_ms));
                    if *waited_ms > 0.0 {
                        open.waits.push((*attempt, *waited_ms));
                    }
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
                    .filter(|last| last.attempt == *attempt);
                if let Some(last) = last {
                    last.end_ms = Some(micros(*elapsed_ms));
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
                    start_ms: micros(*elapsed_ms),
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
                    fallback.end_ms = Some(micros(*elapsed_ms));
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
            // What was done on purpose must not be taken for the tool's own doing.
            Event::Progress {
                number, message, ..
            } if message.starts_with(ON_PURPOSE) => self.with_open(*number, |open| {
                if open.notes.len() < NOTES_MAX {
                    open.notes.push(short(message));
                }
            }),
            Event::BreakerChanged { .. }
            | Event::Progress { .. }
            | Event::AttemptDescribed { .. } => {}
            Event::Finished {
                number,
                at_ms,
                args,
                sent,
                source,
                caller,
                traceparent,
                replay_of,
                secrets,
                outcome,
                kind: _,
            } => {
                let seen = self.shared.pending().close(*number);
                let open = seen.unwrap_or_else(|| {
                    // Its begin was not seen.
                    let asked = Asked {
                        id: &outcome.call_id,
                        tool: &outcome.tool_name,
                        caller,
                        traceparent,
                        replay_of,
                    };
                    let took_ms = outcome.execution_time.as_millis() as u64;
                    asked.opened(self.row(at_ms.saturating_sub(took_ms)))
                });
                let end = Told {
                    outcome,
                    secrets,
                    source: source.as_ref(),
                    replay_of: replay_of.as_deref(),
                };
                let arguments = args.as_deref().or(sent.as_ref());
                self.shared.push(self.ended(open, *at_ms, arguments, end));
            }
        }
    }
}

/// What was asked for.
struct Asked<'a> {
    id: &'a str,
    tool: &'a str,
    caller: &'a Option<String>,
    traceparent: &'a Option<String>,
    replay_of: &'a Option<String>,
}

impl Asked<'_> {
    fn opened(&self, row: i64) -> Open {
        let clip = |text: &Option<String>, max| text.as_deref().map(|text| clipped(text, max));
        let (id, tool) = (self.id, self.tool);
        Open {
            caller: clip(self.caller, NAME_BYTES_MAX),
            traceparent: clip(self.traceparent, NAME_BYTES_MAX),
            replay_of: clip(self.replay_of, ID_BYTES_MAX),
            ..Open::new(
                row,
                clipped(id, ID_BYTES_MAX),
                clipped(tool, NAME_BYTES_MAX),
            )
        }
    }
}

/// A call that runs, as a row.
pub(super) fn running(open: &Open, limit: usize) -> Row {
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
        approval_us: None,
        waiting_for_approval: open.waits_for_approval(),
        ended_ms: 0,
        deadline_ms: open.deadline_ms,
        attempts: open.tries.last().map_or(0, |last| last.attempt),
        fallback_used: false,
        replayed: false,
        replay_of: open.replay_of.clone(),
        message: None,
        details: details::of_running(open, limit),
    }
}

/// A call whose end was not seen.
pub(super) fn lost(open: &Open, now_ms: u64, limit: usize) -> Row {
    Row {
        state: CallState::Interrupted,
        effect: Some(Effect::Unknown),
        waiting_for_approval: false,
        message: Some("its end was not seen: history was too far behind".to_owned()),
        ended_ms: now_ms,
        ..running(open, limit)
    }
}

fn begun(attempt: u32, start_ms: f64) -> Try {
    Try {
        attempt,
        start_ms: micros(start_ms),
        end_ms: None,
        code: None,
        message: None,
        retry_in_ms: None,
        stopped: None,
    }
}

/// How a call ended, in the word of lists.
pub fn state_of(outcome: &Outcome) -> CallState {
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
