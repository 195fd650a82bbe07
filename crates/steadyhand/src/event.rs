//! What happens to calls, for those who watch.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::failure::FailureCode;
use crate::guard::breaker::BreakerState;
use crate::guard::retry::StopReason;
use crate::metrics::LastFailure;
use crate::outcome::Outcome;
use crate::redact::Secrets;

/// Events that hold less are not worth weighing.
const LIGHT_BYTES_MAX: usize = 1024;

/// Something happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A call came in.
    Started {
        /// The call's number in this process, since two may share an id; 0 for a call that came in
        /// before anyone watched. Not in JSON.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool it asks for.
        tool_name: String,
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// Who asks.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<String>,
        /// The caller's W3C trace context.
        #[serde(skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
        /// The earlier call it repeats.
        #[serde(skip_serializing_if = "Option::is_none")]
        replay_of: Option<String>,
        /// Where the tool comes from; absent if there is no such tool. Not in JSON.
        #[serde(skip)]
        source: Option<Arc<str>>,
        /// How long the whole call may take. Not in JSON.
        #[serde(skip)]
        deadline_ms: Option<f64>,
    },
    /// The call waits for a person to approve it.
    ApprovalAsked {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// The arguments to decide about, secrets hidden. Not in JSON: the end has them.
        #[serde(skip)]
        args: Option<Arc<Value>>,
    },
    /// A person has approved the call. It is told before the tool is started; a refusal is told by the call's end.
    Approved {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// How much of it was the wait for the approval.
        waited_ms: f64,
        /// Who approved it.
        by: String,
    },
    /// The tool was started for the call, after waiting for a place if it had to.
    AttemptStarted {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Counts from 1.
        attempt: u32,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// How much of it this attempt has waited for a place.
        #[serde(skip_serializing_if = "is_zero")]
        waited_ms: f64,
        /// The arguments the tool gets, secrets hidden. Not in JSON: the end has them.
        #[serde(skip)]
        args: Option<Arc<Value>>,
    },
    /// What a tool says about the work of an attempt, for whoever records spans: told while spans are recorded.
    AttemptDescribed {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Counts from 1.
        attempt: u32,
        /// Attributes under the names that OpenTelemetry has for them.
        attributes: Vec<(&'static str, Value)>,
    },
    /// An attempt failed.
    AttemptFailed {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Counts from 1.
        attempt: u32,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// The category.
        code: FailureCode,
        /// The tool's own words, secrets removed.
        message: String,
        /// When it will be tried again.
        retry_in_ms: Option<f64>,
        /// Why it will not.
        stopped: Option<StopReason>,
    },
    /// A tool says how far it is.
    Progress {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// How much is done.
        done: f64,
        /// Of how much.
        total: Option<f64>,
        /// In words.
        message: String,
    },
    /// A fallback was asked, since the tool failed.
    FallbackStarted {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool that failed.
        tool_name: String,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// The tool that is asked instead, if it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// The fallback could not answer either.
    FallbackFailed {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool that failed.
        tool_name: String,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// Why, secrets removed.
        message: String,
    },
    /// A breaker moved.
    BreakerChanged {
        /// The tool.
        tool_name: String,
        /// Before.
        from: BreakerState,
        /// After.
        to: BreakerState,
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// The failure that opened it. Not in JSON: the end of that call has it.
        #[serde(skip)]
        cause: Option<LastFailure>,
    },
    /// A call ended. Exactly one per call that started, dropped ones included.
    Finished {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// The arguments the tool got, secrets hidden; absent if it never got any.
        args: Option<Arc<Value>>,
        /// The arguments as they came, secrets hidden, where the tool never got any. Not in JSON.
        #[serde(skip)]
        sent: Option<Value>,
        /// Where the tool comes from; absent if there was no such tool. Not in JSON.
        #[serde(skip)]
        source: Option<Arc<str>>,
        /// What runs the tool: `http`, `command` …; absent if there was no such tool. Not in JSON.
        #[serde(skip)]
        kind: Option<&'static str>,
        /// Who asked. Not in JSON: the start has it, and so with the next two.
        #[serde(skip)]
        caller: Option<String>,
        /// The caller's W3C trace context.
        #[serde(skip)]
        traceparent: Option<String>,
        /// The earlier call it repeats.
        #[serde(skip)]
        replay_of: Option<String>,
        /// The secrets among the arguments, for whoever writes the outcome down. Not in JSON.
        #[serde(skip)]
        secrets: Secrets,
        /// How it ended.
        outcome: Arc<Outcome>,
    },
}

fn is_zero(ms: &f64) -> bool {
    *ms == 0.0
}

impl Event {
    /// About what it holds, in bytes; 0 if that is little.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = match self {
            Event::Started {
                call_id, tool_name, ..
            }
            | Event::AttemptDescribed {
                call_id, tool_name, ..
            }
            | Event::FallbackStarted {
                call_id, tool_name, ..
            } => call_id.len() + tool_name.len(),
            Event::AttemptStarted { call_id, args, .. }
            | Event::ApprovalAsked { call_id, args, .. } => {
                call_id.len() + args.as_deref().map_or(0, weight)
            }
            Event::AttemptFailed {
                call_id, message, ..
            }
            | Event::FallbackFailed {
                call_id, message, ..
            }
            | Event::Progress {
                call_id, message, ..
            } => call_id.len() + message.len(),
            Event::Approved { call_id, by, .. } => call_id.len() + by.len(),
            Event::BreakerChanged { tool_name, .. } => tool_name.len(),
            Event::Finished {
                args,
                sent,
                outcome,
                ..
            } => {
                let args = args.as_deref().or(sent.as_ref()).map_or(0, weight);
                let failed = outcome.failure().map_or(0, |failure| failure.message.len());
                let output = outcome.output().map_or(0, |output| {
                    let own_text = output.own_text().map_or(0, str::len);
                    weight(output.value()) + own_text + output.artifact().map_or(0, weight)
                });
                outcome.call_id.len() + args + failed + output
            }
        };
        if bytes > LIGHT_BYTES_MAX { bytes } else { 0 }
    }
}

/// About what a value takes in memory.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| size_of::<String>() + name.len() + weight(field))
            .sum(),
    };
    size_of::<Value>() + inside
}
