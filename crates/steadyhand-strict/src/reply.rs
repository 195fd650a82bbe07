//! What a provider answers to a request that is in order: whole, or as its stream.

use std::fmt::Write;

use serde_json::{Value, json};
use steadyhand_conversation::Provider;

/// A reply that says `ok`.
pub(super) fn ok(provider: Provider, asked: &Value) -> Value {
    let model = asked
        .get("model")
        .cloned()
        .unwrap_or_else(|| json!("strict"));
    match provider {
        Provider::Anthropic => {
            let usage = json!({"input_tokens": 1, "output_tokens": 1});
            json!({"id": "msg_strict", "type": "message", "role": "assistant", "model": model,
                "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stop_sequence": null, "usage": usage})
        }
        Provider::OpenAi | Provider::Mistral | Provider::LangChain => {
            let message = json!({"role": "assistant", "content": "ok"});
            let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
            json!({"id": "chatcmpl-strict", "object": "chat.completion", "created": 0, "model": model,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
        }
        Provider::OpenAiResponses => {
            let content = json!([{"type": "output_text", "text": "ok", "annotations": []}]);
            let item = json!({"type": "message", "id": "msg_strict", "role": "assistant", "status": "completed", "content": content});
            json!({"id": "resp_strict", "object": "response", "created_at": 0, "status": "completed", "model": model,
                "output": [item], "parallel_tool_calls": true, "tool_choice": "auto", "tools": []})
        }
        Provider::Gemini => {
            let content = json!({"role": "model", "parts": [{"text": "ok"}]});
            let usage =
                json!({"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2});
            json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage})
        }
        Provider::BedrockConverse => {
            let message = json!({"role": "assistant", "content": [{"text": "ok"}]});
            let usage = json!({"inputTokens": 1, "outputTokens": 1, "totalTokens": 2});
            json!({"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}})
        }
        Provider::Ollama => {
            json!({"model": model, "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": "ok"}, "done": true, "done_reason": "stop"})
        }
    }
}

/// The same as a stream: its content type and its text.
pub(super) fn stream(provider: Provider, reply: &Value, is_sse: bool) -> (&'static str, String) {
    let mut text = String::new();
    match provider {
        Provider::Anthropic => anthropic(reply, &mut text),
        Provider::OpenAi | Provider::Mistral | Provider::LangChain => chat(reply, &mut text),
        Provider::OpenAiResponses => responses(reply, &mut text),
        Provider::Gemini if is_sse => data(reply, &mut text),
        Provider::Gemini => return ("application/json", json!([reply]).to_string()),
        // Its stream is binary; here it answers whole.
        Provider::BedrockConverse => return ("application/json", reply.to_string()),
        Provider::Ollama => {
            ollama(reply, &mut text);
            return ("application/x-ndjson", text);
        }
    }
    ("text/event-stream", text)
}

fn data(value: &Value, text: &mut String) {
    let _ = write!(text, "data: {value}\n\n");
}

/// An event whose name is also the type of its data.
fn event(name: &str, mut value: Value, text: &mut String) {
    value["type"] = json!(name);
    let _ = writeln!(text, "event: {name}");
    data(&value, text);
}

fn anthropic(reply: &Value, text: &mut String) {
    let mut begun = reply.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    event("message_start", json!({ "message": begun }), text);
    let blocks = reply["content"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, block) in blocks.iter().enumerate() {
        let mut opened = block.clone();
        let delta = match block["type"].as_str() {
            Some("tool_use") => {
                opened["input"] = json!({});
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
            }
            Some("thinking") => {
                opened["thinking"] = json!("");
                json!({"type": "thinking_delta", "thinking": block["thinking"]})
            }
            _ => {
                opened["text"] = json!("");
                json!({"type": "text_delta", "text": block["text"]})
            }
        };
        let opened = json!({"index": index, "content_block": opened});
        event("content_block_start", opened, text);
        event(
            "content_block_delta",
            json!({"index": index, "delta": delta}),
            text,
        );
        event("content_block_stop", json!({ "index": index }), text);
    }
    let delta = json!({"stop_reason": reply["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": 1});
    event(
        "message_delta",
        json!({"delta": delta, "usage": usage}),
        text,
    );
    event("message_stop", json!({}), text);
}

fn chat(reply: &Value, text: &mut String) {
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

fn responses(reply: &Value, text: &mut String) {
    let mut begun = reply.clone();
    begun["output"] = json!([]);
    begun["status"] = json!("in_progress");
    event(
        "response.created",
        json!({"response": begun, "sequence_number": 0}),
        text,
    );
    let items = reply["output"].as_array().map_or(&[][..], Vec::as_slice);
    let mut number = 0;
    for (index, item) in items.iter().enumerate() {
        for name in ["response.output_item.added", "response.output_item.done"] {
            number += 1;
            let told = json!({"output_index": index, "item": item, "sequence_number": number});
            event(name, told, text);
        }
    }
    let done = json!({"response": reply, "sequence_number": number + 1});
    event("response.completed", done, text);
}

fn ollama(reply: &Value, text: &mut String) {
    let mut said = reply.clone();
    said["done"] = json!(false);
    if let Some(fields) = said.as_object_mut() {
        fields.shift_remove("done_reason");
    }
    let mut done = reply.clone();
    done["message"] = json!({"role": "assistant", "content": ""});
    let _ = writeln!(text, "{said}\n{done}");
}
