//! Anthropic's Messages: calls and results are blocks, and the results lead the user's turn.

mod block;
mod foreign;

use serde_json::{Value, json};

use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::arguments;
use crate::providers::wire::{
    At, CallRef, Fault, Layout, ResultRef, Wire, content_text, id, joined, text,
};
use crate::texts::{self, as_text};

/// Whose Messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnthropicWire {
    /// Anthropic itself, Bedrock or Vertex.
    Strict,
    /// Another service in Anthropic's language, of whose own rules nothing is known.
    Compatible,
}

const PROVIDER: Provider = Provider::Anthropic;

impl Wire for AnthropicWire {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn layout(&self) -> Layout {
        Layout::LeadingParts
    }

    fn is_model(&self, message: &Value) -> bool {
        text(message, "role") == Some("assistant")
    }

    fn normalise(&self, message: &mut Value, at: At<'_>, log: &mut Log, _behind: &mut Vec<Value>) {
        mend_message(message, at, log);
        mend_role(message, at, log);
        let is_model = self.is_model(message);
        foreign::take_in(message, is_model, at, log);
        mend_content(message, is_model, at, log);
        let is_strict = *self == AnthropicWire::Strict;
        if is_strict {
            foreign::leave_out(message, at, log);
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return;
        };
        for (part, block) in blocks.iter_mut().enumerate() {
            let place = block::Block {
                at,
                part,
                is_model,
                is_strict,
            };
            place.mend(block, log);
        }
        block::rescue_cache_marks(blocks);
    }

    fn calls<'a>(&self, message: &'a Value, found: &mut Vec<CallRef<'a>>) {
        for (part, block) in blocks(message).iter().enumerate() {
            if text(block, "type") == Some("tool_use") {
                found.push(CallRef {
                    part,
                    id: id(block, "id"),
                    name: text(block, "name").unwrap_or_default(),
                    cut_off: arguments::were_cut_off(block.get("input")),
                    needs_result: true,
                });
            }
        }
    }

    fn results<'a>(&self, message: &'a Value, found: &mut Vec<ResultRef<'a>>) {
        for (part, block) in blocks(message).iter().enumerate() {
            if text(block, "type") == Some("tool_result") {
                found.push(ResultRef {
                    part,
                    id: id(block, "tool_use_id"),
                    name: None,
                });
            }
        }
    }

    fn part_pointer(&self, _message: &Value, part: usize) -> String {
        format!("/content/{part}")
    }

    fn set_call_id(&self, message: &mut Value, part: usize, id: &str) {
        message["content"][part]["id"] = json!(id);
    }

    fn take_result(&self, message: &mut Value, part: usize) -> Value {
        message["content"][part].take()
    }

    fn result<'a>(&self, message: &'a Value, part: usize) -> &'a Value {
        &message["content"][part]
    }

    fn result_mut<'a>(&self, message: &'a mut Value, part: usize) -> &'a mut Value {
        &mut message["content"][part]
    }

    fn part_count(&self, message: &Value) -> usize {
        match &message["content"] {
            Value::Array(blocks) => blocks.len(),
            Value::String(text) => usize::from(!text.is_empty()),
            _ => 0,
        }
    }

    fn has_part(&self, message: &Value, part: usize) -> bool {
        match &message["content"] {
            Value::Array(blocks) => !blocks[part].is_null(),
            _ => true,
        }
    }

    fn address(&self, result: &mut Value, id: Option<&str>, _name: &str) {
        result["tool_use_id"] = json!(id);
    }

    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, _name: &str) -> bool {
        result.id == id
    }

    fn result_text(&self, result: &Value) -> String {
        content_text(result.get("content"))
    }

    fn error(&self, id: Option<&str>, _name: &str, text: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": true})
    }

    fn lead(&self, message: &mut Value, results: Vec<Value>) {
        if let Some(Value::Array(parts)) = message.get_mut("content") {
            parts.splice(0..0, results);
        }
    }

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        vec![json!({"role": "user", "content": results})]
    }

    fn keep_as_text(&self, mut result: Value, mark: &str) -> Value {
        let cache_mark = block::mark_of(&mut result);
        let mut media = Vec::new();
        if let Some(Value::Array(parts)) = result.get_mut("content") {
            // These can stand in the user's turn by themselves.
            let stands = |part: &Value| matches!(text(part, "type"), Some("image" | "document"));
            media.extend(parts.extract_if(.., |part| stands(part)));
        }
        let said = self.result_text(&result);
        let mut blocks = vec![json!({"type": "text", "text": joined(mark, &said)})];
        blocks.append(&mut media);
        let last = blocks.len() - 1;
        block::put_mark(&mut blocks[last], cache_mark);
        json!({"role": "user", "content": blocks})
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn finish(&self, message: &mut Value) -> bool {
        if !blocks(message).iter().any(Value::is_null) {
            return !message.is_null();
        }
        let is_model = self.is_model(message);
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return !message.is_null();
        };
        let before = blocks.len();
        blocks.retain(|block| !block.is_null());
        is_model || before == 0 || !blocks.is_empty()
    }

    fn is_empty(&self, message: &Value) -> bool {
        match &message["content"] {
            Value::String(text) => text.is_empty(),
            Value::Array(blocks) => blocks.is_empty(),
            _ => false,
        }
    }

    fn says(&self, fault: Fault<'_>) -> Option<String> {
        Some(match fault {
            Fault::Missing { message, ids } => format!(
                "messages.{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                ids.join(", ")
            ),
            Fault::Orphan {
                message,
                part,
                id: "",
            } => format!(
                "messages.{message}.content.{part}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            ),
            Fault::Orphan { message, part, id } => format!(
                "messages.{message}.content.{part}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ),
            Fault::Duplicate {
                message, part, id, ..
            } => format!(
                "messages.{message}.content.{part}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            ),
            Fault::DuplicateId { message, part, .. } => {
                format!("messages.{message}.content.{part}: `tool_use` ids must be unique")
            }
        })
    }
}

fn blocks(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => &[],
    }
}

/// A message that is no object becomes one.
fn mend_message(message: &mut Value, at: At<'_>, log: &mut Log) {
    if message.is_object() {
        return;
    }
    let said = match message.take() {
        Value::Null => texts::EMPTY.to_owned(),
        other => as_text(&other),
    };
    log.found(at.pointer(), Code::BadContent, "this is no message")
        .says(format!("messages.{}: Input should be an object", at.index))
        .fixed("it is kept as text of the user");
    *message = json!({"role": "user", "content": said});
}

fn mend_role(message: &mut Value, at: At<'_>, log: &mut Log) {
    let role = text(message, "role").unwrap_or_default().to_owned();
    if matches!(role.as_str(), "user" | "assistant" | "system") {
        return;
    }
    let new = match role.as_str() {
        "model" | "ai" | "bot" => "assistant",
        _ => "user",
    };
    log.found(
        at.field("role"),
        Code::WrongRole,
        format!("there is no role {role:?}"),
    )
    .says(format!(
        "messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\""
    ))
    .fixed(format!("the role is now {new:?}"));
    message["role"] = json!(new);
}

fn mend_content(message: &mut Value, is_model: bool, at: At<'_>, log: &mut Log) {
    let Some(fields) = message.as_object_mut() else {
        return;
    };
    let content = fields.get("content");
    let mended = match content {
        Some(Value::String(_) | Value::Array(_)) => return,
        None | Some(Value::Null) if is_model => json!([]),
        None | Some(Value::Null) => json!([{"type": "text", "text": texts::EMPTY}]),
        Some(block @ Value::Object(_)) => json!([block]),
        Some(other) => json!(as_text(other)),
    };
    let code = match content {
        None | Some(Value::Null) => Code::EmptyContent,
        Some(_) => Code::BadContent,
    };
    log.found(
        at.field("content"),
        code,
        "the content is neither a text nor a list of blocks",
    )
    .says(format!(
        "messages.{}.content: Input should be a valid array",
        at.index
    ))
    .fixed("it is one now");
    fields.insert("content".to_owned(), mended);
}
