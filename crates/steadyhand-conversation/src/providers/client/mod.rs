//! How a client of ours speaks to a provider: a conversation to its JSON, an answer or its stream back to a message.

pub(crate) mod calls;
pub(crate) mod parts;
pub(crate) mod thinking;

use serde_json::Value;

use super::Provider;
use crate::client::{ModelRequest, Reply, RequestSettings, StreamReader};
use crate::converted::Converted;

/// How a client of ours speaks to a provider.
pub trait ClientFormat: Sync {
    /// Whose language it is.
    fn provider(&self) -> Provider;

    /// Where its makers serve it.
    fn public_url(&self) -> &'static str;

    /// The environment variable that its own clients read the key from.
    fn key_variable(&self) -> Option<&'static str>;

    /// The path below the base URL.
    fn path(&self) -> &'static str;

    /// The path of its list of models, the key of the list, and that of a name in it.
    fn model_list(&self) -> (&'static str, &'static str, &'static str) {
        ("models", "data", "id")
    }

    /// The base URL, out of what people write.
    fn base<'a>(&self, url: &'a str) -> &'a str {
        url
    }

    /// Headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The header that has the key.
    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    /// How people get a model that is not there.
    fn how_to_get(&self, _model: &str) -> Option<String> {
        None
    }

    /// How people start it where it is not running.
    fn how_to_start(&self) -> Option<&'static str> {
        None
    }

    /// Whether its stream is a JSON value a line.
    fn streams_lines(&self) -> bool {
        false
    }

    /// Writes a request.
    fn encode(
        &self,
        settings: &RequestSettings<'_>,
        request: &ModelRequest<'_>,
        tools: &Converted,
    ) -> Value;

    /// Reads a response.
    ///
    /// # Errors
    ///
    /// What is wrong with one that is not of this protocol.
    fn decode(&self, response: Value, tools: &Converted) -> Result<Reply, &'static str>;

    /// Whether a body is an error.
    fn is_error(&self, body: &Value) -> bool;

    /// The error in an event that says that the answer failed: null where it does not say why.
    fn error_in_event<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        self.is_error(event).then_some(event)
    }

    /// Reads a stream.
    fn stream_reader(&self) -> Box<dyn StreamReader>;

    /// What to say when the model cannot have seen all that was sent.
    fn context_cut(&self, _body: &Value, _response: &Value) -> Option<String> {
        None
    }
}

pub(super) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

pub(super) fn has_error(body: &Value) -> bool {
    body.get("error").is_some_and(|error| !error.is_null())
}
