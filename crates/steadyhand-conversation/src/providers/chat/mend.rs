//! What is mended in one message of chat completions by itself.

mod calls;
mod content;

use serde_json::{Map, Value, json};

use super::Chat;
use crate::problem::{Code, Log};
use crate::providers::ids;
use crate::providers::wire::{At, Wire, text};
use crate::texts::{self, as_text};

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
            calls::of_others(chat, fields, at, log);
            content::of_tool(chat, fields, at, log, behind);
            result_id(chat, fields, at, log);
            ollamas_name(chat, fields, at, log);
            if chat == Chat::Ollama {
                result_name(fields, at, log);
            }
        }
        "function" => {
            calls::of_others(chat, fields, at, log);
            function(fields, at, log);
        }
        _ => {
            calls::of_others(chat, fields, at, log);
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
    let answers = message
        .get("tool_call_id")
        .is_some_and(|id| !id.is_null() && *id != "");
    if role == "user" && !answers {
        return empty_id(chat, message, at, log);
    }
    let is_known = match role {
        "user" => false,
        "system" | "assistant" | "tool" => true,
        "developer" | "function" => matches!(chat, Chat::OpenAi | Chat::Compatible),
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
        Chat::DeepSeek => Some(format!(
            "Failed to deserialize the JSON body into the target type: messages[{}].role: unknown variant `{role}`, expected one of `system`, `user`, `assistant`, `tool`",
            at.index
        )),
        Chat::OpenAi | Chat::Compatible => Some(format!(
            "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        )),
        Chat::Mistral => Some(format!("Unexpected role '{role}'")),
        Chat::Ollama => None,
    };
    log.found(at.field("role"), Code::WrongRole, problem)
        .says(says)
        .fixed(format!("the role is now {new:?}"));
    message["role"] = json!(new);
    if new == "user" {
        empty_id(chat, message, at, log);
    }
}

/// What the user says answers nothing; an id that is not filled in says so as well, but is refused.
fn empty_id(chat: Chat, message: &mut Value, at: At<'_>, log: &mut Log) {
    let has_id = message.get("tool_call_id").is_some();
    let Some(fields) = message.as_object_mut().filter(|_| has_id) else {
        return;
    };
    if chat != Chat::OpenAi {
        return;
    }
    log.found(
        at.field("tool_call_id"),
        Code::BadField,
        "what the user says answers no call",
    )
    .says(format!(
        "Unknown parameter: 'messages[{}].tool_call_id'.",
        at.index
    ))
    .fixed("it does not say so any more");
    fields.shift_remove("tool_call_id");
}

/// A result as it was before there were tools: it has a name, and may have no content.
fn function(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    if !fields.get("name").is_some_and(is_filled) {
        log.found(
            at.field("name"),
            Code::BadCallName,
            "the result has no name",
        )
        .says(format!(
            "Missing required parameter: 'messages[{}].name'.",
            at.index
        ))
        .fixed(format!("its tool is called {}", texts::NO_NAME));
        fields.insert("name".to_owned(), json!(texts::NO_NAME));
    }
    if fields.get("content") != Some(&Value::Null) {
        content::of_user(Chat::OpenAi, fields, at, log);
    }
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// The id of a result goes the same way as that of its call.
fn result_id(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let own = match fields.get("tool_call_id") {
        None | Some(Value::Null) => return,
        Some(Value::String(own)) if own.is_empty() || chat.takes_id(own) => return,
        Some(own) => as_text(own),
    };
    let new = match chat.takes_id(&own) {
        true => own.clone(),
        false => ids::legal(chat.provider(), &own),
    };
    let says = match chat {
        Chat::Mistral => Some(format!(
            "Tool call id was {own} but must be a-z, A-Z, 0-9, with a length of 9."
        )),
        Chat::OpenAi | Chat::DeepSeek | Chat::Compatible => Some(id_too_long(
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

/// The name of a result as Ollama writes it is an unknown field to OpenAI and Mistral.
fn ollamas_name(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let says = match chat {
        Chat::OpenAi => format!("Unknown parameter: 'messages[{}].tool_name'.", at.index),
        Chat::Mistral => "Extra inputs are not permitted".to_owned(),
        Chat::Ollama | Chat::DeepSeek | Chat::Compatible => return,
    };
    let Some(name) = fields.shift_remove("tool_name") else {
        return;
    };
    log.found(
        at.field("tool_name"),
        Code::BadField,
        "the result is named as Ollama does",
    )
    .says(says)
    .fixed("its call's id tells which tool it is of");
    if chat == Chat::Mistral && name.is_string() {
        fields.entry("name").or_insert(name);
    }
}

/// Ollama reads the name of a result as a string, and refuses anything else.
fn result_name(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let Some(odd) = fields.get("tool_name") else {
        return;
    };
    if odd.is_string() || odd.is_null() {
        return;
    }
    let name = as_text(odd);
    log.found(
        at.field("tool_name"),
        Code::BadCallName,
        "the name is no string",
    )
    .says(
        "json: cannot unmarshal number into Go struct field Alias.tool_name of type string"
            .to_owned(),
    )
    .fixed("it is one now");
    fields.insert("tool_name".to_owned(), json!(name));
}

fn id_too_long(place: &str, id: &str) -> String {
    format!(
        "Invalid '{place}': string too long. Expected a string with maximum length 40, but got a string with length {} instead.",
        id.chars().count()
    )
}
