//! OpenAI's Responses: a flat list of items; an output may stand anywhere behind its call.

mod message;

use serde_json::{Value, json};

use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::arguments;
use crate::providers::ids;
use crate::providers::wire::{
    At, CallRef, Fault, Layout, ResultRef, Wire, content_text, id, joined, legal_name, name_fault,
    text,
};
use crate::texts::{self, as_text};

/// Whose Responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponsesWire {
    /// OpenAI itself, or Azure.
    OpenAi,
    /// DeepSeek, which takes the ids and names that OpenAI refuses.
    DeepSeek,
    /// Another service in OpenAI's language, of whose own rules nothing is known.
    Compatible,
}

const PROVIDER: Provider = Provider::OpenAiResponses;

impl Wire for ResponsesWire {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn layout(&self) -> Layout {
        Layout::Anywhere
    }

    fn is_model(&self, item: &Value) -> bool {
        if is_reference(item) {
            return true;
        }
        let role = text(item, "role");
        match text(item, "type") {
            None | Some("message") => role == Some("assistant"),
            Some(kind) if kind.ends_with("_call") || kind == "reasoning" => true,
            Some(kind) => {
                let is_output = kind.ends_with("_output") || kind.ends_with("_response");
                !is_output && role.is_none_or(|role| role == "assistant")
            }
        }
    }

    fn normalise(&self, item: &mut Value, at: At<'_>, log: &mut Log, _behind: &mut Vec<Value>) {
        mend_shape(item, at, log);
        match text(item, "type") {
            Some("function_call" | "custom_tool_call") => self.mend_call(item, at, log),
            Some("function_call_output" | "custom_tool_call_output") => {
                self.mend_output(item, at, log);
            }
            None if is_reference(item) => {}
            None | Some("message") => message::mend(*self, item, at, log),
            _ => {}
        }
    }

    fn calls<'a>(&self, item: &'a Value, found: &mut Vec<CallRef<'a>>) {
        let Some(kind) = text(item, "type") else {
            return;
        };
        let Some(id) = id(item, "call_id").filter(|_| kind.ends_with("_call")) else {
            return;
        };
        found.push(CallRef {
            part: 0,
            id: Some(id),
            name: text(item, "name").unwrap_or_default(),
            cut_off: arguments::were_cut_off(item.get("arguments")),
            // The others may be run by OpenAI itself.
            needs_result: matches!(kind, "function_call" | "custom_tool_call"),
        });
    }

    fn results<'a>(&self, item: &'a Value, found: &mut Vec<ResultRef<'a>>) {
        if matches!(
            text(item, "type"),
            Some("function_call_output" | "custom_tool_call_output")
        ) {
            found.push(ResultRef {
                part: 0,
                id: id(item, "call_id"),
                name: None,
            });
        }
    }

    fn part_pointer(&self, _item: &Value, _part: usize) -> String {
        String::new()
    }

    fn set_call_id(&self, item: &mut Value, _part: usize, id: &str) {
        item["call_id"] = json!(id);
    }

    fn take_result(&self, item: &mut Value, _part: usize) -> Value {
        item.take()
    }

    fn result<'a>(&self, item: &'a Value, _part: usize) -> &'a Value {
        item
    }

    fn result_mut<'a>(&self, item: &'a mut Value, _part: usize) -> &'a mut Value {
        item
    }

    fn part_count(&self, _item: &Value) -> usize {
        1
    }

    fn has_part(&self, _item: &Value, _part: usize) -> bool {
        true
    }

    fn address(&self, result: &mut Value, id: Option<&str>, _name: &str) {
        result["call_id"] = json!(id);
    }

    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, _name: &str) -> bool {
        result.id == id
    }

    fn result_text(&self, result: &Value) -> String {
        content_text(result.get("output"))
    }

    fn error(&self, id: Option<&str>, _name: &str, text: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": text})
    }

    fn fit(&self, result: &mut Value, of_call: &Value) {
        if text(of_call, "type") == Some("custom_tool_call") {
            result["type"] = json!("custom_tool_call_output");
        }
    }

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        results
    }

    fn keep_as_text(&self, mut result: Value, mark: &str) -> Value {
        if let Some(Value::Array(parts)) = result.get_mut("output") {
            // The parts of an output can stand in a message as they are.
            let mut said = vec![json!({"type": "input_text", "text": mark})];
            said.append(parts);
            return json!({"role": "user", "content": said});
        }
        self.user(&joined(mark, &self.result_text(&result)))
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn finish(&self, item: &mut Value) -> bool {
        !item.is_null()
    }

    fn is_empty(&self, _item: &Value) -> bool {
        false
    }

    fn says(&self, fault: Fault<'_>) -> Option<String> {
        match fault {
            Fault::Missing { ids, .. } => {
                let first = ids.first().copied().unwrap_or_default();
                Some(format!("No tool output found for function call {first}."))
            }
            Fault::Orphan {
                message, id: "", ..
            } => Some(format!(
                "Missing required parameter: 'input[{message}].call_id'."
            )),
            Fault::Orphan { id, .. } | Fault::Duplicate { id, .. } => Some(format!(
                "No tool call found for function call output with call_id {id}."
            )),
            Fault::DuplicateId { .. } => None,
        }
    }
}

/// Whether an item stands for one that OpenAI keeps: it says an id, and need not say its type.
pub(crate) fn is_reference(item: &Value) -> bool {
    match text(item, "type") {
        Some(kind) => kind == "item_reference",
        None => {
            let has = |key: &str| item.get(key).is_some_and(|value| !value.is_null());
            id(item, "id").is_some() && !["type", "role", "content", "parts"].into_iter().any(has)
        }
    }
}

fn is_long(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.bytes().all(legal)
}

/// An item that is no object becomes one.
fn mend_shape(item: &mut Value, at: At<'_>, log: &mut Log) {
    if item.is_object() {
        return;
    }
    let said = match item.take() {
        Value::Null => texts::EMPTY.to_owned(),
        other => as_text(&other),
    };
    log.found(at.pointer(), Code::BadContent, "this is no item")
        .says(format!(
            "Invalid type for 'input[{}]': expected an object.",
            at.index
        ))
        .fixed("it is kept as text of the user");
    *item = json!({"role": "user", "content": said});
}

impl ResponsesWire {
    /// Whether an id of a call is taken.
    fn takes_id(self, id: &str) -> bool {
        match self {
            ResponsesWire::OpenAi => ids::is_legal(PROVIDER, id),
            ResponsesWire::DeepSeek | ResponsesWire::Compatible => !id.is_empty(),
        }
    }

    /// Whether the name of a call is taken.
    fn takes_name(self, name: &str) -> bool {
        match self {
            ResponsesWire::OpenAi => crate::providers::names::is_legal_name(PROVIDER, name),
            ResponsesWire::DeepSeek | ResponsesWire::Compatible => !name.is_empty(),
        }
    }

    fn mend_call(self, item: &mut Value, at: At<'_>, log: &mut Log) {
        self.mend_id(item, at, log, "call");
        let name = text(item, "name").unwrap_or_default();
        if !self.takes_name(name) {
            let new = match name {
                "" => texts::NO_NAME.to_owned(),
                name => legal_name(PROVIDER, name).into_owned(),
            };
            let says = match name {
                "" => format!(
                    "Invalid 'input[{}].name': empty string. Expected a string with minimum length 1, but got an empty string instead.",
                    at.index
                ),
                name if is_long(name) => format!(
                    "Invalid 'input[{}].name': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
                    at.index,
                    name.chars().count()
                ),
                _ => format!(
                    "Invalid 'input[{}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
                    at.index
                ),
            };
            log.found(
                at.field("name"),
                Code::BadCallName,
                format!("the call {}", name_fault(name)),
            )
            .says(says)
            .fixed(format!("it is called {new}"));
            item["name"] = json!(new);
        }
        if text(item, "type") == Some("custom_tool_call") {
            return mend_input(item, at, log);
        }
        let is_taken =
            self != ResponsesWire::OpenAi && item.get("arguments").is_some_and(Value::is_object);
        if is_taken {
            return;
        }
        let mended = arguments::as_text(item.get("arguments"));
        let says = match item.get("arguments") {
            // OpenAI itself lets broken text pass; those who speak its language do not.
            Some(Value::String(_)) => Some("invalid tool call arguments".to_owned()),
            Some(_) => Some(format!(
                "Invalid type for 'input[{}].arguments': expected a string, but got an object instead.",
                at.index
            )),
            None => Some(format!(
                "Missing required parameter: 'input[{}].arguments'.",
                at.index
            )),
        };
        if let Some(fields) = item.as_object_mut() {
            arguments::mend(
                fields,
                "arguments",
                mended,
                || at.field("arguments"),
                says,
                log,
            );
        }
    }

    fn mend_id(self, item: &mut Value, at: At<'_>, log: &mut Log, what: &str) {
        if let Some(odd) = item
            .get("call_id")
            .filter(|id| !id.is_string() && !id.is_null())
        {
            let id = as_text(odd);
            log.found(at.field("call_id"), Code::BadCallId, "the id is no string")
                .says(format!(
                    "Invalid type for 'input[{}].call_id': expected a string.",
                    at.index
                ))
                .fixed("it is one now");
            item["call_id"] = json!(id);
        }
        let own = text(item, "call_id").unwrap_or_default();
        if self.takes_id(own) || (own.is_empty() && what != "call") {
            return;
        }
        let new = match own {
            "" => ids::of_place(PROVIDER, at.index, 0),
            own => ids::legal(PROVIDER, own),
        };
        let says = match own {
            "" => format!("Missing required parameter: 'input[{}].call_id'.", at.index),
            own => format!(
                "Invalid 'input[{}].call_id': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
                at.index,
                own.chars().count()
            ),
        };
        log.found(
            at.field("call_id"),
            Code::BadCallId,
            format!("the {what} has the id {own:?}"),
        )
        .says(says)
        .fixed(format!("its id is now {new}"));
        item["call_id"] = json!(new);
    }

    fn mend_output(self, item: &mut Value, at: At<'_>, log: &mut Log) {
        self.mend_id(item, at, log, "output");
        if let Some(Value::Array(parts)) = item.get_mut("output") {
            return message::mend_parts(self, parts, "output", "input_text", at, log);
        }
        let (mended, code) = match item.get("output") {
            Some(Value::String(_) | Value::Array(_)) => return,
            None | Some(Value::Null) => (json!(texts::NO_OUTPUT), Code::EmptyResult),
            Some(other) => (json!(as_text(other)), Code::BadContent),
        };
        log.found(
            at.field("output"),
            code,
            "the output is neither a text nor a list of parts",
        )
        .says(format!(
            "Invalid type for 'input[{}].output': expected one of a string or array of objects.",
            at.index
        ))
        .fixed("it is written as a text");
        item["output"] = mended;
    }
}

/// What goes to a custom tool is a text of any kind.
fn mend_input(item: &mut Value, at: At<'_>, log: &mut Log) {
    let (said, says) = match item.get("input") {
        Some(Value::String(_)) => return,
        None => (
            String::new(),
            format!("Missing required parameter: 'input[{}].input'.", at.index),
        ),
        Some(other) => (
            as_text(other),
            format!(
                "Invalid type for 'input[{}].input': expected a string, but got an object instead.",
                at.index
            ),
        ),
    };
    log.found(
        at.field("input"),
        Code::BadArguments,
        "what goes to the tool is no text",
    )
    .says(says)
    .fixed("it is written as one");
    item["input"] = json!(said);
}
