//! How OpenAI's Chat Completions speak over HTTP.

use std::collections::HashSet;

use serde_json::Value;

use super::{OpenAiFormat, sound};
use crate::providers::chat::exchange;
use crate::providers::format::{ProviderFormat, SoundRequest};
use crate::stream_state::StreamState;

impl ProviderFormat for OpenAiFormat {
    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        exchange::answer_messages(answer)
    }

    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        exchange::keep_calls(answer, is_meant);
    }

    fn leave_out_words(&self, answer: &mut Value) {
        exchange::leave_out_words(answer);
    }

    fn words(&self, answer: &Value) -> String {
        exchange::words(answer)
    }

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        exchange::tool_names(tools)
    }

    fn let_answer(&self, request: &mut Value) {
        exchange::let_answer(request);
    }

    fn forbid_tools(&self, request: &mut Value) {
        exchange::forbid_tools(request);
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

    fn sound_request(&self, request: &[u8]) -> Option<SoundRequest> {
        sound::request(request)
    }
}
