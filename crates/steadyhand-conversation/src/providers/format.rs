//! What those who carry requests and answers must know of a provider: where an answer has its words and its calls, what its
//! stream looks like, and its errors. Each provider says it in its own folder.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::chat::exchange;
use super::client::ClientFormat;
use super::openai::OpenAiFormat;
use crate::client::StreamReader;
use crate::stream_state::StreamState;

/// A request that is sound at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoundRequest {
    /// The model, where the request names it.
    pub model: Option<String>,
    /// Whether the answer is to be a stream.
    pub streams: bool,
}

/// How a provider speaks over HTTP: as chat completions do, if it does not say otherwise.
pub trait ProviderFormat: Sync {
    /// How a client of ours speaks to it. Those that have no own language for that speak OpenAI's.
    fn client(&self) -> &'static dyn ClientFormat {
        &OpenAiFormat
    }

    /// What the model said, as messages for the next request.
    fn answer_messages(&self, answer: &Value) -> Vec<Value> {
        exchange::answer_messages(answer)
    }

    /// Leaves out of an answer the calls that are not meant.
    fn keep_calls(&self, answer: &mut Value, is_meant: &dyn Fn(&str) -> bool) {
        exchange::keep_calls(answer, is_meant);
    }

    /// Leaves out the words of an answer: they are told elsewhere.
    fn leave_out_words(&self, answer: &mut Value) {
        exchange::leave_out_words(answer);
    }

    /// What an answer says.
    fn words(&self, answer: &Value) -> String {
        exchange::words(answer)
    }

    /// Whether arguments of calls must be objects, so that no client can read others.
    fn has_object_arguments(&self) -> bool {
        false
    }

    /// The names of tools in a request's own shape.
    fn tool_names(&self, tools: &[Value]) -> HashSet<String> {
        exchange::tool_names(tools)
    }

    /// Whether a request wants no tool to be called.
    fn forbids_tools(&self, request: &Value) -> bool {
        request["tool_choice"] == "none"
    }

    /// Lets the model answer in words where a request wants a call.
    fn let_answer(&self, _request: &mut Value) {}

    /// Has the model answer without calls.
    fn forbid_tools(&self, request: &mut Value) {
        put(request, "tool_choice", json!("none"));
    }

    /// The end mark of its streams, for people.
    fn end_mark(&self) -> &'static str {
        "a finish_reason or [DONE]"
    }

    /// Whether an event says that the answer has ended, apart from errors.
    fn is_end(&self, event: &Value) -> bool {
        any_has(event, "choices", "finish_reason")
    }

    /// Whether its streams may end with `[DONE]`.
    fn ends_with_done(&self) -> bool {
        true
    }

    /// Whether a stream is one JSON array that grows, where nobody asks for events.
    fn streams_array(&self) -> bool {
        false
    }

    /// Whether a piece of such a stream has a part of the answer.
    fn has_answer(&self, _piece: &Value) -> bool {
        true
    }

    /// Adds the next piece of such a stream to those before it.
    fn add_piece(&self, _whole: &mut Value, _piece: Value) {}

    /// Reads its stream, where events have their name beside them; in what is read it is their only key.
    fn named_event_reader(&self) -> Option<Box<dyn StreamReader>> {
        None
    }

    /// Whether an event brings nothing but words. Quotes inside of JSON texts are escaped, so what is looked for cannot be
    /// something that the model says.
    fn brings_words_only(&self, event: &[u8]) -> bool {
        exchange::brings_words_only(event)
    }

    /// What the ids of its answers begin with.
    fn id_prefix(&self) -> &'static str {
        "chatcmpl-"
    }

    /// Writes the beginning of a stream.
    fn write_begin(&self, stream: &mut StreamState) -> String {
        exchange::write_begin(stream)
    }

    /// Writes words.
    fn write_words(&self, stream: &mut StreamState, words: &str) -> String {
        exchange::write_words(stream, words)
    }

    /// Writes the end: the calls of the last answer, its reason and its counts.
    fn write_end(&self, stream: &mut StreamState, answer: &Value) -> String {
        exchange::write_end(stream, answer)
    }

    /// The body of an error.
    fn error_body(&self, code: &str, status: u16, words: &str) -> Value {
        let kind = kind_of(status);
        json!({"error": {"message": words, "type": kind, "param": null, "code": code}})
    }

    /// The last event of a stream that breaks off, with this error.
    fn error_event(&self, _code: &str, body: &Value, _words: &str) -> String {
        format!("data: {body}\n\n")
    }

    /// The header that names the kind of an error.
    fn error_header(&self, _status: u16) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Whether a request is sound at a glance: a usual shape, every call answered right behind it, nothing unusual anywhere.
    /// None says nothing.
    fn sound_request(&self, _request: &[u8]) -> Option<SoundRequest> {
        None
    }
}

impl dyn ProviderFormat {
    /// Whether an event is the end mark: a stream that ends without it broke off. An error is one, too: its provider has said
    /// how it ended.
    pub fn is_end_mark(&self, event: &Value) -> bool {
        self.is_end(event) || is_there(event.get("error"))
    }

    /// The same for an event that has not been read.
    pub fn is_end_mark_in(&self, event: &[u8]) -> bool {
        let event = event.trim_ascii();
        if event == b"[DONE]" {
            return self.ends_with_done();
        }
        serde_json::from_slice(event).is_ok_and(|event| self.is_end_mark(&event))
    }
}

/// Whether something is said. Some write an empty text where there is no reason yet.
pub(super) fn is_there(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && *value != "")
}

/// Whether one of a list's entries says something under this key.
pub(super) fn any_has(event: &Value, list: &str, key: &str) -> bool {
    let list = event.get(list).and_then(Value::as_array);
    let mut list = list.into_iter().flatten();
    list.any(|one| is_there(one.get(key)))
}

pub(super) fn has(event: &[u8], what: &str) -> bool {
    memchr::memmem::find(event, what.as_bytes()).is_some()
}

/// Leaves out what is not kept of the list at this place.
pub(super) fn keep(answer: &mut Value, list: &str, is_kept: impl Fn(&Value) -> bool) {
    if let Some(Value::Array(list)) = answer.pointer_mut(list) {
        list.retain(is_kept);
    }
}

/// What stands at this place, if anything does.
pub(super) fn found(answer: &Value, pointer: &str) -> Vec<Value> {
    answer.pointer(pointer).cloned().into_iter().collect()
}

/// The texts of a list, without those that are thoughts.
pub(super) fn texts(list: Option<&Value>) -> String {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let spoken = list.filter(|one| one["thought"] != true);
    spoken.filter_map(|one| one["text"].as_str()).collect()
}

pub(super) fn name_of(tool: &Value) -> Option<String> {
    tool["name"].as_str().map(str::to_owned)
}

pub(super) fn is_named(value: &Value, is_meant: &dyn Fn(&str) -> bool) -> bool {
    value["name"].as_str().is_some_and(is_meant)
}

/// An event whose name is also the type of its data.
pub(super) fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

/// Puts a field into a request.
pub(super) fn put(request: &mut Value, key: &str, value: Value) {
    if let Some(fields) = request.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

pub(super) fn remove(request: &mut Value, key: &str) {
    if let Some(fields) = request.as_object_mut() {
        fields.shift_remove(key);
    }
}

/// The kind of an error, as OpenAI and those who speak as it does name it.
pub(super) fn kind_of(status: u16) -> &'static str {
    match (400..500).contains(&status) {
        true => "invalid_request_error",
        false => "server_error",
    }
}

/// Lets the model answer in words, where OpenAI's word wants a call.
pub(crate) fn let_answer(request: &mut Value) {
    if request["tool_choice"] == "required" || request["tool_choice"] == "any" {
        request["tool_choice"] = json!("auto");
    }
}
