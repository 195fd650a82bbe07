//! What others say, as Anthropic has it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::AnthropicFormat;
use crate::providers::foreign::{ANTHROPIC, OPENAI, PDF, Part, Role, Said, SeenShape, split};
use crate::providers::rules::ShapeRules;

impl ShapeRules for AnthropicFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[ANTHROPIC, OPENAI]
    }

    fn write(&self, said: Said, _names: &HashMap<String, String>) -> Vec<Value> {
        let role = match said.role {
            Role::Model => "assistant",
            Role::User => "user",
            Role::System => "system",
        };
        let blocks: Vec<Value> = said.parts.into_iter().map(block).collect();
        vec![json!({"role": role, "content": blocks})]
    }

    fn block(&self, part: Part, _is_model: bool) -> Option<Value> {
        Some(block(part))
    }

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String> {
        let index = seen.index;
        Some(match seen.is_block {
            true => format!("messages.{index}.content.0: Input should be an object"),
            false => format!(
                "messages.{index}.{}: Extra inputs are not permitted",
                seen.what
            ),
        })
    }

    fn reads_words_of_parts(&self) -> bool {
        true
    }

    fn results_say_their_call(&self) -> bool {
        true
    }
}

fn block(part: Part) -> Value {
    match part {
        Part::Text(said) => json!({"type": "text", "text": said}),
        Part::Other(other) => json!({"type": "text", "text": other.to_string()}),
        Part::Image(kind, data) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}})
        }
        Part::ImageUrl(url) => json!({"type": "image", "source": {"type": "url", "url": url}}),
        Part::Pdf(data, name) => {
            let source = json!({"type": "base64", "media_type": PDF, "data": data});
            let mut document = json!({"type": "document", "source": source});
            if let Some(name) = name {
                document["title"] = json!(name);
            }
            document
        }
        Part::Call {
            id,
            name,
            arguments,
        } => json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
        Part::Result {
            id,
            content,
            is_error,
            ..
        } => {
            let (said, images) = split(content, false);
            let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": said});
            if !images.is_empty() {
                let mut blocks: Vec<Value> = images.into_iter().map(block).collect();
                if !said.is_empty() {
                    blocks.insert(0, json!({"type": "text", "text": said}));
                }
                result["content"] = Value::Array(blocks);
            }
            if is_error {
                result["is_error"] = json!(true);
            }
            result
        }
    }
}
