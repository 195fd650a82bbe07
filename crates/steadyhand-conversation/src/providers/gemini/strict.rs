//! Google's `generateContent`, as strict as the real one.

use serde_json::{Value, json};

use super::GeminiFormat;
use crate::providers::strict_rules::{EVENTS, Refusal, StrictRules, data, items, str_of};

impl StrictRules for GeminiFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        gemini(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "gemini"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &[":generateContent", ":streamGenerateContent"]
    }

    fn not_json(&self) -> Value {
        json!({"error": {"code": 400, "message": "Invalid JSON payload received.", "status": "INVALID_ARGUMENT"}})
    }

    fn ok(&self, _model: &Value) -> Value {
        let content = json!({"role": "model", "parts": [{"text": "ok"}]});
        let usage = json!({"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2});
        json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage})
    }

    /// The address says it.
    fn is_streamed(&self, _request: &Value, path: &str) -> bool {
        path.contains(":streamGenerateContent")
    }

    fn stream(&self, reply: &Value, is_sse: bool) -> (&'static str, String) {
        if !is_sse {
            return ("application/json", json!([reply]).to_string());
        }
        let mut text = String::new();
        data(reply, &mut text);
        (EVENTS, text)
    }
}

/// Checks a request as `POST …:generateContent` does. Responses under other names than those of the calls, which
/// the real one counts and takes, are refused too: the model would see an answer to what it did not ask.
///
/// # Errors
///
/// 400 and Google's error.
pub fn gemini(request: &Value) -> Result<(), Refusal> {
    check(request).map_err(|message| {
        let error = json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"});
        (400, json!({ "error": error }))
    })
}

fn check(request: &Value) -> Result<(), String> {
    tools(request)?;
    let contents = items(request, "contents");
    if contents.is_empty() {
        return Err("* GenerateContentRequest.contents: contents is not specified".to_owned());
    }
    for (index, content) in contents.iter().enumerate() {
        shape(index, content)?;
    }
    turns(contents)
}

fn tools(request: &Value) -> Result<(), String> {
    for (index, tool) in items(request, "tools").iter().enumerate() {
        let functions = items(tool, "functionDeclarations");
        for (number, function) in functions.iter().enumerate() {
            let place = format!("tools[{index}].function_declarations[{number}]");
            let name = str_of(function, "name");
            let first = name.chars().next();
            let starts = first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            let legal = |letter: char| letter.is_ascii_alphanumeric() || "_.-:".contains(letter);
            if !starts || name.len() > 64 || !name.chars().all(legal) {
                return Err(format!(
                    "* GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a maximum length of 64."
                ));
            }
            if let Some(parameters) = function.get("parameters") {
                schema(&format!("{place}.parameters"), parameters)?;
            }
        }
    }
    Ok(())
}

/// Nothing beyond OpenAPI's schemas is known here.
fn schema(place: &str, schema_: &Value) -> Result<(), String> {
    let known = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "anyOf",
        "propertyOrdering",
        "default",
        "example",
    ];
    for (key, value) in schema_.as_object().into_iter().flatten() {
        if !known.contains(&key.as_str()) {
            return Err(format!(
                "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
            ));
        }
        if key == "type" && !value.is_string() {
            return Err(format!(
                "Proto field is not repeating, cannot start list. at '{place}.type'"
            ));
        }
    }
    if schema_["type"] == "array" && schema_.get("items").is_none() {
        return Err(format!(
            "* GenerateContentRequest.{place}.items: missing field."
        ));
    }
    for (name, inner) in schema_["properties"].as_object().into_iter().flatten() {
        let is_object = inner["type"] == "object";
        if is_object
            && inner["properties"]
                .as_object()
                .is_none_or(|inner| inner.is_empty())
        {
            return Err(format!(
                "* GenerateContentRequest.{place}.properties[{name}].properties: should be non-empty for OBJECT type"
            ));
        }
        schema(&format!("{place}.properties[{name}]"), inner)?;
    }
    if let Some(inner) = schema_.get("items") {
        schema(&format!("{place}.items"), inner)?;
    }
    for inner in items(schema_, "anyOf") {
        schema(&format!("{place}.any_of"), inner)?;
    }
    Ok(())
}

fn shape(index: usize, content: &Value) -> Result<(), String> {
    let place = format!("contents[{index}]");
    if !content.is_object() {
        return Err(format!(
            "Invalid value at '{place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)"
        ));
    }
    let role = content.get("role").map_or(Some("user"), Value::as_str);
    if !matches!(role, Some("user" | "model" | "function")) {
        return Err("Please use a valid role: user, model.".to_owned());
    }
    let fields = content.as_object().into_iter().flatten();
    let mut unknown = fields.filter(|(key, _)| !["role", "parts"].contains(&key.as_str()));
    if let Some((key, _)) = unknown.next() {
        return Err(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
        ));
    }
    if !content.get("parts").is_some_and(Value::is_array) || items(content, "parts").is_empty() {
        return Err(format!(
            "* GenerateContentRequest.{place}.parts: contents.parts must not be empty."
        ));
    }
    for (number, part) in items(content, "parts").iter().enumerate() {
        let place = format!("{place}.parts[{number}]");
        let is_set =
            |part: &serde_json::Map<String, Value>| part.values().any(|one| !one.is_null());
        if !part.as_object().is_some_and(is_set) {
            return Err(format!(
                "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field"
            ));
        }
        if part
            .get("text")
            .is_some_and(|text| !text.is_string() && !text.is_null())
        {
            return Err(format!(
                "Invalid value at '{place}.text' (TYPE_STRING), {}",
                part["text"]
            ));
        }
        if let Some(call) = call_of(part) {
            string(call, &format!("{place}.function_call.id"), "id")?;
            if str_of(call, "name").is_empty() {
                return Err(format!(
                    "* GenerateContentRequest.{place}.function_call.name: Name cannot be empty."
                ));
            }
            if call
                .get("args")
                .is_some_and(|args| !args.is_object() && !args.is_null())
            {
                return Err(format!(
                    "Invalid value at '{place}.function_call.args' (type.googleapis.com/google.protobuf.Struct)"
                ));
            }
        }
        if let Some(result) = response_of(part) {
            string(result, &format!("{place}.function_response.id"), "id")?;
            if str_of(result, "name").is_empty() {
                return Err(format!(
                    "* GenerateContentRequest.{place}.function_response.name: Name cannot be empty."
                ));
            }
            if !result.get("response").is_some_and(Value::is_object) {
                return Err(format!(
                    "Invalid value at '{place}.function_response.response' (type.googleapis.com/google.protobuf.Struct)"
                ));
            }
        }
    }
    Ok(())
}

fn call_of(part: &Value) -> Option<&Value> {
    let call = part
        .get("functionCall")
        .or_else(|| part.get("function_call"));
    call.filter(|call| !call.is_null())
}

fn response_of(part: &Value) -> Option<&Value> {
    let result = part.get("functionResponse");
    let result = result.or_else(|| part.get("function_response"));
    result.filter(|result| !result.is_null())
}

fn string(value: &Value, place: &str, key: &str) -> Result<(), String> {
    match value.get(key) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(format!("Invalid value at '{place}' (TYPE_STRING), {other}")),
    }
}

/// Contents of one role in a row are one turn: how many calls and responses it has, and how it begins.
struct Turn<'a> {
    is_model: bool,
    /// The names of its calls or responses.
    names: Vec<&'a str>,
    calls: usize,
    responses: usize,
    parts: usize,
    /// How many responses it begins with.
    leading: usize,
    first: usize,
}

fn turns(contents: &[Value]) -> Result<(), String> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let is_model = str_of(content, "role") == "model";
        if turns.last().is_none_or(|turn| turn.is_model != is_model) {
            turns.push(Turn {
                is_model,
                names: Vec::new(),
                calls: 0,
                responses: 0,
                parts: 0,
                leading: 0,
                first: index,
            });
        }
        let Some(turn) = turns.last_mut() else {
            continue;
        };
        for part in items(content, "parts") {
            let is_response = response_of(part).is_some();
            let named = call_of(part).or_else(|| response_of(part));
            turn.names.extend(named.map(|named| str_of(named, "name")));
            if is_response && turn.leading == turn.parts {
                turn.leading += 1;
            }
            turn.calls += usize::from(call_of(part).is_some());
            turn.responses += usize::from(is_response);
            turn.parts += 1;
        }
    }
    const AFTER_USER: &str = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    const AFTER_CALL: &str =
        "Please ensure that function response turn comes immediately after a function call turn.";
    const AS_MANY: &str = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    for (index, turn) in turns.iter().enumerate() {
        if turn.parts == 0 {
            return Err(format!(
                "* GenerateContentRequest.contents[{}].parts: contents.parts must not be empty.",
                turn.first
            ));
        }
        let before = index.checked_sub(1).map(|before| &turns[before]);
        if turn.is_model && turn.responses > 0 {
            return Err(AFTER_CALL.to_owned());
        }
        if !turn.is_model && turn.calls > 0 {
            return Err(AFTER_USER.to_owned());
        }
        if turn.is_model && turn.calls > 0 {
            if before.is_none() {
                return Err(AFTER_USER.to_owned());
            }
            if turns
                .get(index + 1)
                .is_none_or(|next| next.responses != turn.calls)
            {
                return Err(AS_MANY.to_owned());
            }
        }
        if !turn.is_model && turn.responses > 0 {
            let asked = before.map_or(0, |before| before.calls);
            if asked == 0 || turn.leading < turn.responses {
                return Err(AFTER_CALL.to_owned());
            }
            let sorted = |turn: &Turn<'_>| {
                let mut names: Vec<String> =
                    turn.names.iter().map(|&name| name.to_owned()).collect();
                names.sort();
                names
            };
            if asked != turn.responses || before.map(sorted) != Some(sorted(turn)) {
                return Err(AS_MANY.to_owned());
            }
        }
    }
    Ok(())
}
