//! What is kept of a call, as REST answers it, the dashboard shows it and `calls export` writes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadyhand::{Coercion, Cut, Effect, Failure, FailureCode, StopReason};
use utoipa::ToSchema;

use super::schemas;

/// One call in a list of calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallSummary {
    /// Names this record and no other. Call ids may be shared: models give two calls the same one.
    pub key: String,
    /// The call's id.
    pub id: String,
    /// The tool, by the name that was used.
    pub tool: String,
    /// Where the tool comes from: a table of the configuration, an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// When it came in, in milliseconds since 1970.
    pub started_ms: u64,
    /// How far it is, or how it ended.
    pub state: CallState,
    /// Everything its caller waited for; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<f64>,
    /// How much of that was the wait for an approval; absent if it waited for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_ms: Option<f64>,
    /// It waits for an approval now: its tool was not started.
    #[serde(default, skip_serializing_if = "is_false")]
    pub waiting_for_approval: bool,
    /// How long it might have taken, without the wait for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// How often the tool was started.
    pub attempts: u32,
    /// Why it failed, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "TIMEOUT")]
    pub code: Option<FailureCode>,
    /// What a failed call did out there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "unknown")]
    pub effect: Option<Effect>,
    /// Why it failed, in words; the first of them where there are many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A fallback answered in the tool's place.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fallback_used: bool,
    /// Answered with the outcome of another call of the same idempotency key.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replayed: bool,
    /// The id of the call it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<String>,
}

/// How far a call is, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// It has not ended yet.
    Running,
    /// The tool answered.
    Ok,
    /// The tool failed.
    Error,
    /// It ran out of time.
    Timeout,
    /// Its caller withdrew it.
    Cancelled,
    /// It was refused, and the tool never started: no such tool, arguments that do not fit, breaker, queue, approval.
    Rejected,
    /// The process ended first, or history was too far behind to hear of its end. `effect` says whether it may have run.
    Interrupted,
}

impl CallState {
    /// All of them.
    pub const ALL: [CallState; 7] = [
        CallState::Running,
        CallState::Ok,
        CallState::Error,
        CallState::Timeout,
        CallState::Cancelled,
        CallState::Rejected,
        CallState::Interrupted,
    ];

    /// The word for it in filters and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            CallState::Running => "running",
            CallState::Ok => "ok",
            CallState::Error => "error",
            CallState::Timeout => "timeout",
            CallState::Cancelled => "cancelled",
            CallState::Rejected => "rejected",
            CallState::Interrupted => "interrupted",
        }
    }
}

/// Everything that is kept of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// What a list shows of it.
    #[serde(flatten)]
    pub call: CallSummary,
    /// The rest.
    #[serde(flatten)]
    pub details: CallDetails,
}

/// What a list does not show. Secrets are hidden, what is large is cut and says so.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CallDetails {
    /// The caller's W3C trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What the tool got; what came, where no tool got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    pub arguments: Option<Value>,
    /// The arguments are not whole: secrets are hidden, or they were too large to keep.
    #[serde(skip_serializing_if = "is_false")]
    pub arguments_incomplete: bool,
    /// Slips in the arguments that were mended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schemas::MendedArgument>)]
    pub coerced: Vec<Coercion>,
    /// Arguments that the tool did not get, since its schema forbids them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_arguments: Vec<String>,
    /// Its wait for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalWait>,
    /// The answer: the tool's, or its fallback's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    pub result: Option<Value>,
    /// What the model reads, where that is another text than the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_text: Option<String>,
    /// How large the answer was, in bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Only a part of the answer is kept here; the caller got more.
    #[serde(skip_serializing_if = "is_false")]
    pub result_cut: bool,
    /// The caller got a part of what the tool gave, since that was over the tool's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schemas::TruncatedOutput>)]
    pub truncated: Option<Cut>,
    /// Why it failed, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schemas::Failure>)]
    pub error: Option<Failure>,
    /// Every start of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<Try>,
    /// Where the time went, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What was done to it on purpose: chaos by a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The wait for an approval. Times are milliseconds since the call came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalWait {
    /// When it began.
    pub start_ms: f64,
    /// When it was approved; absent while it waits, and where nobody approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<f64>,
    /// Who approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// One start of the tool. Times are milliseconds since the call came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CallAttempt)]
pub struct Try {
    /// Counts from 1.
    pub attempt: u32,
    /// When it began.
    pub start_ms: f64,
    /// When it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<f64>,
    /// Why it failed, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code: Option<FailureCode>,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long the next one was to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<f64>,
    /// Why there is no next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub stopped: Option<StopReason>,
}

/// A part of a call's time. Milliseconds since the call came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CallStage)]
pub struct Stage {
    /// What was done.
    pub kind: StageKind,
    /// When it began.
    pub start_ms: f64,
    /// When it ended.
    pub end_ms: f64,
    /// Which attempt it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The tool that was asked as a fallback, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a part of a call's time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = CallStageKind)]
pub enum StageKind {
    /// The arguments were checked.
    Validate,
    /// It waited for an approval.
    Approval,
    /// It waited for a place.
    Queue,
    /// The tool ran.
    Attempt,
    /// It waited before the next attempt.
    Backoff,
    /// Its fallback ran.
    Fallback,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
