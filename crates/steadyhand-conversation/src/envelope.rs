//! Finds the messages in what was given: a list of messages, or a request that has one.

use serde_json::Value;

use crate::problem::{Code, Log};
use crate::providers::Provider;

/// The key of the messages in a provider's request.
pub fn key(provider: Provider) -> &'static str {
    provider.rules().messages_key()
}

/// Whether a request has a text where others have messages, and its provider takes that.
pub fn is_one_text(provider: Provider, request: &Value) -> bool {
    provider.rules().takes_one_text() && request[key(provider)].is_string()
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
        let fault = format!("the messages stand under {found_under:?}; {provider} reads {key:?}");
        log.found(format!("/{found_under}"), Code::BadField, fault)
            .says(provider.rules().says_to_key(found_under))
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
