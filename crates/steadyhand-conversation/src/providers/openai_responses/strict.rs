//! OpenAI's Responses, as strict as the real ones.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::ResponsesFormat;
use crate::providers::strict_rules::{
    EVENTS, Refusal, StrictRules, event, is_object, items, str_of,
};

impl StrictRules for ResponsesFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        openai_responses(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "openai"
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &["responses"]
    }

    fn ok(&self, model: &Value) -> Value {
        let content = json!([{"type": "output_text", "text": "ok", "annotations": []}]);
        let item = json!({"type": "message", "id": "msg_strict", "role": "assistant", "status": "completed", "content": content});
        json!({"id": "resp_strict", "object": "response", "created_at": 0, "status": "completed", "model": model,
            "output": [item], "parallel_tool_calls": true, "tool_choice": "auto", "tools": []})
    }

    fn stream(&self, reply: &Value, _is_sse: bool) -> (&'static str, String) {
        let mut text = String::new();
        stream(reply, &mut text);
        (EVENTS, text)
    }
}

/// Checks a request as `POST /v1/responses` does.
///
/// # Errors
///
/// 400 and OpenAI's error.
pub fn openai_responses(request: &Value) -> Result<(), Refusal> {
    check(request).map_err(|message| {
        let error = json!({"message": message, "type": "invalid_request_error", "param": "input", "code": null});
        (400, json!({ "error": error }))
    })
}

fn check(request: &Value) -> Result<(), String> {
    for (index, tool) in items(request, "tools").iter().enumerate() {
        if str_of(tool, "type") == "function" && str_of(tool, "name").is_empty() {
            return Err(format!(
                "Missing required parameter: 'tools[{index}].name'."
            ));
        }
    }
    // What only Chat Completions take; what is not known here may be new.
    for key in ["n", "messages", "functions", "function_call", "stop"] {
        if request.get(key).is_some() {
            return Err(format!("Unknown parameter: '{key}'."));
        }
    }
    let input = match request.get("input") {
        Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(input)) => input,
        _ => return Err("Missing required parameter: 'input'.".to_owned()),
    };
    let mut ids = HashSet::new();
    for (index, item) in input.iter().enumerate() {
        shape(index, item)?;
        let id = str_of(item, "id");
        let is_reference = is_reference(item) || str_of(item, "type") == "item_reference";
        if !id.is_empty() && !is_reference && !ids.insert(id) {
            return Err(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            ));
        }
        if str_of(item, "type") == "reasoning" {
            followed(id, &input[index + 1..])?;
        }
    }
    let is_stored = ["previous_response_id", "conversation"]
        .iter()
        .any(|key| request.get(*key).is_some_and(|value| !value.is_null()));
    pairs(input, is_stored)
}

fn shape(index: usize, item: &Value) -> Result<(), String> {
    if !item.is_object() {
        return Err(format!(
            "Invalid type for 'input[{index}]': expected an object."
        ));
    }
    match item.get("type") {
        // It stands for an item that is kept.
        None if is_reference(item) => return Ok(()),
        None => return message(index, item),
        Some(Value::String(_)) => {}
        Some(_) => {
            return Err(format!(
                "Invalid type for 'input[{index}].type': expected a string."
            ));
        }
    }
    let kind = str_of(item, "type");
    let of_answers = match kind {
        "reasoning" => "status",
        "function_call" => "parsed_arguments",
        _ => "",
    };
    if item.get(of_answers).is_some() {
        return Err(format!("Unknown parameter: 'input[{index}].{of_answers}'."));
    }
    let is_call = ["function_call", "custom_tool_call"].contains(&kind);
    let is_output = ["function_call_output", "custom_tool_call_output"].contains(&kind);
    if kind == "message" {
        return message(index, item);
    }
    if !is_call && !is_output {
        return Ok(());
    }
    let id = str_of(item, "call_id").chars().count();
    if id == 0 {
        return Err(format!(
            "Missing required parameter: 'input[{index}].call_id'."
        ));
    }
    if id > 64 {
        return Err(format!(
            "Invalid 'input[{index}].call_id': string too long. Expected a string with maximum length 64, but got a string with length {id} instead."
        ));
    }
    if is_output {
        return match item.get("output") {
            Some(Value::String(_)) => Ok(()),
            Some(Value::Array(parts)) => parts_of(&format!("input[{index}].output"), parts),
            _ => Err(format!(
                "Invalid type for 'input[{index}].output': expected one of a string or array of objects."
            )),
        };
    }
    let name = str_of(item, "name");
    if name.is_empty() {
        return Err(format!(
            "Invalid 'input[{index}].name': empty string. Expected a string with minimum length 1, but got an empty string instead."
        ));
    }
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.chars().all(legal) {
        return Err(format!(
            "Invalid 'input[{index}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        ));
    }
    if name.chars().count() > 64 {
        return Err(format!(
            "Invalid 'input[{index}].name': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
            name.chars().count()
        ));
    }
    let key = match kind {
        "function_call" => "arguments",
        _ => "input",
    };
    match item.get(key) {
        // OpenAI itself lets broken text pass; those who speak its language do not.
        Some(Value::String(text)) if key == "arguments" && !is_object(text) => {
            Err("invalid tool call arguments".to_owned())
        }
        Some(Value::String(_)) => Ok(()),
        None => Err(format!(
            "Missing required parameter: 'input[{index}].{key}'."
        )),
        Some(_) => Err(format!(
            "Invalid type for 'input[{index}].{key}': expected a string, but got an object instead."
        )),
    }
}

fn is_reference(item: &Value) -> bool {
    let is_there = |key: &str| item.get(key).is_some_and(|value| !value.is_null());
    is_there("id") && !["type", "role", "content"].into_iter().any(is_there)
}

fn message(index: usize, item: &Value) -> Result<(), String> {
    let role = match item.get("role") {
        Some(Value::String(role)) => role,
        _ => {
            return Err(format!(
                "Missing required parameter: 'input[{index}].role'."
            ));
        }
    };
    if !["assistant", "system", "developer", "user"].contains(&role.as_str()) {
        return Err(format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        ));
    }
    let of_chat = [
        "name",
        "refusal",
        "annotations",
        "audio",
        "tool_calls",
        "function_call",
        "images",
        "reasoning_content",
    ];
    if let Some(key) = of_chat.iter().find(|key| item.get(**key).is_some()) {
        return Err(format!("Unknown parameter: 'input[{index}].{key}'."));
    }
    match item.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => parts_of(&format!("input[{index}].content"), parts),
        None => Err(format!(
            "Missing required parameter: 'input[{index}].content'."
        )),
        Some(_) => Err(format!(
            "Invalid type for 'input[{index}].content': expected one of an array of objects or string."
        )),
    }
}

fn parts_of(place: &str, parts: &[Value]) -> Result<(), String> {
    for (number, part) in parts.iter().enumerate() {
        let place = format!("{place}[{number}]");
        if !part.get("type").is_some_and(Value::is_string) {
            return Err(format!("Missing required parameter: '{place}.type'."));
        }
        let kind = str_of(part, "type");
        let of_others = [
            "text",
            "image",
            "image_url",
            "file",
            "document",
            "thinking",
            "search_result",
            "tool_use",
            "tool_result",
        ];
        if of_others.contains(&kind) {
            return Err(format!(
                "Invalid value: '{kind}'. Supported values are: 'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'."
            ));
        }
        let is_text = ["input_text", "output_text"].contains(&str_of(part, "type"));
        if is_text && !part.get("text").is_some_and(Value::is_string) {
            return Err(format!(
                "Invalid type for '{place}.text': expected a string."
            ));
        }
    }
    Ok(())
}

fn followed(id: &str, rest: &[Value]) -> Result<(), String> {
    let next = rest.iter().find(|item| str_of(item, "type") != "reasoning");
    let by_model = next.is_some_and(|item| {
        let kind = str_of(item, "type");
        str_of(item, "role") == "assistant" || kind.ends_with("_call")
    });
    // They belong together by their ids.
    let is_tied = id.is_empty() || next.is_some_and(|item| !str_of(item, "id").is_empty());
    if by_model && is_tied {
        return Ok(());
    }
    Err(format!(
        "Item '{id}' of type 'reasoning' was provided without its required following item."
    ))
}

fn pairs(input: &[Value], is_stored: bool) -> Result<(), String> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for item in input {
        let kind = str_of(item, "type");
        let id = str_of(item, "call_id");
        if kind.ends_with("_call") && !id.is_empty() {
            *open.entry(id).or_default() += 1;
            if kind == "function_call" || kind == "custom_tool_call" {
                order.push(id);
            }
        }
        if kind == "function_call_output" || kind == "custom_tool_call_output" {
            match open.get_mut(id) {
                Some(count) if *count > 0 => *count -= 1,
                _ if is_stored => {}
                _ => {
                    return Err(format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
            }
        }
    }
    for id in order {
        if open.get(id).is_some_and(|count| *count > 0) {
            return Err(format!("No tool output found for function call {id}."));
        }
    }
    Ok(())
}

fn stream(reply: &Value, text: &mut String) {
    let mut begun = reply.clone();
    begun["output"] = json!([]);
    begun["status"] = json!("in_progress");
    event(
        "response.created",
        json!({"response": begun, "sequence_number": 0}),
        text,
    );
    let items = reply["output"].as_array().map_or(&[][..], Vec::as_slice);
    let mut number = 0;
    for (index, item) in items.iter().enumerate() {
        for name in ["response.output_item.added", "response.output_item.done"] {
            number += 1;
            let told = json!({"output_index": index, "item": item, "sequence_number": number});
            event(name, told, text);
        }
    }
    let done = json!({"response": reply, "sequence_number": number + 1});
    event("response.completed", done, text);
}
