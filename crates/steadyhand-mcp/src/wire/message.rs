//! One JSON-RPC message, told apart by its members and never by the shape of a result.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A message of the other side.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// An answer to one of our requests.
    Response {
        /// The request; none if the id is not one of ours.
        id: Option<u64>,
        /// The result, raw, or the error.
        result: Result<&'a RawValue, RpcError>,
    },
    /// Something the other side wants from us.
    Request {
        /// To be repeated in the answer, as it is.
        id: &'a RawValue,
        /// What it wants.
        method: &'a str,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// Something it tells us.
    Notification {
        /// What happened.
        method: &'a str,
        /// In detail.
        params: Option<&'a RawValue>,
    },
}

/// What is read of an error, of its message as of its data.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Messages in one array, or on one line: more are none.
const BATCH_MAX: usize = 10_000;

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// What went wrong, as a number.
    #[serde(default)]
    pub code: i64,
    /// In words.
    #[serde(default)]
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// Reads a message; none if the bytes are not one.
    pub fn read(bytes: &'a [u8]) -> Option<Incoming<'a>> {
        if bytes.first() != Some(&b'{') {
            return None;
        }
        let envelope: Envelope<'a> = serde_json::from_slice(bytes).ok()?;
        if envelope.jsonrpc?.get() != "\"2.0\"" {
            return None;
        }
        if let Some(method) = envelope.method {
            // A method's name with escapes in it is no method of MCP.
            let method = method.get().strip_prefix('"')?.strip_suffix('"')?;
            return Some(match envelope.id.filter(|id| id.get() != "null") {
                Some(id) => Incoming::Request {
                    id,
                    method,
                    params: envelope.params,
                },
                None => Incoming::Notification {
                    method,
                    params: envelope.params,
                },
            });
        }
        let result = match (envelope.result, envelope.error) {
            (Some(result), _) => Ok(result),
            (None, Some(error)) => Err(RpcError::read(error)),
            // It answers one of ours, and says nothing: better told than waited for.
            (None, None) if envelope.id.and_then(number).is_some() => Err(RpcError::new(
                -32603,
                "the server's answer has neither a result nor an error",
            )),
            (None, None) => return None,
        };
        Some(Incoming::Response {
            id: envelope.id.and_then(number),
            result,
        })
    }
}

/// One message, or several in an array; none if it is neither.
pub fn read_messages(bytes: &[u8]) -> Option<Vec<Incoming<'_>>> {
    match Incoming::read(bytes) {
        Some(message) => Some(vec![message]),
        None => read_batch(bytes),
    }
}

/// Several messages in one array, as the protocol of 2025-03-26 allowed; none if one of them is no message.
pub(super) fn read_batch(bytes: &[u8]) -> Option<Vec<Incoming<'_>>> {
    if bytes.first() != Some(&b'[') {
        return None;
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let messages = json.deserialize_seq(Batch).ok()?;
    json.end().ok()?;
    Some(messages).filter(|messages| !messages.is_empty())
}

/// Reads messages one by one, and no further than they are messages, and not too many.
struct Batch;

impl<'de> Visitor<'de> for Batch {
    type Value = Vec<Incoming<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at most {BATCH_MAX} messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(raw) = list.next_element::<&'de RawValue>()? {
            match Incoming::read(raw.get().as_bytes()) {
                Some(message) if messages.len() < BATCH_MAX => messages.push(message),
                _ => return Err(A::Error::invalid_length(messages.len() + 1, &self)),
            }
        }
        Ok(messages)
    }
}

/// Several messages on one line, as two threads of a server write them that do not wait for each other; none if
/// there is anything else among them.
pub(super) fn read_glued(bytes: &[u8]) -> Option<Vec<Incoming<'_>>> {
    if bytes.first() != Some(&b'{') {
        return None;
    }
    let messages: Option<Vec<_>> = serde_json::Deserializer::from_slice(bytes)
        .into_iter::<&RawValue>()
        .take(BATCH_MAX + 1)
        .map(|message| Incoming::read(message.ok()?.get().as_bytes()))
        .collect();
    messages.filter(|messages| messages.len() <= BATCH_MAX)
}

/// A member that is there, be it null.
fn there<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// Our ids are numbers; some servers give them back as texts.
fn number(id: &RawValue) -> Option<u64> {
    let text = id.get().trim_matches('"');
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
    text.parse().ok().or_else(|| whole(text.parse().ok()?))
}

impl RpcError {
    /// An error of ours.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Servers put anything here; a text alone will do. What is long beyond use is cut.
    fn read(raw: &RawValue) -> RpcError {
        #[derive(Deserialize)]
        struct Written<'a> {
            #[serde(default)]
            code: i64,
            #[serde(borrow, default)]
            message: Cow<'a, str>,
            #[serde(borrow, default)]
            data: Option<&'a RawValue>,
        }
        let text = |text: &str| steadyhand::cut::text(text, ERROR_BYTES_MAX);
        let Ok(error) = steadyhand::typed_json::from_str::<Written<'_>>(raw.get()) else {
            return RpcError::new(-32603, text(raw.get()));
        };
        let data = error.data.map(|data| match data.get().len() {
            0..=ERROR_BYTES_MAX => serde_json::from_str(data.get()).ok(),
            bytes => Some(Value::String(format!(
                "({bytes} bytes, which is too much to be shown)"
            ))),
        });
        RpcError {
            code: error.code,
            message: text(&error.message),
            data: data.flatten(),
        }
    }
}

/// A message of ours, as one line.
#[derive(Debug, Serialize)]
pub struct Outgoing<'a, P: Serialize + ?Sized> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Id<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Id<'a> {
    Ours(u64),
    Theirs(&'a RawValue),
}

impl<'a, P: Serialize + ?Sized> Outgoing<'a, P> {
    fn empty() -> Outgoing<'a, P> {
        Outgoing {
            jsonrpc: "2.0",
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
        }
    }

    /// A request.
    pub fn request(id: u64, method: &'a str, params: &'a P) -> Outgoing<'a, P> {
        Outgoing {
            id: Some(Id::Ours(id)),
            method: Some(method),
            params: Some(params),
            ..Outgoing::empty()
        }
    }

    /// A notification.
    pub fn notification(method: &'a str, params: Option<&'a P>) -> Outgoing<'a, P> {
        Outgoing {
            method: Some(method),
            params,
            ..Outgoing::empty()
        }
    }

    /// An answer.
    pub fn response(id: &'a RawValue, answer: Result<&'a P, &'a RpcError>) -> Outgoing<'a, P> {
        Outgoing {
            id: Some(Id::Theirs(id)),
            result: answer.ok(),
            error: answer.err(),
            ..Outgoing::empty()
        }
    }

    /// The line, its end included. JSON needs no line breaks of its own, but what is passed on raw may have some.
    pub fn line(&self) -> Vec<u8> {
        let mut line = self.json();
        let mut from = 0;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &line[from..]) {
            from += found;
            line[from] = b' ';
        }
        line.push(b'\n');
        line
    }

    /// The message alone.
    pub fn json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(256);
        // Values of ours always serialise: keys are texts, numbers are finite.
        let _ = serde_json::to_writer(&mut json, self);
        json
    }
}
