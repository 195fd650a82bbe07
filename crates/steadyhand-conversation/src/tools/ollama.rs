//! A function in Qwen's format, as Ollama takes it (SPEC V18). Its schema is the tool's own.
//!
//! Ollama itself hands only a part of a schema to the model's template (`type`, `anyOf`, `items`, `description`, `enum`,
//! `properties`, `required`). That is its business and changes with its versions: what it is sent is whole.

use serde_json::{Value, json};

/// A function, and nothing beside its type.
pub(super) fn function(name: &str, description: &str, schema: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
}
