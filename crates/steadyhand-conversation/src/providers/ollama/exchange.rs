//! How Ollama speaks over HTTP: a JSON value a line.

use serde_json::{Value, json};

use super::OllamaFormat;
use crate::providers::client::ClientFormat;
use crate::providers::format::{ProviderFormat, found, has, is_named, keep, remove};
use crate::stream_state::StreamState;

impl ProviderFormat for OllamaFormat {
    fn client(&self) -> &'static dyn ClientFormat {
        &OllamaFormat
    }

    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        found(answer, "/message")
    }

    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        keep(answer, "/message/tool_calls", |call| {
            is_named(&call["function"], is_meant)
        });
    }

    fn leave_out_words(&self, answer: &mut Value) {
        if let Some(message) = answer.get_mut("message") {
            message["content"] = json!("");
        }
    }

    fn words(&self, answer: &Value) -> String {
        let said = answer.pointer("/message/content");
        said.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn has_object_arguments(&self) -> bool {
        true
    }

    fn forbid_tools(&self, request: &mut Value) {
        remove(request, "tools");
    }

    fn end_mark(&self) -> &'static str {
        "done: true"
    }

    fn is_end(&self, event: &Value) -> bool {
        event["done"] == true
    }

    fn brings_words_only(&self, event: &[u8]) -> bool {
        !has(event, "\"tool_calls\"") && has(event, "\"done\":false")
    }

    fn write_begin(&self, _stream: &mut StreamState) -> String {
        String::new()
    }

    fn write_words(&self, stream: &mut StreamState, words: &str) -> String {
        let message = json!({"role": "assistant", "content": words});
        format!(
            "{}\n",
            json!({"model": stream.model, "message": message, "done": false})
        )
    }

    fn write_end(&self, _stream: &mut StreamState, answer: &Value) -> String {
        let mut last = answer.clone();
        last["message"]["content"] = json!("");
        last["done"] = json!(true);
        format!("{last}\n")
    }

    fn error_body(&self, _code: &str, _status: u16, words: &str) -> Value {
        json!({ "error": words })
    }

    fn error_event(&self, _code: &str, body: &Value, _words: &str) -> String {
        format!("{body}\n")
    }
}
