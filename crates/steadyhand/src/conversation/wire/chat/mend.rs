//! What is mended in one message of chat completions by itself.

mod calls;
mod content;

use serde_json::{Map, Value, json};

use super::Chat;
use crate::conversation::ids;
use crate::conversation::problem::{Code, Log};
use crate::conversation::texts::{self, as_text};
use crate::conversation::wire::{At, Wire, text};

/// Mends one message.
pub(super) fn message(
    chat: Chat,
    message: &mut Value,
    at: At<'_>,
    log: &mut Log,
    behind: &mut Vec<Value>,
) {
    shape(message, at, log);
    role(chat, message, at, log);
    let Some(fields) = message.as_object_mut() else {
        return;
    };
    let role = fields
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match role {
        "assistant" => {
            calls::mend(chat, fields, at, log);
            content::of_assistant(chat, fields, at, log);
        }
        "tool" => {
            content::of_tool(chat, fields, at, log, behind);
            result_id(chat, fields, at, log);
        }
        "function" => {}
        _ => {
            calls::of_user(fields, at, log);
            content::of_user(chat, fields, at, log);
        }
    }
}

/// A message that is no object becomes one.
fn shape(message: &mut Value, at: At<'_>, log: &mut Log) {
    if message.is_object() {
        return;
    }
    let found = match message.take() {
        Value::Null => texts::EMPTY.to_owned(),
        other => as_text(&other),
    };
    log.found(at.pointer(), Code::BadContent, "this is no message")
        .says(format!(
            "Invalid type for 'messages[{}]': expected an object.",
            at.index
        ))
        .fixed("it is kept as text of the user");
    *message = json!({"role": "user", "content": found});
}

fn role(chat: Chat, message: &mut Value, at: At<'_>, log: &mut Log) {
    let role = text(message, "role").unwrap_or_default();
    let answers = message.get("tool_call_id").is_some_and(Value::is_string);
    let is_known = match role {
        "user" => !answers,
        "system" | "assistant" | "tool" => true,
        "developer" | "function" => chat == Chat::OpenAi,
        _ => false,
    };
    if is_known {
        return;
    }
    let new = match role {
        _ if answers => "tool",
        "model" | "ai" | "bot" => "assistant",
        "developer" => "system",
        _ => "user",
    };
    let problem = match role {
        "user" => "a result stands in the role of the user".to_owned(),
        other => format!("there is no role {other:?}"),
    };
    let says = match chat {
        Chat::OpenAi => Some(format!(
            "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        )),
        Chat::Mistral => Some(format!("Unexpected role '{role}'")),
        Chat::Ollama => None,
    };
    log.found(at.field("role"), Code::WrongRole, problem)
        .says(says)
        .fixed(format!("the role is now {new:?}"));
    message["role"] = json!(new);
}

/// The id of a result goes the same way as that of its call.
fn result_id(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let provider = chat.provider();
    let own = match fields.get("tool_call_id") {
        None | Some(Value::Null) => return,
        Some(Value::String(own)) if own.is_empty() || ids::is_legal(provider, own) => return,
        Some(own) => as_text(own),
    };
    let new = ids::legal(provider, &own);
    let says = match chat {
        Chat::Mistral => Some(format!(
            "Tool call id was {own} but must be a-z, A-Z, 0-9, with a length of 9."
        )),
        Chat::OpenAi => Some(id_too_long(
            &format!("messages[{}].tool_call_id", at.index),
            &own,
        )),
        Chat::Ollama => None,
    };
    log.found(
        at.field("tool_call_id"),
        Code::BadCallId,
        format!("the result has the id {own:?}"),
    )
    .says(says)
    .fixed(format!("its id is now {new}, like that of its call"));
    fields.insert("tool_call_id".to_owned(), json!(new));
}

fn id_too_long(place: &str, id: &str) -> String {
    format!(
        "Invalid '{place}': string too long. Expected a string with maximum length 40, but got a string with length {} instead.",
        id.chars().count()
    )
}
