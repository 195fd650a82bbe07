//! What others say, as OpenAI's Responses have it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::ResponsesFormat;
use crate::providers::foreign::{
    FILE_NAME, PDF, Part, RESPONSES, Role, Said, SeenShape, chat_part, data_url, split,
};
use crate::providers::rules::ShapeRules;

impl ShapeRules for ResponsesFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[RESPONSES]
    }

    fn write(&self, said: Said, _names: &HashMap<String, String>) -> Vec<Value> {
        write(said)
    }

    fn block(&self, part: Part, is_model: bool) -> Option<Value> {
        Some(part_of(part, is_model))
    }

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String> {
        let index = seen.index;
        let what = seen.what;
        Some(match what {
            _ if seen.is_block => format!(
                "Invalid value: '{what}'. Supported values are: 'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'."
            ),
            "tool" => "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
                .to_owned(),
            _ => format!("Unknown parameter: 'input[{index}].{what}'."),
        })
    }
}

fn part_of(part: Part, is_model: bool) -> Value {
    let words = if is_model {
        "output_text"
    } else {
        "input_text"
    };
    match part {
        Part::Image(kind, data) => {
            json!({"type": "input_image", "image_url": data_url(&kind, &data), "detail": "auto"})
        }
        Part::ImageUrl(url) => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        Part::Pdf(data, name) => {
            let filename = name.unwrap_or_else(|| FILE_NAME.to_owned());
            json!({"type": "input_file", "filename": filename, "file_data": data_url(PDF, &data)})
        }
        other => {
            let said = chat_part(other);
            json!({"type": words, "text": said["text"]})
        }
    }
}

fn write(said: Said) -> Vec<Value> {
    let is_model = said.role == Role::Model;
    let role = match said.role {
        Role::Model => "assistant",
        Role::User => "user",
        Role::System => "system",
    };
    let mut items = Vec::new();
    let mut rest = Vec::new();
    let speak = |rest: &mut Vec<Part>, items: &mut Vec<Value>| {
        if rest.is_empty() {
            return;
        }
        let parts: Vec<Value> = rest.drain(..).map(|part| part_of(part, is_model)).collect();
        // Words of the model without an id are plain ones.
        let content = match parts.iter().all(|part| part["text"].is_string()) {
            true => {
                let words = parts.iter().filter_map(|part| part["text"].as_str());
                json!(words.collect::<Vec<_>>().join("\n"))
            }
            false => Value::Array(parts),
        };
        items.push(json!({"role": role, "content": content}));
    };
    for part in said.parts {
        match part {
            Part::Call {
                id,
                name,
                arguments,
            } if is_model => {
                speak(&mut rest, &mut items);
                let arguments = match arguments {
                    Value::Null => "{}".to_owned(),
                    Value::String(said) => said,
                    other => other.to_string(),
                };
                items.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}));
            }
            Part::Result {
                id,
                content,
                is_error,
                ..
            } => {
                speak(&mut rest, &mut items);
                let (said, images) = split(content, is_error);
                let mut output = json!(said);
                if !images.is_empty() {
                    let mut parts: Vec<Value> = images
                        .into_iter()
                        .map(|image| part_of(image, false))
                        .collect();
                    if !said.is_empty() {
                        parts.insert(0, json!({"type": "input_text", "text": said}));
                    }
                    output = Value::Array(parts);
                }
                items
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            other => rest.push(other),
        }
    }
    speak(&mut rest, &mut items);
    if items.is_empty() {
        items.push(json!({"role": role, "content": ""}));
    }
    items
}
