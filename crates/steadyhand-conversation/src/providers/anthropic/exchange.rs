//! How Anthropic speaks over HTTP.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{AnthropicFormat, sound};
use crate::providers::client::ClientFormat;
use crate::providers::format::{
    ProviderFormat, SoundRequest, event, has, is_named, keep, name_of, put, texts,
};
use crate::stream_state::StreamState;

impl ProviderFormat for AnthropicFormat {
    fn client(&self) -> &'static dyn ClientFormat {
        &AnthropicFormat
    }

    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        vec![json!({"role": "assistant", "content": answer["content"]})]
    }

    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        keep(answer, "/content", |block| {
            block["type"] != "tool_use" || is_named(block, is_meant)
        });
    }

    fn leave_out_words(&self, answer: &mut Value) {
        keep(answer, "/content", |block| block["type"] != "text");
    }

    fn words(&self, answer: &Value) -> String {
        texts(answer.get("content"))
    }

    fn has_object_arguments(&self) -> bool {
        true
    }

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        tools.iter().filter_map(name_of).collect()
    }

    fn forbids_tools(&self, request: &Value) -> bool {
        request["tool_choice"]["type"] == "none"
    }

    fn let_answer(&self, request: &mut Value) {
        if request["tool_choice"]["type"] == "any" {
            request["tool_choice"]["type"] = json!("auto");
        }
    }

    fn forbid_tools(&self, request: &mut Value) {
        put(request, "tool_choice", json!({"type": "none"}));
    }

    fn end_mark(&self) -> &'static str {
        "message_stop"
    }

    fn is_end(&self, event: &Value) -> bool {
        event["type"] == "message_stop" || event["type"] == "error"
    }

    fn ends_with_done(&self) -> bool {
        false
    }

    fn brings_words_only(&self, event: &[u8]) -> bool {
        [
            "\"text_delta\"",
            "\"thinking_delta\"",
            "\"signature_delta\"",
        ]
        .iter()
        .any(|delta| has(event, delta))
    }

    fn id_prefix(&self) -> &'static str {
        "msg_"
    }

    fn write_begin(&self, stream: &mut StreamState) -> String {
        event(
            &json!({"type": "message_start", "message": {"id": stream.id, "type": "message", "role": "assistant",
            "model": stream.model, "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0}}}),
        )
    }

    fn write_words(&self, stream: &mut StreamState, words: &str) -> String {
        let mut out = String::new();
        if !stream.is_speaking {
            out += &event(
                &json!({"type": "content_block_start", "index": stream.index, "content_block": {"type": "text", "text": ""}}),
            );
        }
        stream.is_speaking = true;
        out += &event(
            &json!({"type": "content_block_delta", "index": stream.index, "delta": {"type": "text_delta", "text": words}}),
        );
        out
    }

    fn write_end(&self, stream: &mut StreamState, answer: &Value) -> String {
        let mut out = String::new();
        if std::mem::replace(&mut stream.is_speaking, false) {
            out += &event(&json!({"type": "content_block_stop", "index": stream.index}));
            stream.index += 1;
        }
        let blocks = answer["content"].as_array().into_iter().flatten();
        for block in blocks.filter(|block| block["type"] == "tool_use") {
            let index = stream.index;
            let mut begun = block.clone();
            begun["input"] = json!({});
            out += &event(
                &json!({"type": "content_block_start", "index": index, "content_block": begun}),
            );
            out += &event(
                &json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": block["input"].to_string()}}),
            );
            out += &event(&json!({"type": "content_block_stop", "index": index}));
            stream.index += 1;
        }
        let delta =
            json!({"stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"]});
        // Counts, where there are any.
        let usage = match answer["usage"].is_object() {
            true => answer["usage"].clone(),
            false => json!({"output_tokens": 0}),
        };
        out += &event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
        out += &event(&json!({"type": "message_stop"}));
        out
    }

    fn error_body(&self, _code: &str, status: u16, words: &str) -> Value {
        let kind = match status {
            401 => "authentication_error",
            413 => "request_too_large",
            400..=499 => "invalid_request_error",
            503 => "overloaded_error",
            504 => "timeout_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": null})
    }

    fn error_event(&self, _code: &str, body: &Value, _words: &str) -> String {
        format!("event: error\ndata: {body}\n\n")
    }

    fn sound_request(&self, request: &[u8]) -> Option<SoundRequest> {
        sound::request(request)
    }
}
