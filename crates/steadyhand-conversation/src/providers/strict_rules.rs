//! What a stand-in for a provider must know of it. Nothing of the checks and repairs is used here, nor in any file
//! `strict.rs` of a provider, so that each can prove the other wrong.

use std::fmt::Write;

use serde_json::{Value, json};

/// A status and the body that goes with it.
pub type Refusal = (u16, Value);

/// A provider as strict as the real one. What it does not say it does as OpenAI does.
pub trait StrictRules: Sync {
    /// Checks a request.
    ///
    /// # Errors
    ///
    /// What the provider would answer instead of a reply.
    fn check(&self, request: &Value) -> Result<(), Refusal>;

    /// The first part of its addresses, by which stand-ins share one port.
    fn name_in_addresses(&self) -> &'static str;

    /// The end of its base URL behind that.
    fn base_path(&self) -> &'static str {
        ""
    }

    /// What the paths end with at which it is asked for an answer.
    fn path_ends(&self) -> &'static [&'static str];

    /// The body of its answer to a request that is no JSON.
    fn not_json(&self) -> Value {
        let message = "We could not parse the JSON body of your request.";
        json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
    }

    /// A reply of this model that says `ok`.
    fn ok(&self, model: &Value) -> Value {
        chat_ok(model)
    }

    /// Whether a request at this path asks for a stream.
    fn is_streamed(&self, request: &Value, _path: &str) -> bool {
        request["stream"] == true
    }

    /// A reply as a stream: its content type and its text. `is_sse` says that server-sent events are asked for.
    fn stream(&self, reply: &Value, _is_sse: bool) -> (&'static str, String) {
        let mut text = String::new();
        chat_stream(reply, &mut text);
        (EVENTS, text)
    }
}

/// The type of server-sent events.
pub(crate) const EVENTS: &str = "text/event-stream";

pub(crate) fn data(value: &Value, text: &mut String) {
    let _ = write!(text, "data: {value}\n\n");
}

/// An event whose name is also the type of its data.
pub(crate) fn event(name: &str, mut value: Value, text: &mut String) {
    value["type"] = json!(name);
    let _ = writeln!(text, "event: {name}");
    data(&value, text);
}

/// A reply in the form of chat completions.
fn chat_ok(model: &Value) -> Value {
    let message = json!({"role": "assistant", "content": "ok"});
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    json!({"id": "chatcmpl-strict", "object": "chat.completion", "created": 0, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
}

/// Its stream.
fn chat_stream(reply: &Value, text: &mut String) {
    let choice = &reply["choices"][0];
    let mut delta = choice["message"].clone();
    let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        call["index"] = json!(index);
    }
    for (delta, reason) in [
        (delta, Value::Null),
        (json!({}), choice["finish_reason"].clone()),
    ] {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        let chunk = json!({"id": reply["id"], "object": "chat.completion.chunk", "created": 0,
            "model": reply["model"], "choices": choices});
        data(&chunk, text);
    }
    text.push_str("data: [DONE]\n\n");
}

pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(crate) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

/// However deep it is: a parsed value could not be.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
