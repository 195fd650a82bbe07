//! The calls of an assistant's message: list, ids, names, arguments.

use serde_json::{Map, Value, json};

use super::id_too_long;
use crate::problem::{Code, Log};
use crate::providers::arguments;
use crate::providers::chat::Chat;
use crate::providers::ids;
use crate::providers::wire::{At, Wire, legal_name, name_fault, text};
use crate::texts::{self, as_text};

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

/// Calls in a message that is not the model's are kept as text.
pub(super) fn of_others(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let said: Vec<String> = match fields.get("tool_calls") {
        None => return,
        // Only OpenAI minds a list that is not there.
        Some(Value::Null) if chat != Chat::OpenAi => return,
        Some(Value::Array(calls)) if calls.is_empty() && chat != Chat::OpenAi => return,
        Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => calls.iter().map(stray).collect(),
        Some(other) => vec![stray(other)],
    };
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
    if said.is_empty() {
        return;
    }
    let said = said.join("\n");
    match fields.get_mut("content") {
        Some(Value::String(text)) if !text.is_empty() => {
            text.push('\n');
            text.push_str(&said);
        }
        Some(Value::Array(parts)) => parts.push(json!({"type": "text", "text": said})),
        Some(other) if !other.is_null() && *other != "" => {
            *other = json!(format!("{}\n{said}", as_text(other)));
        }
        _ => {
            fields.insert("content".to_owned(), Value::String(said));
        }
    }
}

fn stray(call: &Value) -> String {
    let function = call.get("function").filter(|function| function.is_object());
    match function {
        Some(function) => texts::stray_call(
            text(function, "name").unwrap_or_default(),
            function.get("arguments").unwrap_or(&Value::Null),
        ),
        None => texts::stray_call("", call),
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
        (_, Some(Value::Array(_))) => return,
        (Chat::OpenAi, Some(Value::Null)) => (
            "the calls are no list",
            format!(
                "Invalid type for 'messages[{}].tool_calls': expected an array of objects, but got null instead.",
                at.index
            ),
        ),
        (_, Some(Value::Null)) => return,
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
        self.mend_type(call, log);
        self.mend_id(call, log);
        if self.is_custom(call) {
            return self.mend_custom(call, log);
        }
        self.mend_name(call, "function", log);
        self.mend_arguments(call, log);
    }

    /// OpenAI's custom tools take a text of any kind; nobody else has them.
    fn is_custom(&self, call: &Value) -> bool {
        matches!(self.chat, Chat::OpenAi | Chat::Compatible)
            && call.get("custom").is_some_and(Value::is_object)
            && !call.get("function").is_some_and(Value::is_object)
    }

    fn mend_shape(&self, call: &mut Value, log: &mut Log) {
        if call.get("function").is_some_and(Value::is_object) || self.is_custom(call) {
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
        let mut fields = match call.take() {
            Value::Object(fields) => fields,
            // What is no call at all is at least kept.
            other => {
                *call = json!({"type": "function", "function": {"name": "", "arguments": other}});
                return;
            }
        };
        let custom = fields.shift_remove("custom").unwrap_or_default();
        // LangChain's calls have their name and arguments one level up.
        let name = fields.shift_remove("name");
        let name = name.or_else(|| custom.get("name").cloned());
        let arguments = ["args", "arguments"]
            .iter()
            .find_map(|key| fields.shift_remove(*key))
            .or_else(|| custom.get("input").map(|input| json!({ "input": input })));
        let old = fields.get("function").filter(|old| !old.is_null());
        let arguments = arguments.or_else(|| old.cloned());
        let function = json!({"name": name.unwrap_or_default(), "arguments": arguments});
        fields.insert("function".to_owned(), function);
        fields.insert("type".to_owned(), json!("function"));
        *call = Value::Object(fields);
    }

    fn mend_type(&self, call: &mut Value, log: &mut Log) {
        let wanted = match self.is_custom(call) {
            true => "custom",
            false => "function",
        };
        let is_minded = match self.chat {
            Chat::OpenAi => true,
            Chat::Mistral => call.get("type").is_some(),
            Chat::DeepSeek | Chat::Compatible | Chat::Ollama => false,
        };
        if !is_minded || call.get("type").is_some_and(|kind| kind == wanted) {
            return;
        }
        let says = match call.get("type").and_then(Value::as_str) {
            Some(kind) => {
                format!("Invalid value: '{kind}'. Supported values are: 'function' and 'custom'.")
            }
            None => format!("Missing required parameter: '{}.type'.", self.place()),
        };
        log.found(
            self.pointer(),
            Code::BadArguments,
            "the call does not say what it is",
        )
        .says(says)
        .fixed(format!("its type is {wanted:?}"));
        call["type"] = json!(wanted);
    }

    fn mend_custom(&self, call: &mut Value, log: &mut Log) {
        self.mend_name(call, "custom", log);
        let input = &call["custom"]["input"];
        if input.is_string() {
            return;
        }
        let said = match input {
            Value::Null => String::new(),
            other => as_text(other),
        };
        log.found(
            format!("{}/custom/input", self.pointer()),
            Code::BadArguments,
            "what goes to the tool is no text",
        )
        .says(format!(
            "Invalid type for '{}.custom.input': expected a string.",
            self.place()
        ))
        .fixed("it is written as one");
        call["custom"]["input"] = json!(said);
    }

    fn mend_id(&self, call: &mut Value, log: &mut Log) {
        let provider = self.chat.provider();
        if let Some(odd) = call.get("id").filter(|id| !id.is_string() && !id.is_null()) {
            let id = as_text(odd);
            log.found(
                format!("{}/id", self.pointer()),
                Code::BadCallId,
                "the id is no string",
            )
            .says(match self.chat {
                Chat::Ollama => {
                    "json: cannot unmarshal number into Go struct field ToolCall.id of type string"
                        .to_owned()
                }
                _ => format!("Invalid type for '{}.id': expected a string.", self.place()),
            })
            .fixed("it is one now");
            call["id"] = json!(id);
        }
        let own = text(call, "id").unwrap_or_default();
        if ids::are_optional(provider) || self.chat.takes_id(own) {
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

    fn mend_name(&self, call: &mut Value, key: &str, log: &mut Log) {
        let provider = self.chat.provider();
        let name = text(&call[key], "name").unwrap_or_default();
        if self.chat.takes_name(name) {
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
            (Chat::DeepSeek | Chat::Compatible, _) => None,
            (Chat::OpenAi, "") if call[key]["name"].is_null() => {
                Some(format!("Missing required parameter: '{place}.{key}.name'."))
            }
            (Chat::OpenAi, "") => Some(format!(
                "Invalid '{place}.{key}.name': empty string. Expected a string with minimum length 1, but got an empty string instead."
            )),
            (Chat::OpenAi, name) if name.len() > 64 => Some(format!(
                "Invalid '{place}.{key}.name': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
                name.chars().count()
            )),
            (Chat::OpenAi, _) => Some(format!(
                "Invalid '{place}.{key}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )),
            (Chat::Ollama, _) => None,
        };
        log.found(
            format!("{}/{key}/name", self.pointer()),
            Code::BadCallName,
            format!("the call {}", name_fault(name)),
        )
        .says(says)
        .fixed(format!("it is called {new}"));
        call[key]["name"] = json!(new);
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
            Chat::Mistral | Chat::DeepSeek | Chat::Compatible
                if given.is_some_and(Value::is_object) =>
            {
                return;
            }
            Chat::OpenAi | Chat::DeepSeek | Chat::Compatible | Chat::Mistral => {
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
