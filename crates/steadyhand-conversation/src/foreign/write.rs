//! Writes what was read as a provider takes it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::read;
use super::{PDF, Part, Role, Said};
use crate::ids;
use crate::provider::Provider;
use crate::texts;

/// The messages that say this.
pub(super) fn messages(
    provider: Provider,
    said: Said,
    names: &HashMap<String, String>,
) -> Vec<Value> {
    match provider {
        Provider::Gemini => {
            let role = match said.role {
                Role::Model => "model",
                Role::User | Role::System => "user",
            };
            let parts: Vec<Value> = said
                .parts
                .into_iter()
                .flat_map(|part| gemini(part, names))
                .collect();
            vec![json!({"role": role, "parts": parts})]
        }
        Provider::Anthropic => {
            let role = match said.role {
                Role::Model => "assistant",
                Role::User => "user",
                Role::System => "system",
            };
            let blocks: Vec<Value> = said.parts.into_iter().map(anthropic).collect();
            vec![json!({"role": role, "content": blocks})]
        }
        Provider::BedrockConverse => {
            let role = match said.role {
                Role::Model => "assistant",
                Role::User | Role::System => "user",
            };
            let blocks: Vec<Value> = said.parts.into_iter().map(converse).collect();
            vec![json!({"role": role, "content": blocks})]
        }
        Provider::OpenAi | Provider::Mistral | Provider::Ollama => chat(provider, said, names),
        Provider::OpenAiResponses => responses(said),
        Provider::LangChain => langchain(said, names),
    }
}

/// A block of somebody else's as this provider has it, where one block is one block. None where it is nobody's known.
pub(crate) fn block(provider: Provider, foreign: &Value, is_model: bool) -> Option<Value> {
    if read::is_thought(foreign) {
        return Some(Value::Null);
    }
    let part = read::one_block(foreign)?;
    if matches!(
        part,
        Part::Other(_) | Part::Call { .. } | Part::Result { .. }
    ) {
        return None;
    }
    Some(match provider {
        Provider::Gemini => gemini(part, &HashMap::new()).into_iter().next()?,
        Provider::Anthropic => anthropic(part),
        Provider::BedrockConverse => converse(part),
        Provider::OpenAiResponses => response_part(part, is_model),
        Provider::OpenAi | Provider::Mistral | Provider::Ollama => chat_part_at(provider, part),
        Provider::LangChain => return None,
    })
}

/// The name of a file that has none.
const FILE_NAME: &str = "document.pdf";

fn data_url(kind: &str, data: &str) -> String {
    format!("data:{kind};base64,{data}")
}

/// The words of a result, and its images.
fn split(content: Vec<Part>, is_error: bool) -> (String, Vec<Part>) {
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

fn gemini(part: Part, names: &HashMap<String, String>) -> Vec<Value> {
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
            let mut parts = vec![json!({ "functionResponse": result })];
            parts.extend(images.into_iter().flat_map(|image| gemini(image, names)));
            parts
        }
    }
}

fn anthropic(part: Part) -> Value {
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
                let mut blocks: Vec<Value> = images.into_iter().map(anthropic).collect();
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

fn converse(part: Part) -> Value {
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
            let mut blocks: Vec<Value> = images.into_iter().map(converse).collect();
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

fn chat_part(part: Part) -> Value {
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

fn chat_part_at(provider: Provider, part: Part) -> Value {
    match part {
        // Mistral has a chunk of its own for documents.
        Part::Pdf(data, _) if provider == Provider::Mistral => {
            json!({"type": "document_url", "document_url": data_url(PDF, &data)})
        }
        part => chat_part(part),
    }
}

/// Words alone are a text; with images they are parts. Ollama's images stand beside the words.
fn chat_message(provider: Provider, role: &str, parts: Vec<Part>) -> Value {
    let is_words = |part: &Part| match part {
        Part::Image(..) | Part::ImageUrl(_) => false,
        Part::Pdf(..) => !matches!(provider, Provider::OpenAi | Provider::Mistral),
        _ => true,
    };
    if parts.iter().all(is_words) || provider == Provider::Ollama {
        let mut images = Vec::new();
        let mut words = Vec::new();
        for part in parts {
            match part {
                Part::Image(_, data) => images.push(json!(data)),
                Part::ImageUrl(url) => words.push(url),
                Part::Pdf(data, _) => words.push(data_url(PDF, &data)),
                other => {
                    let said = chat_part(other);
                    words.push(said["text"].as_str().unwrap_or_default().to_owned());
                }
            }
        }
        let mut message = json!({"role": role, "content": words.join("\n")});
        if !images.is_empty() {
            message["images"] = Value::Array(images);
        }
        return message;
    }
    let parts = parts.into_iter().map(|part| chat_part_at(provider, part));
    let parts: Vec<Value> = parts.collect();
    json!({"role": role, "content": parts})
}

fn chat(provider: Provider, said: Said, names: &HashMap<String, String>) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    let mut rest = Vec::new();
    for part in said.parts {
        match part {
            Part::Call {
                id,
                name,
                arguments,
            } if said.role == Role::Model => {
                let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
                let takes_objects = provider == Provider::Ollama;
                if !takes_objects && !arguments.is_string() {
                    let object = if arguments.is_null() {
                        json!({})
                    } else {
                        arguments
                    };
                    call["function"]["arguments"] = json!(object.to_string());
                }
                calls.push(call);
            }
            Part::Result {
                id,
                name,
                content,
                is_error,
            } => {
                let (said, mut images) = split(content, is_error);
                let name = name.or_else(|| names.get(id.as_ref()?).cloned());
                let mut result = json!({"role": "tool", "tool_call_id": id, "content": said});
                match (provider, name) {
                    (Provider::Ollama, Some(name)) => result["tool_name"] = json!(name),
                    (Provider::Mistral, Some(name)) => result["name"] = json!(name),
                    _ => {}
                }
                results.push(result);
                rest.append(&mut images);
            }
            other => rest.push(other),
        }
    }
    let role = match said.role {
        Role::Model => "assistant",
        Role::User => "user",
        Role::System => "system",
    };
    if said.role == Role::Model {
        let mut message = match rest.is_empty() && !calls.is_empty() {
            true => json!({"role": role, "content": null}),
            false => chat_message(provider, role, rest),
        };
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        results.insert(0, message);
        return results;
    }
    if !rest.is_empty() || results.is_empty() {
        results.push(chat_message(provider, role, rest));
    }
    results
}

fn langchain(said: Said, names: &HashMap<String, String>) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    let mut rest = Vec::new();
    for part in said.parts {
        match part {
            Part::Call {
                id,
                name,
                arguments,
            } if said.role == Role::Model => {
                calls.push(json!({"name": name, "args": arguments, "id": id, "type": "tool_call"}));
            }
            Part::Result {
                id,
                name,
                content,
                is_error,
            } => {
                let (said, mut images) = split(content, is_error);
                let status = if is_error { "error" } else { "success" };
                let mut result =
                    json!({"type": "tool", "content": said, "tool_call_id": id, "status": status});
                if let Some(name) = name.or_else(|| names.get(id.as_ref()?).cloned()) {
                    result["name"] = json!(name);
                }
                results.push(result);
                rest.append(&mut images);
            }
            other => rest.push(other),
        }
    }
    let kind = match said.role {
        Role::Model => "ai",
        Role::User => "human",
        Role::System => "system",
    };
    let content = chat_message(Provider::LangChain, kind, rest)["content"].take();
    let is_silent = content == "";
    if said.role == Role::Model {
        results.insert(
            0,
            json!({"type": kind, "content": content, "tool_calls": calls}),
        );
    } else if !is_silent || results.is_empty() {
        results.push(json!({"type": kind, "content": content}));
    }
    results
}

fn response_part(part: Part, is_model: bool) -> Value {
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

fn responses(said: Said) -> Vec<Value> {
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
        let parts: Vec<Value> = rest
            .drain(..)
            .map(|part| response_part(part, is_model))
            .collect();
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
                        .map(|image| response_part(image, false))
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
