//! What others say, in the form of chat completions.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::providers::foreign::{PDF, Part, Role, Said, chat_part, data_url, split};

/// The form of a message, in which providers differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) takes_documents: bool,
    /// Images stand beside the words.
    pub(crate) has_images_beside: bool,
    /// Arguments may be objects.
    pub(crate) takes_objects: bool,
    /// The key of a result that says its tool.
    pub(crate) name_of_results: Option<&'static str>,
    /// A part of a message.
    pub(crate) part: fn(Part) -> Value,
}

/// Words alone are a text; with images they are parts. Ollama's images stand beside the words.
pub(crate) fn message(style: Style, role: &str, parts: Vec<Part>) -> Value {
    let is_words = |part: &Part| match part {
        Part::Image(..) | Part::ImageUrl(_) => false,
        Part::Pdf(..) => !style.takes_documents,
        _ => true,
    };
    if parts.iter().all(is_words) || style.has_images_beside {
        let mut images = Vec::new();
        let mut words = Vec::new();
        for part in parts {
            match part {
                Part::Image(_, data) => images.push(json!(data)),
                Part::ImageUrl(url) => words.push(url),
                Part::Pdf(data, _) => words.push(data_url(PDF, &data)),
                other => {
                    let said = chat_part(other);
                    words.push(said["text"].as_str().unwrap_or_default().to_owned());
                }
            }
        }
        let mut message = json!({"role": role, "content": words.join("\n")});
        if !images.is_empty() {
            message["images"] = Value::Array(images);
        }
        return message;
    }
    let parts = parts.into_iter().map(|part| (style.part)(part));
    let parts: Vec<Value> = parts.collect();
    json!({"role": role, "content": parts})
}

/// The messages that say this.
pub(crate) fn write(style: Style, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    let mut rest = Vec::new();
    for part in said.parts {
        match part {
            Part::Call {
                id,
                name,
                arguments,
            } if said.role == Role::Model => {
                let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
                if !style.takes_objects && !arguments.is_string() {
                    let object = if arguments.is_null() {
                        json!({})
                    } else {
                        arguments
                    };
                    call["function"]["arguments"] = json!(object.to_string());
                }
                calls.push(call);
            }
            Part::Result {
                id,
                name,
                content,
                is_error,
            } => {
                let (said, mut images) = split(content, is_error);
                let name = name.or_else(|| names.get(id.as_ref()?).cloned());
                let mut result = json!({"role": "tool", "tool_call_id": id, "content": said});
                if let (Some(key), Some(name)) = (style.name_of_results, name) {
                    result[key] = json!(name);
                }
                results.push(result);
                rest.append(&mut images);
            }
            other => rest.push(other),
        }
    }
    let role = match said.role {
        Role::Model => "assistant",
        Role::User => "user",
        Role::System => "system",
    };
    if said.role == Role::Model {
        let mut said = match rest.is_empty() && !calls.is_empty() {
            true => json!({"role": role, "content": null}),
            false => message(style, role, rest),
        };
        if !calls.is_empty() {
            said["tool_calls"] = Value::Array(calls);
        }
        results.insert(0, said);
        return results;
    }
    if !rest.is_empty() || results.is_empty() {
        results.push(message(style, role, rest));
    }
    results
}
