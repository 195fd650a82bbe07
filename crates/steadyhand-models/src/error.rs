//! Why a model gave no answer: what happened, what to do, and never a key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// A model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ModelError {
    /// What kind of failure it is, for programs.
    pub kind: ModelErrorKind,
    /// What happened to what, for people. One line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The status the provider answered with.
    pub status: Option<u16>,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// How often it was asked.
    pub attempts: u32,
    /// What was sent, where the provider would not take it: whoever finds out why needs it.
    pub sent: Option<Sent>,
}

/// The body of a request. What was said is in it, so no `Debug` shows it; keys are in no body.
#[derive(Clone, PartialEq, Eq)]
pub struct Sent(Arc<Value>);

impl Sent {
    /// As it was sent.
    pub fn body(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sent(…)")
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.attempts > 1 {
            write!(f, " (asked {} times)", self.attempts)?;
        }
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// The ways in which a model can fail to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// What is configured cannot work: a URL that is none, a key with odd characters.
    Settings,
    /// Nobody answers there.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// The key is missing, wrong, or may not do this.
    Unauthorized,
    /// There is no such model, or no such path.
    NotFound,
    /// The provider does not take the request.
    Refused,
    /// Too much is asked of it now (429, 503, 529).
    Overloaded,
    /// It failed by itself (5xx, or an error in the middle of a stream).
    Provider,
    /// The answer broke off.
    BrokeOff,
    /// What it answers is not its protocol.
    Unreadable,
    /// It answers more than may be.
    TooLarge,
    /// The script has no more lines.
    ScriptEnded,
}

impl ModelErrorKind {
    /// Whether asking again may help.
    pub fn is_transient(self) -> bool {
        match self {
            ModelErrorKind::Unreachable
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Provider
            | ModelErrorKind::BrokeOff => true,
            ModelErrorKind::Settings
            | ModelErrorKind::Timeout
            | ModelErrorKind::Unauthorized
            | ModelErrorKind::NotFound
            | ModelErrorKind::Refused
            | ModelErrorKind::Unreadable
            | ModelErrorKind::TooLarge
            | ModelErrorKind::ScriptEnded => false,
        }
    }
}

impl ModelError {
    /// A failure of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError {
            kind,
            message: message.into(),
            help: None,
            status: None,
            retry_after: None,
            attempts: 1,
            sent: None,
        }
    }

    /// The same, with what was sent, where it is that which was refused.
    #[must_use]
    pub(crate) fn about(mut self, body: Value) -> ModelError {
        let is_about_it = matches!(self.status, Some(400 | 422));
        self.sent = is_about_it.then(|| Sent(Arc::new(body)));
        self
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> ModelError {
        self.help = Some(help.into());
        self
    }
}
