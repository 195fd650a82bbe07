//! What homes share that write what was read in another shape.

use serde_json::{Value, json};

use super::read;
use super::{PDF, Part};
use crate::providers::Provider;
use crate::texts;

/// A block of somebody else's as this provider has it, where one block is one block. None where it is nobody's known.
pub(crate) fn block(provider: Provider, foreign: &Value, is_model: bool) -> Option<Value> {
    if read::is_thought(foreign) {
        return Some(Value::Null);
    }
    let part = read::one_block(foreign)?;
    match part {
        Part::Other(_) | Part::Call { .. } | Part::Result { .. } => None,
        part => provider.rules().block(part, is_model),
    }
}

/// The name of a file that has none.
pub(crate) const FILE_NAME: &str = "document.pdf";

pub(crate) fn data_url(kind: &str, data: &str) -> String {
    format!("data:{kind};base64,{data}")
}

/// The words of a result, and its images.
pub(crate) fn split(content: Vec<Part>, is_error: bool) -> (String, Vec<Part>) {
    let mut words = Vec::new();
    let mut images = Vec::new();
    for part in content {
        match part {
            Part::Text(said) => words.push(said),
            Part::Other(other) => words.push(other.to_string()),
            Part::Call {
                name, arguments, ..
            } => words.push(texts::stray_call(&name, &arguments)),
            Part::Result { content, .. } => {
                let (said, mut more) = split(content, false);
                words.push(said);
                images.append(&mut more);
            }
            shown @ (Part::Image(..) | Part::ImageUrl(_) | Part::Pdf(..)) => images.push(shown),
        }
    }
    let said = words.join("\n");
    match is_error {
        true => (texts::error(&said), images),
        false => (said, images),
    }
}

pub(crate) fn chat_part(part: Part) -> Value {
    match part {
        Part::Text(said) => json!({"type": "text", "text": said}),
        Part::Image(kind, data) => {
            json!({"type": "image_url", "image_url": {"url": data_url(&kind, &data)}})
        }
        Part::ImageUrl(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        Part::Pdf(data, name) => {
            let filename = name.unwrap_or_else(|| FILE_NAME.to_owned());
            json!({"type": "file", "file": {"filename": filename, "file_data": data_url(PDF, &data)}})
        }
        Part::Other(other) => json!({"type": "text", "text": other.to_string()}),
        Part::Call {
            name, arguments, ..
        } => json!({"type": "text", "text": texts::stray_call(&name, &arguments)}),
        Part::Result { content, .. } => json!({"type": "text", "text": split(content, false).0}),
    }
}
