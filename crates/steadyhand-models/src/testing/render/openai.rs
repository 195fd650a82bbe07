//! An answer in OpenAI's two shapes.

use serde_json::{Value, json};

use super::{Events, Shown, pieces, words};

impl Shown<'_> {
    fn chat_stop(&self) -> &'static str {
        match (self.cut, self.said.calls.is_empty()) {
            (Some(_), _) => "length",
            (None, true) => "stop",
            (None, false) => "tool_calls",
        }
    }

    pub(super) fn chat(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.said.text, "refusal": null, "annotations": []});
        if !self.said.thinking.is_empty() {
            message["reasoning_content"] = json!(self.said.thinking);
        }
        if !self.said.calls.is_empty() {
            let call = |(index, name): (usize, &str)| json!({"id": self.id(index), "type": "function", "function": {"name": name, "arguments": self.arguments(index)}});
            message["tool_calls"] = self.names().map(call).collect();
            if self.said.text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        json!({
            "id": "chatcmpl-strict", "object": "chat.completion", "created": 1, "model": self.model,
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": self.chat_stop()}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19},
        })
    }

    pub(super) fn chat_stream(&self) -> String {
        let mut out = Events::default();
        let chunk = |out: &mut Events, delta: Value, finish: Value| {
            out.unnamed(&json!({
                "id": "chatcmpl-strict", "object": "chat.completion.chunk", "created": 1, "model": self.model,
                "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}], "usage": null,
            }));
        };
        chunk(
            &mut out,
            json!({"role": "assistant", "content": null, "refusal": null}),
            Value::Null,
        );
        for word in words(&self.said.thinking) {
            chunk(&mut out, json!({"reasoning_content": word}), Value::Null);
        }
        for word in words(&self.said.text) {
            chunk(&mut out, json!({"content": word}), Value::Null);
        }
        for (index, name) in self.names() {
            let first = json!({"index": index, "id": self.id(index), "type": "function", "function": {"name": name, "arguments": ""}});
            chunk(&mut out, json!({"tool_calls": [first]}), Value::Null);
            for piece in pieces(&self.arguments(index)) {
                let more = json!({"index": index, "function": {"arguments": piece}});
                chunk(&mut out, json!({"tool_calls": [more]}), Value::Null);
            }
        }
        chunk(&mut out, json!({}), json!(self.chat_stop()));
        out.unnamed(&json!({
            "id": "chatcmpl-strict", "object": "chat.completion.chunk", "created": 1, "model": self.model, "choices": [],
            "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19},
        }));
        out.0.push_str("data: [DONE]\n\n");
        out.0
    }

    fn items(&self) -> Vec<Value> {
        let mut items = Vec::new();
        if !self.said.thinking.is_empty() {
            items.push(json!({"id": format!("rs_{}", self.first_id), "type": "reasoning", "encrypted_content": "ZW5j",
                "summary": [{"type": "summary_text", "text": self.said.thinking}]}));
        }
        if !self.said.text.is_empty() {
            items.push(json!({"id": format!("msg_{}", self.first_id), "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": self.said.text, "annotations": [], "logprobs": []}]}));
        }
        for (index, name) in self.names() {
            let status = if self.is_cut(index) {
                "incomplete"
            } else {
                "completed"
            };
            items.push(json!({"id": format!("fc_{}", self.first_id + index), "type": "function_call", "status": status,
                "call_id": self.id(index), "name": name, "arguments": self.arguments(index)}));
        }
        items
    }

    pub(super) fn responses(&self) -> Value {
        let (status, details) = match self.cut {
            Some(_) => ("incomplete", json!({"reason": "max_output_tokens"})),
            None => ("completed", Value::Null),
        };
        json!({
            "id": "resp_strict", "object": "response", "created_at": 1, "status": status, "error": null,
            "incomplete_details": details, "instructions": null, "model": self.model, "output": self.items(),
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "metadata": {},
            "usage": {"input_tokens": 12, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 19},
        })
    }

    pub(super) fn responses_stream(&self) -> String {
        let mut out = Events::default();
        let mut number = 0;
        let mut event = |out: &mut Events, mut event: Value| {
            event["sequence_number"] = json!(number);
            number += 1;
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            out.named(&kind, &event);
        };
        let mut begun = self.responses();
        begun["status"] = json!("in_progress");
        begun["output"] = json!([]);
        begun["usage"] = Value::Null;
        event(
            &mut out,
            json!({"type": "response.created", "response": begun}),
        );
        for (index, item) in self.items().into_iter().enumerate() {
            let id = item["id"].clone();
            let mut empty = item.clone();
            empty["status"] = json!("in_progress");
            let added = |item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
            match item["type"].as_str() {
                Some("message") => {
                    empty["content"] = json!([]);
                    event(&mut out, added(empty));
                    let part = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
                    event(
                        &mut out,
                        json!({"type": "response.content_part.added", "item_id": id, "output_index": index, "content_index": 0, "part": part}),
                    );
                    for word in words(&self.said.text) {
                        event(
                            &mut out,
                            json!({"type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0, "delta": word, "logprobs": []}),
                        );
                    }
                    event(
                        &mut out,
                        json!({"type": "response.output_text.done", "item_id": id, "output_index": index, "content_index": 0, "text": self.said.text, "logprobs": []}),
                    );
                    event(
                        &mut out,
                        json!({"type": "response.content_part.done", "item_id": id, "output_index": index, "content_index": 0, "part": item["content"][0]}),
                    );
                }
                Some("function_call") => {
                    let arguments = item["arguments"].as_str().unwrap_or_default().to_owned();
                    empty["arguments"] = json!("");
                    event(&mut out, added(empty));
                    for piece in pieces(&arguments) {
                        event(
                            &mut out,
                            json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": piece}),
                        );
                    }
                    event(
                        &mut out,
                        json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": index, "name": item["name"], "arguments": arguments}),
                    );
                }
                _ => {
                    empty["summary"] = json!([]);
                    event(&mut out, added(empty));
                    for word in words(&self.said.thinking) {
                        event(
                            &mut out,
                            json!({"type": "response.reasoning_summary_text.delta", "item_id": id, "output_index": index, "summary_index": 0, "delta": word}),
                        );
                    }
                }
            }
            event(
                &mut out,
                json!({"type": "response.output_item.done", "output_index": index, "item": item}),
            );
        }
        let last = match self.cut {
            Some(_) => "response.incomplete",
            None => "response.completed",
        };
        event(
            &mut out,
            json!({"type": last, "response": self.responses()}),
        );
        out.0
    }
}
