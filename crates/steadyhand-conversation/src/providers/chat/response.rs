//! Answers in the form of chat completions.

use serde_json::{Value, json};
use steadyhand::Arguments;

use super::calls_of;
use crate::problem::Code;
use crate::providers::arguments;
use crate::providers::mender::{Mender, says_something};
use crate::providers::rules::AnswerPlace;
use crate::providers::wire::text;
use crate::texts::as_text;

/// Where OpenAI has its answer, and those who speak as it does.
pub(crate) const CHOICES: AnswerPlace = AnswerPlace {
    key: "choices",
    pointer: "/choices/0/message",
    is_list: true,
    own: ["role", "content"],
};

/// The form of a message, in which providers differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// The content is a text, and no list of parts.
    pub(crate) is_plain_text: bool,
    /// A call says its type.
    pub(crate) calls_say_type: bool,
    pub(crate) arguments: ArgumentsAs,
}

/// The form of arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ArgumentsAs {
    Object,
    Text,
    Either,
}

/// Mends all choices of a response, or the message that it is itself.
pub(crate) fn mend_choices(mender: &mut Mender<'_>, response: &mut Value, style: Style) {
    let choices = response.get_mut("choices").and_then(Value::as_array_mut);
    let Some(choices) = choices else {
        return message(mender, response, "", style);
    };
    for (index, choice) in choices.iter_mut().enumerate() {
        mender.begin_answer();
        if let Some(said) = choice.get_mut("message") {
            message(mender, said, &format!("/choices/{index}/message"), style);
        }
    }
}

/// Mends a message.
pub(crate) fn message(mender: &mut Mender<'_>, message: &mut Value, at: &str, style: Style) {
    if !message.is_object() {
        let said = match message.take() {
            Value::Null => String::new(),
            other => as_text(&other),
        };
        mender.fixed(at, Code::BadContent, "this is no message", "it is one now");
        *message = json!({"role": "assistant", "content": said});
        return;
    }
    mender.role(message, at);
    let is_plain_text = style.is_plain_text;
    let acts = ["tool_calls", "function_call", "audio", "refusal"]
        .iter()
        .any(|key| says_something(message.get(key)));
    let content = match message.get("content") {
        Some(Value::String(_)) => None,
        None | Some(Value::Null) if acts => None,
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::Array(_)) if !is_plain_text => None,
        Some(Value::Array(parts)) => {
            let words = parts
                .iter()
                .map(|part| text(part, "text").unwrap_or_default());
            Some(words.collect())
        }
        Some(other) => Some(as_text(other)),
    };
    if let Some(content) = content {
        mender.content(at);
        message["content"] = json!(content);
    }
    if let Some(call @ Value::Object(_)) = message.get_mut("tool_calls") {
        let call = call.take();
        let at = format!("{at}/tool_calls");
        mender.fixed(
            &at,
            Code::BadContent,
            "the calls are no list",
            "they are one now",
        );
        message["tool_calls"] = json!([call]);
    }
    let Some(Value::Array(calls)) = message.get_mut("tool_calls") else {
        return;
    };
    for (index, call) in calls.iter_mut().enumerate() {
        mend_call(mender, call, &format!("{at}/tool_calls/{index}"), style);
    }
}

fn mend_call(mender: &mut Mender<'_>, call: &mut Value, at: &str, style: Style) {
    let Some(fields) = call.as_object_mut() else {
        return;
    };
    let is_custom = fields.get("custom").is_some_and(Value::is_object);
    if !is_custom && !fields.get("function").is_some_and(Value::is_object) {
        // LangChain's calls, and some servers', have their name and arguments one level up.
        let name = fields.shift_remove("name").unwrap_or_default();
        let arguments = ["args", "arguments"]
            .iter()
            .find_map(|key| fields.shift_remove(*key));
        let function = json!({"name": name, "arguments": arguments.unwrap_or_default()});
        fields.insert("function".to_owned(), function);
        mender.fixed(
            at,
            Code::BadArguments,
            "this call has no function",
            "it is written as a call of one",
        );
    }
    if style.calls_say_type && !fields.contains_key("type") {
        let kind = if is_custom { "custom" } else { "function" };
        fields.insert("type".to_owned(), json!(kind));
        mender.fixed(
            at,
            Code::BadArguments,
            "the call does not say what it is",
            "now it does",
        );
    }
    mender.id(fields, "id", at);
    let key = if is_custom { "custom" } else { "function" };
    let Some(function) = fields.get_mut(key).and_then(Value::as_object_mut) else {
        return;
    };
    let at = format!("{at}/{key}");
    mender.name(function, &at);
    if is_custom {
        return;
    }
    let at = format!("{at}/arguments");
    match style.arguments {
        ArgumentsAs::Object => mender.object(function, "arguments", &at),
        ArgumentsAs::Text => mender.text(function, "arguments", &at, false),
        ArgumentsAs::Either => mender.text(function, "arguments", &at, true),
    }
}

/// The arguments of a call, or the input of one of OpenAI's custom tools.
pub(crate) fn arguments(message: &Value, part: usize) -> Arguments {
    let call = calls_of(message).get(part).unwrap_or(&Value::Null);
    match call.get("custom") {
        Some(custom) => Arguments::Json(json!({"input": custom["input"]})),
        None => arguments::of_call(&call["function"]["arguments"]),
    }
}

/// A response whose answer says this.
pub(crate) fn error_response(model: &str, said: &str) -> Value {
    json!({
        "id": "chatcmpl-error",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": said},
            "finish_reason": "stop",
        }],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    })
}

/// A call that a model wrote as text.
pub(crate) fn native_call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
}
