//! The shapes of the engine's own types, for documents that describe what is kept of a call. They are never built.

#![allow(dead_code, reason = "shapes for documents only")]

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One value that was changed so that the arguments fit
#[derive(Serialize, ToSchema)]
pub struct MendedArgument {
    /// JSON Pointer into the arguments
    at: String,
    /// What was done, in words
    message: String,
}

/// Why a call has no result of its own
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    code: FailureCode,
    /// The tool's own words, secrets removed
    message: String,
    /// For the person in front of the application
    user_message: String,
    /// Whether another try could help
    retryable: bool,
    effect: Effect,
    /// The tool ran to its end, and only its result could not be used
    #[schema(required = false)]
    result_lost: bool,
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
pub enum FailureCode {
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
pub enum Effect {
    None,
    Unknown,
    Done,
}

/// One thing that is wrong with the arguments
#[derive(Serialize, ToSchema)]
pub struct ArgumentProblem {
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
pub struct TruncatedOutput {
    full_bytes: u64,
    limit_bytes: u64,
}
