//! Mistral's chat completions, as strict as the real ones.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::MistralFormat;
use crate::providers::strict_rules::{Refusal, StrictRules, is_json, items, str_of};

impl StrictRules for MistralFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        mistral(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "mistral"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &["chat/completions"]
    }

    fn not_json(&self) -> Value {
        json!({"object": "error", "message": "Invalid JSON", "type": "invalid_request_error", "param": null, "code": null})
    }
}

/// Checks a request as Mistral's `POST /v1/chat/completions` does.
///
/// # Errors
///
/// 400 and Mistral's error.
pub fn mistral(request: &Value) -> Result<(), Refusal> {
    check(request).map_err(|message| {
        let body = json!({"object": "error", "message": message, "type": "invalid_request_message_order", "param": null, "code": "3230"});
        (400, body)
    })
}

fn check(request: &Value) -> Result<(), String> {
    if str_of(request, "model").is_empty() {
        return Err("Model name parameter is required for serving mode".to_owned());
    }
    let messages = items(request, "messages");
    let Some(last) = messages.last() else {
        return Err("Conversation must have at least one message".to_owned());
    };
    if messages.len() == 1 && !["user", "system"].contains(&str_of(last, "role")) {
        return Err("Conversation must start with a user message or system message".to_owned());
    }
    if messages.len() > 1 && str_of(last, "role") == "assistant" && last["prefix"] != true {
        return Err("Expected last role User or Tool (or Assistant with prefix) for serving but got assistant".to_owned());
    }
    order(messages)?;
    pairs(messages)?;
    for (index, message) in messages.iter().enumerate() {
        shape(message, index + 1 == messages.len())?;
    }
    let is_list = |message: &Value| {
        matches!(
            message.get("tool_calls"),
            None | Some(Value::Null | Value::Array(_))
        )
    };
    if !messages.iter().all(is_list) {
        return Err("Invalid type for 'tool_calls': expected an array of objects.".to_owned());
    }
    items(request, "tools")
        .iter()
        .try_for_each(|tool| name(str_of(&tool["function"], "name")))
}

fn order(messages: &[Value]) -> Result<(), String> {
    for pair in messages.windows(2) {
        let (before, now) = (str_of(&pair[0], "role"), str_of(&pair[1], "role"));
        let follows = match before {
            "system" => ["user", "assistant", "system"],
            "user" => ["assistant", "system", "user"],
            "assistant" => ["assistant", "user", "tool"],
            "tool" => ["assistant", "tool", "user"],
            _ => return Err(format!("Unexpected role '{before}'")),
        };
        if !follows.contains(&now) {
            return Err(format!("Unexpected role '{now}' after role '{before}'"));
        }
    }
    Ok(())
}

fn pairs(messages: &[Value]) -> Result<(), String> {
    const NOT_AS_MANY: &str = "Not the same number of function calls and responses";
    let mut expected: HashSet<&str> = HashSet::new();
    let mut observed: HashSet<&str> = HashSet::new();
    // The real one does not look at the first message, so calls there are never asked for.
    for message in messages.iter().skip(1) {
        match str_of(message, "role") {
            "tool" => {
                let id = str_of(message, "tool_call_id");
                if observed.contains(id) {
                    return Err(format!("Duplicate tool call id {id} in tool results"));
                }
                if !expected.contains(id) {
                    return Err(format!("Unexpected tool call id {id} in tool results"));
                }
                observed.insert(id);
            }
            "assistant" => {
                if expected.len() != observed.len() {
                    return Err(NOT_AS_MANY.to_owned());
                }
                expected.clear();
                observed.clear();
                for call in items(message, "tool_calls") {
                    let id = str_of(call, "id");
                    if !expected.insert(id) {
                        return Err(format!("Duplicate tool call id {id} in assistant message"));
                    }
                }
            }
            _ => {}
        }
    }
    if expected.len() != observed.len() {
        return Err(NOT_AS_MANY.to_owned());
    }
    Ok(())
}

fn shape(message: &Value, is_last: bool) -> Result<(), String> {
    let role = str_of(message, "role");
    if message["prefix"] == true && !is_last {
        return Err("Assistant message with prefix True must be last message".to_owned());
    }
    let of_others = [
        "refusal",
        "annotations",
        "audio",
        "function_call",
        "reasoning_content",
    ];
    if of_others.iter().any(|key| message.get(*key).is_some()) {
        return Err("Extra inputs are not permitted".to_owned());
    }
    match message.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => parts.iter().try_for_each(chunk)?,
        None | Some(Value::Null) if role == "assistant" => {}
        _ => return Err("Invalid value for 'content': expected a string, got null.".to_owned()),
    }
    match role {
        "tool" => {
            id(str_of(message, "tool_call_id"))?;
            if let Some(Value::String(given)) = message.get("name") {
                name(given)?;
            }
            let is_text = |part: &Value| str_of(part, "type") == "text";
            if !items(message, "content").iter().all(is_text) {
                return Err("Unexpected content chunk types in tool message".to_owned());
            }
        }
        "assistant" => {
            for call in items(message, "tool_calls") {
                if call.get("type").is_some_and(|kind| kind != "function") {
                    return Err(
                        "Invalid value for 'type' of a tool call: expected 'function'.".to_owned(),
                    );
                }
                id(str_of(call, "id"))?;
                name(str_of(&call["function"], "name"))?;
                let readable = match call["function"].get("arguments") {
                    Some(Value::String(text)) => is_json(text),
                    Some(Value::Object(_)) => true,
                    _ => false,
                };
                if !readable {
                    return Err("invalid tool call arguments".to_owned());
                }
            }
        }
        _ => {}
    }
    Ok(())
}

const CHUNKS: [&str; 9] = [
    "audio_url",
    "document_url",
    "file",
    "image",
    "image_url",
    "input_audio",
    "reference",
    "text",
    "thinking",
];

fn chunk(part: &Value) -> Result<(), String> {
    let kind = part.get("type").and_then(Value::as_str);
    match kind {
        None => Err("Missing required parameter: 'type' of a content chunk".to_owned()),
        Some("text") if !part["text"].is_string() => {
            Err("Invalid type for 'text' of a content chunk: expected a string.".to_owned())
        }
        Some(kind) if CHUNKS.contains(&kind) => Ok(()),
        Some(kind) => Err(format!(
            "Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )),
    }
}

fn id(id: &str) -> Result<(), String> {
    if id.len() == 9 && id.chars().all(|letter| letter.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(format!(
        "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
    ))
}

fn name(name: &str) -> Result<(), String> {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(legal) {
        return Ok(());
    }
    Err(format!(
        "Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
    ))
}
