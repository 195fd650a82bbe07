//! From LangChain's JSON, whichever of its shapes, to a message.

use serde_json::Map;
use serde_json::Value;

use super::error::FormatError;
use super::fields::A_STRING;
use super::fields::AN_OBJECT;
use super::fields::Fields;
use super::kind::KNOWN_CLASSES;
use super::kind::KNOWN_TYPES;
use super::kind::Kind;
use crate::message::AiMessage;
use crate::message::Content;
use crate::message::InvalidToolCall;
use crate::message::Message;
use crate::message::OtherMessage;
use crate::message::PlainMessage;
use crate::message::ToolCall;
use crate::message::ToolMessage;
use crate::message::tool_call::unique_id;

const A_MESSAGE: &str = "a message, a JSON object";
const AN_AI_MESSAGE: &str = "an AI message (type \"ai\")";
const A_TOOL_MESSAGE: &str = "a tool message (type \"tool\")";
const A_STATUS: &str = "\"success\" or \"error\"";

pub(super) fn messages(value: Value) -> Result<Vec<Message>, FormatError> {
    let Value::Array(items) = value else {
        return Err(FormatError::new(
            String::new(),
            "a list of messages",
            Some(&value),
        ));
    };
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| message(item, format!("/{index}")))
        .collect()
}

pub(super) fn message(value: Value, at: String) -> Result<Message, FormatError> {
    let (kind, fields) = unwrap(Fields::of(value, at, A_MESSAGE)?)?;
    match kind {
        Kind::System => read_plain(fields).map(Message::System),
        Kind::Human => read_plain(fields).map(Message::Human),
        Kind::Ai => read_ai(fields).map(Message::Ai),
        Kind::Tool => read_tool(fields).map(Message::Tool),
        Kind::Other(kind) => Ok(Message::Other(OtherMessage {
            kind,
            fields: fields.rest(),
        })),
    }
}

pub(super) fn ai(value: Value) -> Result<AiMessage, FormatError> {
    let (kind, fields) = unwrap(Fields::of(value, String::new(), A_MESSAGE)?)?;
    match kind {
        Kind::Ai => read_ai(fields),
        other => Err(another_kind(AN_AI_MESSAGE, &other)),
    }
}

pub(super) fn tool(value: Value) -> Result<ToolMessage, FormatError> {
    let (kind, fields) = unwrap(Fields::of(value, String::new(), A_MESSAGE)?)?;
    match kind {
        Kind::Tool => read_tool(fields),
        other => Err(another_kind(A_TOOL_MESSAGE, &other)),
    }
}

/// Opens whichever of the three shapes it is.
fn unwrap(outer: Fields) -> Result<(Kind, Fields), FormatError> {
    if outer.has("lc") {
        return unwrap_constructor(outer);
    }
    // A flat message has its content here; in a dict everything but the type is in `data`.
    if outer.has("data") && !outer.has("content") {
        return unwrap_dict(outer);
    }
    unwrap_flat(outer)
}

fn unwrap_flat(mut fields: Fields) -> Result<(Kind, Fields), FormatError> {
    let kind = kind_of_type(&fields)?;
    fields.take("type");
    Ok((kind, fields))
}

fn unwrap_dict(mut outer: Fields) -> Result<(Kind, Fields), FormatError> {
    let kind = kind_of_type(&outer)?;
    let mut fields = outer.take_object("data")?.unescaped();
    // Python repeats the type inside; the outer one is what LangChain itself goes by.
    fields.take("type");
    Ok((kind, fields))
}

fn unwrap_constructor(mut outer: Fields) -> Result<(Kind, Fields), FormatError> {
    if outer.get("type").is_none_or(|kind| kind != "constructor") {
        return Err(outer.wrong("type", "\"constructor\""));
    }
    let id = outer.get("id").and_then(Value::as_array);
    let class = id.and_then(|path| path.last()).and_then(Value::as_str);
    let of_class = class
        .and_then(Kind::of_class)
        .ok_or_else(|| outer.wrong("id", KNOWN_CLASSES))?;

    let mut fields = outer.take_object("kwargs")?.unescaped();
    let of_type = fields
        .get("type")
        .and_then(Value::as_str)
        .and_then(Kind::of_type);
    fields.take("type");
    Ok((of_type.unwrap_or(of_class), fields))
}

fn kind_of_type(fields: &Fields) -> Result<Kind, FormatError> {
    let name = fields.get("type").and_then(Value::as_str);
    name.and_then(Kind::of_type)
        .ok_or_else(|| fields.wrong("type", KNOWN_TYPES))
}

fn read_plain(mut fields: Fields) -> Result<PlainMessage, FormatError> {
    Ok(PlainMessage {
        content: fields.take_content()?,
        extra: fields.rest(),
    })
}

fn read_ai(mut fields: Fields) -> Result<AiMessage, FormatError> {
    // JavaScript writes no content at all for an AI message made of tool calls alone.
    let content = if fields.says_nothing() {
        Content::default()
    } else {
        fields.take_content()?
    };
    let calls = fields.take_objects("tool_calls")?;
    let tool_calls = calls
        .into_iter()
        .map(read_tool_call)
        .collect::<Result<_, _>>()?;
    let calls = fields.take_objects("invalid_tool_calls")?;
    let invalid_tool_calls = calls
        .into_iter()
        .map(read_invalid_tool_call)
        .collect::<Result<_, _>>()?;
    Ok(AiMessage {
        content,
        tool_calls,
        invalid_tool_calls,
        extra: fields.rest(),
    })
}

fn read_tool(mut fields: Fields) -> Result<ToolMessage, FormatError> {
    let status = fields.take("status");
    let is_error = match &status {
        // JavaScript leaves it out when nobody said.
        None | Some(Value::Null) => false,
        Some(status) if status == "success" => false,
        Some(status) if status == "error" => true,
        Some(other) => {
            return Err(FormatError::new(
                fields.place("status"),
                A_STATUS,
                Some(other),
            ));
        }
    };
    Ok(ToolMessage {
        content: fields.take_content()?,
        tool_call_id: fields.take_string("tool_call_id")?,
        name: fields.take_optional_string("name")?,
        artifact: fields.take_unless_null("artifact"),
        is_error,
        extra: fields.rest(),
    })
}

fn read_tool_call(mut fields: Fields) -> Result<ToolCall, FormatError> {
    fields.take("type");
    Ok(ToolCall {
        id: read_id(&mut fields)?,
        name: fields.take_string("name")?,
        args: read_args(&mut fields)?,
        extra: fields.rest(),
    })
}

/// Makes an id where there is none: a result needs one to refer to.
fn read_id(fields: &mut Fields) -> Result<String, FormatError> {
    match fields.take("id") {
        None | Some(Value::Null) => Ok(unique_id()),
        Some(Value::String(id)) => Ok(id),
        Some(other) => Err(FormatError::new(fields.place("id"), A_STRING, Some(&other))),
    }
}

fn read_args(fields: &mut Fields) -> Result<Map<String, Value>, FormatError> {
    match fields.take("args") {
        // A model that needs no arguments may say null; LangChain reads it the same way.
        Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(args)) => Ok(args),
        other => Err(FormatError::new(
            fields.place("args"),
            AN_OBJECT,
            other.as_ref(),
        )),
    }
}

fn read_invalid_tool_call(mut fields: Fields) -> Result<InvalidToolCall, FormatError> {
    fields.take("type");
    Ok(InvalidToolCall {
        id: fields.take_optional_string("id")?,
        name: fields.take_optional_string("name")?,
        args: fields.take_optional_string("args")?,
        error: fields.take_optional_string("error")?,
        extra: fields.rest(),
    })
}

fn another_kind(expected: &'static str, found: &Kind) -> FormatError {
    let found = match found {
        Kind::System => "a system message",
        Kind::Human => "a human message",
        Kind::Ai => "an AI message",
        Kind::Tool => "a tool message",
        Kind::Other(kind) => &format!("a message of type {kind:?}"),
    };
    FormatError {
        at: String::new(),
        expected,
        found: found.to_owned(),
    }
}
