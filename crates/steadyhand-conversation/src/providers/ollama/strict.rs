//! Ollama's `/api/chat`: as strict as the real one, and stricter where that one is silent and wrong.

use serde_json::{Value, json};

use super::OllamaFormat;
use crate::providers::strict_rules::{Refusal, StrictRules, items, str_of};

impl StrictRules for OllamaFormat {
    fn check(&self, request: &Value) -> Result<(), Refusal> {
        ollama(request)
    }

    fn name_in_addresses(&self) -> &'static str {
        "ollama"
    }

    fn path_ends(&self) -> &'static [&'static str] {
        &["api/chat"]
    }

    fn not_json(&self) -> Value {
        json!({"error": "invalid character in the body: it is no JSON"})
    }

    fn ok(&self, model: &Value) -> Value {
        json!({"model": model, "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": "ok"}, "done": true, "done_reason": "stop"})
    }

    /// It streams where it is not told otherwise.
    fn is_streamed(&self, request: &Value, _path: &str) -> bool {
        request["stream"] != false
    }

    fn stream(&self, reply: &Value, _is_sse: bool) -> (&'static str, String) {
        let mut said = reply.clone();
        said["done"] = json!(false);
        if let Some(fields) = said.as_object_mut() {
            fields.shift_remove("done_reason");
        }
        let mut done = reply.clone();
        done["message"] = json!({"role": "assistant", "content": ""});
        ("application/x-ndjson", format!("{said}\n{done}\n"))
    }
}

/// Checks a request as `POST /api/chat` does. Calls and results that do not match, which the real one
/// takes and shows the model as they are, are refused with a text of our own.
///
/// # Errors
///
/// 400 and Ollama's error.
pub fn ollama(request: &Value) -> Result<(), Refusal> {
    check(request).map_err(|message| (400, json!({ "error": message })))
}

const NO_CLOSING: &str = "Value looks like object, but can't find closing '}' symbol";

fn check(request: &Value) -> Result<(), String> {
    if str_of(request, "model").is_empty() {
        return Err("model is required".to_owned());
    }
    for tool in items(request, "tools") {
        let properties = &tool["function"]["parameters"]["properties"];
        if !properties.is_object() && !properties.is_null() {
            return Err(NO_CLOSING.to_owned());
        }
    }
    let messages = items(request, "messages");
    for message in messages {
        if !message.is_object() {
            return Err("json: cannot unmarshal into Go struct field ChatRequest.messages of type api.Message".to_owned());
        }
        let role = str_of(message, "role");
        if !["system", "user", "assistant", "tool"].contains(&role) {
            return Err(format!("strict: nobody has the role {role:?}"));
        }
        let content = message.get("content");
        if let Some(kind) = content.and_then(not_a_string) {
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field Alias.content of type string"
            ));
        }
        if !matches!(
            message.get("tool_calls"),
            None | Some(Value::Null | Value::Array(_))
        ) {
            return Err("json: cannot unmarshal object into Go struct field Alias.tool_calls of type []api.ToolCall".to_owned());
        }
        for key in ["tool_call_id", "tool_name"] {
            if message.get(key).and_then(not_a_string).is_some() {
                return Err(format!(
                    "json: cannot unmarshal number into Go struct field Alias.{key} of type string"
                ));
            }
        }
        for call in items(message, "tool_calls") {
            if call.get("id").and_then(not_a_string).is_some() {
                return Err(
                    "json: cannot unmarshal number into Go struct field ToolCall.id of type string"
                        .to_owned(),
                );
            }
            if role != "assistant" {
                return Err("strict: calls stand in a message that is not the model's".to_owned());
            }
            let arguments = &call["function"]["arguments"];
            if !arguments.is_object() && !arguments.is_null() {
                return Err(NO_CLOSING.to_owned());
            }
            if str_of(&call["function"], "name").is_empty() {
                return Err("strict: a call has no name".to_owned());
            }
        }
    }
    pairs(messages)
}

fn not_a_string(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) | Value::Null => None,
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("bool"),
    }
}

/// Results follow the message with their calls, in the order of the calls.
fn pairs(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<(&str, &str)> = Vec::new();
    for message in messages {
        if str_of(message, "role") == "tool" {
            if open.is_empty() {
                return Err("strict: a result answers no call".to_owned());
            }
            let (id, name) = open.remove(0);
            let own = str_of(message, "tool_call_id");
            let answers = if own.is_empty() {
                str_of(message, "tool_name") == name
            } else {
                own == id
            };
            if !answers {
                return Err("strict: a result answers another call than the next".to_owned());
            }
            continue;
        }
        if !open.is_empty() {
            return Err("strict: a call has no result".to_owned());
        }
        let calls = items(message, "tool_calls").iter();
        open = calls
            .map(|call| (str_of(call, "id"), str_of(&call["function"], "name")))
            .collect();
    }
    if !open.is_empty() {
        return Err("strict: a call has no result".to_owned());
    }
    Ok(())
}
