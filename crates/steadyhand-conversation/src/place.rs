//! Finds the messages in what was given: a list of messages, or a request that has one.

use serde_json::Value;

use super::problem::{Code, Log};
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
        .or_else(|| value.get(key_in(provider, value)?)?.as_array());
    list.map(Vec::as_slice)
}

/// Where the messages stand in this request: under the provider's own key, or under another provider's, if there is
/// only that.
pub(super) fn key_in(provider: Provider, request: &Value) -> Option<&'static str> {
    let own = key(provider);
    match request.get(own) {
        Some(messages) => messages.is_array().then_some(own),
        None => ["messages", "input", "contents"].into_iter().find(|key| {
            let list = request.get(*key).and_then(Value::as_array);
            list.is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_object))
        }),
    }
}

/// The messages, taken out, and the rest to put them back into.
pub(super) struct Envelope {
    rest: Option<Value>,
    key: &'static str,
    /// The key under which they were given.
    found_under: &'static str,
}

impl Envelope {
    /// Takes the messages out. None where there is no list of messages.
    pub(super) fn open(provider: Provider, value: Value) -> Result<(Envelope, Vec<Value>), Value> {
        let key = key(provider);
        let found_under = key_in(provider, &value).unwrap_or(key);
        match value {
            Value::Array(messages) => {
                let rest = None;
                Ok((
                    Envelope {
                        rest,
                        key,
                        found_under,
                    },
                    messages,
                ))
            }
            Value::Object(mut request) => match request.get_mut(found_under) {
                Some(Value::Array(messages)) => {
                    let messages = std::mem::take(messages);
                    if found_under != key {
                        request.shift_remove(found_under);
                    }
                    let rest = Some(Value::Object(request));
                    Ok((
                        Envelope {
                            rest,
                            key,
                            found_under,
                        },
                        messages,
                    ))
                }
                _ => Err(Value::Object(request)),
            },
            other => Err(other),
        }
    }

    /// Tells of messages under another provider's key: there they are found by nobody.
    pub(super) fn check_key(&self, provider: Provider, log: &mut Log) {
        let (key, found_under) = (self.key, self.found_under);
        if key == found_under {
            return;
        }
        let says = match provider {
            Provider::Gemini => format!(
                "Invalid JSON payload received. Unknown name \"{found_under}\": Cannot find field."
            ),
            Provider::OpenAiResponses if found_under == "messages" => "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the new parameter.".to_owned(),
            Provider::OpenAi | Provider::OpenAiResponses => {
                format!("Missing required parameter: '{key}'.")
            }
            _ => format!("{key}: Field required"),
        };
        let fault = format!("the messages stand under {found_under:?}; {provider} reads {key:?}");
        log.found(format!("/{found_under}"), Code::BadField, fault)
            .says(says)
            .fixed("moved there");
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
            Some(_) => format!("/{}", self.found_under),
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
