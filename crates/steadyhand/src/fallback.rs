//! What answers when a tool cannot (SPEC R11). The outcome stays a failure, and says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::failure::{Failure, FailureCode};
use crate::output::Output;
use crate::tool_error::ToolError;

/// What answers when a tool cannot.
#[derive(Clone)]
pub struct Fallback {
    pub(crate) answer: Answer,
    /// Whether it also answers while the breaker is open.
    pub when_open: bool,
    /// How long it may take. That much of the call's deadline is set aside for it.
    pub timeout: Duration,
}

#[derive(Clone)]
pub(crate) enum Answer {
    Value(Value),
    Tool {
        name: String,
        args: Option<Arc<ArgsFrom>>,
    },
    Function(Arc<AnswerFn>),
}

type ArgsFrom = dyn Fn(&Value) -> Value + Send + Sync;
type AnswerFn =
    dyn Fn(Value, Failure) -> BoxFuture<'static, Result<Output, ToolError>> + Send + Sync;

impl Fallback {
    /// A fixed answer.
    pub fn value(value: impl Into<Value>) -> Fallback {
        Fallback::of(Answer::Value(value.into()))
    }

    /// Another tool, with the same arguments.
    pub fn tool(name: impl Into<String>) -> Fallback {
        Fallback::of(Answer::Tool {
            name: name.into(),
            args: None,
        })
    }

    /// Another tool, with arguments made from the ones of the call.
    pub fn tool_with(
        name: impl Into<String>,
        args: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Fallback {
        Fallback::of(Answer::Tool {
            name: name.into(),
            args: Some(Arc::new(args)),
        })
    }

    /// Code that sees the arguments and the failure.
    pub fn function<F, Fut>(answer: F) -> Fallback
    where
        F: Fn(Value, Failure) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, ToolError>> + Send + 'static,
    {
        Fallback::of(Answer::Function(Arc::new(move |args, failure| {
            Box::pin(answer(args, failure))
        })))
    }

    /// Leaves the bare error standing while the breaker is open.
    #[must_use]
    pub fn not_when_open(mut self) -> Fallback {
        self.when_open = false;
        self
    }

    /// See [`Fallback::timeout`](struct.Fallback.html#structfield.timeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Fallback {
        self.timeout = timeout;
        self
    }

    /// Whether it may answer after this failure.
    pub(crate) fn applies_to(&self, code: FailureCode) -> bool {
        match code {
            FailureCode::CircuitOpen => self.when_open,
            FailureCode::NetworkError
            | FailureCode::Timeout
            | FailureCode::RateLimitError
            | FailureCode::ToolExecutionError
            | FailureCode::AuthenticationError
            | FailureCode::Overloaded => true,
            FailureCode::ValidationError
            | FailureCode::ToolNotFound
            | FailureCode::Cancelled
            | FailureCode::ApprovalDenied
            | FailureCode::ApprovalExpired
            | FailureCode::IdempotencyConflict => false,
        }
    }

    /// The part of a deadline that the attempts leave to this fallback.
    pub(crate) fn reserve(&self, deadline: Duration) -> Duration {
        match self.answer {
            Answer::Value(_) => Duration::ZERO,
            Answer::Tool { .. } | Answer::Function(_) => self.timeout.min(deadline / 4),
        }
    }

    fn of(answer: Answer) -> Fallback {
        Fallback {
            answer,
            when_open: true,
            timeout: Duration::from_secs(5),
        }
    }
}

/// For people: `the tool home_scene`, `a fixed answer`.
impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer {
            Answer::Value(_) => f.write_str("a fixed answer"),
            Answer::Tool { name, .. } => write!(f, "the tool {name}"),
            Answer::Function(_) => f.write_str("a function"),
        }
    }
}

impl Fallback {
    /// The tool that answers, if it is one.
    pub fn tool_name(&self) -> Option<&str> {
        match &self.answer {
            Answer::Tool { name, .. } => Some(name),
            Answer::Value(_) | Answer::Function(_) => None,
        }
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer {
            Answer::Value(value) => write!(f, "Fallback::value({value})"),
            Answer::Tool { name, .. } => write!(f, "Fallback::tool({name})"),
            Answer::Function(_) => f.write_str("Fallback::function(…)"),
        }
    }
}
