//! How a call fails: a code for programs, two texts for people, and what the failed call did out there.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::Output;
use crate::redact::{self, Secrets};

/// Why a call has no result of its own. Always complete: every field means something to someone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The category, for programs.
    pub code: FailureCode,
    /// The technical text: the tool's or server's own words, secrets removed.
    pub message: String,
    /// The friendly text, for the person in front of the application.
    pub user_message: String,
    /// Whether another try could help and does no harm: false where the tool may have run and is not safe to
    /// repeat (SPEC D19).
    pub retryable: bool,
    /// What the failed call did out there.
    pub effect: Effect,
    /// The tool ran to its end, and only its result could not be used: too large, unreadable, not as declared.
    #[serde(default, rename = "resultLost", skip_serializing_if = "is_false")]
    pub result_lost: bool,
    /// What is wrong with the arguments, each fault with its place. Empty for other failures.
    pub problems: Vec<Problem>,
    /// Arguments that would have passed, for a call whose own did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Names of tools close to the one that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// When trying again makes sense, if someone said so (`Retry-After`, an open breaker).
    #[serde(
        default,
        rename = "retryAfterMs",
        skip_serializing_if = "Option::is_none",
        with = "option_ms"
    )]
    pub retry_after: Option<Duration>,
    /// Says nothing about the tool's health, whatever the category: an answer, or our own doing (SPEC D8).
    #[serde(skip)]
    pub(crate) neutral: bool,
    /// It is told again as it was told before, with what a fallback gave then.
    #[serde(skip)]
    pub(crate) told_again: Option<Box<ToldAgain>>,
}

/// What goes with a failure that is told again.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ToldAgain {
    pub(crate) fallback: Option<Output>,
}

impl Failure {
    /// The same without what may quote the arguments: for what is written down.
    #[must_use]
    pub fn without_secrets(&self, secrets: &Secrets) -> Failure {
        let mut shown = self.clone();
        let hide = |text: &mut String| {
            let tidy = redact::text(text).into_owned();
            *text = secrets.hide(tidy);
        };
        hide(&mut shown.message);
        hide(&mut shown.user_message);
        for problem in &mut shown.problems {
            hide(&mut problem.message);
            [&mut problem.expected, &mut problem.got]
                .into_iter()
                .flatten()
                .for_each(hide);
        }
        let examples = shown
            .problems
            .iter_mut()
            .map(|problem| &mut problem.example);
        for example in examples.chain([&mut shown.example]).flatten() {
            *example = secrets.hide_in(example);
        }
        shown
    }

    pub(crate) fn new(code: FailureCode, effect: Effect, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            user_message: String::new(),
            retryable: code.is_retryable(),
            effect,
            result_lost: false,
            problems: Vec::new(),
            example: None,
            suggestions: Vec::new(),
            retry_after: None,
            neutral: false,
            told_again: None,
        }
    }

    pub(crate) fn for_people(mut self, user_message: impl Into<String>) -> Failure {
        self.user_message = user_message.into();
        self
    }

    /// The effect in words, as every text about this failure states it (SPEC T01).
    pub fn effect_sentence(&self) -> &'static str {
        match self.effect {
            Effect::Done if self.result_lost => {
                "It ran to its end; only its result was lost. Check before trying again."
            }
            // `retryable` survives an unknown effect only where the tool is safe to repeat.
            Effect::Unknown if self.retryable => {
                "It may have run; check before trying again (this tool is safe to repeat)."
            }
            effect => effect.sentence(),
        }
    }

    /// The text for one line: the message, then the effect.
    pub fn message_with_effect(&self) -> String {
        join_sentences(&self.message, self.effect_sentence())
    }

    /// Completes the failure, once its effect is final: `retryable` does not invite to repeat what may have happened
    /// (SPEC D19), and the text for people states the effect (SPEC T01).
    pub(crate) fn complete(&mut self, safe_to_repeat: bool) {
        self.retryable &=
            self.effect == Effect::None || safe_to_repeat || self.told_again.is_some();
        if self.user_message.contains(self.effect_sentence()) {
            return;
        }
        self.user_message = join_sentences(&self.user_message, self.effect_sentence());
        if self.effect == Effect::None && self.code.passes_by_itself() {
            self.user_message.push_str(" Please try again later.");
        }
    }

    /// What this failure says about the health of the tool (SPEC D8, D11).
    pub fn health(&self) -> Health {
        if self.neutral || !self.code.blames_the_tool() {
            return Health::Neutral;
        }
        Health::Unhealthy
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message_with_effect())
    }
}

impl std::error::Error for Failure {}

/// The categories of SPEC R07.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureCode {
    /// The tool could not be reached, or the connection broke.
    NetworkError,
    /// An attempt or the whole call ran out of time.
    Timeout,
    /// The tool asked to be called less often.
    RateLimitError,
    /// The tool failed in some other way, a panic included.
    ToolExecutionError,
    /// The tool does not accept the caller's credentials.
    AuthenticationError,
    /// The arguments do not fit the tool's schema.
    ValidationError,
    /// The breaker of this tool is open.
    CircuitOpen,
    /// No tool has this name.
    ToolNotFound,
    /// The caller withdrew the call.
    Cancelled,
    /// Our own queue for this tool is full.
    Overloaded,
    /// A person said no.
    ApprovalDenied,
    /// Nobody answered in time.
    ApprovalExpired,
    /// The idempotency key was used before with other arguments.
    IdempotencyConflict,
}

impl FailureCode {
    /// All codes, for documentation and tests.
    pub const ALL: [FailureCode; 13] = [
        FailureCode::NetworkError,
        FailureCode::Timeout,
        FailureCode::RateLimitError,
        FailureCode::ToolExecutionError,
        FailureCode::AuthenticationError,
        FailureCode::ValidationError,
        FailureCode::CircuitOpen,
        FailureCode::ToolNotFound,
        FailureCode::Cancelled,
        FailureCode::Overloaded,
        FailureCode::ApprovalDenied,
        FailureCode::ApprovalExpired,
        FailureCode::IdempotencyConflict,
    ];

    /// The code as it appears in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCode::NetworkError => "NETWORK_ERROR",
            FailureCode::Timeout => "TIMEOUT",
            FailureCode::RateLimitError => "RATE_LIMIT_ERROR",
            FailureCode::ToolExecutionError => "TOOL_EXECUTION_ERROR",
            FailureCode::AuthenticationError => "AUTHENTICATION_ERROR",
            FailureCode::ValidationError => "VALIDATION_ERROR",
            FailureCode::CircuitOpen => "CIRCUIT_OPEN",
            FailureCode::ToolNotFound => "TOOL_NOT_FOUND",
            FailureCode::Cancelled => "CANCELLED",
            FailureCode::Overloaded => "OVERLOADED",
            FailureCode::ApprovalDenied => "APPROVAL_DENIED",
            FailureCode::ApprovalExpired => "APPROVAL_EXPIRED",
            FailureCode::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
        }
    }

    /// Whether failures of this category may pass by themselves.
    pub fn is_retryable(self) -> bool {
        self.blames_the_tool()
    }

    /// Nobody needs to change anything for a later call to work.
    fn passes_by_itself(self) -> bool {
        match self {
            FailureCode::NetworkError
            | FailureCode::Timeout
            | FailureCode::RateLimitError
            | FailureCode::CircuitOpen
            | FailureCode::Overloaded => true,
            FailureCode::ToolExecutionError
            | FailureCode::AuthenticationError
            | FailureCode::ValidationError
            | FailureCode::ToolNotFound
            | FailureCode::Cancelled
            | FailureCode::ApprovalDenied
            | FailureCode::ApprovalExpired
            | FailureCode::IdempotencyConflict => false,
        }
    }

    /// The same four categories are worth a retry and speak ill of the tool.
    fn blames_the_tool(self) -> bool {
        match self {
            FailureCode::NetworkError
            | FailureCode::Timeout
            | FailureCode::RateLimitError
            | FailureCode::ToolExecutionError => true,
            FailureCode::AuthenticationError
            | FailureCode::ValidationError
            | FailureCode::CircuitOpen
            | FailureCode::ToolNotFound
            | FailureCode::Cancelled
            | FailureCode::Overloaded
            | FailureCode::ApprovalDenied
            | FailureCode::ApprovalExpired
            | FailureCode::IdempotencyConflict => false,
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a failed call did out there. Ordered by doubt: over several attempts the greatest stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The tool was not run.
    None,
    /// The tool ran to its end, and succeeded or failed.
    Done,
    /// The tool may have run.
    Unknown,
}

impl Effect {
    /// The effect in words. [`Failure::effect_sentence`] knows more about one failure.
    pub fn sentence(self) -> &'static str {
        match self {
            Effect::None => "It was not run.",
            Effect::Done => "It ran, and failed.",
            Effect::Unknown => "It may have run; check before trying again.",
        }
    }
}

/// Two sentences in one line. The first may be anyone's words, with or without an end.
fn join_sentences(first: &str, second: &str) -> String {
    let first = first.trim_end();
    let last_word = first.rsplit(char::is_whitespace).next();
    match first.chars().last() {
        None => second.to_owned(),
        // A full stop would become part of the address.
        Some(_) if last_word.is_some_and(|word| word.contains("://")) => {
            format!("{first} ({second})")
        }
        Some('.' | '!' | '?' | ':' | ';' | '…') => format!("{first} {second}"),
        Some(_) => format!("{first}. {second}"),
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// What an outcome says about its tool, for the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The tool answered.
    Healthy,
    /// The tool is ill: counts towards opening.
    Unhealthy,
    /// Says nothing about the tool: neither counts, nor resets, nor closes.
    Neutral,
}

/// One thing that is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// JSON Pointer into the arguments; the place of a missing parameter is where it should be.
    pub at: String,
    /// The rule that was broken: the JSON Schema keyword, or `json`, `size`, `depth`.
    pub code: String,
    /// The fault in words.
    pub message: String,
    /// What the schema wants here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// A value that would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
}

/// Durations in JSON are whole milliseconds.
pub(crate) mod option_ms {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_u64(duration.as_millis() as u64),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
