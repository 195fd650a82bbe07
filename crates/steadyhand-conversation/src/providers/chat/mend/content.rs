//! The content of messages: a text, or a list of parts where the provider takes one.

use serde_json::{Map, Value, json};

use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::chat::Chat;
use crate::providers::foreign;
use crate::providers::wire::content_text;
use crate::providers::wire::{At, Wire, is_only_anthropics, text};
use crate::texts::{self, as_text};

/// Mistral refuses chunks of other kinds.
const MISTRALS_CHUNKS: &[&str] = &[
    "text",
    "image",
    "image_url",
    "input_audio",
    "audio_url",
    "document_url",
    "file",
    "reference",
    "thinking",
];

/// The model's words may be missing beside calls.
pub(super) fn of_assistant(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let acts = ["tool_calls", "function_call", "audio", "refusal"]
        .iter()
        .any(|key| fields.get(*key).is_some_and(|value| !value.is_null()));
    match fields.get("content") {
        None | Some(Value::Null) if acts || chat != Chat::OpenAi => {}
        None | Some(Value::Null) => {
            empty(fields, at, log, "");
        }
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) if parts.is_empty() && chat == Chat::OpenAi => {
            empty_list(fields, at, log, "");
        }
        Some(_) => of_user(chat, fields, at, log),
    }
}

/// What a person or the application said.
pub(super) fn of_user(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    match fields.get_mut("content") {
        Some(Value::String(_)) => {}
        // Ollama reads it as an empty text.
        None | Some(Value::Null) if is_lenient(chat) => {}
        None | Some(Value::Null) => empty(fields, at, log, texts::EMPTY),
        Some(Value::Array(parts)) if parts.is_empty() && chat == Chat::OpenAi => {
            empty_list(fields, at, log, texts::EMPTY);
        }
        Some(Value::Array(parts)) if chat == Chat::Ollama && has_images(parts) => {
            let shown = shown_by_user(chat, std::mem::take(parts));
            wrong_type(chat, at, log, &json!([]));
            let mut images = fields.get("images").and_then(Value::as_array).cloned();
            if let Some(more) = shown["images"].as_array() {
                images.get_or_insert_default().extend(more.iter().cloned());
            }
            fields.insert("content".to_owned(), shown["content"].clone());
            fields.insert("images".to_owned(), json!(images));
        }
        Some(Value::Array(parts)) if chat != Chat::Ollama => {
            for (index, part) in parts.iter_mut().enumerate() {
                mend_part(chat, part, at, index, log);
            }
        }
        Some(other) => {
            let said = flat(other);
            wrong_type(chat, at, log, other);
            *other = json!(said);
        }
    }
}

/// What a tool answered: text. Anything else goes behind the results, as the user's.
pub(super) fn of_tool(
    chat: Chat,
    fields: &mut Map<String, Value>,
    at: At<'_>,
    log: &mut Log,
    behind: &mut Vec<Value>,
) {
    match fields.get_mut("content") {
        Some(Value::String(_)) => {}
        None | Some(Value::Null) if is_lenient(chat) => {}
        None | Some(Value::Null) => {
            log.found(
                at.field("content"),
                Code::EmptyResult,
                "the result has no content",
            )
            .says(format!(
                "Missing required parameter: 'messages[{}].content'.",
                at.index
            ))
            .fixed("it says that there was no output");
            fields.insert("content".to_owned(), json!(texts::NO_OUTPUT));
        }
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter_mut().enumerate() {
                foreign_part(chat, part, at, index, log);
            }
            if chat != Chat::Compatible
                && let Some(shown) = take_media(parts, at, log)
            {
                behind.push(shown_by_user(chat, shown));
            }
            for (index, part) in parts.iter_mut().enumerate() {
                mend_part(chat, part, at, index, log);
            }
            if (parts.is_empty() && chat != Chat::Compatible) || chat == Chat::Ollama {
                flatten_result(chat, fields, at, log);
            }
        }
        Some(other) => {
            let said = as_text(other);
            wrong_type(chat, at, log, other);
            *other = json!(said);
        }
    }
}

/// Who takes a message without a content.
fn is_lenient(chat: Chat) -> bool {
    matches!(chat, Chat::Ollama | Chat::Compatible)
}

fn flatten_result(chat: Chat, fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log) {
    let said = content_text(fields.get("content"));
    let said = if said.is_empty() {
        texts::NO_OUTPUT.to_owned()
    } else {
        said
    };
    wrong_type(chat, at, log, &json!([]));
    fields.insert("content".to_owned(), json!(said));
}

fn empty(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log, text: &str) {
    log.found(
        at.field("content"),
        Code::EmptyContent,
        "the message has no content",
    )
    .says("Invalid value for 'content': expected a string, got null.".to_owned())
    .fixed("it has one now");
    fields.insert("content".to_owned(), json!(text));
}

fn empty_list(fields: &mut Map<String, Value>, at: At<'_>, log: &mut Log, text: &str) {
    log.found(
        at.field("content"),
        Code::EmptyContent,
        "the list of parts is empty",
    )
    .says(format!("Invalid 'messages[{}].content': empty array. Expected an array with minimum length 1, but got an empty array instead.", at.index))
    .fixed("it is a text now");
    fields.insert("content".to_owned(), json!(text));
}

fn wrong_type(chat: Chat, at: At<'_>, log: &mut Log, found: &Value) {
    let kind = match found {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null | Value::String(_) => "null",
    };
    let says = match chat {
        Chat::Ollama => format!(
            "json: cannot unmarshal {kind} into Go struct field Alias.content of type string"
        ),
        Chat::OpenAi | Chat::DeepSeek | Chat::Compatible | Chat::Mistral => format!(
            "Invalid type for 'messages[{}].content': expected one of a string or array of objects, but got an {kind} instead.",
            at.index
        ),
    };
    log.found(
        at.field("content"),
        Code::BadContent,
        "the content is not what the provider reads",
    )
    .says(says)
    .fixed("it is written as a text");
}

/// A part must say what it is, and a text be one.
fn mend_part(chat: Chat, part: &mut Value, at: At<'_>, index: usize, log: &mut Log) {
    if foreign_part(chat, part, at, index, log) {
        return;
    }
    match text(part, "type") {
        Some("text") if !part.get("text").is_some_and(Value::is_string) => {
            return mend_text(part, at, index, log);
        }
        Some(kind) if chat != Chat::Mistral || MISTRALS_CHUNKS.contains(&kind) => return,
        _ => {}
    }
    let said = match &*part {
        Value::Null => String::new(),
        Value::Object(fields) => {
            let said = ["text", "content"].iter().find_map(|key| fields.get(*key));
            said.map_or_else(|| Value::Object(fields.clone()).to_string(), flat)
        }
        other => as_text(other),
    };
    let says = match (chat, text(part, "type")) {
        (Chat::Mistral, Some(kind)) => {
            format!("Input tag '{kind}' found using 'type' does not match any of the expected tags")
        }
        (Chat::Mistral, None) => "Missing required parameter: 'type' of a content chunk".to_owned(),
        _ => format!(
            "Missing required parameter: 'messages[{}].content[{index}].type'.",
            at.index
        ),
    };
    log.found(
        format!("{}/content/{index}", at.pointer()),
        Code::BadContent,
        "this part has no type, or one the provider does not know",
    )
    .says(says)
    .fixed("it is a text now");
    *part = json!({"type": "text", "text": said});
}

/// Writes a part of Anthropic's or of OpenAI's Responses as chat completions have it. Whether it was one.
fn foreign_part(chat: Chat, part: &mut Value, at: At<'_>, index: usize, log: &mut Log) -> bool {
    let kind = text(part, "type").unwrap_or_default().to_owned();
    let is_foreign = match kind.as_str() {
        "input_text" | "output_text" | "input_image" => true,
        "input_file" => matches!(chat, Chat::OpenAi | Chat::DeepSeek),
        "image" => chat != Chat::Mistral && part.get("source").is_some(),
        "redacted_thinking" => true,
        "thinking" => chat != Chat::Mistral,
        "document" => chat != Chat::Ollama,
        kind => is_only_anthropics(kind) && matches!(chat, Chat::OpenAi | Chat::DeepSeek),
    };
    if !is_foreign || chat == Chat::Compatible {
        return false;
    }
    let native = match kind.as_str() {
        "input_file" => file(part),
        kind if is_only_anthropics(kind) => {
            let native = foreign::block(chat.provider(), part, false);
            Some(native.unwrap_or_else(|| json!({"type": "text", "text": part.to_string()})))
        }
        _ => foreign::block(chat.provider(), part, false),
    };
    let Some(native) = native else {
        return false;
    };
    log.found(
        format!("{}/content/{index}", at.pointer()),
        Code::BadContent,
        format!("there are no parts of type {kind:?} here"),
    )
    .says(format!(
        "Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'."
    ))
    .fixed(match native.is_null() {
        true => "only the model that thought it can read it: it is an empty text now",
        false => "it is written as one of a type that is",
    });
    *part = match native {
        Value::Null => json!({"type": "text", "text": ""}),
        native => native,
    };
    true
}

/// A file of OpenAI's Responses: what is known of it stands under a key of its own.
fn file(part: &Value) -> Option<Value> {
    let mut known = part.as_object()?.clone();
    known.shift_remove("type");
    Some(json!({"type": "file", "file": known}))
}

fn mend_text(part: &mut Value, at: At<'_>, index: usize, log: &mut Log) {
    let place = format!("messages[{}].content[{index}].text", at.index);
    let (said, says) = match part.get("text") {
        None => (
            String::new(),
            format!("Missing required parameter: '{place}'."),
        ),
        Some(Value::Null) => (
            String::new(),
            format!("Invalid type for '{place}': expected a string, but got null instead."),
        ),
        Some(other) => (
            as_text(other),
            format!("Invalid type for '{place}': expected a string."),
        ),
    };
    log.found(
        format!("{}/content/{index}", at.pointer()),
        Code::BadContent,
        "this text is no string",
    )
    .says(says)
    .fixed("it is written as one");
    part["text"] = json!(said);
}

/// Whether there is an image that Ollama takes beside the words.
fn has_images(parts: &[Value]) -> bool {
    parts.iter().any(|part| {
        let native = foreign::block(Provider::Ollama, part, false);
        let url = native
            .as_ref()
            .and_then(|part| text(&part["image_url"], "url"));
        url.is_some_and(|url| url.contains(";base64,"))
    })
}

/// Takes out what is no text.
fn take_media(parts: &mut Vec<Value>, at: At<'_>, log: &mut Log) -> Option<Vec<Value>> {
    let is_media =
        |part: &Value| text(part, "type").is_some_and(|kind| kind != "text" && kind != "refusal");
    if !parts.iter().any(is_media) {
        return None;
    }
    let mut media = Vec::new();
    let mut kept = Vec::new();
    for (index, part) in parts.drain(..).enumerate() {
        if !is_media(&part) {
            kept.push(part);
            continue;
        }
        log.found(
            format!("{}/content/{index}", at.pointer()),
            Code::UnsupportedContent,
            "a result can have text only",
        )
        .says(format!(
            "Invalid 'messages[{}]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.",
            at.index
        ))
        .fixed("this part stands in a message of the user behind the results");
        media.push(part);
    }
    *parts = kept;
    Some(media)
}

fn shown_by_user(chat: Chat, mut media: Vec<Value>) -> Value {
    let mark = "[Shown by the tool above]";
    if chat != Chat::Ollama {
        media.insert(0, json!({"type": "text", "text": mark}));
        return json!({"role": "user", "content": media});
    }
    let mut images = Vec::new();
    let is_result = media.iter().all(|part| text(part, "type") != Some("text"));
    let mut said: Vec<String> = Vec::new();
    if is_result {
        said.push(mark.to_owned());
    }
    for part in &media {
        // Whoever's image it is.
        let native = foreign::block(Provider::Ollama, part, false);
        let part = native.as_ref().unwrap_or(part);
        let url = part["image_url"]["url"]
            .as_str()
            .or_else(|| part["image_url"].as_str());
        match url.and_then(|url| url.split_once(";base64,")) {
            Some((_, data)) => images.push(json!(data)),
            None if text(part, "type") == Some("text") => {
                said.extend(text(part, "text").map(str::to_owned));
            }
            None => said.push(part.to_string()),
        }
    }
    let mut shown = json!({"role": "user", "content": said.join("\n")});
    if !images.is_empty() {
        shown["images"] = Value::Array(images);
    }
    shown
}

/// The words of a content in whatever shape; what has no words, as JSON.
fn flat(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let words = |part: &Value| match text(part, "text") {
                Some(text) => text.to_owned(),
                None => as_text(part),
            };
            let words: Vec<String> = parts.iter().map(words).collect();
            words.join("\n")
        }
        Value::Object(fields) => match fields.get("text") {
            Some(text) => as_text(text),
            None => content.to_string(),
        },
        other => as_text(other),
    }
}
