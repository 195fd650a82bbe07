//! Chat completions as OpenAI, Mistral and Ollama speak them: results are messages after the one with the calls.

use serde_json::{Value, json};

use super::Provider;
use super::wire::{
    At, CallRef, Fault, Layout, ResultRef, Wire, content_text, id, is_legal_name, joined, text,
};
use crate::problem::Log;
use crate::providers::arguments;
use crate::providers::ids;

pub(super) mod exchange;
mod mend;
pub(super) mod response;
pub(super) mod shapes;

/// Whose chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chat {
    /// OpenAI itself, or Azure.
    OpenAi,
    /// DeepSeek, which takes most of what OpenAI refuses.
    DeepSeek,
    /// Another service in OpenAI's language, of whose own rules nothing is known.
    Compatible,
    Mistral,
    Ollama,
}

impl Wire for Chat {
    fn provider(&self) -> Provider {
        match self {
            Chat::OpenAi | Chat::DeepSeek | Chat::Compatible => Provider::OpenAi,
            Chat::Mistral => Provider::Mistral,
            Chat::Ollama => Provider::Ollama,
        }
    }

    fn layout(&self) -> Layout {
        Layout::FollowingMessages
    }

    fn is_model(&self, message: &Value) -> bool {
        text(message, "role") == Some("assistant")
    }

    fn normalise(&self, message: &mut Value, at: At<'_>, log: &mut Log, behind: &mut Vec<Value>) {
        mend::message(*self, message, at, log, behind);
    }

    fn calls<'a>(&self, message: &'a Value, found: &mut Vec<CallRef<'a>>) {
        for (part, call) in calls_of(message).iter().enumerate() {
            let function = call.get("function").unwrap_or(&Value::Null);
            // OpenAI's custom tools have their name elsewhere.
            let custom = call.get("custom").unwrap_or(&Value::Null);
            let name = text(function, "name").or_else(|| text(custom, "name"));
            found.push(CallRef {
                part,
                id: id(call, "id"),
                name: name.unwrap_or_default(),
                cut_off: arguments::were_cut_off(function.get("arguments")),
                needs_result: true,
            });
        }
    }

    fn results<'a>(&self, message: &'a Value, found: &mut Vec<ResultRef<'a>>) {
        if text(message, "role") == Some("tool") {
            found.push(ResultRef {
                part: 0,
                id: id(message, "tool_call_id"),
                name: id(message, "tool_name").or_else(|| id(message, "name")),
            });
        }
    }

    fn part_pointer(&self, message: &Value, part: usize) -> String {
        if self.is_model(message) {
            return format!("/tool_calls/{part}");
        }
        String::new()
    }

    fn set_call_id(&self, message: &mut Value, part: usize, id: &str) {
        message["tool_calls"][part]["id"] = json!(id);
    }

    fn take_result(&self, message: &mut Value, _part: usize) -> Value {
        message.take()
    }

    fn result<'a>(&self, message: &'a Value, _part: usize) -> &'a Value {
        message
    }

    fn result_mut<'a>(&self, message: &'a mut Value, _part: usize) -> &'a mut Value {
        message
    }

    fn part_count(&self, _message: &Value) -> usize {
        1
    }

    fn has_part(&self, _message: &Value, _part: usize) -> bool {
        true
    }

    fn address(&self, result: &mut Value, id: Option<&str>, name: &str) {
        let Some(fields) = result.as_object_mut() else {
            return;
        };
        match id {
            Some(id) => fields.insert("tool_call_id".to_owned(), json!(id)),
            None => fields.shift_remove("tool_call_id"),
        };
        let key = match self {
            Chat::Ollama => "tool_name",
            Chat::OpenAi | Chat::DeepSeek | Chat::Compatible | Chat::Mistral => "name",
        };
        // Where a name is given it must be the call's; Ollama's results have nothing else.
        if *self == Chat::Ollama || fields.contains_key(key) {
            fields.insert(key.to_owned(), json!(name));
        }
    }

    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, name: &str) -> bool {
        if ids::are_optional(self.provider()) {
            return result
                .id
                .map_or(result.name == Some(name), |of| Some(of) == id);
        }
        result.id == id
    }

    fn result_text(&self, result: &Value) -> String {
        content_text(result.get("content"))
    }

    fn error(&self, id: Option<&str>, name: &str, text: &str) -> Value {
        match (self, id) {
            (Chat::Ollama, Some(id)) => {
                json!({"role": "tool", "tool_name": name, "tool_call_id": id, "content": text})
            }
            (Chat::Ollama, None) => json!({"role": "tool", "tool_name": name, "content": text}),
            (Chat::OpenAi | Chat::DeepSeek | Chat::Compatible, id) => {
                json!({"role": "tool", "tool_call_id": id, "content": text})
            }
            (Chat::Mistral, id) => {
                json!({"role": "tool", "tool_call_id": id, "name": name, "content": text})
            }
        }
    }

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        results
    }

    fn keep_as_text(&self, mut result: Value, mark: &str) -> Value {
        let is_words = |part: &Value| text(part, "type").is_none_or(|kind| kind == "text");
        if let Some(Value::Array(parts)) = result.get_mut("content")
            && *self != Chat::Ollama
            && !parts.iter().all(is_words)
        {
            // Images and the like can stand in the user's message.
            parts.insert(0, json!({"type": "text", "text": mark}));
            return json!({"role": "user", "content": parts});
        }
        let mut said = self.user(&joined(mark, &self.result_text(&result)));
        if let Some(images) = result.get_mut("images").filter(|_| *self == Chat::Ollama) {
            said["images"] = images.take();
        }
        said
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn finish(&self, message: &mut Value) -> bool {
        !message.is_null()
    }

    fn is_empty(&self, _message: &Value) -> bool {
        false
    }

    fn says(&self, fault: Fault<'_>) -> Option<String> {
        match self {
            Chat::OpenAi | Chat::Compatible => Some(openai_says(fault)),
            Chat::DeepSeek => Some(deepseek_says(fault)),
            // It does not look at the first message.
            Chat::Mistral if matches!(fault, Fault::Orphan { message: 0, .. }) => None,
            Chat::Mistral => Some(mistral_says(fault)),
            // It says nothing: the model sees a call nobody answered, or an answer nobody asked for.
            Chat::Ollama => None,
        }
    }
}

impl Chat {
    /// Whether an id of a call is taken.
    pub(super) fn takes_id(self, id: &str) -> bool {
        match self {
            Chat::DeepSeek | Chat::Compatible => !id.is_empty(),
            Chat::OpenAi | Chat::Mistral | Chat::Ollama => ids::is_legal(self.provider(), id),
        }
    }

    /// Whether the name of a call is taken.
    pub(super) fn takes_name(self, name: &str) -> bool {
        match self {
            Chat::DeepSeek | Chat::Compatible => !name.is_empty(),
            Chat::OpenAi | Chat::Mistral | Chat::Ollama => is_legal_name(self.provider(), name),
        }
    }
}

/// The calls of a message.
pub(super) fn calls_of(message: &Value) -> &[Value] {
    match message.get("tool_calls") {
        Some(Value::Array(calls)) => calls,
        _ => &[],
    }
}

fn openai_says(fault: Fault<'_>) -> String {
    match fault {
        Fault::Missing { ids, .. } => format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            ids.join(", ")
        ),
        Fault::Orphan { .. } => "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".to_owned(),
        Fault::Duplicate {
            message, id, first, ..
        } => format!(
            "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', in messages[{first}] and messages[{message}]."
        ),
        Fault::DuplicateId { message, part, id } => format!(
            "Invalid parameter: Duplicate value for 'id' of '{id}' in messages[{message}].tool_calls[{part}]."
        ),
    }
}

fn deepseek_says(fault: Fault<'_>) -> String {
    match fault {
        Fault::Missing { .. } => "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)".to_owned(),
        Fault::Orphan { .. } => {
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                .to_owned()
        }
        Fault::Duplicate { .. } | Fault::DuplicateId { .. } => openai_says(fault),
    }
}

fn mistral_says(fault: Fault<'_>) -> String {
    match fault {
        Fault::Missing { .. } => "Not the same number of function calls and responses".to_owned(),
        Fault::Orphan { id, .. } => format!("Unexpected tool call id {id} in tool results"),
        Fault::Duplicate { id, .. } => format!("Duplicate tool call id {id} in tool results"),
        Fault::DuplicateId { id, .. } => {
            format!("Duplicate tool call id {id} in assistant message")
        }
    }
}
