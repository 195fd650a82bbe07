//! The shapes of answers, for the document that describes them. They are never built: the answers come from
//! the engine's own types, and a peer (schemathesis) checks in the tests that both agree.

#![allow(dead_code, reason = "shapes for the document only")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::access::Role;
use crate::history;

/// Why a request was not answered as asked
#[derive(Serialize, ToSchema)]
pub(crate) struct Refusal {
    error: RefusalDetails,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RefusalDetails {
    /// Stable, for machines
    code: String,
    /// What is wrong with what
    message: String,
    /// What to do
    help: String,
}

/// What an address may answer instead, by its kind.
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident: $($status:literal),*;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$($status),*].map(|status| (status.to_string(), refusal(status).into())).into()
            }
        }
    )*};
}

refusals! {
    /// Of every address.
    Refusals: 400, 401, 403, 500, 503;
    /// Of one that names something.
    NamedRefusals: 400, 401, 403, 404, 500, 503;
    /// Of one that takes a body.
    BodyRefusals: 400, 401, 403, 408, 413, 429, 500, 503;
    /// Of one that names something and runs it.
    RunRefusals: 400, 401, 403, 404, 409, 429, 500, 503;
    /// Of one that names something and takes a body.
    NamedBodyRefusals: 400, 401, 403, 404, 408, 409, 413, 500, 503;
}

fn refusal(status: u16) -> Response {
    let text = match status {
        400 => "The request is not what this address takes",
        401 => "The credentials are missing, or not good",
        403 => {
            "The caller's role does not include this, or the request is addressed to another host or comes from a foreign page"
        }
        404 => "There is none of this name",
        408 => "The body did not arrive in time",
        409 => "Not in the state this needs",
        413 => "Larger than what is taken",
        429 => "The caller has too many calls running, or calls too often",
        500 => "A bug",
        _ => "Too much to do, or about to end",
    };
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Refusal")))
        .build();
    ResponseBuilder::new()
        .description(text)
        .content("application/json", content)
        .build()
}

/// The outcome in the view that was asked for
#[derive(ToSchema)]
#[schema(as = AnyOutcome)]
#[allow(clippy::large_enum_variant, reason = "never built")]
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum AnyOutcome {
    Structured(Outcome),
    Flat(FlatOutcome),
    Message(ToolMessage),
}

/// How a call ended: exactly one per call
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    tool_name: String,
    call_id: String,
    status: OutcomeStatus,
    /// The tool's answer, or its fallback's
    #[schema(required = false)]
    output: Value,
    #[schema(required = false, nullable = false)]
    error: Option<Failure>,
    /// In milliseconds
    execution_time: f64,
    /// How often the tool was started
    attempts: u32,
    #[schema(required = false)]
    fallback_used: bool,
    #[schema(required = false, nullable = false)]
    truncated: Option<Truncated>,
    /// Arguments that were mended
    #[schema(required = false)]
    coerced: Vec<Value>,
    /// Another call of the same idempotency key answers for this one
    #[schema(required = false)]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutcomeStatus {
    Success,
    Error,
    Timeout,
}

/// Why a call has no result of its own
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    code: FailureCode,
    /// The tool's own words, secrets removed
    message: String,
    /// For the person in front of the application
    user_message: String,
    /// Whether another try could help
    retryable: bool,
    effect: Effect,
    problems: Vec<ArgumentProblem>,
    /// Arguments that would have passed
    #[schema(required = false)]
    example: Value,
    #[schema(required = false)]
    suggestions: Vec<String>,
    #[schema(required = false, nullable = false)]
    retry_after_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum FailureCode {
    NetworkError,
    Timeout,
    RateLimitError,
    ToolExecutionError,
    AuthenticationError,
    ValidationError,
    CircuitOpen,
    ToolNotFound,
    Cancelled,
    Overloaded,
    ApprovalDenied,
    ApprovalExpired,
    IdempotencyConflict,
}

/// What a failed call did out there
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effect {
    None,
    Unknown,
    Done,
}

/// One thing that is wrong with the arguments
#[derive(Serialize, ToSchema)]
pub(crate) struct ArgumentProblem {
    /// JSON Pointer into the arguments
    at: String,
    code: String,
    message: String,
    #[schema(required = false, nullable = false)]
    expected: Option<String>,
    #[schema(required = false, nullable = false)]
    got: Option<String>,
    #[schema(required = false)]
    example: Value,
}

/// The output was larger than its limit
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Truncated {
    full_bytes: u64,
    limit_bytes: u64,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct FlatOutcome {
    success: bool,
    #[schema(required = false)]
    result: Value,
    #[schema(required = false, nullable = false)]
    error: Option<String>,
    tool_name: String,
    execution_time_ms: f64,
    #[schema(required = false)]
    suggestions: Vec<String>,
    #[schema(required = false)]
    fallback_used: bool,
}

/// LangChain's
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolMessage {
    /// tool
    r#type: String,
    /// What the model reads
    content: Value,
    tool_call_id: String,
    #[schema(required = false, nullable = false)]
    name: Option<String>,
    #[schema(required = false, nullable = false)]
    status: Option<String>,
    /// What only the application gets
    #[schema(required = false)]
    artifact: Value,
}

/// Everything that is kept of one call
#[derive(Serialize, ToSchema)]
pub(crate) struct CallRecord {
    #[serde(flatten)]
    call: history::CallSummary,
    #[serde(flatten)]
    details: history::CallDetails,
    /// Since when it runs, in milliseconds; absent when it has ended
    #[schema(required = false, nullable = false)]
    elapsed_ms: Option<f64>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct CallCancelled {
    id: String,
    /// How many calls had this id
    cancelled: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Outcomes {
    /// outcomes[i] answers calls[i]
    outcomes: Vec<AnyOutcome>,
}

/// All tools in their order, or as a consumer wants them
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolList {
    count: usize,
    /// Tool, or whatever the format has in its place
    tools: Vec<Value>,
    /// Sources that could not be loaded, and other remarks
    #[schema(required = false)]
    problems: Vec<Value>,
    /// What is no tool, and why
    left_out: Vec<Value>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Tool {
    name: String,
    description: String,
    /// JSON Schema of the arguments
    schema: Value,
    /// What runs it
    kind: String,
    source: Option<String>,
    /// Whether it can be called
    available: bool,
    /// Why it cannot
    #[schema(required = false, nullable = false)]
    reason: Option<String>,
    #[schema(required = false, nullable = false)]
    lc_name: Option<String>,
    /// Each setting with its value and where it comes from
    policy: BTreeMap<String, PolicyValue>,
    breaker: Option<Breaker>,
    metrics: Option<Metrics>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyValue {
    value: String,
    origin: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Breaker {
    /// Failed calls in a row
    failures: u64,
    /// In milliseconds since 1970
    last_failure: Option<u64>,
    state: BreakerState,
    /// How often it opened
    trips: u64,
    /// When an open one lets a trial through, in milliseconds from now
    #[schema(required = false, nullable = false)]
    trial_in_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct BreakerReset {
    name: String,
    breaker: Option<Breaker>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BreakerState {
    Closed,
    Open,
    HalfOpen,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct MetricsList {
    count: usize,
    tools: Vec<Metrics>,
}

/// Counts and times of one tool's calls
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metrics {
    #[schema(required = false, nullable = false)]
    tool_name: Option<String>,
    total_executions: u64,
    success_count: u64,
    error_count: u64,
    timeout_count: u64,
    /// In milliseconds
    avg_execution_time: f64,
    failure_rate: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    in_flight: u64,
    queued: u64,
    rejected: u64,
    invalid: u64,
    cancelled: u64,
    joined: u64,
    retries: u64,
    fallbacks: u64,
    #[schema(required = false, nullable = false)]
    breaker: Option<Breaker>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Validated {
    valid: bool,
    problems: Vec<Remark>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Repaired {
    /// A list of messages as its provider accepts it
    #[schema(required = false, nullable = false)]
    messages: Option<Vec<Value>>,
    /// A whole request as its provider accepts it
    #[schema(required = false, nullable = false)]
    request: Option<Value>,
    /// A model's response that can be relied on
    #[schema(required = false, nullable = false)]
    response: Option<Value>,
    fixes: Vec<Remark>,
}

/// A problem, or a change that was made
#[derive(Serialize, ToSchema)]
pub(crate) struct Remark {
    /// JSON Pointer
    at: String,
    code: String,
    message: String,
    /// What the provider itself would answer to a problem, where it says anything
    #[schema(nullable = false)]
    provider_text: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct TurnAnswered {
    /// One result per call, in the provider's own shape
    messages: Vec<Value>,
    /// outcomes[i] answers the i-th call of the turn
    outcomes: Vec<Outcome>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Effective {
    file: Option<String>,
    generation: u64,
    settings: Vec<Setting>,
    last_reload: Option<LastReload>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Setting {
    setting: String,
    value: Value,
    /// steadyhand.toml:62, a variable, or default
    origin: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct LastReload {
    ok: bool,
    #[schema(required = false)]
    problems: Vec<Value>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Reloaded {
    generation: u64,
    /// What deserves a look
    warnings: Vec<Value>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Servers {
    servers: Vec<Value>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ServerLog {
    name: String,
    lines: Vec<ServerLogLine>,
    /// Where the next question begins
    next: u64,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ServerLogLine {
    /// Milliseconds since 1970
    at_ms: u64,
    /// stderr, stdout, or note: a remark of ours
    stream: String,
    text: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Live {
    /// live
    status: String,
    /// steadyhand
    name: String,
    version: String,
    instance: String,
    uptime_ms: u64,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Ready {
    ready: bool,
    reason: Option<String>,
    generation: u64,
    tools: usize,
    running: usize,
    servers: Vec<Value>,
    /// How the history of calls fares; calls go on without it
    #[schema(required = false, nullable = false)]
    history: Option<history::Health>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ToolChanges {
    changes: Vec<crate::pins::Change>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ToolAccepted {
    name: String,
    /// The server it comes from
    source: String,
    accepted: bool,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct AlertList {
    /// How many are not over
    active: usize,
    count: usize,
    /// Those that are so, then those that are over, the newest first
    alerts: Vec<crate::alerts::Alert>,
    /// The rules in force
    rules: Vec<String>,
    /// Addresses that are told, and how that went
    webhooks: Vec<Value>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    /// How many wait
    waiting: usize,
    count: usize,
    /// Those that wait, the oldest first, then those that were decided
    approvals: Vec<crate::approvals::Approval>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Whoami {
    /// None where nobody was asked for one
    name: Option<String>,
    /// nothing, token, local, key or jwt
    by: String,
    role: Role,
    rights: Vec<String>,
    /// The tools it may use
    tools: Value,
    rate: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct KeyList {
    keys: Vec<Key>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Key {
    id: String,
    name: String,
    role: Role,
    tools: KeyTools,
    #[schema(required = false, nullable = false)]
    rate: Option<String>,
    created_ms: u64,
    #[schema(required = false, nullable = false)]
    expires_ms: Option<u64>,
    #[schema(required = false, nullable = false)]
    revoked_ms: Option<u64>,
    /// in use, revoked or expired
    state: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct KeyTools {
    /// All if empty
    allow: Vec<String>,
    deny: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct NewKey {
    #[serde(flatten)]
    about: Key,
    /// The key itself: shown this once
    key: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RefusalList {
    refusals: Vec<crate::access::Refusal>,
    count: usize,
    /// How many are in no file
    unwritten: u64,
}
