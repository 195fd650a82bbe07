//! LangChain's messages go over no wire of their own: what does is in the form of chat completions.

use std::collections::HashSet;

use serde_json::Value;

use super::LangChainFormat;
use crate::providers::chat::exchange;
use crate::providers::format::{ProviderFormat, name_of, remove};
use crate::stream_state::StreamState;

impl ProviderFormat for LangChainFormat {
    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        vec![answer.clone()]
    }

    fn keep_calls(&self, _answer: &mut Value, _is_meant: &dyn Fn(&str) -> bool) {}

    fn leave_out_words(&self, _answer: &mut Value) {}

    fn words(&self, answer: &Value) -> String {
        exchange::words(answer)
    }

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        tools.iter().filter_map(name_of).collect()
    }

    fn forbid_tools(&self, request: &mut Value) {
        remove(request, "tools");
    }

    fn end_mark(&self) -> &'static str {
        exchange::END_MARK
    }

    fn is_end(&self, event: &Value) -> bool {
        exchange::is_end(event)
    }

    fn brings_words_only(&self, event: &[u8]) -> bool {
        exchange::brings_words_only(event)
    }

    fn write_begin(&self, stream: &mut StreamState) -> String {
        exchange::write_begin(stream)
    }

    fn write_words(&self, stream: &mut StreamState, words: &str) -> String {
        exchange::write_words(stream, words)
    }

    fn write_end(&self, stream: &mut StreamState, answer: &Value) -> String {
        exchange::write_end(stream, answer)
    }

    fn error_body(&self, code: &str, status: u16, words: &str) -> Value {
        exchange::error_body(code, status, words)
    }
}
