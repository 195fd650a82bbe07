//! How Google speaks over HTTP: its stream is of whole answers, as events or as one array.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::GeminiFormat;
use crate::providers::format::{
    ProviderFormat, any_has, found, has, is_named, is_there, keep, name_of, put, texts,
};
use crate::stream_state::StreamState;

impl ProviderFormat for GeminiFormat {
    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        found(answer, "/candidates/0/content")
    }

    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        keep(answer, PARTS, |part| {
            let call = part.get("functionCall");
            call.is_none_or(|call| is_named(call, is_meant))
        });
    }

    fn leave_out_words(&self, answer: &mut Value) {
        keep(answer, PARTS, |part| part.get("text").is_none());
    }

    fn words(&self, answer: &Value) -> String {
        texts(answer.pointer(PARTS))
    }

    fn has_object_arguments(&self) -> bool {
        true
    }

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        let functions = tools.iter().flat_map(|tool| {
            let of = |key: &str| tool.get(key).and_then(Value::as_array);
            let list = of("functionDeclarations").or_else(|| of("function_declarations"));
            list.into_iter().flatten().filter_map(name_of)
        });
        functions.collect()
    }

    fn forbids_tools(&self, request: &Value) -> bool {
        request.pointer(MODE).is_some_and(|mode| mode == "NONE")
    }

    fn let_answer(&self, request: &mut Value) {
        if let Some(mode) = request.pointer_mut(MODE).filter(|mode| **mode == "ANY") {
            *mode = json!("AUTO");
        }
    }

    fn forbid_tools(&self, request: &mut Value) {
        let config = json!({"functionCallingConfig": {"mode": "NONE"}});
        put(request, "toolConfig", config);
    }

    fn end_mark(&self) -> &'static str {
        "a finishReason"
    }

    fn is_end(&self, event: &Value) -> bool {
        any_has(event, "candidates", "finishReason")
            || is_there(event.pointer("/promptFeedback/blockReason"))
    }

    fn streams_array(&self) -> bool {
        true
    }

    fn has_answer(&self, piece: &Value) -> bool {
        piece.pointer(PARTS).is_some()
    }

    fn add_piece(&self, whole: &mut Value, mut piece: Value) {
        let parts = piece.pointer_mut(PARTS).map(Value::take);
        let there = whole.pointer_mut(PARTS);
        if let (Some(Value::Array(there)), Some(Value::Array(parts))) = (there, parts) {
            there.extend(parts);
        }
        if let Some(reason) = piece
            .pointer_mut("/candidates/0/finishReason")
            .map(Value::take)
            && let Some(Value::Object(candidate)) = whole.pointer_mut("/candidates/0")
        {
            candidate.insert("finishReason".to_owned(), reason);
        }
    }

    fn brings_words_only(&self, event: &[u8]) -> bool {
        let others = [
            "\"functionCall\"",
            "\"finishReason\"",
            "\"promptFeedback\"",
            "\"error\"",
        ];
        !others.iter().any(|other| has(event, other))
    }

    fn write_begin(&self, _stream: &mut StreamState) -> String {
        String::new()
    }

    fn write_words(&self, stream: &mut StreamState, words: &str) -> String {
        piece(stream, &json!([{"text": words}]), Value::Null, Value::Null)
    }

    fn write_end(&self, stream: &mut StreamState, answer: &Value) -> String {
        let candidate = &answer["candidates"][0];
        let parts = candidate["content"]["parts"].as_array();
        let calls: Vec<Value> = parts
            .into_iter()
            .flatten()
            .filter(|part| part.get("functionCall").is_some())
            .cloned()
            .collect();
        let reason = candidate["finishReason"].clone();
        let usage = answer["usageMetadata"].clone();
        let mut out = piece(stream, &Value::Array(calls), reason, usage);
        if stream.is_array {
            out += "]";
        }
        out
    }

    fn error_body(&self, _code: &str, status: u16, words: &str) -> Value {
        let kind = match status {
            401 => "UNAUTHENTICATED",
            400..=499 => "INVALID_ARGUMENT",
            504 => "DEADLINE_EXCEEDED",
            _ => "UNAVAILABLE",
        };
        json!({"error": {"code": status, "message": words, "status": kind}})
    }
}

const PARTS: &str = "/candidates/0/content/parts";
const MODE: &str = "/toolConfig/functionCallingConfig/mode";

fn piece(stream: &mut StreamState, parts: &Value, reason: Value, usage: Value) -> String {
    let mut piece =
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
    if !reason.is_null() {
        piece["candidates"][0]["finishReason"] = reason;
    }
    if !usage.is_null() {
        piece["usageMetadata"] = usage;
    }
    let index = std::mem::replace(&mut stream.index, 1);
    match (stream.is_array, index) {
        (true, 0) => format!("[{piece}"),
        (true, _) => format!(",\r\n{piece}"),
        (false, _) => format!("data: {piece}\n\n"),
    }
}
