//! How Bedrock's Converse speaks over HTTP. Its stream is binary, and tools are run for whole answers only.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::ConverseFormat;
use super::stream::ConverseStream;
use crate::client::StreamReader;
use crate::providers::format::{
    ProviderFormat, found, has, is_named, is_there, keep, name_of, remove, texts,
};
use crate::stream_state::StreamState;

impl ProviderFormat for ConverseFormat {
    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        found(answer, "/output/message")
    }

    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        keep(answer, CONTENT, |block| {
            let call = block.get("toolUse");
            call.is_none_or(|call| is_named(call, is_meant))
        });
    }

    fn leave_out_words(&self, answer: &mut Value) {
        keep(answer, CONTENT, |block| block.get("text").is_none());
    }

    fn words(&self, answer: &Value) -> String {
        texts(answer.pointer(CONTENT))
    }

    fn has_object_arguments(&self) -> bool {
        true
    }

    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        let names = tools.iter().filter_map(|tool| name_of(&tool["toolSpec"]));
        names.collect()
    }

    /// It has no way to forbid tools but not to have them.
    fn forbid_tools(&self, request: &mut Value) {
        remove(request, "toolConfig");
    }

    fn end_mark(&self) -> &'static str {
        "messageStop"
    }

    fn is_end(&self, event: &Value) -> bool {
        is_there(event.get("messageStop"))
    }

    fn brings_words_only(&self, event: &[u8]) -> bool {
        has(event, "\"contentBlockDelta\"")
            && !has(event, "\"toolUse\"")
            && !has(event, "\"messageStop\"")
    }

    fn named_event_reader(&self) -> Option<Box<dyn StreamReader>> {
        Some(Box::<ConverseStream>::default())
    }

    fn write_begin(&self, _stream: &mut StreamState) -> String {
        String::new()
    }

    fn write_words(&self, _stream: &mut StreamState, _words: &str) -> String {
        String::new()
    }

    fn write_end(&self, _stream: &mut StreamState, _answer: &Value) -> String {
        String::new()
    }

    fn error_body(&self, _code: &str, _status: u16, words: &str) -> Value {
        json!({ "message": words })
    }

    fn error_header(&self, status: u16) -> Option<(&'static str, &'static str)> {
        let kind = match status {
            401 | 403 => "AccessDeniedException",
            400..=499 => "ValidationException",
            503 => "ServiceUnavailableException",
            504 => "ModelTimeoutException",
            _ => "InternalServerException",
        };
        Some(("x-amzn-errortype", kind))
    }
}

const CONTENT: &str = "/output/message/content";
