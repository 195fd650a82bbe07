//! Amazon Bedrock's Converse, as strict as the real one.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::ConverseFormat;
use crate::providers::strict_rules::{Refusal, StrictRules, items, str_of};

impl StrictRules for ConverseFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        bedrock_converse(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "bedrock"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &["/converse"]
    }

    fn not_json(&self) -> Value {
        json!({"message": "The request body is not valid JSON"})
    }

    fn ok(&self, _model: &Value) -> Value {
        let message = json!({"role": "assistant", "content": [{"text": "ok"}]});
        let usage = json!({"inputTokens": 1, "outputTokens": 1, "totalTokens": 2});
        json!({"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}})
    }

    /// Its stream is binary; here it answers whole.
    fn is_streamed(&self, _request: &Value, _path: &str) -> bool {
        false
    }

    fn stream(&self, reply: &Value, _is_sse: bool) -> (&'static str, String) {
        ("application/json", reply.to_string())
    }
}

/// Checks a request as `POST /model/{modelId}/converse` does.
///
/// # Errors
///
/// 400 and a `ValidationException`.
pub fn bedrock_converse(request: &Value) -> Result<(), Refusal> {
    check(request).map_err(|message| (400, json!({ "message": message })))
}

fn check(request: &Value) -> Result<(), String> {
    let messages = items(request, "messages");
    if messages.is_empty() {
        return Err("The messages field in the request is empty. Add a message to the messages field and try again.".to_owned());
    }
    for (index, message) in messages.iter().enumerate() {
        shape(index, message)?;
    }
    if str_of(&messages[0], "role") != "user" {
        return Err("A conversation must start with a user message. Try again with a conversation that starts with a user message.".to_owned());
    }
    let alternates = messages
        .windows(2)
        .all(|pair| pair[0]["role"] != pair[1]["role"]);
    if !alternates {
        return Err("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.".to_owned());
    }
    for index in 0..messages.len() {
        pairs(messages, index)?;
    }
    let is_used = |message: &Value| {
        let blocks = items(message, "content");
        blocks
            .iter()
            .any(|block| block.get("toolUse").or(block.get("toolResult")).is_some())
    };
    let has_tools = !items(&request["toolConfig"], "tools").is_empty();
    if !has_tools && messages.iter().any(is_used) {
        return Err("The toolConfig field must be defined when using toolUse and toolResult content blocks.".to_owned());
    }
    Ok(())
}

fn shape(index: usize, message: &Value) -> Result<(), String> {
    let role = str_of(message, "role");
    if !["user", "assistant"].contains(&role) {
        return Err(format!(
            "1 validation error detected: Value '{role}' at 'messages.{}.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
            index + 1
        ));
    }
    let blocks = items(message, "content");
    let is_nothing = message["content"].is_null()
        || message["content"]
            .as_str()
            .is_some_and(|said| said.trim().is_empty());
    if !message["content"].is_array() && !is_nothing {
        return Err(format!(
            "The format of the value at messages.{index}.content is invalid. Provide a json array for the field and try again."
        ));
    }
    if blocks.is_empty() {
        return Err(format!(
            "The content field in the Message object at messages.{index} is empty. Add a ContentBlock object to the content field and try again."
        ));
    }
    for (part, block) in blocks.iter().enumerate() {
        let place = format!("messages.{index}.content.{part}");
        let counted = format!("messages.{}.member.content.{}.member", index + 1, part + 1);
        one_block(&place, &counted, role, block)?;
    }
    Ok(())
}

fn one_block(place: &str, counted: &str, role: &str, block: &Value) -> Result<(), String> {
    let no_object = |place: &str| {
        format!(
            "The format of the value at {place} is invalid. Provide a json object for the field and try again."
        )
    };
    // A kind that is not known here may be new; nothing of Bedrock's has a type.
    let is_block = block.as_object().is_some_and(|fields| !fields.is_empty());
    if !is_block || block.get("type").is_some() {
        return Err(no_object(place));
    }
    if let Some(text) = block.get("text") {
        return match text.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(()),
            Some(_) => Err(format!(
                "The text field in the ContentBlock object at {place} is blank. Add text to the text field, and try again."
            )),
            None => Err(format!(
                "The format of the value at {place}.text is invalid. Provide a json string for the field and try again."
            )),
        };
    }
    if let Some(call) = block.get("toolUse") {
        if role != "assistant" {
            return Err(format!(
                "The toolUse block at {place} is not allowed in a message with the role user."
            ));
        }
        id(counted, "toolUse", call)?;
        let name = str_of(call, "name");
        if !of_letters(name, b"_-") || name.len() > 64 {
            return Err(format!(
                "1 validation error detected: Value '{name}' at '{counted}.toolUse.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+"
            ));
        }
        if !call.get("input").is_some_and(Value::is_object) {
            return Err(no_object(&format!("{place}.toolUse.input")));
        }
    }
    if let Some(result) = block.get("toolResult") {
        // What Bedrock's own tools gave stands behind its call.
        let is_servers = role == "assistant" && !str_of(result, "type").is_empty();
        if role != "user" && !is_servers {
            return Err(format!(
                "The toolResult block at {place} is not allowed in a message with the role assistant."
            ));
        }
        id(counted, "toolResult", result)?;
        let Some(Value::Array(parts)) = result.get("content") else {
            return Err(format!(
                "The format of the value at {place}.toolResult.content is invalid. Provide a json array for the field and try again."
            ));
        };
        for (number, part) in parts.iter().enumerate() {
            let is_odd = part.get("json").is_some_and(|json| !json.is_object())
                || part.get("text").is_some_and(|text| !text.is_string())
                || part.as_object().is_none_or(|fields| fields.len() != 1);
            if is_odd {
                return Err(no_object(&format!("{place}.toolResult.content.{number}")));
            }
        }
        if parts.is_empty() && result["status"] == "error" {
            return Err(format!(
                "The content field at {place}.toolResult cannot be empty when status value is error."
            ));
        }
    }
    Ok(())
}

fn id(counted: &str, what: &str, holder: &Value) -> Result<(), String> {
    let id = str_of(holder, "toolUseId");
    if of_letters(id, b"_-.:") && id.len() <= 64 {
        return Ok(());
    }
    let constraint = match id.chars().count() {
        0 => "Member must have length greater than or equal to 1",
        65.. => "Member must have length less than or equal to 64",
        _ => "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
    };
    Err(format!(
        "1 validation error detected: Value '{id}' at '{counted}.{what}.toolUseId' failed to satisfy constraint: {constraint}"
    ))
}

fn of_letters(text: &str, extra: &[u8]) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || extra.contains(&byte);
    !text.is_empty() && text.bytes().all(legal)
}

fn ids<'a>(message: Option<&'a Value>, what: &str) -> Vec<&'a str> {
    let blocks = message.map_or(&[][..], |message| items(message, "content"));
    let ids = blocks.iter().filter_map(|block| block.get(what));
    let ids = ids.filter(|one| str_of(one, "type").is_empty());
    ids.map(|one| str_of(one, "toolUseId")).collect()
}

fn pairs(messages: &[Value], index: usize) -> Result<(), String> {
    let message = &messages[index];
    if message["role"] == "assistant" {
        let calls = ids(Some(message), "toolUse");
        unique(&calls, "toolUse", index)?;
        let answered = ids(messages.get(index + 1), "toolResult");
        let open: Vec<&str> = calls
            .into_iter()
            .filter(|id| !answered.contains(id))
            .collect();
        if !open.is_empty() {
            return Err(format!(
                "Expected toolResult blocks at messages.{}.content for the following Ids: {}",
                index + 1,
                open.join(", ")
            ));
        }
        return Ok(());
    }
    let results = ids(Some(message), "toolResult");
    unique(&results, "toolResult", index)?;
    let calls = ids(
        index.checked_sub(1).map(|before| &messages[before]),
        "toolUse",
    );
    if results.iter().any(|id| !calls.contains(id)) {
        return Err(format!(
            "The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of previous turn."
        ));
    }
    Ok(())
}

fn unique(ids: &[&str], what: &str, index: usize) -> Result<(), String> {
    let mut seen = HashSet::new();
    match ids.iter().find(|id| !seen.insert(**id)) {
        Some(id) => Err(format!(
            "The {what} blocks at messages.{index}.content contain duplicate Ids: {id}"
        )),
        None => Ok(()),
    }
}
