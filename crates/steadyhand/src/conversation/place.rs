//! Finds the messages in what was given: a list of messages, or a request that has one.

use serde_json::Value;

use super::provider::Provider;

/// The key of the messages in a provider's request.
pub fn key(provider: Provider) -> &'static str {
    match provider {
        Provider::Gemini => "contents",
        Provider::OpenAiResponses => "input",
        Provider::Anthropic
        | Provider::OpenAi
        | Provider::Mistral
        | Provider::Ollama
        | Provider::BedrockConverse
        | Provider::LangChain => "messages",
    }
}

/// The messages in what was given: a list of them, or a request that has one.
pub fn messages(provider: Provider, value: &Value) -> Option<&[Value]> {
    let list = value
        .as_array()
        .or_else(|| value.get(key(provider))?.as_array());
    list.map(Vec::as_slice)
}

/// The messages, taken out, and the rest to put them back into.
pub(super) struct Envelope {
    rest: Option<Value>,
    key: &'static str,
}

impl Envelope {
    /// Takes the messages out. None where there is no list of messages.
    pub(super) fn open(provider: Provider, value: Value) -> Result<(Envelope, Vec<Value>), Value> {
        let key = key(provider);
        match value {
            Value::Array(messages) => Ok((Envelope { rest: None, key }, messages)),
            Value::Object(mut request) => match request.get_mut(key) {
                Some(Value::Array(messages)) => {
                    let messages = std::mem::take(messages);
                    let rest = Some(Value::Object(request));
                    Ok((Envelope { rest, key }, messages))
                }
                _ => Err(Value::Object(request)),
            },
            other => Err(other),
        }
    }

    /// The request around the messages, if it was one.
    pub(super) fn request(&self) -> Option<&Value> {
        self.rest.as_ref()
    }

    pub(super) fn request_mut(&mut self) -> Option<&mut Value> {
        self.rest.as_mut()
    }

    /// What every place in the messages begins with.
    pub(super) fn base(&self) -> String {
        match self.rest {
            Some(_) => format!("/{}", self.key),
            None => String::new(),
        }
    }

    /// Puts the messages back.
    pub(super) fn close(self, messages: Vec<Value>) -> Value {
        let Some(mut rest) = self.rest else {
            return Value::Array(messages);
        };
        rest[self.key] = Value::Array(messages);
        rest
    }
}

/// Where the messages of a repaired conversation were in the one that was given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// What every place in the messages begins with.
    pub(super) base: &'a str,
    /// For each message the one it was, or behind which it was put.
    pub(super) origins: &'a [usize],
}

impl Places<'_> {
    /// The pointer to a message, by where it is now.
    pub(super) fn of(&self, index: usize) -> String {
        let origin = self.origins.get(index).copied().unwrap_or(index);
        format!("{}/{origin}", self.base)
    }
}

/// The text of a JSON Pointer's step.
pub(super) fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}
