//! Fields of a message beside its role and content: Anthropic refuses them, whatever they are.

use serde_json::{Map, Value, json};

use super::block;
use crate::place::escape;
use crate::problem::{Code, Log};
use crate::providers::wire::{At, content_text, text};
use crate::texts::as_text;

/// Takes over what others write beside the content: OpenAI's calls and results, and words under another name.
pub(super) fn take_in(message: &mut Value, is_model: bool, at: At<'_>, log: &mut Log) {
    let Some(fields) = message.as_object_mut() else {
        return;
    };
    if fields.len() <= 2 {
        // Nearly all messages: there is nothing beside role and content.
        let is_plain = |key: &String| matches!(key.as_str(), "role" | "content");
        if fields.keys().all(is_plain) {
            return;
        }
    }
    if is_model {
        calls(fields, at, log);
    } else {
        result(fields, at, log);
    }
    words(fields, at, log);
    mark(fields, at, log);
}

/// Leaves out what is still beside role and content.
pub(super) fn leave_out(message: &mut Value, at: At<'_>, log: &mut Log) {
    let Some(fields) = message.as_object_mut() else {
        return;
    };
    if fields.len() == 2 && fields.contains_key("role") && fields.contains_key("content") {
        return;
    }
    let is_foreign = |key: &String| !matches!(key.as_str(), "role" | "content");
    let foreign: Vec<String> = fields
        .keys()
        .filter(|key| is_foreign(key))
        .cloned()
        .collect();
    for key in foreign {
        fields.shift_remove(&key);
        found(
            &key,
            at,
            "this is no field of a message",
            "it is left out",
            log,
        );
    }
}

fn found(key: &str, at: At<'_>, problem: &str, fix: &str, log: &mut Log) {
    log.found(at.field(&escape(key)), Code::BadField, problem)
        .says(format!(
            "messages.{}.{key}: Extra inputs are not permitted",
            at.index
        ))
        .fixed(fix);
}

/// The calls of the model, as OpenAI writes them.
fn calls(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let Some(Value::Array(calls)) = fields.get_mut("tool_calls").map(Value::take) else {
        return;
    };
    fields.shift_remove("tool_calls");
    found(
        "tool_calls",
        at,
        "the calls are written as OpenAI does",
        "they are blocks of the content now",
        log,
    );
    let mut blocks = match fields.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::Null) | None => Vec::new(),
        Some(Value::String(said)) if said.is_empty() => Vec::new(),
        Some(other) => vec![json!({"type": "text", "text": as_text(&other)})],
    };
    for mut call in calls {
        let function = match call.get_mut("function") {
            Some(function) => function.take(),
            None => call.clone(),
        };
        let input = ["arguments", "args", "input"]
            .iter()
            .find_map(|key| function.get(*key));
        blocks.push(json!({
            "type": "tool_use",
            "id": call["id"],
            "name": function["name"],
            "input": input,
        }));
    }
    fields.insert("content".to_owned(), Value::Array(blocks));
}

/// The result of a tool, as OpenAI writes it.
fn result(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let Some(Value::String(id)) = fields.get_mut("tool_call_id").map(Value::take) else {
        return;
    };
    fields.shift_remove("tool_call_id");
    fields.shift_remove("name");
    found(
        "tool_call_id",
        at,
        "the result is written as OpenAI does",
        "it is a block of the content now",
        log,
    );
    let content = fields.get_mut("content").map(Value::take);
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    fields.insert("content".to_owned(), json!([result]));
}

/// What is said under another name, where the content says nothing.
fn words(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let is_silent = match fields.get("content") {
        None | Some(Value::Null) => true,
        Some(Value::String(said)) => said.is_empty(),
        Some(Value::Array(blocks)) => blocks.is_empty(),
        Some(_) => false,
    };
    if !is_silent {
        return words_beside_a_value(fields, at, log);
    }
    for key in ["text", "parts"] {
        let Some(value) = fields
            .get_mut(key)
            .map(Value::take)
            .filter(|value| !value.is_null())
        else {
            continue;
        };
        fields.shift_remove(key);
        let said = content_text(Some(&value));
        found(
            key,
            at,
            "what is said stands beside the content",
            "it is the content now",
            log,
        );
        fields.insert("content".to_owned(), json!(said));
        return;
    }
}

/// What is said beside a content that is neither a text nor blocks is said with it.
fn words_beside_a_value(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let content = match fields.get("content") {
        None | Some(Value::Null | Value::String(_) | Value::Array(_)) => return,
        Some(other) => as_text(other),
    };
    let mut blocks = vec![json!({"type": "text", "text": content})];
    for key in ["text", "parts"] {
        let said = content_text(fields.get(key));
        if said.is_empty() {
            continue;
        }
        fields.shift_remove(key);
        blocks.push(json!({"type": "text", "text": said}));
        found(
            key,
            at,
            "what is said stands beside the content",
            "it is part of the content now",
            log,
        );
    }
    if blocks.len() > 1 {
        fields.insert("content".to_owned(), Value::Array(blocks));
    }
}

/// A cache mark of the whole message belongs to its last block.
fn mark(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let mark = fields.get("cache_control");
    if mark.and_then(|mark| text(mark, "type")) != Some("ephemeral") {
        return;
    }
    let said = fields
        .get_mut("content")
        .map(Value::take)
        .unwrap_or_default();
    let mut blocks = match said {
        Value::Array(blocks) => blocks,
        Value::String(said) if !said.is_empty() => vec![json!({"type": "text", "text": said})],
        other => {
            fields.insert("content".to_owned(), other);
            return;
        }
    };
    let takes = |block: &&mut Value| {
        let kind = text(block, "type");
        kind.is_some_and(|kind| !kind.ends_with("thinking"))
    };
    let last = blocks.iter_mut().rfind(takes);
    if let Some(block) = last.filter(|block| block.get("cache_control").is_none()) {
        let mark = fields.shift_remove("cache_control");
        block::put_mark(block, mark);
        log.found(
            at.field("cache_control"),
            Code::CacheControl,
            "a message cannot be marked for the cache",
        )
        .says(format!(
            "messages.{}.cache_control: Extra inputs are not permitted",
            at.index
        ))
        .fixed("its last block is");
    }
    fields.insert("content".to_owned(), Value::Array(blocks));
}
