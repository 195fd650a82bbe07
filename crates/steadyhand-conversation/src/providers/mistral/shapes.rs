//! What others say, as Mistral has it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::MistralFormat;
use crate::providers::chat::shapes::{Style, write};
use crate::providers::foreign::{OPENAI, PDF, Part, Said, SeenShape, chat_part, data_url};
use crate::providers::rules::ShapeRules;

const STYLE: Style = Style {
    takes_documents: true,
    has_images_beside: false,
    takes_objects: false,
    name_of_results: Some("name"),
    part,
};

impl ShapeRules for MistralFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[OPENAI]
    }

    fn write(&self, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
        write(STYLE, said, names)
    }

    fn block(&self, part: Part, _is_model: bool) -> Option<Value> {
        Some(self::part(part))
    }

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String> {
        Some(match seen.is_block {
            true => format!(
                "Input tag '{}' found using 'type' does not match any of the expected tags",
                seen.what
            ),
            false => "Extra inputs are not permitted".to_owned(),
        })
    }
}

fn part(part: Part) -> Value {
    match part {
        // It has a chunk of its own for documents.
        Part::Pdf(data, _) => {
            json!({"type": "document_url", "document_url": data_url(PDF, &data)})
        }
        part => chat_part(part),
    }
}
