//! One block of an Anthropic message: what is mended in it by itself.

use serde_json::{Value, json};

use super::PROVIDER;
use crate::problem::{Code, Log};
use crate::providers::arguments;
use crate::providers::foreign;
use crate::providers::ids;
use crate::providers::wire::{At, id, legal_name, name_fault, text};
use crate::texts::{self, as_text};

const HISTORY_NAME_MAX: usize = 128;
const EMPTY_TEXT: &str = "messages: text content blocks must be non-empty";

/// One block of a message.
pub(super) struct Block<'a> {
    pub(super) at: At<'a>,
    pub(super) part: usize,
    pub(super) is_model: bool,
    /// Whether rules that only Anthropic itself enforces apply.
    pub(super) is_strict: bool,
}

impl Block<'_> {
    fn pointer(&self) -> String {
        format!("{}/content/{}", self.at.pointer(), self.part)
    }

    fn place(&self) -> String {
        format!("messages.{}.content.{}", self.at.index, self.part)
    }

    pub(super) fn mend(&self, block: &mut Value, log: &mut Log) {
        let Some(kind) = text(block, "type") else {
            return self.mend_shape(block, log);
        };
        match kind {
            "text" => self.mend_text(block, log),
            kind if is_openais(kind) => self.mend_foreign(block, log),
            "tool_use" if self.is_model => self.mend_call(block, log),
            "tool_use" => self.mend_stray_call(block, log),
            "tool_result" => self.mend_result(block, log),
            "thinking" | "redacted_thinking" => self.mend_thinking(block, log),
            _ => {}
        }
    }

    /// A block as OpenAI writes it.
    fn mend_foreign(&self, block: &mut Value, log: &mut Log) {
        let kind = text(block, "type").unwrap_or_default();
        let native = in_own_words(block, self.is_model);
        log.found(
            self.pointer(),
            Code::BadContent,
            format!("there are no blocks of type {kind:?} here"),
        )
        .says(format!(
            "{}: Input tag '{kind}' found using 'type' does not match any of the expected tags",
            self.place()
        ))
        .fixed("it is written as one of a type that is");
        let mark = mark_of(block);
        *block = native;
        put_mark(block, mark);
        if text(block, "type") == Some("text") {
            self.mend_text(block, log);
        }
    }

    /// The same for a block of a result.
    fn mend_foreign_inside(&self, index: usize, block: &mut Value, log: &mut Log) {
        let kind = text(block, "type").unwrap_or_default().to_owned();
        if !is_openais(&kind) {
            return;
        }
        let native = in_own_words(block, false);
        log.found(
            format!("{}/content/{index}", self.pointer()),
            Code::BadContent,
            format!("there are no blocks of type {kind:?} here"),
        )
        .says(format!(
            "{}.tool_result.content.{index}: Input tag '{kind}' found using 'type' does not match any of the expected tags",
            self.place()
        ))
        .fixed("it is written as one of a type that is");
        let mark = mark_of(block);
        *block = native;
        put_mark(block, mark);
    }

    /// A block that does not say what it is: its fields tell, or it is a text.
    fn mend_shape(&self, block: &mut Value, log: &mut Log) {
        if let Some(kind) = self.kind_by_fields(block) {
            log.found(self.pointer(), Code::BadContent, "this block has no type")
                .says(format!("{}: Input should be an object", self.place()))
                .fixed(format!("its fields are those of a {kind}"));
            block["type"] = json!(kind);
            return self.mend(block, log);
        }
        let mark = mark_of(block);
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
        put_mark(block, mark);
    }

    fn kind_by_fields(&self, block: &Value) -> Option<&'static str> {
        let has = |key: &str| block.get(key).is_some();
        if has("tool_use_id") {
            return Some("tool_result");
        }
        (self.is_model && has("name") && has("input")).then_some("tool_use")
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

    fn takes_id(&self, id: &str) -> bool {
        ids::is_legal(PROVIDER, id) || (!self.is_strict && !id.is_empty())
    }

    fn mend_call(&self, block: &mut Value, log: &mut Log) {
        let own = text(block, "id").unwrap_or_default();
        if !self.takes_id(own) {
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
        // In a history it takes longer names than what we emit.
        let is_taken = is_history_name(name) || (!self.is_strict && !name.is_empty());
        if is_taken {
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
        let mark = mark_of(block);
        *block = json!({"type": "text", "text": said});
        put_mark(block, mark);
    }

    fn mend_result(&self, block: &mut Value, log: &mut Log) {
        if let Some(own) = id(block, "tool_use_id")
            && !self.takes_id(own)
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
        if !matches!(
            block.get("is_error"),
            None | Some(Value::Null | Value::Bool(_))
        ) {
            log.found(
                format!("{}/is_error", self.pointer()),
                Code::BadField,
                "whether the call failed is said by true or false",
            )
            .says(format!(
                "{}.tool_result.is_error: Input should be a valid boolean",
                self.place()
            ))
            .fixed("it is not said any more");
            if let Some(fields) = block.as_object_mut() {
                fields.shift_remove("is_error");
            }
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
                    self.mend_foreign_inside(index, inner, log);
                    let is_text = text(inner, "type") == Some("text");
                    let has_words = match inner.get("text") {
                        None | Some(Value::Null) => false,
                        Some(Value::String(text)) => !text.is_empty(),
                        Some(_) => true,
                    };
                    let is_empty = is_text && !has_words;
                    if is_empty {
                        log.found(
                            format!("{at}/{index}"),
                            Code::EmptyContent,
                            "this text is empty",
                        )
                        .says(EMPTY_TEXT.to_owned())
                        .fixed("it is left out");
                        *inner = Value::Null;
                    } else if is_text && !inner["text"].is_string() {
                        log.found(
                            format!("{at}/{index}"),
                            Code::BadContent,
                            "this text is no string",
                        )
                        .says(format!(
                            "{}.tool_result.content.{index}.text.text: Input should be a valid string",
                            self.place()
                        ))
                        .fixed("it is written as one");
                        inner["text"] = json!(as_text(&inner["text"]));
                    } else if text(inner, "type").is_none() {
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
                        let said = as_text(inner.get("text").unwrap_or(inner));
                        let says_nothing = inner.is_null() || said.is_empty() || said == "{}";
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

    /// What thinking cannot do without, and what the provider says where it is missing.
    fn lost_in_thinking(&self, block: &Value) -> Option<(&'static str, String)> {
        let is_said = |key: &str| block.get(key).is_some_and(Value::is_string);
        let place = self.place();
        if text(block, "type") == Some("redacted_thinking") {
            let says = format!("{place}.redacted_thinking.data: Field required");
            return (!is_said("data")).then_some(("data", says));
        }
        match block.get("signature") {
            None | Some(Value::Null) => Some((
                "signature",
                format!("{place}.thinking.signature: Field required"),
            )),
            Some(signature) if signature.as_str().is_none_or(str::is_empty) => Some((
                "signature",
                format!("{place}: Invalid `signature` in `thinking` block"),
            )),
            Some(_) if !is_said("thinking") => Some((
                "thinking",
                format!("{place}.thinking.thinking: Field required"),
            )),
            Some(_) => None,
        }
    }

    fn mend_thinking(&self, block: &mut Value, log: &mut Log) {
        if let Some((key, says)) = self.lost_in_thinking(block).filter(|_| self.is_strict) {
            log.found(
                format!("{}/{key}", self.pointer()),
                Code::MissingSignature,
                match key {
                    "signature" => "this thinking has no signature",
                    _ => "this thinking has lost what was thought",
                },
            )
            .says(says)
            .fixed("the thinking is left out: nobody can sign it again");
            *block = Value::Null;
            return;
        }
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

/// Kinds of parts that only OpenAI has.
fn is_openais(kind: &str) -> bool {
    matches!(
        kind,
        "image_url"
            | "input_text"
            | "output_text"
            | "input_image"
            | "refusal"
            | "file"
            | "input_file"
            | "input_audio"
    )
}

/// A part of OpenAI's as a block; what no block can say, as JSON in a text.
fn in_own_words(part: &Value, is_model: bool) -> Value {
    let native = foreign::block(PROVIDER, part, is_model);
    native.unwrap_or_else(|| json!({"type": "text", "text": part.to_string()}))
}

/// What Anthropic takes as the name of a tool, in definitions and in histories.
fn is_history_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= HISTORY_NAME_MAX && name.bytes().all(legal)
}

/// A cache mark that has to go elsewhere.
pub(super) fn mark_of(block: &mut Value) -> Option<Value> {
    let mark = block.get_mut("cache_control").map(Value::take);
    mark.filter(|mark| !mark.is_null())
}

pub(super) fn put_mark(block: &mut Value, mark: Option<Value>) {
    if let (Some(mark), Some(fields)) = (mark, block.as_object_mut()) {
        fields.insert("cache_control".to_owned(), mark);
    }
}

const RESCUED: &str = "steadyhand rescued cache mark";

/// A mark on a text that is left out goes to the block before it, which ends the same cached beginning.
pub(super) fn rescue_cache_marks(blocks: &mut [Value]) {
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
