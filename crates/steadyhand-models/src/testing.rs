//! Providers on a socket, as strict as the real ones: for tests that want all of the way to a model.
//!
//! Each checks every request with [`strict`](steadyhand_conversation::strict) and answers it with the next line of its
//! script, in its own shape, streaming when asked to.

mod render;
mod server;

pub use server::StrictProvider;

use serde_json::Value;

/// What a provider answers to one request.
#[derive(Debug, Clone)]
pub enum Line {
    /// Words, calls, or both.
    Says(Said),
    /// The same, but the tokens run out: the arguments of the last call are this text, which may break off.
    CutOff(Said, String),
    /// A status, words, and when to come back.
    Refuses {
        /// The status.
        status: u16,
        /// The header `retry-after`.
        retry_after: Option<String>,
        /// The words.
        message: String,
    },
    /// So many bytes of the answer, then the connection is gone.
    BreaksOff(Said, usize),
    /// So many bytes of the answer, then nothing more.
    Hangs(Said, usize),
    /// Words, then an error in the middle of the stream; all at once, a failure.
    FailsMidway(Said, String),
    /// Exactly this, whatever was asked.
    Exactly {
        /// Its content type.
        content_type: String,
        /// The body.
        body: Vec<u8>,
    },
}

/// Words and calls.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// What it thinks first.
    pub thinking: String,
    /// What it says.
    pub text: String,
    /// What it calls, with which arguments.
    pub calls: Vec<(String, Value)>,
}

impl Said {
    /// Words.
    pub fn text(text: impl Into<String>) -> Said {
        Said {
            text: text.into(),
            ..Said::default()
        }
    }

    /// A call more.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, args: Value) -> Said {
        self.calls.push((name.into(), args));
        self
    }

    /// Thinking before it.
    #[must_use]
    pub fn thinking(mut self, thinking: impl Into<String>) -> Said {
        self.thinking = thinking.into();
        self
    }
}

impl Line {
    /// Says this.
    pub fn says(text: impl Into<String>) -> Line {
        Line::Says(Said::text(text))
    }

    /// Calls one tool.
    pub fn calls(name: impl Into<String>, args: Value) -> Line {
        Line::Says(Said::default().call(name, args))
    }

    /// Is overloaded, or whatever the status says.
    pub fn refuses(status: u16, message: impl Into<String>) -> Line {
        Line::Refuses {
            status,
            retry_after: None,
            message: message.into(),
        }
    }
}
