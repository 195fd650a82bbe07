//! From events to spans: one for each call, one below it for each attempt, and one for each request to our MCP server, as
//! the GenAI, MCP and HTTP conventions name them. Arguments and results are never in them.

use std::collections::HashMap;
use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event as SpanEvent, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::Value;
use steadyhand::redact::Secrets;
use steadyhand::{CallSpan, Event, Failure, FailureCode, Health, Outcome, Spans, Traceparent, cut};

use steadyhand_mcp::serve::ServedOperation;

use super::message::{float, number, text, truth};
use crate::telemetry::figures::state_name;

/// Calls that are followed at the same time. There are more only when their ends were lost.
const FOLLOWED_MAX: usize = 16_384;
/// Events of one call's span.
const EVENTS_MAX: usize = 64;
/// What a tool may say about one attempt.
const DESCRIBED_MAX: usize = 32;
/// The longest name or text.
const TEXT_BYTES_MAX: usize = 256;
const SAMPLED: u32 = 1;

/// The calls that run now, on their way to becoming spans.
pub(super) struct Traces {
    spans: Spans,
    open: HashMap<u64, Open>,
}

struct Open {
    span: CallSpan,
    tool: String,
    call_id: String,
    caller: Option<String>,
    replay_of: Option<String>,
    start: u64,
    attempts: Vec<Attempt>,
    events: Vec<SpanEvent>,
}

struct Attempt {
    number: u32,
    start: u64,
    waited_ms: f64,
    /// When it ended, if it failed, and why.
    failed: Option<(u64, FailureCode, String)>,
    /// What the tool says about it.
    described: Vec<(&'static str, Value)>,
}

impl Attempt {
    fn described(&self, name: &str) -> Option<&str> {
        let mut found = self.described.iter().filter(|(own, _)| *own == name);
        found.next_back()?.1.as_str()
    }
}

impl Traces {
    pub(super) fn new(spans: Spans) -> Traces {
        Traces {
            spans,
            open: HashMap::new(),
        }
    }

    /// Takes an event in; gives back the spans of a call that has ended with it.
    pub(super) fn observe(&mut self, event: &Event) -> Option<Vec<Span>> {
        match event {
            Event::Started {
                number,
                call_id,
                tool_name,
                at_ms,
                caller,
                traceparent,
                replay_of,
                ..
            } => {
                let span = self.spans.of_call(*number, traceparent.as_deref());
                // Whoever began the trace has decided that it is not recorded.
                if !span.own.sampled {
                    return None;
                }
                self.follow(
                    *number,
                    Open {
                        span,
                        tool: cut::text(tool_name, TEXT_BYTES_MAX),
                        call_id: cut::text(call_id, TEXT_BYTES_MAX),
                        caller: caller.as_ref().map(|text| cut::text(text, TEXT_BYTES_MAX)),
                        replay_of: replay_of.clone(),
                        start: at_ms * 1_000_000,
                        attempts: Vec::new(),
                        events: Vec::new(),
                    },
                );
            }
            Event::ApprovalAsked { .. } => {}
            Event::Approved {
                number,
                elapsed_ms,
                waited_ms,
                ..
            } => {
                let open = self.open.get_mut(number)?;
                let waited = float("steadyhand.approval.wait_ms", *waited_ms);
                open.tell(open.at(*elapsed_ms), "steadyhand.approved", vec![waited]);
            }
            Event::AttemptStarted {
                number,
                attempt,
                elapsed_ms,
                waited_ms,
                ..
            } => {
                let open = self.open.get_mut(number)?;
                open.attempts.push(Attempt {
                    number: *attempt,
                    start: open.at(*elapsed_ms),
                    waited_ms: *waited_ms,
                    failed: None,
                    described: Vec::new(),
                });
            }
            Event::AttemptDescribed {
                number, attributes, ..
            } => {
                let open = self.open.get_mut(number)?;
                let attempt = open.attempts.last_mut()?;
                for (name, value) in attributes {
                    attempt.described.retain(|(own, _)| own != name);
                    if attempt.described.len() < DESCRIBED_MAX {
                        attempt.described.push((*name, value.clone()));
                    }
                }
            }
            Event::AttemptFailed {
                number,
                elapsed_ms,
                code,
                message,
                retry_in_ms,
                ..
            } => {
                let open = self.open.get_mut(number)?;
                let at = open.at(*elapsed_ms);
                let attempt = open.attempts.last_mut()?;
                attempt.failed = Some((at, *code, cut::text(message, TEXT_BYTES_MAX)));
                if let Some(wait) = retry_in_ms {
                    open.tell(
                        at,
                        "steadyhand.retry",
                        vec![
                            text("error.type", code.as_str()),
                            float("steadyhand.retry.wait_ms", *wait),
                        ],
                    );
                }
            }
            Event::FallbackStarted {
                number,
                elapsed_ms,
                fallback,
                ..
            } => {
                let open = self.open.get_mut(number)?;
                let asked = fallback.iter();
                let attributes = asked.map(|tool| text("steadyhand.fallback.tool", tool));
                open.tell(
                    open.at(*elapsed_ms),
                    "steadyhand.fallback",
                    attributes.collect(),
                );
            }
            Event::FallbackFailed {
                number,
                elapsed_ms,
                message,
                ..
            } => {
                let open = self.open.get_mut(number)?;
                let why = text("error.message", &cut::text(message, TEXT_BYTES_MAX));
                open.tell(
                    open.at(*elapsed_ms),
                    "steadyhand.fallback_failed",
                    vec![why],
                );
            }
            Event::BreakerChanged {
                tool_name,
                from,
                to,
                at_ms,
                ..
            } => {
                // It concerns every call of the tool that runs now.
                for open in self
                    .open
                    .values_mut()
                    .filter(|open| open.tool == *tool_name)
                {
                    open.tell(
                        at_ms * 1_000_000,
                        "steadyhand.breaker_changed",
                        vec![
                            text("steadyhand.breaker.from", state_name(*from)),
                            text("steadyhand.breaker.to", state_name(*to)),
                        ],
                    );
                }
            }
            Event::Finished {
                number,
                outcome,
                source,
                kind,
                secrets,
                ..
            } => {
                let open = self.open.remove(number)?;
                return Some(open.finish(outcome, source.as_ref(), *kind, secrets));
            }
            Event::Progress { .. } => {}
        }
        None
    }

    fn follow(&mut self, number: u64, open: Open) {
        if self.open.len() >= FOLLOWED_MAX
            && let Some(oldest) = self.open.keys().min().copied()
        {
            self.open.remove(&oldest);
        }
        self.open.insert(number, open);
    }
}

impl Open {
    /// A moment, from the time since the call came in.
    fn at(&self, elapsed_ms: f64) -> u64 {
        self.start + (elapsed_ms * 1e6) as u64
    }

    fn tell(&mut self, at: u64, name: &str, attributes: Vec<KeyValue>) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(SpanEvent {
                time_unix_nano: at,
                name: name.to_owned(),
                attributes,
                dropped_attributes_count: 0,
            });
        }
    }

    fn finish(
        self,
        outcome: &Outcome,
        source: Option<&Arc<str>>,
        kind: Option<&'static str>,
        secrets: &Secrets,
    ) -> Vec<Span> {
        let end = self.at(outcome.execution_time.as_secs_f64() * 1e3);
        let failure = outcome.failure();
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", &self.tool),
            text("gen_ai.tool.call.id", &self.call_id),
            number("steadyhand.attempts", i64::from(outcome.attempts)),
        ];
        let tool_kind = kind.iter();
        attributes.extend(
            tool_kind
                .clone()
                .map(|kind| text("gen_ai.tool.type", tool_type(kind))),
        );
        attributes.extend(tool_kind.map(|kind| text("steadyhand.tool.kind", kind)));
        attributes.extend(source.map(|source| text("steadyhand.tool.source", source)));
        attributes.extend(
            self.caller
                .iter()
                .map(|caller| text("steadyhand.caller", caller)),
        );
        let replay_of = self.replay_of.iter();
        attributes.extend(replay_of.map(|id| text("steadyhand.replay_of", id)));
        if outcome.fallback.is_some() {
            attributes.push(truth("steadyhand.fallback_used"));
        }
        if outcome.replayed {
            attributes.push(truth("steadyhand.replayed"));
        }
        attributes.extend(failure.map(|failure| text("error.type", error_type(failure))));
        let status = failure.map(|failure| failed(&secrets.hide(failure.message_with_effect())));
        let attempts = self.attempts.iter().map(|attempt| {
            let last = attempt.number == outcome.attempts;
            self.attempt(attempt, end, kind, failure.filter(|_| last), secrets)
        });
        let mut spans: Vec<Span> = attempts.collect();
        spans.push(Span {
            name: format!("execute_tool {}", self.tool),
            parent_span_id: self.span.parent.map_or(Vec::new(), id),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: self.start,
            end_time_unix_nano: end,
            attributes,
            events: self.events,
            status,
            ..place(self.span.own)
        });
        spans
    }

    /// An attempt, which ended with the call unless it is known to have failed before.
    fn attempt(
        &self,
        attempt: &Attempt,
        call_end: u64,
        kind: Option<&'static str>,
        failure: Option<&Failure>,
        secrets: &Secrets,
    ) -> Span {
        let is_mcp = kind == Some("mcp");
        let mut attributes = vec![
            text("steadyhand.tool.name", &self.tool),
            number("steadyhand.attempt", i64::from(attempt.number)),
        ];
        let described = attempt.described.iter();
        let described = described.filter(|(name, _)| *name != "error.type");
        attributes.extend(described.map(|(name, value)| attribute(name, value)));
        // A call that never got as far as its server.
        if is_mcp && attempt.described("mcp.method.name").is_none() {
            attributes.push(text("mcp.method.name", "tools/call"));
            attributes.push(text("gen_ai.operation.name", "execute_tool"));
        }
        // A server's own name of a tool, where it is another one.
        let tool = attempt.described("gen_ai.tool.name");
        if tool.is_none() {
            attributes.push(text("gen_ai.tool.name", &self.tool));
        }
        let tool = tool.unwrap_or(&self.tool);
        if attempt.waited_ms > 0.0 {
            attributes.push(float("steadyhand.queue_ms", attempt.waited_ms));
        }
        let (end, status) = match (&attempt.failed, failure) {
            (Some((end, code, message)), failure) => {
                let ours = failure.map_or(code.as_str(), error_type);
                let told = attempt.described("error.type");
                attributes.push(text("error.type", told.unwrap_or(ours)));
                attributes.push(text("steadyhand.error.code", code.as_str()));
                (*end, Some(failed(&secrets.hide(message.clone()))))
            }
            // Withdrawn while it ran.
            (None, Some(failure)) => {
                attributes.push(text("error.type", error_type(failure)));
                (
                    call_end,
                    Some(failed(&secrets.hide(failure.message_with_effect()))),
                )
            }
            (None, None) => (call_end, None),
        };
        Span {
            name: match is_mcp {
                true => format!("tools/call {tool}"),
                false => format!("attempt {tool}"),
            },
            parent_span_id: id(self.span.own.span_id),
            kind: attempt_kind(kind).into(),
            start_time_unix_nano: attempt.start,
            end_time_unix_nano: end.max(attempt.start),
            attributes,
            status,
            ..place(self.span.attempt(attempt.number))
        }
    }
}

/// A request to our MCP server.
pub(super) fn of_request(ended: &ServedOperation) -> Span {
    let start = ended.began_ms * 1_000_000;
    let took = u64::try_from(ended.took.as_nanos()).unwrap_or(u64::MAX);
    let attributes = ended.attributes.iter();
    Span {
        name: cut::text(&ended.name, TEXT_BYTES_MAX),
        parent_span_id: ended.span.parent.map_or(Vec::new(), id),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(took),
        attributes: attributes
            .map(|(name, value)| text(name, &cut::text(value, TEXT_BYTES_MAX)))
            .collect(),
        status: ended.failed.as_deref().map(failed),
        ..place(ended.span.own)
    }
}

/// What a tool says about its attempt, within bounds.
fn attribute(name: &str, value: &Value) -> KeyValue {
    match (value.as_i64(), value.as_str()) {
        (Some(value), _) => number(name, value),
        (None, Some(value)) => text(name, &cut::text(value, TEXT_BYTES_MAX)),
        (None, None) => text(name, &cut::text(&value.to_string(), TEXT_BYTES_MAX)),
    }
}

/// A span with nothing but its place in the trace.
fn place(place: Traceparent) -> Span {
    Span {
        trace_id: place.trace_id.to_be_bytes().to_vec(),
        span_id: id(place.span_id),
        flags: SAMPLED,
        ..Span::default()
    }
}

fn id(span_id: u64) -> Vec<u8> {
    span_id.to_be_bytes().to_vec()
}

fn failed(message: &str) -> Status {
    Status {
        message: cut::text(message, TEXT_BYTES_MAX),
        code: StatusCode::Error.into(),
    }
}

/// A tool's own "no" is what the MCP conventions call it; everything else has our code.
fn error_type(failure: &Failure) -> &'static str {
    let own_no =
        failure.code == FailureCode::ToolExecutionError && failure.health() == Health::Neutral;
    match own_no {
        true => "tool_error",
        false => failure.code.as_str(),
    }
}

/// The conventions' word for where a tool does its work.
fn tool_type(kind: &str) -> &'static str {
    match calls_out(kind) {
        true => "extension",
        false => "function",
    }
}

fn attempt_kind(kind: Option<&str>) -> SpanKind {
    match kind.is_some_and(calls_out) {
        true => SpanKind::Client,
        false => SpanKind::Internal,
    }
}

fn calls_out(kind: &str) -> bool {
    matches!(kind, "http" | "openapi" | "mcp")
}
