//! What others say, as Ollama has it.

use std::collections::HashMap;

use serde_json::Value;

use super::OllamaFormat;
use crate::providers::chat::shapes::{Style, write};
use crate::providers::foreign::{OLLAMA, OPENAI, Part, Said, SeenShape, chat_part};
use crate::providers::rules::ShapeRules;

const STYLE: Style = Style {
    takes_documents: false,
    has_images_beside: true,
    takes_objects: true,
    name_of_results: Some("tool_name"),
    part: chat_part,
};

impl ShapeRules for OllamaFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[OPENAI, OLLAMA]
    }

    fn write(&self, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
        write(STYLE, said, names)
    }

    fn block(&self, part: Part, _is_model: bool) -> Option<Value> {
        Some(chat_part(part))
    }

    fn says_to_shape(&self, _seen: &SeenShape<'_>) -> Option<String> {
        None
    }
}
