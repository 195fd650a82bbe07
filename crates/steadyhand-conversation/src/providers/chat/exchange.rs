//! How chat completions go over HTTP.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::providers::format::{found, has, is_named, keep, name_of};
use crate::stream_state::StreamState;

pub(crate) fn answer_messages(answer: &Value) -> Vec<Value> {
    found(answer, "/choices/0/message")
}

pub(crate) fn keep_calls(answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
    keep(answer, "/choices/0/message/tool_calls", |call| {
        is_named(&call["function"], is_meant)
    });
}

pub(crate) fn leave_out_words(answer: &mut Value) {
    if let Some(message) = answer.pointer_mut("/choices/0/message") {
        message["content"] = Value::Null;
    }
}

pub(crate) fn words(answer: &Value) -> String {
    let said = answer.pointer("/choices/0/message/content");
    said.and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn tool_names(tools: &[Value]) -> HashSet<String> {
    let names = tools.iter().filter_map(|tool| name_of(&tool["function"]));
    names.collect()
}

pub(crate) fn brings_words_only(event: &[u8]) -> bool {
    !has(event, "\"tool_calls\"")
        && (has(event, "\"finish_reason\":null") || has(event, "\"finish_reason\": null"))
}

pub(crate) fn write_begin(stream: &StreamState) -> String {
    let delta = json!({"role": "assistant", "content": ""});
    chunk(stream, &delta, &Value::Null, Value::Null)
}

pub(crate) fn write_words(stream: &StreamState, words: &str) -> String {
    chunk(
        stream,
        &json!({"content": words}),
        &Value::Null,
        Value::Null,
    )
}

pub(crate) fn write_end(stream: &StreamState, answer: &Value) -> String {
    let mut out = String::new();
    let choice = &answer["choices"][0];
    let calls = choice["message"]["tool_calls"].as_array();
    let calls: Vec<Value> = calls
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, call)| {
            let mut call = call.clone();
            call["index"] = json!(index);
            call
        })
        .collect();
    if !calls.is_empty() {
        out += &chunk(
            stream,
            &json!({"tool_calls": calls}),
            &Value::Null,
            Value::Null,
        );
    }
    let usage = answer.get("usage").cloned().unwrap_or_default();
    out += &chunk(stream, &json!({}), &choice["finish_reason"], usage);
    out += "data: [DONE]\n\n";
    out
}

fn chunk(stream: &StreamState, delta: &Value, reason: &Value, usage: Value) -> String {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let mut chunk = json!({"id": stream.id, "object": "chat.completion.chunk", "created": 0, "model": stream.model, "choices": choices});
    if !usage.is_null() {
        chunk["usage"] = usage;
    }
    format!("data: {chunk}\n\n")
}
