//! Writes a stream as the provider would: words as they come, and the end of the last answer.

use axum::body::Bytes;
use serde_json::Value;
use steadyhand_conversation::{Provider, ProviderFormat, StreamState};

use super::super::tap::Framing;

/// Writes one stream.
pub(super) struct Speaker {
    format: &'static dyn ProviderFormat,
    framing: Framing,
    stream: StreamState,
    has_begun: bool,
}

impl Speaker {
    pub(super) fn new(provider: Provider, framing: Framing, model: Value) -> Speaker {
        let format = provider.format();
        let random = uuid::Uuid::new_v4().simple();
        let id = format!("{}{random}", format.id_prefix());
        Speaker {
            format,
            framing,
            stream: StreamState::new(id, model, framing == Framing::Array),
            has_begun: false,
        }
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.framing {
            Framing::Events => "text/event-stream; charset=utf-8",
            Framing::Lines => "application/x-ndjson",
            Framing::Array | Framing::AwsEvents => "application/json",
        }
    }

    /// Words.
    pub(super) fn text(&mut self, words: &str) -> Bytes {
        let begun = self.begin();
        (begun + &self.format.write_words(&mut self.stream, words)).into()
    }

    /// The end: the calls of the last answer, its reason and its counts.
    pub(super) fn end(mut self, answer: &Value) -> Bytes {
        let begun = self.begin();
        (begun + &self.format.write_end(&mut self.stream, answer)).into()
    }

    fn begin(&mut self) -> String {
        match std::mem::replace(&mut self.has_begun, true) {
            true => String::new(),
            false => self.format.write_begin(&mut self.stream),
        }
    }
}
