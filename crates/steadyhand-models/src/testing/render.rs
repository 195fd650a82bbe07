//! An answer in each provider's shape: whole, and as the stream it would send, with the habits of the real ones.

mod openai;

use std::fmt::Write;

use serde_json::{Value, json};

use super::Said;
use crate::settings::Dialect;

/// An answer to be shown: what is said, and whether the tokens ran out in the arguments of the last call.
pub(super) struct Shown<'a> {
    pub(super) dialect: Dialect,
    pub(super) model: &'a str,
    pub(super) said: &'a Said,
    /// The text of the last call's arguments, where it was cut off.
    pub(super) cut: Option<&'a str>,
    /// Makes ids: none is used twice.
    pub(super) first_id: usize,
}

impl Shown<'_> {
    fn is_cut(&self, index: usize) -> bool {
        self.cut.is_some() && index + 1 == self.said.calls.len()
    }

    fn arguments(&self, index: usize) -> String {
        match self.cut {
            Some(cut) if self.is_cut(index) => cut.to_owned(),
            _ => self.said.calls[index].1.to_string(),
        }
    }

    /// What is left of arguments where they are an object: everything, or nothing.
    fn object(&self, index: usize) -> Value {
        serde_json::from_str(&self.arguments(index)).unwrap_or_else(|_| json!({}))
    }

    fn id(&self, index: usize) -> String {
        let number = self.first_id + index;
        match self.dialect {
            Dialect::Anthropic => format!("toolu_{number:024}"),
            _ => format!("call_{number:08}"),
        }
    }

    fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let calls = self.said.calls.iter().enumerate();
        calls.map(|(index, (name, _))| (index, name.as_str()))
    }

    /// The whole answer.
    pub(super) fn whole(&self) -> Value {
        match self.dialect {
            Dialect::Anthropic => self.anthropic(),
            Dialect::OpenAi => self.chat(),
            Dialect::OpenAiResponses => self.responses(),
            Dialect::Ollama => self.ollama(),
        }
    }

    /// The stream that amounts to it.
    pub(super) fn stream(&self) -> String {
        match self.dialect {
            Dialect::Anthropic => self.anthropic_stream(),
            Dialect::OpenAi => self.chat_stream(),
            Dialect::OpenAiResponses => self.responses_stream(),
            Dialect::Ollama => self.ollama_stream(),
        }
    }

    fn anthropic_stop(&self) -> &'static str {
        match (self.cut, self.said.calls.is_empty()) {
            (Some(_), _) => "max_tokens",
            (None, true) => "end_turn",
            (None, false) => "tool_use",
        }
    }

    fn anthropic(&self) -> Value {
        let mut content = Vec::new();
        if !self.said.thinking.is_empty() {
            content.push(json!({"type": "thinking", "thinking": self.said.thinking, "signature": "c2lnbmVk"}));
        }
        if !self.said.text.is_empty() {
            content.push(json!({"type": "text", "text": self.said.text}));
        }
        for (index, name) in self.names() {
            content.push(json!({"type": "tool_use", "id": self.id(index), "name": name, "input": self.object(index)}));
        }
        json!({
            "id": "msg_strict", "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": self.anthropic_stop(), "stop_sequence": null,
            "usage": {"input_tokens": 12, "output_tokens": 7},
        })
    }

    fn anthropic_stream(&self) -> String {
        let mut out = Events::default();
        out.named("message_start", &json!({"type": "message_start", "message": {
            "id": "msg_strict", "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 1},
        }}));
        out.named("ping", &json!({"type": "ping"}));
        let mut index = 0;
        let mut block = |out: &mut Events, start: Value, deltas: Vec<Value>| {
            out.named(
                "content_block_start",
                &json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            for delta in deltas {
                out.named(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": index, "delta": delta}),
                );
            }
            out.named(
                "content_block_stop",
                &json!({"type": "content_block_stop", "index": index}),
            );
            index += 1;
        };
        if !self.said.thinking.is_empty() {
            let mut deltas: Vec<Value> = words(&self.said.thinking)
                .map(|word| json!({"type": "thinking_delta", "thinking": word}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": "c2lnbmVk"}));
            let start = json!({"type": "thinking", "thinking": "", "signature": ""});
            block(&mut out, start, deltas);
        }
        if !self.said.text.is_empty() {
            let deltas = words(&self.said.text)
                .map(|word| json!({"type": "text_delta", "text": word}))
                .collect();
            block(&mut out, json!({"type": "text", "text": ""}), deltas);
        }
        for (place, name) in self.names() {
            let arguments = self.arguments(place);
            // The first piece is always empty; a call without arguments has no other.
            let mut deltas = vec![json!({"type": "input_json_delta", "partial_json": ""})];
            if arguments != "{}" {
                let pieces = pieces(&arguments);
                deltas.extend(
                    pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})),
                );
            }
            let start =
                json!({"type": "tool_use", "id": self.id(place), "name": name, "input": {}});
            block(&mut out, start, deltas);
        }
        out.named("message_delta", &json!({"type": "message_delta",
            "delta": {"stop_reason": self.anthropic_stop(), "stop_sequence": null}, "usage": {"output_tokens": 7}}));
        out.named("message_stop", &json!({"type": "message_stop"}));
        out.0
    }

    fn ollama_stop(&self) -> &'static str {
        match self.cut {
            Some(_) => "length",
            None => "stop",
        }
    }

    /// What breaks off is swallowed there: the call is gone.
    fn ollama_calls(&self) -> Value {
        let whole = self.names().filter(|(index, _)| {
            !self.is_cut(*index) || serde_json::from_str::<Value>(&self.arguments(*index)).is_ok()
        });
        let call = |(index, name): (usize, &str)| json!({"id": self.id(index), "function": {"index": index, "name": name, "arguments": self.object(index)}});
        whole.map(call).collect()
    }

    fn ollama(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.said.text});
        if !self.said.thinking.is_empty() {
            message["thinking"] = json!(self.said.thinking);
        }
        let calls = self.ollama_calls();
        if calls != json!([]) {
            message["tool_calls"] = calls;
        }
        let mut answer = self.ollama_end();
        answer["message"] = message;
        answer
    }

    fn ollama_end(&self) -> Value {
        json!({
            "model": self.model, "created_at": "2026-11-16T12:00:00Z", "message": {"role": "assistant", "content": ""}, "done": true,
            "done_reason": self.ollama_stop(), "total_duration": 5, "load_duration": 1, "prompt_eval_count": 4000, "prompt_eval_duration": 2,
            "eval_count": 7, "eval_duration": 2,
        })
    }

    fn ollama_stream(&self) -> String {
        let mut out = String::new();
        let mut line = |message: Value| {
            let line = json!({"model": self.model, "created_at": "2026-11-16T12:00:00Z", "message": message, "done": false});
            let _ = writeln!(out, "{line}");
        };
        for word in words(&self.said.thinking) {
            line(json!({"role": "assistant", "content": "", "thinking": word}));
        }
        for word in words(&self.said.text) {
            line(json!({"role": "assistant", "content": word}));
        }
        if let Value::Array(calls) = self.ollama_calls() {
            for call in calls {
                line(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
            }
        }
        let _ = writeln!(out, "{}", self.ollama_end());
        out
    }
}

/// What a provider says in place of an answer.
pub(super) fn refusal(dialect: Dialect, status: u16, message: &str) -> Value {
    match dialect {
        Dialect::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                404 => "not_found_error",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_strict"})
        }
        Dialect::OpenAi | Dialect::OpenAiResponses => {
            json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}})
        }
        Dialect::Ollama => json!({ "error": message }),
    }
}

/// The same in the middle of a stream.
pub(super) fn midway(dialect: Dialect, message: &str) -> String {
    let body = refusal(dialect, 529, message);
    match dialect {
        Dialect::Anthropic => format!("event: error\ndata: {body}\n\n"),
        Dialect::OpenAi => format!("data: {body}\n\n"),
        Dialect::OpenAiResponses => {
            let event = json!({"type": "error", "code": "server_error", "message": message, "param": null, "sequence_number": 9});
            format!("event: error\ndata: {event}\n\n")
        }
        Dialect::Ollama => format!("{body}\n"),
    }
}

#[derive(Default)]
struct Events(String);

impl Events {
    /// With blanks before the end, as Anthropic pads its lines.
    fn named(&mut self, kind: &str, event: &Value) {
        let _ = write!(self.0, "event: {kind}\ndata: {event}   \n\n");
    }

    fn unnamed(&mut self, event: &Value) {
        let _ = write!(self.0, "data: {event}\n\n");
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ').filter(|word| !word.is_empty())
}

/// Pieces of three letters: they end in the middle of everything.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters
        .chunks(3)
        .map(|three| three.iter().collect())
        .collect();
    pieces.into_iter()
}
