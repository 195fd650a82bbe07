//! The shapes of answers, for the document that describes them. They are never built: the answers come from
//! the engine's own types, and a peer (schemathesis) checks in the tests that both agree.

#![allow(dead_code, reason = "shapes for the document only")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{
    ContentBuilder, Header, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder, Schema, Type,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use steadyhand_config::role::Role;
use steadyhand_store::history;
use steadyhand_store::history::schemas::{Effect, Failure};
pub use steadyhand_store::history::schemas::{FailureCode, MendedArgument, TruncatedOutput};

/// Why a request was not answered as asked
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"error": {"code": "no_such_tool", "message": "there is no tool \"wether\"", "help": "Did you mean weather? GET /v1/tools lists all"}}))]
pub struct ApiError {
    error: ApiErrorDetails,
}

#[derive(Serialize, ToSchema)]
pub struct ApiErrorDetails {
    /// Stable, for machines
    code: String,
    /// What is wrong with what
    message: String,
    /// What to do
    help: String,
    /// Where the body is wrong: the line
    #[schema(required = false, nullable = false)]
    line: Option<u64>,
    /// Where the body is wrong: the column
    #[schema(required = false, nullable = false)]
    column: Option<u64>,
    /// Where the body is wrong: a JSON Pointer
    #[schema(required = false, nullable = false)]
    at: Option<String>,
    /// How many bytes are taken
    #[schema(required = false, nullable = false)]
    limit_bytes: Option<u64>,
    /// How many values are taken
    #[schema(required = false, nullable = false)]
    limit_values: Option<u64>,
    /// What is wrong with the configuration file
    #[schema(required = false)]
    problems: Vec<ConfigProblem>,
}

/// The same in the shape of RFC 9457, for clients whose `accept` names `application/problem+json`
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "type": "urn:steadyhand:problem:no_such_tool",
    "title": "There is no such tool",
    "status": 404,
    "detail": "there is no tool \"wether\". Did you mean weather? GET /v1/tools lists all",
    "instance": "/v1/tools/wether",
    "error": {"code": "no_such_tool", "message": "there is no tool \"wether\"", "help": "Did you mean weather? GET /v1/tools lists all"}
}))]
pub struct ProblemDetails {
    /// Names the kind of error: `urn:steadyhand:problem:` and its code
    #[schema(format = "uri")]
    r#type: String,
    /// The kind of error in words, the same for every request
    title: String,
    /// The status of the answer
    status: u16,
    /// What is wrong with what, and what to do
    detail: String,
    /// The path that was asked for
    #[schema(format = "uri-reference")]
    instance: String,
    error: ApiErrorDetails,
}

/// The errors of an address, by its kind: references to the responses under `components`.
macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident: $($status:literal),*;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let reference = |status| Ref::from_response_name(error_name(status)).into();
                [$($status),*].map(|status: u16| (status.to_string(), reference(status))).into()
            }
        }
    )*};
}

errors! {
    /// Of one that asks for no credentials.
    OpenErrors: 400, 403, 500, 503;
    /// The same, where there may be nothing.
    OpenNamedErrors: 400, 403, 404, 500, 503;
    /// Of every other address.
    Errors: 400, 401, 403, 500, 503;
    /// Of one that names something.
    NamedErrors: 400, 401, 403, 404, 500, 503;
    /// Of one that takes a body.
    BodyErrors: 400, 401, 403, 408, 413, 429, 500, 503;
    /// Of one that names something and runs it.
    RunErrors: 400, 401, 403, 404, 409, 429, 500, 503;
    /// Of one that names something and takes a body.
    NamedBodyErrors: 400, 401, 403, 404, 408, 409, 413, 500, 503;
    /// Of one that reads the configuration again.
    ReloadErrors: 400, 401, 403, 422, 500, 503;
}

const ERROR_STATUSES: [u16; 11] = [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503];

/// Every error there is, under its name.
pub(super) fn error_responses() -> impl Iterator<Item = (&'static str, Response)> {
    let response = |status| (error_name(status), error_response(status));
    ERROR_STATUSES.into_iter().map(response)
}

fn error_name(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        408 => "RequestTimeout",
        409 => "Conflict",
        413 => "ContentTooLarge",
        422 => "ConfigInvalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "Unavailable",
    }
}

fn error_response(status: u16) -> Response {
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
        422 => "The configuration file has problems; nothing was changed",
        429 => "The caller has too many calls running, or calls too often",
        500 => "A bug",
        _ => "Too much to do, or about to end",
    };
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ApiError")))
        .build();
    let problem = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ProblemDetails")))
        .build();
    let response = ResponseBuilder::new()
        .description(text)
        .content("application/json", content)
        .content(super::status::PROBLEM_JSON, problem);
    let response = match status {
        401 | 403 => response.header(
            "www-authenticate",
            header(
                Type::String,
                "What to show, and where to get it (RFC 6750, RFC 9728)",
            ),
        ),
        429 | 503 => response.header(
            "retry-after",
            header(
                Type::Integer,
                "In how many seconds the same request may do better",
            ),
        ),
        _ => response,
    };
    response.build()
}

fn header(kind: Type, description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(kind);
    let header = HeaderBuilder::new().schema(Some(schema));
    header.description(Some(description)).build()
}

/// The outcome in the view that was asked for
#[derive(ToSchema)]
#[schema(as = AnyOutcome)]
#[allow(clippy::large_enum_variant, reason = "never built")]
#[derive(Serialize)]
#[serde(untagged)]
pub enum AnyOutcome {
    Structured(Outcome),
    Flat(FlatOutcome),
    Message(ToolMessage),
}

/// How a call ended: exactly one per call
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    tool_name: String,
    call_id: String,
    status: OutcomeStatus,
    /// The tool's answer, or its fallback's
    #[schema(required = false)]
    output: Value,
    #[schema(required = false, nullable = false)]
    error: Option<Failure>,
    /// Everything the caller waited for, in milliseconds
    execution_time: f64,
    /// How much of that was the wait for an approval
    #[schema(required = false)]
    approval_time: f64,
    /// How often the tool was started
    attempts: u32,
    #[schema(required = false)]
    fallback_used: bool,
    #[schema(required = false, nullable = false)]
    truncated: Option<TruncatedOutput>,
    /// Arguments that were mended
    #[schema(required = false)]
    coerced: Vec<MendedArgument>,
    /// Arguments that the tool did not get, since its schema forbids them or it has no place for them
    #[schema(required = false)]
    dropped_arguments: Vec<String>,
    /// Another call of the same idempotency key answers for this one
    #[schema(required = false)]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeStatus {
    Success,
    Error,
    Timeout,
}

#[derive(Serialize, ToSchema)]
pub struct FlatOutcome {
    success: bool,
    #[schema(required = false)]
    result: Value,
    #[schema(required = false, nullable = false)]
    error: Option<String>,
    /// What a failed call did out there
    #[schema(required = false, nullable = false)]
    effect: Option<Effect>,
    tool_name: String,
    execution_time_ms: f64,
    #[schema(required = false)]
    suggestions: Vec<String>,
    #[schema(required = false)]
    fallback_used: bool,
    /// Arguments that the tool did not get, since its schema forbids them or it has no place for them
    #[schema(required = false)]
    dropped_arguments: Vec<String>,
}

/// LangChain's
#[derive(Serialize, ToSchema)]
pub struct ToolMessage {
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
pub struct CallRecord {
    #[serde(flatten)]
    call: history::CallSummary,
    #[serde(flatten)]
    details: history::CallDetails,
    /// How long ago it came in, in milliseconds; absent when it has ended
    #[schema(required = false, nullable = false)]
    elapsed_ms: Option<f64>,
}

#[derive(Serialize, ToSchema)]
pub struct CallCancelled {
    id: String,
    /// How many calls had this id
    cancelled: usize,
}

#[derive(Serialize, ToSchema)]
pub struct BatchOutcomes {
    /// outcomes[i] answers calls[i]
    outcomes: Vec<AnyOutcome>,
}

/// All tools in their order, or as a consumer wants them
#[derive(Serialize, ToSchema)]
pub struct ToolList {
    count: usize,
    tools: Vec<AnyTool>,
    /// Sources that could not be loaded, and other remarks
    #[schema(required = false)]
    problems: Vec<SourceProblem>,
    /// What is no tool, and why
    left_out: Vec<LeftOutTool>,
}

/// A tool, or what the format that was asked for has in its place
#[derive(Serialize)]
pub struct AnyTool;

impl PartialSchema for AnyTool {
    fn schema() -> RefOr<Schema> {
        let in_its_format = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("The tool as its consumer wants it"));
        AnyOfBuilder::new()
            .description(Some(
                "A tool, or what the format that was asked for has in its place",
            ))
            .item(Ref::from_schema_name("ListedTool"))
            .item(in_its_format)
            .into()
    }
}

impl ToSchema for AnyTool {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ListedTool::name().into_owned(), ListedTool::schema()));
        ListedTool::schemas(schemas);
    }
}

#[derive(Serialize, ToSchema)]
pub struct SourceProblem {
    name: String,
    reason: String,
    /// steadyhand.toml:62
    place: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct LeftOutTool {
    #[schema(required = false, nullable = false)]
    source: Option<String>,
    name: String,
    reason: String,
}

/// A tool in a list
#[derive(Serialize, ToSchema)]
pub struct ListedTool {
    name: String,
    description: String,
    /// JSON Schema of the arguments
    schema: Value,
    /// What runs it
    kind: String,
    source: Option<String>,
    /// Whether it is there to be called
    available: bool,
    /// ready, breaker open, breaker half-open, starting, restarting, not running, stopped, disabled
    state: String,
    /// Why it cannot be called
    #[schema(required = false, nullable = false)]
    reason: Option<String>,
    /// The name LangChain knows it by
    #[schema(required = false, nullable = false)]
    lc_name: Option<String>,
    /// Its breaker; in a list only while it is not closed
    #[schema(required = false)]
    breaker: Option<Breaker>,
}

/// One tool with everything about it
#[derive(Serialize, ToSchema)]
pub struct Tool {
    #[serde(flatten)]
    listed: ListedTool,
    /// Each setting with its value and where it comes from
    policy: BTreeMap<String, PolicyValue>,
    /// Absent for those who may not view
    metrics: Option<Metrics>,
}

#[derive(Serialize, ToSchema)]
pub struct PolicyValue {
    value: String,
    origin: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
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
    /// What the tool said when it last failed
    #[schema(required = false, nullable = false)]
    last_error: Option<LastFailure>,
}

/// The last failure that a breaker counted
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    code: FailureCode,
    /// The tool's own words, secrets removed; the first of them
    message: String,
    /// The call that failed
    call_id: String,
    /// In milliseconds since 1970
    at_ms: u64,
}

#[derive(Serialize, ToSchema)]
pub struct ToolBreaker {
    name: String,
    breaker: Option<Breaker>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    Closed,
    Open,
    HalfOpen,
}

#[derive(Serialize, ToSchema)]
pub struct MetricsList {
    count: usize,
    tools: Vec<Metrics>,
}

/// Counts and times of one tool's calls
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
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
    /// How many calls failed with which code
    #[schema(required = false)]
    errors_by_code: BTreeMap<String, u64>,
    #[schema(required = false, nullable = false)]
    breaker: Option<Breaker>,
}

#[derive(Serialize, ToSchema)]
pub struct ValidationReport {
    valid: bool,
    problems: Vec<ConversationRemark>,
}

#[derive(Serialize, ToSchema)]
pub struct RepairReport {
    /// A list of messages as its provider accepts it
    #[schema(required = false, nullable = false)]
    messages: Option<Vec<Value>>,
    /// A whole request as its provider accepts it
    #[schema(required = false, nullable = false)]
    request: Option<Value>,
    /// A model's response that can be relied on
    #[schema(required = false, nullable = false)]
    response: Option<Value>,
    fixes: Vec<ConversationRemark>,
}

/// A problem, or a change that was made
#[derive(Serialize, ToSchema)]
pub struct ConversationRemark {
    /// JSON Pointer
    at: String,
    code: String,
    message: String,
    /// What the provider itself would answer to a problem, where it says anything
    #[schema(nullable = false)]
    provider_text: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct TurnResults {
    /// One result per call, in the provider's own shape
    messages: Vec<Value>,
    /// outcomes[i] answers the i-th call of the turn
    outcomes: Vec<Outcome>,
}

#[derive(Serialize, ToSchema)]
pub struct EffectiveConfig {
    file: Option<String>,
    generation: u64,
    settings: Vec<ConfigSetting>,
    last_reload: Option<LastReload>,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigSetting {
    setting: String,
    value: Value,
    /// steadyhand.toml:62, a variable, or default
    origin: String,
}

#[derive(Serialize, ToSchema)]
pub struct LastReload {
    ok: bool,
    #[schema(required = false)]
    problems: Vec<ConfigProblem>,
}

#[derive(Serialize, ToSchema)]
pub struct ReloadResult {
    generation: u64,
    /// What deserves a look
    warnings: Vec<ConfigProblem>,
}

/// Something wrong in the configuration file, or worth a look
#[derive(Serialize, ToSchema)]
pub struct ConfigProblem {
    severity: ConfigProblemSeverity,
    message: String,
    file: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    help: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigProblemSeverity {
    Warning,
    Error,
}

#[derive(Serialize, ToSchema)]
pub struct ServerList {
    servers: Vec<Server>,
    count: usize,
}

/// An MCP server of the configuration
#[derive(Serialize, ToSchema)]
pub struct Server {
    name: String,
    phase: ServerPhase,
    /// The phase in words
    status: String,
    /// How many tools it offers
    tools: usize,
    /// Why it is not up, or not used
    #[schema(required = false, nullable = false)]
    reason: Option<String>,
    /// Where it is configured
    #[schema(required = false, nullable = false)]
    place: Option<String>,
    /// stdio, http or sse
    #[schema(required = false, nullable = false)]
    transport: Option<String>,
    /// Its command or its address, without secrets
    #[schema(required = false, nullable = false)]
    command: Option<String>,
    #[schema(required = false, nullable = false)]
    pid: Option<u32>,
    /// For how long it has been in this phase
    #[schema(required = false, nullable = false)]
    for_ms: Option<u64>,
    /// When it is tried again, from now on
    #[schema(required = false, nullable = false)]
    next_try_in_ms: Option<u64>,
    /// How often it was tried to start it
    #[schema(required = false, nullable = false)]
    tries: Option<u64>,
    /// How often it was up
    #[schema(required = false, nullable = false)]
    starts: Option<u64>,
    /// How often it ended by itself after it had been up
    #[schema(required = false, nullable = false)]
    deaths: Option<u64>,
    /// How it ended the last time, with its last words
    #[schema(required = false, nullable = false)]
    last_death: Option<String>,
    /// It ends again and again, although it is up each time: how often, and how
    #[schema(required = false, nullable = false)]
    unstable: Option<String>,
    /// The steps of its last start that it has done
    #[schema(required = false)]
    steps: Vec<Value>,
    /// What deserves a look
    #[schema(required = false)]
    notes: Vec<String>,
    /// Tools it lists that cannot be used, and why: the first hundred
    #[schema(required = false)]
    unusable: Vec<Value>,
    /// How many they are in all
    #[schema(required = false, nullable = false)]
    unusable_count: Option<usize>,
    /// Why its last start failed, in full
    #[schema(required = false)]
    failure: Value,
    /// What it said at the handshake
    #[schema(required = false)]
    greeting: Value,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerPhase {
    Idle,
    Starting,
    Running,
    Restarting,
    Down,
    Stopped,
    Disabled,
}

#[derive(Serialize, ToSchema)]
pub struct ServerLog {
    name: String,
    lines: Vec<ServerLogLine>,
    /// Where the next question begins
    next: u64,
}

#[derive(Serialize, ToSchema)]
pub struct ServerLogLine {
    /// Milliseconds since 1970
    at_ms: u64,
    /// stderr, stdout, or note: a remark of ours
    stream: String,
    text: String,
}

#[derive(Serialize, ToSchema)]
pub struct Liveness {
    /// live
    status: String,
    /// steadyhand
    name: String,
    version: String,
    instance: String,
    uptime_ms: u64,
}

#[derive(Serialize, ToSchema)]
pub struct Readiness {
    ready: bool,
    reason: Option<String>,
    generation: u64,
    tools: usize,
    running: usize,
    /// Empty for those who may not view
    servers: Vec<Server>,
    /// How the history of calls fares; calls go on without it
    #[schema(required = false, nullable = false)]
    history: Option<history::Health>,
    /// Whether calls with an idempotency key are taken
    #[schema(required = false, nullable = false)]
    idempotency_keys: Option<KeysHealth>,
    /// Whether the audit log is written
    #[schema(required = false, nullable = false)]
    audit: Option<AuditHealth>,
}

/// Whether the audit log is written
#[derive(Serialize, ToSchema)]
pub struct AuditHealth {
    /// It is, or it is switched off
    written: bool,
    /// Records that are in no file
    unwritten: u64,
    /// Why it is not written
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    reason: Option<String>,
}

impl AuditHealth {
    pub fn of(app: &super::App) -> AuditHealth {
        let reason = app.audit.trouble();
        AuditHealth {
            written: reason.is_none(),
            unwritten: app.audit.unwritten(),
            reason,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AuditList {
    /// false where the log is switched off
    enabled: bool,
    count: usize,
    /// The newest first
    records: Vec<steadyhand_runtime::audit::AuditRecord>,
    /// `before` of the next page; absent on the last one
    #[schema(required = false, nullable = false)]
    next: Option<u64>,
    /// Records that could not be written
    unwritten: u64,
    /// Why the log is not written now
    #[schema(required = false, nullable = false)]
    problem: Option<String>,
}

/// Whether calls with an idempotency key are taken
#[derive(Serialize, ToSchema)]
pub struct KeysHealth {
    /// They are; otherwise each is refused with effect none, and not run
    taken: bool,
    /// Why they are refused, and what to do
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    reason: Option<String>,
}

impl KeysHealth {
    pub fn of(app: &super::App) -> KeysHealth {
        let reason = app.runtime.executor().key_store_trouble();
        KeysHealth {
            taken: reason.is_none(),
            reason,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ToolChanges {
    changes: Vec<steadyhand_runtime::pins::Change>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub struct ToolAccepted {
    name: String,
    /// The server it comes from
    source: String,
    accepted: bool,
    /// The definition that counts now
    definition_hash: String,
}

#[derive(Serialize, ToSchema)]
pub struct ToolRejected {
    name: String,
    /// The server it comes from
    source: String,
    rejected: bool,
    /// The definition that is kept away
    definition_hash: String,
}

#[derive(Serialize, ToSchema)]
pub struct ToolSwitched {
    name: String,
    enabled: bool,
    /// What the configuration file says now
    #[schema(example = "tools.send_mail.enabled = false")]
    setting: String,
}

#[derive(Serialize, ToSchema)]
pub struct AlertList {
    /// How many are not over
    active: usize,
    count: usize,
    /// Those that are so, then those that are over, the newest first
    alerts: Vec<crate::alerts::Alert>,
    /// The rules in force
    rules: Vec<String>,
    /// Addresses that are told, and how that went
    webhooks: Vec<Webhook>,
}

#[derive(Serialize, ToSchema)]
pub struct Webhook {
    /// Its address, without path and secrets
    to: String,
    signed: bool,
    queued: usize,
    sent: u64,
    failed: u64,
    dropped: u64,
    last_error: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ApprovalList {
    /// How many wait
    waiting: usize,
    count: usize,
    /// Those that wait, the oldest first, then those that were decided
    approvals: Vec<steadyhand_runtime::approvals::Approval>,
}

#[derive(Serialize, ToSchema)]
pub struct Whoami {
    /// None where nobody was asked for one
    name: Option<String>,
    /// nothing, token, local, key or jwt
    by: String,
    role: Role,
    rights: Vec<String>,
    /// The tools it may use
    tools: UsableTools,
    rate: Option<String>,
}

/// All tools but those that are denied, or only those that are allowed
#[derive(Serialize, ToSchema)]
pub struct UsableTools {
    #[schema(required = false)]
    allow: Vec<String>,
    #[schema(required = false)]
    deny: Vec<String>,
}

/// RFC 9728
#[derive(Serialize, ToSchema)]
pub struct OauthMetadata {
    resource: String,
    resource_name: String,
    authorization_servers: Vec<String>,
    scopes_supported: Vec<String>,
    bearer_methods_supported: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct KeyList {
    keys: Vec<Key>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub struct Key {
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
pub struct KeyTools {
    /// All if empty
    allow: Vec<String>,
    deny: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct CreatedKey {
    #[serde(flatten)]
    about: Key,
    /// The key itself: shown this once
    key: String,
}

#[derive(Serialize, ToSchema)]
pub struct RefusalList {
    refusals: Vec<steadyhand_runtime::access::Refusal>,
    count: usize,
    /// How many are in no file
    unwritten: u64,
}
