//! What others say, as Google has it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::GeminiFormat;
use crate::providers::foreign::{GEMINI, PDF, Part, Role, Said, SeenShape, split};
use crate::providers::rules::ShapeRules;

impl ShapeRules for GeminiFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[GEMINI]
    }

    fn write(&self, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
        let role = match said.role {
            Role::Model => "model",
            Role::User | Role::System => "user",
        };
        let parts = said.parts.into_iter().flat_map(|part| parts(part, names));
        let parts: Vec<Value> = parts.collect();
        vec![json!({"role": role, "parts": parts})]
    }

    fn block(&self, part: Part, _is_model: bool) -> Option<Value> {
        parts(part, &HashMap::new()).into_iter().next()
    }

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String> {
        let index = seen.index;
        let key = match seen.is_block || seen.what == "tool" {
            true => "content",
            false => seen.what,
        };
        Some(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at 'contents[{index}]': Cannot find field."
        ))
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn has_no_types(&self) -> bool {
        true
    }
}

fn parts(part: Part, names: &HashMap<String, String>) -> Vec<Value> {
    match part {
        Part::Text(said) => vec![json!({ "text": said })],
        Part::Other(other) => vec![json!({"text": other.to_string()})],
        Part::Image(kind, data) => vec![json!({"inlineData": {"mimeType": kind, "data": data}})],
        Part::ImageUrl(url) => vec![json!({"fileData": {"fileUri": url}})],
        Part::Pdf(data, _) => vec![json!({"inlineData": {"mimeType": PDF, "data": data}})],
        Part::Call {
            id,
            name,
            arguments,
        } => {
            let mut call = json!({"name": name, "args": arguments});
            if let Some(id) = id {
                call["id"] = json!(id);
            }
            vec![json!({ "functionCall": call })]
        }
        Part::Result {
            id,
            name,
            content,
            is_error,
        } => {
            let (said, images) = split(content, is_error);
            let name = name.or_else(|| names.get(id.as_ref()?).cloned());
            let key = if is_error { "error" } else { "output" };
            let mut result = json!({"name": name.unwrap_or_default(), "response": {key: said}});
            if let Some(id) = id {
                result["id"] = json!(id);
            }
            let mut made = vec![json!({ "functionResponse": result })];
            made.extend(images.into_iter().flat_map(|image| parts(image, names)));
            made
        }
    }
}
