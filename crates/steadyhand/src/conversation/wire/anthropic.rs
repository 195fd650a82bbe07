//! Anthropic's Messages: calls and results are blocks, and the results lead the user's turn.

use serde_json::{Value, json};

use super::{
    At, CallRef, Fault, Layout, ResultRef, Wire, arguments, id, legal_name, name_fault, text,
};
use crate::conversation::ids;
use crate::conversation::problem::{Code, Log};
use crate::conversation::provider::Provider;
use crate::conversation::texts::{self, as_text};

/// See the file's first line.
pub(in crate::conversation) struct Anthropic;

const PROVIDER: Provider = Provider::Anthropic;
const EMPTY_TEXT: &str = "messages: text content blocks must be non-empty";

impl Wire for Anthropic {
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
        mend_content(message, is_model, at, log);
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return;
        };
        for part in 0..blocks.len() {
            let block = Block { at, part, is_model };
            block.mend(&mut blocks[part], log);
        }
        rescue_cache_marks(blocks);
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

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        vec![json!({"role": "user", "content": results})]
    }

    fn keep_as_text(&self, mut result: Value, mark: &str) -> Value {
        let said = self.result_text(&result);
        let mut blocks = vec![json!({"type": "text", "text": joined(mark, &said)})];
        if let Some(Value::Array(parts)) = result.get_mut("content").map(Value::take) {
            // What is no text can stand in the user's turn by itself.
            let stands = |part: &Value| matches!(text(part, "type"), Some("image" | "document"));
            blocks.extend(parts.into_iter().filter(stands));
        }
        json!({"role": "user", "content": blocks})
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn finish(&self, message: &mut Value) -> bool {
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

/// A mark and what was said under it.
pub(super) fn joined(mark: &str, said: &str) -> String {
    if said.is_empty() {
        return mark.to_owned();
    }
    format!("{mark}\n{said}")
}

/// The texts of a content, one per line; what is no text has no words.
pub(super) fn content_text(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::Array(blocks)) => {
            let words = |block: &Value| match block {
                Value::String(text) => Some(text.clone()),
                block => text(block, "text").map(str::to_owned),
            };
            let texts: Vec<String> = blocks.iter().filter_map(words).collect();
            texts.join("\n")
        }
        Some(other) => as_text(other),
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
    // The result of a tool, as OpenAI writes it.
    if let Some(id) = message["tool_call_id"].as_str().map(str::to_owned)
        && let Some(fields) = message.as_object_mut()
    {
        fields.shift_remove("tool_call_id");
        fields.shift_remove("name");
        let content = fields.get_mut("content").map(Value::take);
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        fields.insert("content".to_owned(), json!([result]));
    }
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

/// One block of a message.
struct Block<'a> {
    at: At<'a>,
    part: usize,
    is_model: bool,
}

impl Block<'_> {
    fn pointer(&self) -> String {
        format!("{}/content/{}", self.at.pointer(), self.part)
    }

    fn place(&self) -> String {
        format!("messages.{}.content.{}", self.at.index, self.part)
    }

    fn mend(&self, block: &mut Value, log: &mut Log) {
        let Some(kind) = text(block, "type") else {
            return self.mend_shape(block, log);
        };
        match kind {
            "text" => self.mend_text(block, log),
            "tool_use" if self.is_model => self.mend_call(block, log),
            "tool_use" => self.mend_stray_call(block, log),
            "tool_result" => self.mend_result(block, log),
            "thinking" | "redacted_thinking" => self.mend_thinking(block, log),
            _ => {}
        }
    }

    fn mend_shape(&self, block: &mut Value, log: &mut Log) {
        let text = match &*block {
            Value::Null => None,
            Value::Object(fields) => fields.get("text").map(as_text).or_else(|| {
                let empty = fields.is_empty();
                (!empty).then(|| Value::Object(fields.clone()).to_string())
            }),
            other => Some(as_text(other)),
        };
        log.found(self.pointer(), Code::BadContent, "this block has no type")
            .says(format!("{}: Input should be an object", self.place()))
            .fixed("it is a text now, or gone if it said nothing");
        let text = text.filter(|text| !text.is_empty());
        *block = text.map_or(Value::Null, |text| json!({"type": "text", "text": text}));
    }

    fn mend_text(&self, block: &mut Value, log: &mut Log) {
        match block.get("text") {
            Some(Value::String(text)) if !text.is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => {
                log.found(self.pointer(), Code::EmptyContent, "this text is empty")
                    .says(EMPTY_TEXT.to_owned())
                    .fixed("it is left out");
                let mark = block.get_mut("cache_control").map(Value::take);
                // The mark, if there was one, is found by `rescue_cache_marks`.
                *block = mark.map_or(Value::Null, |mark| json!({ RESCUED: mark }));
            }
            Some(other) => {
                let text = as_text(other);
                log.found(self.pointer(), Code::BadContent, "this text is no string")
                    .says(format!(
                        "{}.text.text: Input should be a valid string",
                        self.place()
                    ))
                    .fixed("it is written as one");
                block["text"] = json!(text);
            }
        }
    }

    fn mend_call(&self, block: &mut Value, log: &mut Log) {
        let own = text(block, "id").unwrap_or_default();
        if !ids::is_legal(PROVIDER, own) {
            let new = match own {
                "" => ids::of_place(PROVIDER, self.at.index, self.part),
                own => ids::legal(PROVIDER, own),
            };
            log.found(
                format!("{}/id", self.pointer()),
                Code::BadCallId,
                format!("the call has the id {own:?}"),
            )
            .says(format!(
                "{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                self.place()
            ))
            .fixed(format!("its id is now {new}"));
            block["id"] = json!(new);
        }
        self.mend_call_name(block, log);
        let mended = arguments::as_object(block.get("input"));
        let says = Some(format!(
            "{}.tool_use.input: Input should be a valid dictionary",
            self.place()
        ));
        let at = || format!("{}/input", self.pointer());
        if let Some(fields) = block.as_object_mut() {
            arguments::mend(fields, "input", mended, at, says, log);
        }
    }

    fn mend_call_name(&self, block: &mut Value, log: &mut Log) {
        let name = text(block, "name").unwrap_or_default();
        // In a history the provider takes up to 200 letters; what it does not take is a name of other letters.
        if super::is_legal_name(PROVIDER, name) {
            return;
        }
        let new = match name {
            "" => texts::NO_NAME.to_owned(),
            name => legal_name(PROVIDER, name).into_owned(),
        };
        let says = match name {
            "" => "String should have at least 1 character".to_owned(),
            _ => "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'".to_owned(),
        };
        log.found(
            format!("{}/name", self.pointer()),
            Code::BadCallName,
            format!("the call {}", name_fault(name)),
        )
        .says(format!("{}.tool_use.name: {says}", self.place()))
        .fixed(format!("it is called {new}"));
        block["name"] = json!(new);
    }

    fn mend_stray_call(&self, block: &mut Value, log: &mut Log) {
        let name = text(block, "name").unwrap_or_default();
        let said = texts::stray_call(name, block.get("input").unwrap_or(&Value::Null));
        log.found(
            self.pointer(),
            Code::WrongRole,
            "a call stands in the user's turn",
        )
        .says(format!(
            "{}: `tool_use` blocks can only be in `assistant` messages",
            self.place()
        ))
        .fixed("it is kept as text");
        *block = json!({"type": "text", "text": said});
    }

    fn mend_result(&self, block: &mut Value, log: &mut Log) {
        if let Some(own) = id(block, "tool_use_id")
            && !ids::is_legal(PROVIDER, own)
        {
            let new = ids::legal(PROVIDER, own);
            log.found(
                format!("{}/tool_use_id", self.pointer()),
                Code::BadCallId,
                format!("the result has the id {own:?}"),
            )
            .says(format!(
                "{}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                self.place()
            ))
            .fixed(format!("its id is now {new}, like that of its call"));
            block["tool_use_id"] = json!(new);
        }
        self.mend_result_content(block, log);
        let is_empty = match block.get("content") {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(blocks)) => blocks.is_empty(),
            Some(_) => false,
        };
        if is_empty && block["is_error"] == true {
            log.found(
                self.pointer(),
                Code::EmptyResult,
                "the call failed and nothing says why",
            )
            .says(format!(
                "{}.tool_result: content cannot be empty if `is_error` is true",
                self.place()
            ))
            .fixed("it says so now");
            block["content"] = json!(texts::NO_REASON);
        }
    }

    fn mend_result_content(&self, block: &mut Value, log: &mut Log) {
        let at = format!("{}/content", self.pointer());
        match block.get_mut("content") {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(Value::Array(blocks)) => {
                for (index, inner) in blocks.iter_mut().enumerate() {
                    let is_empty = text(inner, "type") == Some("text")
                        && text(inner, "text").is_none_or(str::is_empty);
                    if is_empty {
                        log.found(
                            format!("{at}/{index}"),
                            Code::EmptyContent,
                            "this text is empty",
                        )
                        .says(EMPTY_TEXT.to_owned())
                        .fixed("it is left out");
                        *inner = Value::Null;
                    } else if !inner.is_object() {
                        log.found(
                            format!("{at}/{index}"),
                            Code::BadContent,
                            "this is no block",
                        )
                        .says(format!(
                            "{}.tool_result.content.{index}: Input should be an object",
                            self.place()
                        ))
                        .fixed("it is a text now, or gone if it said nothing");
                        let said = as_text(inner);
                        let says_nothing = inner.is_null() || said.is_empty();
                        *inner = if says_nothing {
                            Value::Null
                        } else {
                            json!({"type": "text", "text": said})
                        };
                    }
                }
                blocks.retain(|block| !block.is_null());
            }
            Some(other) => {
                log.found(
                    at,
                    Code::BadContent,
                    "the content is neither a text nor a list of blocks",
                )
                .says(format!(
                    "{}.tool_result.content: Input should be a valid array",
                    self.place()
                ))
                .fixed("it is written as a text");
                *other = json!(as_text(other));
            }
        }
    }

    fn mend_thinking(&self, block: &mut Value, log: &mut Log) {
        if block.get("cache_control").is_none_or(Value::is_null) {
            return;
        }
        let kind = text(block, "type").unwrap_or_default();
        log.found(
            format!("{}/cache_control", self.pointer()),
            Code::CacheControl,
            "thinking cannot be marked for the cache",
        )
        .says(format!(
            "{}.{kind}.cache_control: Extra inputs are not permitted",
            self.place()
        ))
        .fixed("the mark is gone, the thinking is as it was");
        if let Some(fields) = block.as_object_mut() {
            fields.shift_remove("cache_control");
        }
    }
}

const RESCUED: &str = "steadyhand rescued cache mark";

/// A mark on a text that is left out goes to the block before it, which ends the same cached beginning.
fn rescue_cache_marks(blocks: &mut [Value]) {
    for part in 0..blocks.len() {
        let Some(mark) = blocks[part].get_mut(RESCUED).map(Value::take) else {
            continue;
        };
        blocks[part] = Value::Null;
        let takes = |block: &&mut Value| {
            matches!(
                text(block, "type"),
                Some("text" | "image" | "document" | "tool_use" | "tool_result")
            )
        };
        let before = blocks[..part].iter_mut().rfind(takes);
        if let Some(fields) = before.and_then(Value::as_object_mut) {
            fields.entry("cache_control").or_insert(mark);
        }
    }
}
