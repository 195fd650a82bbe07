//! What others say, as OpenAI's Chat Completions have it.

use std::collections::HashMap;

use serde_json::Value;

use super::OpenAiFormat;
use crate::providers::chat::shapes::{Style, write};
use crate::providers::foreign::{
    CONVERSE, OLD_CALLS, OLLAMA, OPENAI, Part, Said, SeenShape, chat_part,
};
use crate::providers::rules::ShapeRules;

const STYLE: Style = Style {
    takes_documents: true,
    has_images_beside: false,
    takes_objects: false,
    name_of_results: None,
    part: chat_part,
};

impl ShapeRules for OpenAiFormat {
    fn reads(&self) -> &'static [&'static str] {
        &[OPENAI, OLD_CALLS]
    }

    fn write(&self, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
        write(STYLE, said, names)
    }

    fn block(&self, part: Part, _is_model: bool) -> Option<Value> {
        Some(chat_part(part))
    }

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String> {
        let index = seen.index;
        let what = seen.what;
        Some(match seen.whose {
            CONVERSE if seen.is_block => {
                format!("Missing required parameter: 'messages[{index}].content[0].type'.")
            }
            _ if seen.is_block => format!(
                "Invalid value: '{what}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'."
            ),
            OLLAMA => format!("Unknown parameter: 'messages[{index}].images'."),
            _ => format!("Missing required parameter: 'messages[{index}].role'."),
        })
    }
}
