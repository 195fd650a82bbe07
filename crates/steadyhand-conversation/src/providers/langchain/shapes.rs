//! What others say, as LangChain has it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::LangChainFormat;
use crate::providers::chat::shapes as chat;
use crate::providers::foreign::{LANGCHAIN, OPENAI, Part, Role, Said, SeenShape, chat_part, split};
use crate::providers::rules::ShapeRules;

const STYLE: chat::Style = chat::Style {
    takes_documents: false,
    has_images_beside: false,
    takes_objects: false,
    name_of_results: None,
    part: chat_part,
};

impl ShapeRules for LangChainFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[LANGCHAIN, OPENAI]
    }

    fn write(&self, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
        write(said, names)
    }

    fn block(&self, _part: Part, _is_model: bool) -> Option<Value> {
        None
    }

    fn says_to_shape(&self, _seen: &SeenShape<'_>) -> Option<String> {
        None
    }
}

fn write(said: Said, names: &HashMap<String, String>) -> Vec<Value> {
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
                calls.push(json!({"name": name, "args": arguments, "id": id, "type": "tool_call"}));
            }
            Part::Result {
                id,
                name,
                content,
                is_error,
            } => {
                let (said, mut images) = split(content, is_error);
                let status = if is_error { "error" } else { "success" };
                let mut result =
                    json!({"type": "tool", "content": said, "tool_call_id": id, "status": status});
                if let Some(name) = name.or_else(|| names.get(id.as_ref()?).cloned()) {
                    result["name"] = json!(name);
                }
                results.push(result);
                rest.append(&mut images);
            }
            other => rest.push(other),
        }
    }
    let kind = match said.role {
        Role::Model => "ai",
        Role::User => "human",
        Role::System => "system",
    };
    let content = chat::message(STYLE, kind, rest)["content"].take();
    let is_silent = content == "";
    if said.role == Role::Model {
        results.insert(
            0,
            json!({"type": kind, "content": content, "tool_calls": calls}),
        );
    } else if !is_silent || results.is_empty() {
        results.push(json!({"type": kind, "content": content}));
    }
    results
}
