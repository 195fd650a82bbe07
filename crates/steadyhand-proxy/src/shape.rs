//! A conversation without what was said in it: its shape is kept, its words are not.

use serde_json::Value;

/// Fields whose texts are part of the shape. Everything else is somebody's words.
const OF_THE_SHAPE: [&str; 16] = [
    "role",
    "type",
    "id",
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "name",
    "model",
    "status",
    "finish_reason",
    "stop_reason",
    "media_type",
    "mime_type",
    "mimeType",
    "tool_name",
    "effort",
];
const TEXT_CHARS_MAX: usize = 128;
/// Deeper values are left out.
const DEPTH_MAX: usize = 40;

/// The same with every text that is no part of its shape replaced by its length.
pub(super) fn shape_of(value: &Value) -> Value {
    shape(value, None, 0)
}

fn shape(value: &Value, key: Option<&str>, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::String("(too deep)".to_owned());
    }
    match value {
        Value::String(text) => Value::String(text_of(text, key)),
        Value::Array(items) => {
            let items = items.iter().map(|item| shape(item, key, depth + 1));
            Value::Array(items.collect())
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| {
                let name: String = key.chars().take(TEXT_CHARS_MAX).collect();
                (name, shape(field, Some(key), depth + 1))
            });
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn text_of(text: &str, key: Option<&str>) -> String {
    let is_shape = key.is_some_and(|key| OF_THE_SHAPE.contains(&key));
    // Nothing and spaces are what providers stumble over, and say nothing.
    if text.trim().is_empty() && text.len() <= TEXT_CHARS_MAX {
        return text.to_owned();
    }
    match is_shape && text.chars().count() <= TEXT_CHARS_MAX {
        true => steadyhand::redact::text(text).into_owned(),
        false => format!("({} characters)", text.chars().count()),
    }
}
