//! Messages among the items of OpenAI's Responses: their role and their content.

use serde_json::{Value, json};

use super::ResponsesWire;
use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::foreign;
use crate::providers::wire::{At, is_only_anthropics, text};
use crate::texts::{self, as_text};

/// Mends one message.
pub(super) fn mend(responses: ResponsesWire, item: &mut Value, at: At<'_>, log: &mut Log) {
    mend_type(item, at, log);
    if mend_role(item, at, log) == Stays::Message {
        mend_content(responses, item, at, log);
    }
}

/// The parts of a content or an output: each must say what it is.
pub(super) fn mend_parts(
    responses: ResponsesWire,
    parts: &mut [Value],
    key: &str,
    kind: &str,
    at: At<'_>,
    log: &mut Log,
) {
    for (number, part) in parts.iter_mut().enumerate() {
        let native = match responses {
            ResponsesWire::OpenAi | ResponsesWire::DeepSeek => native_part(part, kind),
            // Others may take parts of chat completions here.
            ResponsesWire::Compatible => None,
        };
        if let Some(native) = native {
            let own = text(part, "type").unwrap_or_default();
            log.found(
                format!("{}/{key}/{number}", at.pointer()),
                Code::BadContent,
                format!("there are no parts of type {own:?} here"),
            )
            .says(format!(
                "Invalid value: '{own}'. Supported values are: 'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'."
            ))
            .fixed("it is written as one of a type that is");
            *part = native;
            continue;
        }
        let is_text = matches!(text(part, "type"), Some("input_text" | "output_text"));
        let has_text = part.get("text").is_some_and(Value::is_string);
        let (problem, says) = match text(part, "type") {
            Some(_) if !is_text || has_text => continue,
            Some(_) => ("this text is no string", "text': expected a string."),
            None => ("this part has no type", "type'."),
        };
        let says = match text(part, "type") {
            Some(_) => format!(
                "Invalid type for 'input[{}].{key}[{number}].{says}",
                at.index
            ),
            None => format!(
                "Missing required parameter: 'input[{}].{key}[{number}].{says}",
                at.index
            ),
        };
        log.found(
            format!("{}/{key}/{number}", at.pointer()),
            Code::BadContent,
            problem,
        )
        .says(says)
        .fixed("it is a text now");
        let said = match &*part {
            Value::Null => String::new(),
            Value::Object(fields) => match fields.get("text") {
                Some(Value::Null) => String::new(),
                Some(said) => as_text(said),
                None if is_text => String::new(),
                None => Value::Object(fields.clone()).to_string(),
            },
            other => as_text(other),
        };
        *part = json!({"type": kind, "text": said});
    }
}

/// A part as chat completions or Anthropic write it, or of the other side, as this place takes it.
fn native_part(part: &Value, kind: &str) -> Option<Value> {
    let is_model = kind == "output_text";
    match text(part, "type")? {
        "text" => {}
        "image_url" | "image" if !is_model => {}
        "file" if !is_model => return file(part),
        "thinking" | "redacted_thinking" => return Some(json!({"type": kind, "text": ""})),
        own if is_only_anthropics(own) => {
            let native = foreign::block(Provider::OpenAiResponses, part, is_model);
            let as_json = || json!({"type": kind, "text": part.to_string()});
            return Some(native.unwrap_or_else(as_json));
        }
        "input_text" if is_model => {}
        "output_text" if !is_model => {}
        _ => return None,
    }
    let mut native = foreign::block(Provider::OpenAiResponses, part, is_model)?;
    if let Some(detail) = text(&part["image_url"], "detail") {
        native["detail"] = json!(detail);
    }
    // What has no words is mended where it is.
    (!native.is_null()).then_some(native)
}

/// A file of chat completions: what is known of it stands beside the type.
fn file(part: &Value) -> Option<Value> {
    let mut native = json!({"type": "input_file"});
    let known = part.get("file")?.as_object()?;
    native.as_object_mut()?.extend(known.clone());
    Some(native)
}

/// Whether an item is still a message once its role is right.
#[derive(PartialEq, Eq)]
enum Stays {
    Message,
    Output,
}

fn mend_type(item: &mut Value, at: At<'_>, log: &mut Log) {
    let is_odd = item.get("type").is_some_and(|kind| !kind.is_string());
    let Some(fields) = item.as_object_mut().filter(|_| is_odd) else {
        return;
    };
    log.found(at.field("type"), Code::BadField, "the type is no string")
        .says(format!(
            "Invalid type for 'input[{}].type': expected a string.",
            at.index
        ))
        .fixed("it is left out: this is a message");
    fields.shift_remove("type");
}

fn mend_role(item: &mut Value, at: At<'_>, log: &mut Log) -> Stays {
    let role = text(item, "role");
    if matches!(role, Some("user" | "assistant" | "system" | "developer")) {
        return Stays::Message;
    }
    let says = match role {
        Some(role) => format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        ),
        None => format!("Missing required parameter: 'input[{}].role'.", at.index),
    };
    let role = role.unwrap_or_default().to_owned();
    let found = log.found(
        at.field("role"),
        Code::WrongRole,
        format!("there is no role {role:?}"),
    );
    found.says(says);
    // The result of a tool, as chat completions have it.
    if let Some(id) = text(item, "tool_call_id").map(str::to_owned) {
        found.fixed("it is the output of a call");
        let output = match item.get_mut("content").map(Value::take) {
            None | Some(Value::Null) => json!(texts::NO_OUTPUT),
            Some(text @ Value::String(_)) => text,
            Some(other) => json!(as_text(&other)),
        };
        *item = json!({"type": "function_call_output", "call_id": id, "output": output});
        return Stays::Output;
    }
    let new = match role.as_str() {
        "model" | "ai" | "bot" => "assistant",
        _ => "user",
    };
    found.fixed(format!("the role is now {new:?}"));
    item["role"] = json!(new);
    Stays::Message
}

fn mend_content(responses: ResponsesWire, item: &mut Value, at: At<'_>, log: &mut Log) {
    let is_model = text(item, "role") == Some("assistant");
    let kind = if is_model {
        "output_text"
    } else {
        "input_text"
    };
    let (mended, code) = match item.get_mut("content") {
        Some(Value::String(_)) => return,
        Some(Value::Array(parts)) => return mend_parts(responses, parts, "content", kind, at, log),
        None | Some(Value::Null) if is_model => (json!(""), Code::EmptyContent),
        None | Some(Value::Null) => (json!(texts::EMPTY), Code::EmptyContent),
        Some(other) => (json!(as_text(other)), Code::BadContent),
    };
    let says = match item.get("content") {
        None => format!("Missing required parameter: 'input[{}].content'.", at.index),
        Some(_) => format!(
            "Invalid type for 'input[{}].content': expected one of an array of objects or string.",
            at.index
        ),
    };
    log.found(
        at.field("content"),
        code,
        "the content is neither a text nor a list of parts",
    )
    .says(says)
    .fixed("it is a text now");
    item["content"] = mended;
}
