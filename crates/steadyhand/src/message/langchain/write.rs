//! From a message to LangChain's JSON.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::message::AiMessage;
use crate::message::Content;
use crate::message::Extra;
use crate::message::InvalidToolCall;
use crate::message::Message;
use crate::message::OtherMessage;
use crate::message::PlainMessage;
use crate::message::ToolCall;
use crate::message::ToolMessage;

/// The dict shape. Its `data` is the flat shape, as it is in Python.
pub(super) fn dict(message: &Message) -> Value {
    let kind = match message {
        Message::System(_) => "system",
        Message::Human(_) => "human",
        Message::Ai(_) => "ai",
        Message::Tool(_) => "tool",
        Message::Other(other) => &other.kind,
    };
    json!({"type": kind, "data": self::message(message)})
}

/// The flat shape.
pub(super) fn message(message: &Message) -> Value {
    match message {
        Message::System(message) => plain("system", message),
        Message::Human(message) => plain("human", message),
        Message::Ai(message) => ai(message),
        Message::Tool(message) => tool(message),
        Message::Other(message) => other(message),
    }
}

pub(super) fn ai(message: &AiMessage) -> Value {
    let tool_calls: Vec<Value> = message.tool_calls.iter().map(tool_call).collect();
    let mut out = Map::new();
    out.insert("type".to_owned(), "ai".into());
    out.insert("content".to_owned(), content(&message.content));
    out.insert("tool_calls".to_owned(), tool_calls.into());
    if !message.invalid_tool_calls.is_empty() {
        let invalid: Vec<Value> = message
            .invalid_tool_calls
            .iter()
            .map(invalid_tool_call)
            .collect();
        out.insert("invalid_tool_calls".to_owned(), invalid.into());
    }
    followed_by(out, &message.extra)
}

pub(super) fn tool(message: &ToolMessage) -> Value {
    let status = if message.is_error { "error" } else { "success" };
    let mut out = Map::new();
    out.insert("type".to_owned(), "tool".into());
    out.insert("content".to_owned(), content(&message.content));
    out.insert(
        "tool_call_id".to_owned(),
        message.tool_call_id.clone().into(),
    );
    if let Some(name) = &message.name {
        out.insert("name".to_owned(), name.clone().into());
    }
    out.insert("status".to_owned(), status.into());
    if let Some(artifact) = &message.artifact {
        out.insert("artifact".to_owned(), artifact.clone());
    }
    followed_by(out, &message.extra)
}

fn plain(kind: &str, message: &PlainMessage) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), kind.into());
    out.insert("content".to_owned(), content(&message.content));
    followed_by(out, &message.extra)
}

fn other(message: &OtherMessage) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), message.kind.clone().into());
    followed_by(out, &message.fields)
}

fn content(content: &Content) -> Value {
    match content {
        Content::Text(text) => text.clone().into(),
        Content::Blocks(blocks) => blocks.clone().into(),
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let mut out = Map::new();
    out.insert("name".to_owned(), call.name.clone().into());
    out.insert("args".to_owned(), call.args.clone().into());
    out.insert("id".to_owned(), call.id.clone().into());
    out.insert("type".to_owned(), "tool_call".into());
    followed_by(out, &call.extra)
}

/// Nulls are written out: Python refuses an invalid call that lacks a key.
fn invalid_tool_call(call: &InvalidToolCall) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), "invalid_tool_call".into());
    out.insert("id".to_owned(), call.id.clone().into());
    out.insert("name".to_owned(), call.name.clone().into());
    out.insert("args".to_owned(), call.args.clone().into());
    out.insert("error".to_owned(), call.error.clone().into());
    followed_by(out, &call.extra)
}

/// Adds the other fields. What a known field says wins over an empty one that was kept under its name.
fn followed_by(mut known: Map<String, Value>, extra: &Extra) -> Value {
    for (key, value) in extra.iter() {
        known.entry(key.as_str()).or_insert_with(|| value.clone());
    }
    Value::Object(known)
}
