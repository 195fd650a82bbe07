//! Reads a message or a block, whoever wrote it.

use serde_json::{Map, Value};

use super::{PDF, Part, Role, Said};
use crate::providers::langchain::body_and_place as langchain_body;
use crate::providers::wire::{id, text};
use crate::texts::as_text;

/// Whether this is the type of a LangChain message.
pub(super) fn is_langchain_kind(kind: &str) -> bool {
    let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
    matches!(
        kind,
        "ai" | "human"
            | "system"
            | "tool"
            | "AIMessage"
            | "HumanMessage"
            | "SystemMessage"
            | "ToolMessage"
    )
}

/// Whether this is the type of an item of OpenAI's Responses that no other provider has.
pub(super) fn is_item_kind(kind: &str) -> bool {
    kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || matches!(
            kind,
            "reasoning"
                | "item_reference"
                | "compaction"
                | "tool_search_output"
                | "mcp_list_tools"
                | "mcp_approval_request"
                | "mcp_approval_response"
        )
}

/// What a message says. None where it is none.
pub(super) fn message(message: &Value) -> Option<Said> {
    let (body, _) = langchain_body(message);
    let fields = body.as_object()?;
    let role = role(message, fields);
    let mut said = Said {
        role,
        parts: Vec::new(),
        has_thoughts: false,
    };
    if let Some(item) = item(body) {
        said.role = item.role;
        said.has_thoughts = item.has_thoughts;
        said.parts = item.parts;
        return Some(said);
    }
    let mut content = Vec::new();
    said.has_thoughts |= blocks(fields.get("content"), &mut content);
    said.has_thoughts |= blocks(fields.get("parts"), &mut content);
    content.extend(images_beside(body));
    if content.is_empty() {
        content.extend(own(body, "refusal").map(Part::Text));
    }
    if is_result(message, fields) {
        said.role = Role::User;
        said.parts.push(Part::Result {
            id: own(body, "tool_call_id"),
            name: own(body, "name").or_else(|| own(body, "tool_name")),
            content,
            is_error: fields.get("status").is_some_and(|status| status == "error"),
        });
        return Some(said);
    }
    said.parts = content;
    // Anthropic's models in LangChain have their calls in both places.
    let is_told = |id: &Option<String>, parts: &[Part]| {
        parts
            .iter()
            .any(|part| matches!(part, Part::Call { id: other, .. } if id.is_some() && other == id))
    };
    for key in ["tool_calls", "invalid_tool_calls"] {
        let calls = fields.get(key).and_then(Value::as_array);
        for one in calls.into_iter().flatten() {
            let part = call(one);
            let is_new = !matches!(&part, Part::Call { id, .. } if is_told(id, &said.parts));
            if is_new {
                said.parts.push(part);
            }
        }
    }
    if let Some(old) = fields.get("function_call").filter(|old| old.is_object()) {
        said.parts.push(call(old));
    }
    Some(said)
}

/// Images that stand beside the words, as Ollama has them: base64 without a type.
fn images_beside(body: &Value) -> Vec<Part> {
    let images = body.get("images").and_then(Value::as_array);
    let images = images.into_iter().flatten().filter_map(Value::as_str);
    let image = |data: &str| {
        let kind = match data {
            data if data.starts_with("/9j/") => "image/jpeg",
            data if data.starts_with("R0lGOD") => "image/gif",
            data if data.starts_with("UklGR") => "image/webp",
            _ => "image/png",
        };
        Part::Image(kind.to_owned(), data.to_owned())
    };
    images.map(image).collect()
}

fn own(value: &Value, key: &str) -> Option<String> {
    id(value, key).map(str::to_owned)
}

fn role(message: &Value, fields: &Map<String, Value>) -> Role {
    let role = fields.get("role").and_then(Value::as_str);
    let class = match message["id"].as_array() {
        Some(path) => path.last().and_then(Value::as_str),
        None => None,
    };
    let kind = class.or_else(|| text(message, "type")).unwrap_or_default();
    let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
    match role.unwrap_or(kind) {
        "assistant" | "model" | "ai" | "bot" | "AIMessage" => Role::Model,
        "system" | "developer" | "SystemMessage" => Role::System,
        _ => Role::User,
    }
}

/// Whether the whole message is the result of a call.
fn is_result(message: &Value, fields: &Map<String, Value>) -> bool {
    let role = fields.get("role").and_then(Value::as_str);
    let class = message["id"].as_array().and_then(|path| path.last());
    let class = class.and_then(Value::as_str);
    matches!(role, Some("tool" | "function"))
        || class.is_some_and(|class| class.starts_with("ToolMessage"))
        || (role.is_none() && matches!(text(message, "type"), Some("tool" | "ToolMessage")))
}

/// An item of OpenAI's Responses that is no message.
fn item(item: &Value) -> Option<Said> {
    let kind = text(item, "type").filter(|kind| is_item_kind(kind))?;
    if item.get("role").is_some() {
        return None;
    }
    let call_id = own(item, "call_id");
    let name = || text(item, "name").unwrap_or_default().to_owned();
    let part = match kind {
        "function_call" => Part::Call {
            id: call_id,
            name: name(),
            arguments: item.get("arguments").cloned().unwrap_or_default(),
        },
        "custom_tool_call" => Part::Call {
            id: call_id,
            name: name(),
            arguments: serde_json::json!({"input": item.get("input")}),
        },
        "function_call_output" | "custom_tool_call_output" => {
            let mut content = Vec::new();
            blocks(item.get("output"), &mut content);
            Part::Result {
                id: call_id,
                name: None,
                content,
                is_error: false,
            }
        }
        // What can only be read where it was written, and what stands for something that is kept there.
        "reasoning" | "compaction" | "item_reference" | "mcp_list_tools" => {
            return Some(Said {
                role: Role::Model,
                parts: Vec::new(),
                has_thoughts: kind == "reasoning",
            });
        }
        // Pictures are shown by the user: no other provider takes them from its model.
        "computer_call_output" => match image(&item["output"]) {
            Some(shown) => shown,
            None => Part::Other(item.clone()),
        },
        "image_generation_call" => match own(item, "result") {
            Some(data) => Part::Image("image/png".to_owned(), data),
            None => Part::Other(item.clone()),
        },
        _ => Part::Other(item.clone()),
    };
    let is_models = match &part {
        Part::Call { .. } => true,
        Part::Other(_) => !kind.ends_with("_output") && kind != "mcp_approval_response",
        _ => false,
    };
    Some(Said {
        role: if is_models { Role::Model } else { Role::User },
        parts: vec![part],
        has_thoughts: false,
    })
}

/// A call of OpenAI's chat or of LangChain.
fn call(call: &Value) -> Part {
    let function = call.get("function").unwrap_or(call);
    let arguments = ["arguments", "args", "input"]
        .iter()
        .find_map(|key| function.get(*key));
    Part::Call {
        id: own(call, "id"),
        name: text(function, "name").unwrap_or_default().to_owned(),
        arguments: arguments.cloned().unwrap_or_default(),
    }
}

/// The parts of a content in whatever shape. Whether there was thinking among them.
fn blocks(content: Option<&Value>, parts: &mut Vec<Part>) -> bool {
    match content {
        None | Some(Value::Null) => false,
        Some(Value::String(said)) if said.is_empty() => false,
        Some(Value::Array(blocks)) => {
            let mut has_thoughts = false;
            for block in blocks {
                match is_thought(block) {
                    true => has_thoughts = true,
                    false => parts.extend(one_block(block)),
                }
            }
            has_thoughts
        }
        Some(other) => {
            parts.push(Part::Text(as_text(other)));
            false
        }
    }
}

/// Thinking can only be read by the provider whose model thought it.
pub(super) fn is_thought(block: &Value) -> bool {
    let kinds = [
        "thinking",
        "redacted_thinking",
        "reasoning",
        "reasoning_text",
        "summary_text",
    ];
    text(block, "type").is_some_and(|kind| kinds.contains(&kind))
        || block.get("reasoningContent").is_some()
        || block.get("thought") == Some(&Value::Bool(true))
}

/// One block. None where it says nothing.
pub(super) fn one_block(block: &Value) -> Option<Part> {
    let said = match block {
        Value::Null => return None,
        Value::String(said) => return Some(Part::Text(said.clone())),
        Value::Object(_) => block,
        other => return Some(Part::Text(as_text(other))),
    };
    let part = match text(said, "type") {
        Some("text" | "input_text" | "output_text") => words(said.get("text")),
        Some("refusal") => words(said.get("refusal")),
        Some("tool_use" | "tool_call") => Some(call(said)),
        Some("tool_result") => {
            let mut content = Vec::new();
            blocks(said.get("content"), &mut content);
            Some(Part::Result {
                id: own(said, "tool_use_id"),
                name: None,
                content,
                is_error: said["is_error"] == true,
            })
        }
        Some("image" | "image_url" | "input_image") => image(said),
        Some("document" | "file" | "input_file") => file(said),
        Some(_) => None,
        None => return untyped(said),
    };
    Some(part.unwrap_or_else(|| Part::Other(said.clone())))
}

fn words(said: Option<&Value>) -> Option<Part> {
    said.and_then(Value::as_str)
        .map(|said| Part::Text(said.to_owned()))
}

fn image(block: &Value) -> Option<Part> {
    let source = block.get("source").unwrap_or(&Value::Null);
    if let Some(data) = text(source, "data").or_else(|| text(block, "base64")) {
        let kind = text(source, "media_type").or_else(|| text(block, "mime_type"));
        let kind = kind.unwrap_or("image/png");
        return Some(Part::Image(kind.to_owned(), data.to_owned()));
    }
    let url = text(&block["image_url"], "url")
        .or_else(|| text(block, "image_url"))
        .or_else(|| text(source, "url"))
        .or_else(|| text(block, "url"))?;
    let data = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    Some(match data {
        Some((kind, data)) => Part::Image(kind.to_owned(), data.to_owned()),
        None => Part::ImageUrl(url.to_owned()),
    })
}

/// A document of Anthropic's, or a file of OpenAI's, whose bytes are there.
fn file(block: &Value) -> Option<Part> {
    let source = block.get("source").unwrap_or(&Value::Null);
    if text(source, "type") == Some("text") {
        return words(source.get("data"));
    }
    if let Some(data) = text(source, "data") {
        let is_pdf = text(source, "media_type").is_none_or(|kind| kind == PDF);
        return is_pdf.then(|| Part::Pdf(data.to_owned(), own(block, "title")));
    }
    let file = block.get("file").unwrap_or(block);
    let url = text(file, "file_data")?.strip_prefix("data:")?;
    let (kind, data) = url.split_once(";base64,")?;
    (kind == PDF).then(|| Part::Pdf(data.to_owned(), own(file, "filename")))
}

/// A part of Google's or a block of Bedrock's: what it is, its key says.
fn untyped(block: &Value) -> Option<Part> {
    let of = |keys: &[&str]| keys.iter().find_map(|key| block.get(*key));
    if let Some(call) = of(&["functionCall", "function_call"]) {
        return Some(Part::Call {
            id: own(call, "id"),
            name: text(call, "name").unwrap_or_default().to_owned(),
            arguments: call.get("args").cloned().unwrap_or_default(),
        });
    }
    if let Some(result) = of(&["functionResponse", "function_response"]) {
        let response = result.get("response").unwrap_or(&Value::Null);
        let only = ["output", "result", "error"]
            .iter()
            .find_map(|key| Some((*key, response.get(*key)?)))
            .filter(|_| response.as_object().is_some_and(|all| all.len() == 1));
        let mut content = Vec::new();
        blocks(
            Some(only.map_or(response, |(_, value)| value)).filter(|value| !value.is_null()),
            &mut content,
        );
        // What a tool shows stands beside what it says.
        blocks(result.get("parts"), &mut content);
        return Some(Part::Result {
            id: own(result, "id"),
            name: own(result, "name"),
            content,
            is_error: only.is_some_and(|(key, _)| key == "error"),
        });
    }
    if let Some(data) = of(&["inlineData", "inline_data"]) {
        let kind = text(data, "mimeType").or_else(|| text(data, "mime_type"));
        return Some(match kind.zip(text(data, "data")) {
            Some((kind, data)) if kind.starts_with("image/") => {
                Part::Image(kind.to_owned(), data.to_owned())
            }
            Some((PDF, data)) => Part::Pdf(data.to_owned(), None),
            _ => Part::Other(block.clone()),
        });
    }
    if let Some(call) = block.get("toolUse") {
        return Some(Part::Call {
            id: own(call, "toolUseId"),
            name: text(call, "name").unwrap_or_default().to_owned(),
            arguments: call.get("input").cloned().unwrap_or_default(),
        });
    }
    if let Some(result) = block.get("toolResult") {
        let mut content = Vec::new();
        blocks(result.get("content"), &mut content);
        return Some(Part::Result {
            id: own(result, "toolUseId"),
            name: None,
            content,
            is_error: result["status"] == "error",
        });
    }
    if let Some(json) = block.get("json") {
        return Some(Part::Text(as_text(json)));
    }
    let bytes = text(&block["image"]["source"], "bytes");
    if let Some((format, bytes)) = text(&block["image"], "format").zip(bytes) {
        return Some(Part::Image(format!("image/{format}"), bytes.to_owned()));
    }
    let document = block.get("document").unwrap_or(&Value::Null);
    if let Some(bytes) = text(&document["source"], "bytes")
        && text(document, "format") == Some("pdf")
    {
        let name = own(document, "name");
        return Some(Part::Pdf(bytes.to_owned(), name));
    }
    match block.get("text") {
        Some(Value::String(said)) => Some(Part::Text(said.clone())),
        _ if block.as_object().is_some_and(Map::is_empty) || block.get("cachePoint").is_some() => {
            None
        }
        _ => Some(Part::Other(block.clone())),
    }
}
