//! The calls of an assistant's message: list, ids, names, arguments.

use serde_json::{Map, Value, json};

use super::id_too_long;
use crate::conversation::ids;
use crate::conversation::problem::{Code, Log};
use crate::conversation::texts;
use crate::conversation::wire::chat::Chat;
use crate::conversation::wire::{At, Wire, arguments, is_legal_name, legal_name, name_fault, text};

/// Mends the calls of an assistant's message.
pub(super) fn mend(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    list(chat, fields, at, log);
    let Some(Value::Array(calls)) = fields.get_mut("tool_calls") else {
        return;
    };
    for (part, call) in calls.iter_mut().enumerate() {
        let place = Call { chat, at, part };
        place.mend(call, log);
    }
}

/// Calls in a message of the user's are kept as text.
pub(super) fn of_user(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let Some(Value::Array(calls)) = fields.get("tool_calls") else {
        return;
    };
    let said = |call: &Value| {
        let function = &call["function"];
        texts::stray_call(
            text(function, "name").unwrap_or_default(),
            function.get("arguments").unwrap_or(&Value::Null),
        )
    };
    let said: Vec<String> = calls.iter().map(said).collect();
    log.found(
        at.field("tool_calls"),
        Code::WrongRole,
        "calls stand in a message that is not the model's",
    )
    .says(format!(
        "Unknown parameter: 'messages[{}].tool_calls'.",
        at.index
    ))
    .fixed("they are kept as text");
    fields.shift_remove("tool_calls");
    let mut said = said.join("\n");
    match fields.get_mut("content") {
        Some(Value::String(text)) if !text.is_empty() => {
            text.push('\n');
            text.push_str(&said);
        }
        Some(Value::Array(parts)) => parts.push(json!({"type": "text", "text": said})),
        _ => {
            fields.insert(
                "content".to_owned(),
                Value::String(std::mem::take(&mut said)),
            );
        }
    }
}

fn list(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let (problem, says) = match (chat, fields.get("tool_calls")) {
        (_, None) => return,
        (_, Some(Value::Array(calls))) if !calls.is_empty() => return,
        (Chat::OpenAi, Some(Value::Array(_))) => (
            "the list of calls is empty",
            format!(
                "Invalid 'messages[{}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.",
                at.index
            ),
        ),
        (Chat::Mistral | Chat::Ollama, Some(Value::Array(_) | Value::Null)) => return,
        (_, Some(Value::Object(_))) => {
            let call = fields.get_mut("tool_calls").map(Value::take);
            log.found(
                at.field("tool_calls"),
                Code::BadArguments,
                "the calls are no list",
            )
            .fixed("they are one now");
            fields.insert("tool_calls".to_owned(), json!([call]));
            return;
        }
        (_, Some(_)) => (
            "the calls are no list",
            format!(
                "Invalid type for 'messages[{}].tool_calls': expected an array of objects.",
                at.index
            ),
        ),
    };
    log.found(at.field("tool_calls"), Code::BadContent, problem)
        .says(says)
        .fixed("it is left out");
    fields.shift_remove("tool_calls");
}

/// One call of a message.
struct Call<'a> {
    chat: Chat,
    at: At<'a>,
    part: usize,
}

impl Call<'_> {
    fn pointer(&self) -> String {
        format!("{}/tool_calls/{}", self.at.pointer(), self.part)
    }

    fn place(&self) -> String {
        format!("messages[{}].tool_calls[{}]", self.at.index, self.part)
    }

    fn mend(&self, call: &mut Value, log: &mut Log) {
        self.mend_shape(call, log);
        if call.get("custom").is_some() {
            return self.mend_id(call, log);
        }
        if self.chat == Chat::OpenAi && call.get("type").is_none_or(Value::is_null) {
            log.found(self.pointer(), Code::BadArguments, "the call has no type")
                .says(format!(
                    "Missing required parameter: '{}.type'.",
                    self.place()
                ))
                .fixed("it is a function");
            call["type"] = json!("function");
        }
        self.mend_id(call, log);
        self.mend_name(call, log);
        self.mend_arguments(call, log);
    }

    fn mend_shape(&self, call: &mut Value, log: &mut Log) {
        let is_call = call.get("function").is_some_and(Value::is_object)
            || call.get("custom").is_some_and(Value::is_object);
        if is_call {
            return;
        }
        log.found(
            self.pointer(),
            Code::BadArguments,
            "this call has no function",
        )
        .says(format!(
            "Missing required parameter: '{}.function'.",
            self.place()
        ))
        .fixed("it is written as a call of one");
        let old = call.take();
        // LangChain's calls have their name and arguments one level up.
        let name = text(&old, "name").unwrap_or_default();
        let arguments = old.get("args").or_else(|| old.get("arguments"));
        let function = json!({"name": name, "arguments": arguments});
        *call = match old.get("id") {
            Some(id) => json!({"id": id, "type": "function", "function": function}),
            None => json!({"type": "function", "function": function}),
        };
    }

    fn mend_id(&self, call: &mut Value, log: &mut Log) {
        let provider = self.chat.provider();
        let own = text(call, "id").unwrap_or_default();
        if ids::are_optional(provider) || ids::is_legal(provider, own) {
            return;
        }
        let new = match own {
            "" => ids::of_place(provider, self.at.index, self.part),
            own => ids::legal(provider, own),
        };
        let says = match (self.chat, own) {
            (Chat::Mistral, own) => {
                format!("Tool call id was {own} but must be a-z, A-Z, 0-9, with a length of 9.")
            }
            (_, "") => format!("Missing required parameter: '{}.id'.", self.place()),
            (_, own) => id_too_long(&format!("{}.id", self.place()), own),
        };
        log.found(
            format!("{}/id", self.pointer()),
            Code::BadCallId,
            format!("the call has the id {own:?}"),
        )
        .says(says)
        .fixed(format!("its id is now {new}"));
        call["id"] = json!(new);
    }

    fn mend_name(&self, call: &mut Value, log: &mut Log) {
        let provider = self.chat.provider();
        let name = text(&call["function"], "name").unwrap_or_default();
        if is_legal_name(provider, name) {
            return;
        }
        let new = match name {
            "" => texts::NO_NAME.to_owned(),
            name => legal_name(provider, name).into_owned(),
        };
        let place = self.place();
        let says = match (self.chat, name) {
            (Chat::Mistral, name) => Some(format!(
                "Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
            )),
            (Chat::OpenAi, "") => Some(format!(
                "Invalid '{place}.function.name': empty string. Expected a string with minimum length 1, but got an empty string instead."
            )),
            (Chat::OpenAi, name) if name.len() > 64 => Some(format!(
                "Invalid '{place}.function.name': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
                name.chars().count()
            )),
            (Chat::OpenAi, _) => Some(format!(
                "Invalid '{place}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )),
            (Chat::Ollama, _) => None,
        };
        log.found(
            format!("{}/function/name", self.pointer()),
            Code::BadCallName,
            format!("the call {}", name_fault(name)),
        )
        .says(says)
        .fixed(format!("it is called {new}"));
        call["function"]["name"] = json!(new);
    }

    fn mend_arguments(&self, call: &mut Value, log: &mut Log) {
        let given = call["function"].get("arguments");
        let (mended, says) = match self.chat {
            Chat::Ollama => match given {
                None | Some(Value::Null) => return,
                given => (
                    arguments::as_object(given),
                    "Value looks like object, but can't find closing '}' symbol".to_owned(),
                ),
            },
            Chat::Mistral if given.is_some_and(Value::is_object) => return,
            Chat::OpenAi | Chat::Mistral => {
                let says = match given {
                    // OpenAI itself lets broken text pass; those who speak its language do not.
                    Some(Value::String(_)) => "invalid tool call arguments".to_owned(),
                    Some(_) => format!(
                        "Invalid type for '{}.function.arguments': expected a string, but got an object instead.",
                        self.place()
                    ),
                    None => format!(
                        "Missing required parameter: '{}.function.arguments'.",
                        self.place()
                    ),
                };
                (arguments::as_text(given), says)
            }
        };
        let at = || format!("{}/function/arguments", self.pointer());
        if let Some(function) = call["function"].as_object_mut() {
            arguments::mend(function, "arguments", mended, at, Some(says), log);
        }
    }
}
