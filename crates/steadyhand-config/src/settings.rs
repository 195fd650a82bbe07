//! The sections of the configuration file, as it is written. What a tool's table holds beside its
//! policy belongs to its kind: see the files in `source/`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::documents::DocumentsSettings;
use super::models::Models;
use super::proxy::ProxySettings;
use super::role::Role;
use super::text::SecretText;
use super::transcriber::TranscriberSettings;
use super::units::{Rate, Size, Span, TIME_LIMIT};

/// The whole file, but for its tools and servers: each is read by its kind.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Root {
    /// The version of this format; 1
    #[schemars(range(min = 1, max = 1))]
    pub version: Option<u32>,
    /// Where Steadyhand listens
    pub server: ServerSettings,
    /// Configuration files of other programs whose MCP servers are taken over
    pub import: ImportSettings,
    /// Every tool starts from these
    pub defaults: PolicySettings,
    /// Models for `steadyhand chat`
    pub models: Models,
    /// The voice at home: `steadyhand transcriber`
    pub transcriber: TranscriberSettings,
    /// Folders that `rag_query` searches
    pub documents: Option<DocumentsSettings>,
    /// Tools by name
    pub tools: Map<String, Value>,
    /// MCP servers by name
    pub mcp: Map<String, Value>,
    /// Providers that the proxy forwards to: anthropic, openai, ollama, gemini, mistral, bedrock, vertex
    pub proxy: BTreeMap<String, ProxySettings>,
    /// Who is told when something goes wrong
    pub alerts: Vec<AlertSettings>,
    /// Where traces and metrics are sent
    pub telemetry: TelemetrySettings,
    /// What `serve`, `transcriber` and `mcp-stdio` write on stderr
    pub log: LogSettings,
    /// Who decided and changed what: a log that nobody can shorten unnoticed
    pub audit: AuditSettings,
}

/// The audit log: decisions and changes of operators and administrators.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSettings {
    /// Whether it is written; true if not said
    pub enabled: Option<bool>,
    /// How long records are kept; 400d if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub keep: Option<Span>,
    /// How large all of it may grow; 64MiB if not said
    pub max_size: Option<Size>,
    /// The name of this machine in each record; its host name if not said
    pub node: Option<String>,
    /// Whether what cannot be written down is refused and not done; false if not said
    pub required: Option<bool>,
}

/// What programs that stay write on stderr. `-q` writes nothing, `-v` and `-vv` write more, whatever is said here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    /// The least important lines that are written: off, error, warn, info (every call) or debug; warn if not said
    pub level: Option<LineLevel>,
    /// text, or json: one object a line; text if not said
    pub format: Option<LineFormat>,
}

/// Which lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LineLevel {
    /// None.
    Off,
    /// What is broken.
    Error,
    /// What deserves a look: failed and slow calls, unknown tools, alerts, servers that do not start.
    Warn,
    /// Every call, and every step of a server.
    Info,
    /// Everything.
    Debug,
}

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LineFormat {
    /// For people.
    Text,
    /// For programs: one JSON object a line, with its time.
    Json,
}

/// Where Steadyhand listens, and what it keeps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// Address and port; 127.0.0.1:7400 if not said
    #[schemars(example = "127.0.0.1:7400")]
    pub listen: Option<String>,
    /// Whether the dashboard is served
    pub dashboard: Option<bool>,
    /// The token that callers must show; empty on loopback means no login
    pub token: Option<SecretText>,
    /// Names of hosts that requests may be addressed to, beside the address itself
    pub allowed_hosts: Vec<String>,
    /// What is kept of past calls
    pub history: HistorySettings,
    /// What requests may cost
    pub limits: RequestLimits,
    /// How long a call waits for a person's yes; 5m if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub approval_wait: Option<Span>,
    /// Whether an MCP client that can show forms is asked about its own calls; false if not said: whatever the client
    /// answers would be the caller's own yes
    pub approval_by_caller: Option<bool>,
    /// How long the first list of tools waits for MCP servers that start for the first time; 5s if not said
    pub first_list_wait: Option<Span>,
    /// Tokens (JWT) of an issuer that let callers in
    pub jwt: Option<JwtSettings>,
    /// How much a conversation, or a caller, may ask for
    pub budget: Option<BudgetSettings>,
    /// A certificate: connections are then TLS
    pub tls: Option<TlsSettings>,
}

/// Tokens (JWT) of an issuer: what this server takes as an OAuth resource server.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JwtSettings {
    /// Who issues them: the `iss` they must have, and where its keys are found out
    #[schemars(example = "https://login.example.org")]
    pub issuer: String,
    /// Whom they must be for: the address of this server's `/mcp` as clients know it
    #[schemars(example = "https://tools.example.org/mcp")]
    pub audience: String,
    /// Where the issuer's keys (JWKS) are, if it does not say so itself
    pub jwks: Option<String>,
    /// How they may be signed; RS256, PS256, ES256, ES384 and EdDSA if not said
    #[serde(default)]
    pub algorithms: Vec<String>,
    /// What a token without a scope of ours lets its owner do; nothing if not said
    pub role: Option<Role>,
    /// The tools their owners may use, by name or pattern; all if not said
    #[serde(default)]
    pub tools: Vec<String>,
    /// Tools they may not use, whatever is allowed
    #[serde(default)]
    pub deny: Vec<String>,
    /// How many calls each of them may make in which time
    pub rate: Option<Rate>,
    /// Tokens (`jti`) and owners (`sub`) that are not let in any more
    #[serde(default)]
    pub revoked: Vec<String>,
}

/// How much a conversation, or a caller, may ask for. What goes beyond is answered OVERLOADED, and not run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSettings {
    /// Whose it is: conversation (where a call says which it belongs to) or key
    pub per: Option<Per>,
    /// Calls
    #[schemars(range(min = 1))]
    pub calls: Option<u32>,
    /// Time from the first call on
    #[schemars(extend("format" = TIME_LIMIT))]
    pub time: Option<Span>,
    /// The same call in a row
    #[schemars(range(min = 1))]
    pub repeats: Option<u32>,
}

/// Whose budget it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Each conversation has its own.
    #[default]
    Conversation,
    /// Each caller has its own.
    Key,
}

/// A certificate and its key, as PEM files. Read again when the configuration is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// The certificate, and those that lead from it to one that clients trust
    pub certificate: String,
    /// Its private key
    pub key: String,
}

/// What requests may cost.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequestLimits {
    /// The largest body; more is refused. 16MiB if not said
    pub body: Option<Size>,
    /// Calls that run at the same time, over all tools and callers; 16384 if not said. Without per_caller, some more for callers that have fewer
    #[schemars(range(min = 1))]
    pub calls: Option<u32>,
    /// Calls of one caller that run at the same time
    #[schemars(range(min = 1))]
    pub per_caller: Option<u32>,
    /// Connections that one caller has in use at the same time; 1024 if not said. A quarter more may be open, for others
    #[schemars(range(min = 1))]
    pub connections: Option<u32>,
    /// Memory for what is held for callers and servers: bodies, answers, lists; 512MiB if not said
    pub memory: Option<Size>,
    /// How long a client may take to send a request or to take a piece of an answer; 30s if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub patience: Option<Span>,
}

/// What is kept of past calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HistorySettings {
    /// The database file
    pub path: Option<String>,
    /// How long calls are kept
    #[schemars(extend("format" = TIME_LIMIT))]
    pub keep: Option<Span>,
    /// How large the file may grow
    pub max_size: Option<Size>,
}

/// Configuration files of other programs, read and never written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImportSettings {
    /// Paths, or known programs: claude-desktop, claude-code, cursor, vscode, windsurf, gemini, goose, codex, crush
    pub mcp: Vec<String>,
    /// Names of servers to leave out
    pub skip: Vec<String>,
    /// Files with Flex Chat's `tools` JSON
    pub flex_chat: Vec<String>,
}

/// How a tool is called: how long, how often, how many at once, and what happens when it fails.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySettings {
    /// The limit for one attempt
    #[schemars(extend("format" = TIME_LIMIT))]
    pub timeout: Option<Span>,
    /// The limit for the whole call, waits and retries included
    #[schemars(extend("format" = TIME_LIMIT))]
    pub deadline: Option<Span>,
    /// Whether and how failed attempts are repeated
    pub retry: Option<RetrySettings>,
    /// When to stop calling a tool that keeps failing
    pub breaker: Option<BreakerSettings>,
    /// How many at once, how fast, how large
    pub limits: Option<LimitSettings>,
    /// What answers when the tool cannot
    pub fallback: Option<FallbackSettings>,
    /// Whether running it twice is as good as running it once
    pub idempotent: Option<bool>,
    /// Whether a person must say yes first
    pub approval: Option<Approval>,
    /// Mend common slips in the arguments, and report it
    pub coerce: Option<bool>,
    /// Enforce the schema to the letter
    pub strict: Option<bool>,
    /// Names of fields whose values no log shows; * stands for anything
    pub redact: Option<Vec<String>>,
    /// false leaves it out: it is offered to nobody, and cannot be called
    pub enabled: Option<bool>,
    /// Arguments of calls that must work: `steadyhand verify` makes them
    pub examples: Option<Vec<Map<String, Value>>>,
}

/// Whether and how failed attempts are repeated.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// How many attempts, the first one included; 1 means no retry
    #[schemars(range(min = 1, max = 100))]
    pub attempts: Option<u32>,
    /// The wait before the second attempt; it doubles from there on
    pub backoff: Option<Span>,
    /// Spread the waits at random
    pub jitter: Option<bool>,
    /// Which failures are repeated
    pub on: Option<Vec<RetryOn>>,
}

/// A failure that may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// Unreachable, or the connection broke.
    Network,
    /// Too slow.
    Timeout,
    /// Called too often.
    RateLimit,
    /// Anything else.
    Unknown,
}

/// When to stop calling a tool that keeps failing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerSettings {
    /// false switches it off
    pub enabled: Option<bool>,
    /// Failed calls in a row that open it
    #[schemars(range(min = 1))]
    pub failures: Option<u32>,
    /// How long it rests before a trial
    #[schemars(extend("format" = TIME_LIMIT))]
    pub cooldown: Option<Span>,
}

/// How many at once, how fast, how large.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Attempts that run at the same time
    #[schemars(range(min = 1))]
    pub concurrency: Option<u32>,
    /// Attempts that wait for a place; one more is refused
    pub queue: Option<u32>,
    /// The largest result; more is cut, with a mark
    pub result: Option<Size>,
    /// The largest arguments; more is refused
    pub args: Option<Size>,
    /// How many attempts in a span of time
    pub rate: Option<Rate>,
}

/// What answers when the tool cannot: a fixed result, or another tool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FallbackSettings {
    /// A fixed answer
    pub result: Option<Value>,
    /// Another tool
    pub tool: Option<String>,
    /// The other tool's arguments; {name} stands for an argument of the call
    pub args: Option<Map<String, Value>>,
    /// false leaves the bare error standing while the breaker is open
    pub when_open: Option<bool>,
    /// How long it may take
    #[schemars(extend("format" = TIME_LIMIT))]
    pub timeout: Option<Span>,
}

/// Whether a person must say yes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// It runs at once.
    Never,
    /// A yes is remembered for the same arguments within a conversation.
    Ask,
    /// Every time.
    Always,
}

/// Who is told, and when.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertSettings {
    /// What happened: breaker_open, server_down, tools_changed, approval_waiting > 30s, error_rate > 20% for 5m, average > 5s for 5m,
    /// p95 > 2s for 5m, validation_failures > 20 for 5m, invalid_responses > 0 for 5m, mended_conversations > 5 for 5m, queue_full > 0 for 1m
    pub when: String,
    /// Names or patterns of tools; all if not said
    #[serde(default)]
    pub tools: Vec<String>,
    /// Calls within the time, or the rule says nothing; 10 if not said
    #[schemars(range(min = 1))]
    pub min_calls: Option<u32>,
    /// It is over at or below this; four fifths of the limit if not said
    pub clear: Option<String>,
    /// How it is told; a line of the log if not said
    #[serde(default)]
    pub notify: NotifySettings,
}

/// How an alert is told.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// A web address that gets the alert as JSON
    pub webhook: Option<SecretText>,
    /// What its messages are signed with, as Standard Webhooks has it
    pub secret: Option<SecretText>,
    /// A log line of this level
    pub log: Option<LogLevel>,
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For the record.
    Info,
    /// Deserves a look.
    Warn,
    /// Something is broken.
    Error,
}

/// Where traces and metrics are sent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetrySettings {
    /// An OTLP collector that speaks HTTP, such as http://127.0.0.1:4318; /v1/traces and /v1/metrics are added
    pub otlp: Option<SecretText>,
    /// Headers sent with every export, such as a key
    pub headers: BTreeMap<String, SecretText>,
    /// How this process is called there; steadyhand if not said
    pub service: Option<String>,
    /// How often metrics are sent; 60s if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub metrics_every: Option<Span>,
}
