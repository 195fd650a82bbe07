//! One answer out of several: words as they come, then the calls that are the client's own, as one stream of the
//! provider's shape.

use axum::body::Bytes;
use serde_json::{Value, json};
use steadyhand_conversation::Provider;

use super::super::tap::Framing;

/// Writes one stream.
pub(super) struct Speaker {
    provider: Provider,
    framing: Framing,
    id: String,
    model: Value,
    /// Blocks or items that have begun.
    index: usize,
    /// A text is open.
    is_speaking: bool,
    /// All words so far, where the end repeats them.
    said: String,
    /// Whole items so far, where the end repeats them.
    items: Vec<Value>,
    sequence: u64,
    has_begun: bool,
}

impl Speaker {
    pub(super) fn new(provider: Provider, framing: Framing, model: Value) -> Speaker {
        let random = uuid::Uuid::new_v4().simple();
        let id = match provider {
            Provider::Anthropic => format!("msg_{random}"),
            Provider::OpenAiResponses => format!("resp_{random}"),
            _ => format!("chatcmpl-{random}"),
        };
        Speaker {
            provider,
            framing,
            id,
            model,
            index: 0,
            is_speaking: false,
            said: String::new(),
            items: Vec::new(),
            sequence: 0,
            has_begun: false,
        }
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.framing {
            Framing::Events => "text/event-stream; charset=utf-8",
            Framing::Lines => "application/x-ndjson",
            Framing::Array | Framing::AwsEvents => "application/json",
        }
    }

    /// Words.
    pub(super) fn text(&mut self, words: &str) -> Bytes {
        let mut out = self.begin();
        match self.provider {
            Provider::Anthropic => {
                if !self.is_speaking {
                    out += &event(
                        json!({"type": "content_block_start", "index": self.index, "content_block": {"type": "text", "text": ""}}),
                    );
                }
                out += &event(
                    json!({"type": "content_block_delta", "index": self.index, "delta": {"type": "text_delta", "text": words}}),
                );
            }
            Provider::OpenAi | Provider::Mistral | Provider::LangChain => {
                out += &self.chunk(json!({"content": words}), Value::Null, Value::Null);
            }
            Provider::OpenAiResponses => {
                out += &self.responses_text(words);
            }
            Provider::Ollama => {
                let message = json!({"role": "assistant", "content": words});
                out += &format!(
                    "{}\n",
                    json!({"model": self.model, "message": message, "done": false})
                );
            }
            Provider::BedrockConverse => {}
            Provider::Gemini => {
                out += &self.piece(json!([{"text": words}]), Value::Null, Value::Null);
            }
        }
        self.is_speaking = true;
        out.into()
    }

    /// The end: the calls of the last answer, its reason and its counts.
    pub(super) fn end(mut self, answer: &Value) -> Bytes {
        let mut out = self.begin();
        match self.provider {
            Provider::Anthropic => {
                out += &self.stop_speaking();
                let blocks = answer["content"].as_array().into_iter().flatten();
                for block in blocks.filter(|block| block["type"] == "tool_use") {
                    let index = self.index;
                    let mut begun = block.clone();
                    begun["input"] = json!({});
                    out += &event(
                        json!({"type": "content_block_start", "index": index, "content_block": begun}),
                    );
                    out += &event(
                        json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": block["input"].to_string()}}),
                    );
                    out += &event(json!({"type": "content_block_stop", "index": index}));
                    self.index += 1;
                }
                let delta = json!({"stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"]});
                out += &event(
                    json!({"type": "message_delta", "delta": delta, "usage": usage(&answer["usage"])}),
                );
                out += &event(json!({"type": "message_stop"}));
            }
            Provider::OpenAi | Provider::Mistral | Provider::LangChain => {
                let choice = &answer["choices"][0];
                let calls = choice["message"]["tool_calls"]
                    .as_array()
                    .into_iter()
                    .flatten();
                let calls: Vec<Value> = calls
                    .enumerate()
                    .map(|(index, call)| {
                        let mut call = call.clone();
                        call["index"] = json!(index);
                        call
                    })
                    .collect();
                if !calls.is_empty() {
                    out += &self.chunk(json!({"tool_calls": calls}), Value::Null, Value::Null);
                }
                let usage = answer.get("usage").cloned().unwrap_or_default();
                out += &self.chunk(json!({}), choice["finish_reason"].clone(), usage);
                out += "data: [DONE]\n\n";
            }
            Provider::OpenAiResponses => out += &self.responses_end(answer),
            Provider::Ollama => {
                let mut last = answer.clone();
                last["message"]["content"] = json!("");
                last["done"] = json!(true);
                out += &format!("{last}\n");
            }
            Provider::BedrockConverse => {}
            Provider::Gemini => {
                let candidate = &answer["candidates"][0];
                let parts = candidate["content"]["parts"]
                    .as_array()
                    .into_iter()
                    .flatten();
                let calls: Vec<Value> = parts
                    .filter(|part| part.get("functionCall").is_some())
                    .cloned()
                    .collect();
                out += &self.piece(
                    Value::Array(calls),
                    candidate["finishReason"].clone(),
                    answer["usageMetadata"].clone(),
                );
                if self.framing == Framing::Array {
                    out += "]";
                }
            }
        }
        out.into()
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        match self.provider {
            Provider::Anthropic => event(
                json!({"type": "message_start", "message": {"id": self.id, "type": "message", "role": "assistant",
                "model": self.model, "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0}}}),
            ),
            Provider::OpenAi | Provider::Mistral | Provider::LangChain => self.chunk(
                json!({"role": "assistant", "content": ""}),
                Value::Null,
                Value::Null,
            ),
            Provider::OpenAiResponses => {
                let response = json!({"id": self.id, "object": "response", "created_at": 0, "status": "in_progress", "model": self.model, "output": [],
                    "parallel_tool_calls": true, "tool_choice": "auto", "tools": []});
                self.responses_event("response.created", json!({ "response": response }))
            }
            Provider::Ollama | Provider::Gemini | Provider::BedrockConverse => String::new(),
        }
    }

    fn stop_speaking(&mut self) -> String {
        if !std::mem::replace(&mut self.is_speaking, false) {
            return String::new();
        }
        let index = self.index;
        self.index += 1;
        event(json!({"type": "content_block_stop", "index": index}))
    }

    fn chunk(&self, delta: Value, reason: Value, usage: Value) -> String {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        let mut chunk = json!({"id": self.id, "object": "chat.completion.chunk", "created": 0, "model": self.model, "choices": choices});
        if !usage.is_null() {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    }

    fn piece(&mut self, parts: Value, reason: Value, usage: Value) -> String {
        let mut piece =
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
        if !reason.is_null() {
            piece["candidates"][0]["finishReason"] = reason;
        }
        if !usage.is_null() {
            piece["usageMetadata"] = usage;
        }
        let index = std::mem::replace(&mut self.index, 1);
        match (self.framing, index) {
            (Framing::Array, 0) => format!("[{piece}"),
            (Framing::Array, _) => format!(",\r\n{piece}"),
            _ => format!("data: {piece}\n\n"),
        }
    }

    fn responses_text(&mut self, words: &str) -> String {
        let mut out = String::new();
        let index = self.index;
        let item_id = format!("msg_{}", self.id);
        if !self.is_speaking {
            let item = json!({"type": "message", "id": item_id, "role": "assistant", "status": "in_progress", "content": []});
            out += &self.responses_event(
                "response.output_item.added",
                json!({"output_index": index, "item": item}),
            );
            let part = json!({"type": "output_text", "text": "", "annotations": []});
            out += &self.responses_event("response.content_part.added", json!({"item_id": item_id, "output_index": index, "content_index": 0, "part": part}));
        }
        self.said.push_str(words);
        let delta = json!({"item_id": item_id, "output_index": index, "content_index": 0, "delta": words, "logprobs": []});
        out += &self.responses_event("response.output_text.delta", delta);
        out
    }

    fn responses_end(&mut self, answer: &Value) -> String {
        let mut out = String::new();
        if self.is_speaking {
            let (index, item_id) = (self.index, format!("msg_{}", self.id));
            let part = json!({"type": "output_text", "text": self.said, "annotations": []});
            let item = json!({"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": [part]});
            out += &self.responses_event("response.output_text.done", json!({"item_id": item_id, "output_index": index, "content_index": 0, "text": self.said, "logprobs": []}));
            out += &self.responses_event("response.content_part.done", json!({"item_id": item_id, "output_index": index, "content_index": 0, "part": part}));
            out += &self.responses_event(
                "response.output_item.done",
                json!({"output_index": index, "item": item}),
            );
            self.items.push(item);
            self.index += 1;
        }
        let items = answer["output"].as_array().into_iter().flatten();
        for item in items.filter(|item| item["type"] == "function_call") {
            let index = self.index;
            for name in ["response.output_item.added", "response.output_item.done"] {
                out += &self.responses_event(name, json!({"output_index": index, "item": item}));
            }
            self.items.push(item.clone());
            self.index += 1;
        }
        let mut response = answer.clone();
        response["id"] = json!(self.id);
        response["output"] = json!(self.items);
        let name = match response["status"] == "incomplete" {
            true => "response.incomplete",
            false => "response.completed",
        };
        out += &self.responses_event(name, json!({ "response": response }));
        out
    }

    fn responses_event(&mut self, name: &str, mut value: Value) -> String {
        value["type"] = json!(name);
        value["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        event(value)
    }
}

/// An event whose name is also the type of its data.
fn event(value: Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

/// Counts, where there are any.
fn usage(usage: &Value) -> Value {
    match usage.is_object() {
        true => usage.clone(),
        false => json!({"output_tokens": 0}),
    }
}
