//! LangChain's JSON, in both directions.
//!
//! LangChain, in Python and in JavaScript, writes a message in three shapes. All three are read:
//!
//! | shape | written by | looks like |
//! |---|---|---|
//! | dict | `message_to_dict`, `toDict` | `{"type":"ai","data":{"content":"hi"}}` |
//! | constructor | `dumps`, `toJSON` | `{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"hi"}}` |
//! | flat | `model_dump` | `{"type":"ai","content":"hi"}` |
//!
//! Written are the flat shape, by serde, and the dict shape, by [`Message::to_dict`]. Known fields come
//! first; the others follow in the order they were read.

mod error;
mod escape;
mod fields;
mod kind;
mod read;
mod write;

pub use error::FormatError;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use serde_json::Value;

use super::AiMessage;
use super::Message;
use super::ToolMessage;

impl Message {
    /// Reads a message in any shape LangChain writes.
    ///
    /// # Errors
    ///
    /// Where `value` is no such message, and what was expected there.
    pub fn from_json(value: Value) -> Result<Self, FormatError> {
        read::message(value, String::new())
    }

    /// Reads a list of messages, each in any shape LangChain writes.
    ///
    /// # Errors
    ///
    /// The first place that is not as it should be, and what was expected there.
    pub fn list_from_json(value: Value) -> Result<Vec<Self>, FormatError> {
        read::messages(value)
    }

    /// The shape that Python's `messages_from_dict` and JavaScript's `mapStoredMessagesToChatMessages` take.
    pub fn to_dict(&self) -> Value {
        write::dict(self)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::message(self).serialize(serializer)
    }
}

impl Serialize for AiMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::ai(self).serialize(serializer)
    }
}

impl Serialize for ToolMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::tool(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for AiMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::ai(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ToolMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::tool(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
