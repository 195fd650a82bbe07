//! What others say, as Converse has it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::ConverseFormat;
use crate::providers::foreign::{CONVERSE, Part, Role, Said, SeenShape, split};
use crate::providers::ids;
use crate::providers::rules::ShapeRules;

impl ShapeRules for ConverseFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[CONVERSE]
    }

    fn write(&self, said: Said, _names: &HashMap<String, String>) -> Vec<Value> {
        let role = match said.role {
            Role::Model => "assistant",
            Role::User | Role::System => "user",
        };
        let blocks: Vec<Value> = said.parts.into_iter().map(block).collect();
        vec![json!({"role": role, "content": blocks})]
    }

    fn block(&self, part: Part, _is_model: bool) -> Option<Value> {
        Some(block(part))
    }

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String> {
        let index = seen.index;
        let mut blocks = seen.message["content"].as_array().into_iter().flatten();
        let is_typed = |block: &Value| block.get("type").is_some();
        let part = match seen.is_block {
            true => format!(".content.{}", blocks.position(is_typed).unwrap_or_default()),
            false => String::new(),
        };
        Some(format!(
            "The format of the value at messages.{index}{part} is invalid. Provide a json object for the field and try again."
        ))
    }

    fn has_no_types(&self) -> bool {
        true
    }
}

fn block(part: Part) -> Value {
    match part {
        Part::Text(said) => json!({ "text": said }),
        Part::Other(other) => json!({"text": other.to_string()}),
        Part::Image(kind, data) => {
            let format = kind.strip_prefix("image/").unwrap_or("png");
            let format = if format == "jpg" { "jpeg" } else { format };
            json!({"image": {"format": format, "source": {"bytes": data}}})
        }
        // It takes bytes only.
        Part::ImageUrl(url) => json!({ "text": url }),
        Part::Pdf(data, _) => {
            // No two documents may have one name, and few letters are allowed in it.
            let name = format!("document-{}", ids::digest(&data, 8));
            json!({"document": {"format": "pdf", "name": name, "source": {"bytes": data}}})
        }
        Part::Call {
            id,
            name,
            arguments,
        } => json!({"toolUse": {"toolUseId": id, "name": name, "input": arguments}}),
        Part::Result {
            id,
            content,
            is_error,
            ..
        } => {
            let (said, images) = split(content, false);
            let mut blocks: Vec<Value> = images.into_iter().map(block).collect();
            if !said.is_empty() || blocks.is_empty() {
                blocks.insert(0, json!({ "text": said }));
            }
            let mut result = json!({"toolUseId": id, "content": blocks});
            if is_error {
                result["status"] = json!("error");
            }
            json!({ "toolResult": result })
        }
    }
}
