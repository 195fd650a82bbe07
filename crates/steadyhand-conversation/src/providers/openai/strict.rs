//! OpenAI's Chat Completions, as strict as the real ones.

use serde_json::{Value, json};

use super::OpenAiFormat;
use crate::providers::strict_rules::{Refusal, StrictRules, is_object, items, str_of};

impl StrictRules for OpenAiFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        openai_chat(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "openai"
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &["chat/completions"]
    }
}

/// Checks a request as `POST /v1/chat/completions` does. Arguments that are no JSON are refused too: OpenAI
/// lets them pass, but hardly anybody else who speaks its language does.
///
/// # Errors
///
/// 400 and OpenAI's error.
pub fn openai_chat(request: &Value) -> Result<(), Refusal> {
    check(request).map_err(|fault| (400, fault.body()))
}

struct Fault {
    message: String,
    param: String,
    code: Option<&'static str>,
}

impl Fault {
    fn body(self) -> Value {
        json!({"error": {"message": self.message, "type": "invalid_request_error", "param": self.param, "code": self.code}})
    }
}

fn fault(
    message: impl Into<String>,
    param: impl Into<String>,
    code: Option<&'static str>,
) -> Fault {
    Fault {
        message: message.into(),
        param: param.into(),
        code,
    }
}

fn missing(param: &str) -> Fault {
    let message = format!("Missing required parameter: '{param}'.");
    fault(message, param, Some("missing_required_parameter"))
}

fn check(request: &Value) -> Result<(), Fault> {
    if str_of(request, "model").is_empty() {
        return Err(fault("you must provide a model parameter", "model", None));
    }
    let messages = items(request, "messages");
    if messages.is_empty() {
        return Err(fault(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            "messages",
            Some("empty_array"),
        ));
    }
    tools(request)?;
    for (index, message) in messages.iter().enumerate() {
        shape(index, message)?;
    }
    pairs(messages)
}

fn tools(request: &Value) -> Result<(), Fault> {
    let tools = items(request, "tools");
    if tools.len() > 128 {
        return Err(fault(
            format!(
                "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length {} instead.",
                tools.len()
            ),
            "tools",
            Some("array_above_max_length"),
        ));
    }
    for (index, tool) in tools.iter().enumerate() {
        let param = format!("tools[{index}].function.name");
        let name = str_of(&tool["function"], "name");
        legal_name(&param, name, tool["function"].get("name"))?;
        let parameters = &tool["function"]["parameters"];
        if parameters.is_null() {
            continue;
        }
        let param = format!("tools[{index}].function.parameters");
        let code = Some("invalid_function_parameters");
        if parameters["type"] != "object" {
            let kind = parameters["type"].as_str().unwrap_or("None");
            return Err(fault(
                format!(
                    "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
                ),
                param,
                code,
            ));
        }
        if let Some(place) = array_without_items(parameters, &mut Vec::new()) {
            return Err(fault(
                format!(
                    "Invalid schema for function '{name}': In context=({place}), array schema missing items."
                ),
                param,
                code,
            ));
        }
    }
    Ok(())
}

fn array_without_items(schema: &Value, steps: &mut Vec<String>) -> Option<String> {
    if schema["type"] == "array" && schema.get("items").is_none() {
        return Some(steps.join(", "));
    }
    if let Some(items) = schema.get("items") {
        steps.push("'items'".to_owned());
        let found = array_without_items(items, steps);
        steps.pop();
        if found.is_some() {
            return found;
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        steps.extend(["'properties'".to_owned(), format!("'{name}'")]);
        let found = array_without_items(inner, steps);
        steps.truncate(steps.len() - 2);
        if found.is_some() {
            return found;
        }
    }
    None
}

fn legal_name(param: &str, name: &str, given: Option<&Value>) -> Result<(), Fault> {
    if given.is_none_or(Value::is_null) {
        return Err(missing(param));
    }
    if name.is_empty() {
        return Err(fault(
            format!(
                "Invalid '{param}': empty string. Expected a string with minimum length 1, but got an empty string instead."
            ),
            param,
            Some("empty_string"),
        ));
    }
    if name.len() > 64 {
        return Err(fault(
            format!(
                "Invalid '{param}': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
                name.len()
            ),
            param,
            Some("string_above_max_length"),
        ));
    }
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.chars().all(legal) {
        return Err(fault(
            format!(
                "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ),
            param,
            Some("invalid_value"),
        ));
    }
    Ok(())
}

fn shape(index: usize, message: &Value) -> Result<(), Fault> {
    let param = format!("messages[{index}]");
    if !message.is_object() {
        return Err(fault(
            format!("Invalid type for '{param}': expected an object."),
            param,
            Some("invalid_type"),
        ));
    }
    let role = str_of(message, "role");
    if ![
        "system",
        "assistant",
        "user",
        "function",
        "tool",
        "developer",
    ]
    .contains(&role)
    {
        return Err(fault(
            format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            ),
            format!("{param}.role"),
            Some("invalid_value"),
        ));
    }
    if role != "assistant" && message.get("tool_calls").is_some() {
        return Err(fault(
            format!("Unknown parameter: '{param}.tool_calls'."),
            format!("{param}.tool_calls"),
            Some("unknown_parameter"),
        ));
    }
    // Stored answers of others say that they are messages.
    let is_answer = message.get("type").is_some_and(|kind| kind == "message");
    for key in ["images", "id", "type", "status", "stop_reason", "usage"] {
        if message.get(key).is_some() && (is_answer || key == "images") {
            return Err(fault(
                format!("Unknown parameter: '{param}.{key}'."),
                format!("{param}.{key}"),
                Some("unknown_parameter"),
            ));
        }
    }
    if role == "function" && str_of(message, "name").is_empty() {
        return Err(missing(&format!("{param}.name")));
    }
    if role == "user" && message.get("tool_call_id").is_some() {
        return Err(fault(
            format!("Unknown parameter: '{param}.tool_call_id'."),
            format!("{param}.tool_call_id"),
            Some("unknown_parameter"),
        ));
    }
    calls(index, message)?;
    content(index, role, message)
}

fn content(index: usize, role: &str, message: &Value) -> Result<(), Fault> {
    let param = format!("messages[{index}].content");
    let acts = role == "assistant"
        && ["tool_calls", "function_call", "audio", "refusal"]
            .iter()
            .any(|key| message.get(*key).is_some_and(|value| !value.is_null()));
    if role == "function" && message.get("content") == Some(&Value::Null) {
        return Ok(());
    }
    match message.get("content") {
        None | Some(Value::Null) if acts => Ok(()),
        None if role == "tool" => Err(missing(&param)),
        None | Some(Value::Null) => Err(fault(
            "Invalid value for 'content': expected a string, got null.",
            format!("messages.[{index}].content"),
            None,
        )),
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            for (part, value) in parts.iter().enumerate() {
                if !value.get("type").is_some_and(Value::is_string) {
                    return Err(missing(&format!("{param}[{part}].type")));
                }
                if str_of(value, "type") == "text" && !value["text"].is_string() {
                    return Err(not_a_text(
                        &format!("{param}[{part}].text"),
                        value.get("text"),
                    ));
                }
                let kind = str_of(value, "type");
                let of_others = [
                    "tool_use",
                    "tool_result",
                    "input_text",
                    "input_image",
                    "input_file",
                    "output_text",
                    "thinking",
                    "image",
                    "document",
                    "server_tool_use",
                    "search_result",
                ];
                if of_others.contains(&kind) {
                    return Err(fault(
                        format!(
                            "Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'."
                        ),
                        format!("{param}[{part}].type"),
                        Some("invalid_value"),
                    ));
                }
                if role == "tool" && str_of(value, "type") != "text" {
                    return Err(fault(
                        format!(
                            "Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL."
                        ),
                        format!("messages[{index}]"),
                        Some("invalid_value"),
                    ));
                }
            }
            if parts.is_empty() {
                return Err(fault(
                    format!(
                        "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
                    ),
                    param,
                    Some("empty_array"),
                ));
            }
            Ok(())
        }
        Some(_) => Err(fault(
            format!(
                "Invalid type for '{param}': expected one of a string or array of objects, but got an integer instead."
            ),
            param,
            Some("invalid_type"),
        )),
    }
}

fn calls(index: usize, message: &Value) -> Result<(), Fault> {
    let param = format!("messages[{index}].tool_calls");
    let calls = match message.get("tool_calls") {
        None => return Ok(()),
        Some(Value::Array(calls)) => calls,
        Some(_) => {
            return Err(fault(
                format!("Invalid type for '{param}': expected an array of objects."),
                param,
                Some("invalid_type"),
            ));
        }
    };
    if calls.is_empty() {
        return Err(fault(
            format!(
                "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
            ),
            param,
            Some("empty_array"),
        ));
    }
    for (part, call) in calls.iter().enumerate() {
        let param = format!("{param}[{part}]");
        let id = str_of(call, "id");
        if id.is_empty() {
            return Err(missing(&format!("{param}.id")));
        }
        if id.chars().count() > 40 {
            return Err(fault(
                format!(
                    "Invalid '{param}.id': string too long. Expected a string with maximum length 40, but got a string with length {} instead.",
                    id.chars().count()
                ),
                format!("{param}.id"),
                Some("string_above_max_length"),
            ));
        }
        match call.get("type") {
            Some(kind) if kind == "custom" => {
                custom(&param, &call["custom"])?;
                continue;
            }
            Some(kind) if kind == "function" => {}
            Some(Value::String(kind)) => {
                return Err(fault(
                    format!(
                        "Invalid value: '{kind}'. Supported values are: 'function' and 'custom'."
                    ),
                    format!("{param}.type"),
                    Some("invalid_value"),
                ));
            }
            _ => return Err(missing(&format!("{param}.type"))),
        }
        let function = &call["function"];
        legal_name(
            &format!("{param}.function.name"),
            str_of(function, "name"),
            function.get("name"),
        )?;
        match function.get("arguments") {
            Some(Value::String(text)) => {
                if !is_object(text) {
                    return Err(fault("invalid tool call arguments", "", None));
                }
            }
            None => return Err(missing(&format!("{param}.function.arguments"))),
            Some(_) => {
                return Err(fault(
                    format!(
                        "Invalid type for '{param}.function.arguments': expected a string, but got an object instead."
                    ),
                    format!("{param}.function.arguments"),
                    Some("invalid_type"),
                ));
            }
        }
    }
    Ok(())
}

fn custom(param: &str, custom: &Value) -> Result<(), Fault> {
    let param = format!("{param}.custom");
    legal_name(
        &format!("{param}.name"),
        str_of(custom, "name"),
        custom.get("name"),
    )?;
    match custom.get("input") {
        Some(Value::String(_)) => Ok(()),
        input => Err(not_a_text(&format!("{param}.input"), input)),
    }
}

fn not_a_text(param: &str, found: Option<&Value>) -> Fault {
    let kind = match found {
        None => return missing(param),
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    };
    let message = format!("Invalid type for '{param}': expected a string, but got {kind} instead.");
    fault(message, param, Some("invalid_type"))
}

fn pairs(messages: &[Value]) -> Result<(), Fault> {
    let mut open: Vec<&str> = Vec::new();
    let mut asked: Vec<&str> = Vec::new();
    let mut answered: Vec<(&str, usize)> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if str_of(message, "role") == "tool" {
            let id = str_of(message, "tool_call_id");
            if let Some((_, first)) = answered.iter().find(|(one, _)| *one == id) {
                return Err(fault(
                    format!(
                        "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', in messages[{first}] and messages[{index}]."
                    ),
                    format!("messages.[{index}].tool_call_id"),
                    None,
                ));
            }
            if !asked.contains(&id) {
                return Err(fault(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                    format!("messages.[{index}].role"),
                    None,
                ));
            }
            open.retain(|one| *one != id);
            answered.push((id, index));
            continue;
        }
        unanswered(&open, index)?;
        asked = items(message, "tool_calls")
            .iter()
            .map(|call| str_of(call, "id"))
            .collect();
        for (part, id) in asked.iter().enumerate() {
            if asked[..part].contains(id) {
                return Err(fault(
                    format!(
                        "Invalid parameter: Duplicate value for 'id' of '{id}' in messages[{index}].tool_calls[{part}]."
                    ),
                    format!("messages.[{index}].tool_calls"),
                    None,
                ));
            }
        }
        open.clone_from(&asked);
        answered.clear();
    }
    unanswered(&open, messages.len())
}

fn unanswered(open: &[&str], index: usize) -> Result<(), Fault> {
    if open.is_empty() {
        return Ok(());
    }
    Err(fault(
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        ),
        format!("messages.[{index}].role"),
        None,
    ))
}
