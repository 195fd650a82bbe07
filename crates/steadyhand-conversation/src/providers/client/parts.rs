//! What a message says, part by part: texts and pictures in the many shapes there are.

use serde_json::Value;
use steadyhand::Content;

use crate::providers::wire::text;

/// A part of what is said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    /// Base64, with its kind.
    Picture {
        kind: &'a str,
        data: &'a str,
    },
    /// Somewhere else.
    PictureAt(&'a str),
    /// A block of another kind.
    Other(&'a Value),
}

/// The parts of a content, empty texts left out.
pub(crate) fn parts(content: &Content) -> Vec<Part<'_>> {
    match content {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => vec![Part::Text(text)],
        Content::Blocks(blocks) => blocks.iter().filter_map(part).collect(),
    }
}

fn part(block: &Value) -> Option<Part<'_>> {
    if let Value::String(text) = block {
        return (!text.is_empty()).then_some(Part::Text(text));
    }
    let part = match text(block, "type") {
        Some("text" | "input_text" | "output_text") => Part::Text(text(block, "text")?),
        Some("image" | "input_image" | "image_url") => picture(block)?,
        _ => Part::Other(block),
    };
    (part != Part::Text("")).then_some(part)
}

/// Anthropic's source, LangChain's two ways, OpenAI's URL.
fn picture(block: &Value) -> Option<Part<'_>> {
    let source = block.get("source").unwrap_or(block);
    let data = ["data", "base64"].iter().find_map(|key| text(source, key));
    if let Some(data) = data {
        let kind = ["media_type", "mime_type"]
            .iter()
            .find_map(|key| text(source, key));
        return Some(Part::Picture {
            kind: kind.unwrap_or("image/png"),
            data,
        });
    }
    let address = block.get("image_url");
    let address = match address {
        Some(Value::String(address)) => Some(address.as_str()),
        Some(nested) => text(nested, "url"),
        None => text(source, "url"),
    }?;
    let inline = address
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    Some(match inline {
        Some((kind, data)) => Part::Picture { kind, data },
        None => Part::PictureAt(address),
    })
}

/// What stands for a part that a provider cannot be given.
pub(crate) fn stand_in(block: &Value) -> String {
    let kind = text(block, "type").unwrap_or("unknown");
    format!("[a part of type {kind}, which this model cannot be given]")
}

/// Whether a block is of a model's own making and means nothing to the others: thinking, calls.
pub(crate) fn is_inner(block: &Value) -> bool {
    matches!(
        text(block, "type"),
        Some(
            "thinking"
                | "redacted_thinking"
                | "reasoning"
                | "tool_use"
                | "tool_call"
                | "function_call"
                | "input_json_delta"
                | "server_tool_use"
        )
    )
}

/// The address of a picture that has its data in it.
pub(crate) fn data_address(kind: &str, data: &str) -> String {
    format!("data:{kind};base64,{data}")
}
