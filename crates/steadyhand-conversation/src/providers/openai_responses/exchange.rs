//! How OpenAI's Responses speak over HTTP.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::ResponsesFormat;
use crate::providers::client::ClientFormat;
use crate::providers::format::{self, ProviderFormat, event, has, is_named, keep, name_of, texts};
use crate::stream_state::StreamState;

impl ProviderFormat for ResponsesFormat {
    fn client(&self) -> &'static dyn ClientFormat {
        &ResponsesFormat
    }

    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        let output = answer.get("output").and_then(Value::as_array);
        output.cloned().unwrap_or_default()
    }

    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        keep(answer, "/output", |item| {
            item["type"] != "function_call" || is_named(item, is_meant)
        });
    }

    fn leave_out_words(&self, answer: &mut Value) {
        keep(answer, "/output", |item| item["type"] != "message");
    }

    fn words(&self, answer: &Value) -> String {
        let items = answer["output"].as_array().into_iter().flatten();
        items
            .filter(|item| item["type"] == "message")
            .map(|item| texts(item.get("content")))
            .collect()
    }

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        tools.iter().filter_map(name_of).collect()
    }

    fn let_answer(&self, request: &mut Value) {
        format::let_answer(request);
    }

    fn end_mark(&self) -> &'static str {
        "response.completed"
    }

    fn is_end(&self, event: &Value) -> bool {
        matches!(
            event["type"].as_str(),
            Some(
                "response.completed"
                    | "response.incomplete"
                    | "response.failed"
                    | "response.cancelled"
                    | "error"
            )
        )
    }

    fn brings_words_only(&self, event: &[u8]) -> bool {
        [
            "\"response.output_text.delta\"",
            "\"response.reasoning_summary_text.delta\"",
            "\"response.reasoning_text.delta\"",
        ]
        .iter()
        .any(|delta| has(event, delta))
    }

    fn id_prefix(&self) -> &'static str {
        "resp_"
    }

    fn write_begin(&self, stream: &mut StreamState) -> String {
        let response = json!({"id": stream.id, "object": "response", "created_at": 0, "status": "in_progress", "model": stream.model, "output": [],
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": []});
        numbered(stream, "response.created", json!({ "response": response }))
    }

    fn write_words(&self, stream: &mut StreamState, words: &str) -> String {
        let mut out = String::new();
        let index = stream.index;
        let item_id = format!("msg_{}", stream.id);
        if !std::mem::replace(&mut stream.is_speaking, true) {
            let item = json!({"type": "message", "id": item_id, "role": "assistant", "status": "in_progress", "content": []});
            let added = json!({"output_index": index, "item": item});
            out += &numbered(stream, "response.output_item.added", added);
            let part = json!({"type": "output_text", "text": "", "annotations": []});
            let added = json!({"item_id": item_id, "output_index": index, "content_index": 0, "part": part});
            out += &numbered(stream, "response.content_part.added", added);
        }
        stream.said.push_str(words);
        let delta = json!({"item_id": item_id, "output_index": index, "content_index": 0, "delta": words, "logprobs": []});
        out += &numbered(stream, "response.output_text.delta", delta);
        out
    }

    fn write_end(&self, stream: &mut StreamState, answer: &Value) -> String {
        let mut out = String::new();
        if stream.is_speaking {
            let (index, item_id) = (stream.index, format!("msg_{}", stream.id));
            let part = json!({"type": "output_text", "text": stream.said, "annotations": []});
            let item = json!({"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": [part]});
            let done = json!({"item_id": item_id, "output_index": index, "content_index": 0, "text": stream.said, "logprobs": []});
            out += &numbered(stream, "response.output_text.done", done);
            let done = json!({"item_id": item_id, "output_index": index, "content_index": 0, "part": part});
            out += &numbered(stream, "response.content_part.done", done);
            let done = json!({"output_index": index, "item": item});
            out += &numbered(stream, "response.output_item.done", done);
            stream.items.push(item);
            stream.index += 1;
        }
        let items = answer["output"].as_array().into_iter().flatten();
        for item in items.filter(|item| item["type"] == "function_call") {
            let index = stream.index;
            for name in ["response.output_item.added", "response.output_item.done"] {
                let told = json!({"output_index": index, "item": item});
                out += &numbered(stream, name, told);
            }
            stream.items.push(item.clone());
            stream.index += 1;
        }
        let mut response = answer.clone();
        response["id"] = json!(stream.id);
        response["output"] = json!(stream.items);
        let name = match response["status"] == "incomplete" {
            true => "response.incomplete",
            false => "response.completed",
        };
        out += &numbered(stream, name, json!({ "response": response }));
        out
    }

    fn error_event(&self, code: &str, _body: &Value, words: &str) -> String {
        let told = json!({"type": "error", "code": code, "message": words, "param": null, "sequence_number": 0});
        format!("event: error\ndata: {told}\n\n")
    }
}

fn numbered(stream: &mut StreamState, name: &str, mut value: Value) -> String {
    value["type"] = json!(name);
    value["sequence_number"] = json!(stream.sequence);
    stream.sequence += 1;
    event(&value)
}
