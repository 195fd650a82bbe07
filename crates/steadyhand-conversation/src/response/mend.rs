//! Makes a model's answer one that its readers can rely on (the `sanitizeResponse` of SPEC R03, R14).
//!
//! Only what has one possible meaning is changed: a call without an id gets one, arguments get the form they should have,
//! a content that is not there becomes an empty one. Arguments that cannot be read stay as they are: made into an object
//! they could be run. `validate` still names them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{absent, error_response, is_error};
use crate::ids;
use crate::problem::{Code, Log};
use crate::provider::Provider;
use crate::texts::{self, as_text};
use crate::wire::text;
use steadyhand::RepeatedName;

/// The answer, mended where that is safe. An error of the provider's stays as it is.
pub(crate) fn mend(provider: Provider, mut value: Value, log: &mut Log) -> Value {
    if is_error(provider, &value) {
        return value;
    }
    let may_be = match provider {
        // Its items may be given by themselves.
        Provider::OpenAiResponses => value.is_object() || value.is_array(),
        _ => value.is_object(),
    };
    if provider == Provider::Gemini && value.is_array() {
        // A stream: each of its pieces is a response.
        return value;
    }
    if !may_be {
        let fault = "this is no response of a model";
        log.found("", Code::NoMessages, fault)
            .fixed("a response that says so takes its place");
        return error_response(provider, "", fault);
    }
    if let Some((at, fault)) = absent(provider, &value) {
        fill(provider, &mut value, &fault);
        log.found(at, Code::NoMessages, fault)
            .fixed("an answer that says so is put there");
        return value;
    }
    let mut mender = Mender {
        provider,
        seed: String::new(),
        ids: HashSet::new(),
        log,
    };
    mender.seed = value.to_string();
    mender.response(&mut value);
    value
}

/// Puts an answer that says what is wrong where there is none.
fn fill(provider: Provider, value: &mut Value, fault: &str) {
    let model = text(value, "model").unwrap_or_default().to_owned();
    let Value::Object(error) = error_response(provider, &model, fault) else {
        return;
    };
    let candidate = value.pointer_mut("/candidates/0");
    if let (Some(candidate @ Value::Object(_)), Provider::Gemini) = (candidate, provider) {
        candidate["content"] = error["candidates"][0]["content"].clone();
        return;
    }
    let Some(fields) = value.as_object_mut() else {
        return;
    };
    for (key, own) in error {
        let is_answer = ["choices", "candidates", "message", "output"].contains(&key.as_str());
        if is_answer || !fields.contains_key(&key) {
            fields.insert(key, own);
        }
    }
}

struct Mender<'a> {
    provider: Provider,
    /// What ids are made of: the same response always gives the same ones, and another one others.
    seed: String,
    /// The ids that calls of this response have.
    ids: HashSet<String>,
    log: &'a mut Log,
}

impl Mender<'_> {
    fn response(&mut self, value: &mut Value) {
        match self.provider {
            Provider::OpenAi | Provider::Mistral => {
                let choices = value.get_mut("choices").and_then(Value::as_array_mut);
                let Some(choices) = choices else {
                    return self.chat(value, "");
                };
                for (index, choice) in choices.iter_mut().enumerate() {
                    // Each choice is an answer of its own.
                    self.ids.clear();
                    if let Some(message) = choice.get_mut("message") {
                        self.chat(message, &format!("/choices/{index}/message"));
                    }
                }
            }
            Provider::Ollama => match value.get_mut("message") {
                Some(message) => self.chat(message, "/message"),
                None => self.chat(value, ""),
            },
            Provider::Anthropic => self.anthropic(value),
            Provider::BedrockConverse => match value.pointer_mut("/output/message") {
                Some(message) => self.converse(message, "/output/message"),
                None => self.converse(value, ""),
            },
            Provider::Gemini => {
                let candidates = value.get_mut("candidates").and_then(Value::as_array_mut);
                let Some(candidates) = candidates else {
                    return self.gemini(value, "");
                };
                for (index, candidate) in candidates.iter_mut().enumerate() {
                    if let Some(content) = candidate.get_mut("content") {
                        self.gemini(content, &format!("/candidates/{index}/content"));
                    }
                }
            }
            Provider::OpenAiResponses => self.responses(value),
            Provider::LangChain => self.langchain(value),
        }
    }

    /// A message of chat completions, or Ollama's.
    fn chat(&mut self, message: &mut Value, at: &str) {
        if !message.is_object() {
            let said = match message.take() {
                Value::Null => String::new(),
                other => as_text(&other),
            };
            self.fixed(at, Code::BadContent, "this is no message", "it is one now");
            *message = json!({"role": "assistant", "content": said});
            return;
        }
        self.role(message, at);
        let is_plain_text = self.provider == Provider::Ollama;
        let acts = ["tool_calls", "function_call", "audio", "refusal"]
            .iter()
            .any(|key| says_something(message.get(key)));
        let content = match message.get("content") {
            Some(Value::String(_)) => None,
            None | Some(Value::Null) if acts => None,
            None | Some(Value::Null) => Some(String::new()),
            Some(Value::Array(_)) if !is_plain_text => None,
            Some(Value::Array(parts)) => {
                let words = parts
                    .iter()
                    .map(|part| text(part, "text").unwrap_or_default());
                Some(words.collect())
            }
            Some(other) => Some(as_text(other)),
        };
        if let Some(content) = content {
            self.content(at);
            message["content"] = json!(content);
        }
        if let Some(call @ Value::Object(_)) = message.get_mut("tool_calls") {
            let call = call.take();
            let at = format!("{at}/tool_calls");
            self.fixed(
                &at,
                Code::BadContent,
                "the calls are no list",
                "they are one now",
            );
            message["tool_calls"] = json!([call]);
        }
        let Some(Value::Array(calls)) = message.get_mut("tool_calls") else {
            return;
        };
        for (index, call) in calls.iter_mut().enumerate() {
            self.chat_call(call, &format!("{at}/tool_calls/{index}"));
        }
    }

    fn chat_call(&mut self, call: &mut Value, at: &str) {
        let Some(fields) = call.as_object_mut() else {
            return;
        };
        let is_custom = fields.get("custom").is_some_and(Value::is_object);
        if !is_custom && !fields.get("function").is_some_and(Value::is_object) {
            // LangChain's calls, and some servers', have their name and arguments one level up.
            let name = fields.shift_remove("name").unwrap_or_default();
            let arguments = ["args", "arguments"]
                .iter()
                .find_map(|key| fields.shift_remove(*key));
            let function = json!({"name": name, "arguments": arguments.unwrap_or_default()});
            fields.insert("function".to_owned(), function);
            self.fixed(
                at,
                Code::BadArguments,
                "this call has no function",
                "it is written as a call of one",
            );
        }
        if self.provider == Provider::OpenAi && !fields.contains_key("type") {
            let kind = if is_custom { "custom" } else { "function" };
            fields.insert("type".to_owned(), json!(kind));
            self.fixed(
                at,
                Code::BadArguments,
                "the call does not say what it is",
                "now it does",
            );
        }
        self.id(fields, "id", at);
        let key = if is_custom { "custom" } else { "function" };
        let Some(function) = fields.get_mut(key).and_then(Value::as_object_mut) else {
            return;
        };
        let at = format!("{at}/{key}");
        self.name(function, &at);
        if is_custom {
            return;
        }
        let at = format!("{at}/arguments");
        match self.provider {
            Provider::Ollama => self.object(function, "arguments", &at),
            _ => self.text(function, "arguments", &at),
        }
    }

    fn anthropic(&mut self, message: &mut Value) {
        self.role(message, "");
        // A message by itself may be a text, a response may not.
        let is_response = message.get("stop_reason").is_some();
        let mended = match message.get_mut("content") {
            None | Some(Value::Null) => {
                self.content("");
                Some(json!([]))
            }
            Some(Value::Array(_)) => None,
            Some(Value::String(_)) if !is_response => None,
            Some(Value::String(said)) => {
                let said = std::mem::take(said);
                self.fixed(
                    "/content",
                    Code::BadContent,
                    "the content is no list of blocks",
                    "it is one now",
                );
                Some(json!([{"type": "text", "text": said}]))
            }
            Some(block @ Value::Object(_)) => {
                let block = block.take();
                self.fixed(
                    "/content",
                    Code::BadContent,
                    "the content is no list of blocks",
                    "it is one now",
                );
                Some(json!([block]))
            }
            Some(_) => None,
        };
        if let Some(content) = mended {
            message["content"] = content;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return;
        };
        for (index, block) in blocks.iter_mut().enumerate() {
            let at = format!("/content/{index}");
            if let Value::String(said) = block {
                *block = json!({"type": "text", "text": said});
                self.fixed(&at, Code::BadContent, "this is no block", "it is one now");
                continue;
            }
            let is_call = text(block, "type") == Some("tool_use");
            let Some(fields) = block.as_object_mut().filter(|_| is_call) else {
                continue;
            };
            self.id(fields, "id", &at);
            self.name(fields, &at);
            self.object(fields, "input", &format!("{at}/input"));
        }
    }

    fn converse(&mut self, message: &mut Value, at: &str) {
        if !message.is_object() {
            let said = match message.take() {
                Value::Null => String::new(),
                other => as_text(&other),
            };
            self.fixed(at, Code::BadContent, "this is no message", "it is one now");
            *message = json!({"role": "assistant", "content": [{"text": said}]});
            return;
        }
        self.role(message, at);
        let mended = match message.get_mut("content") {
            Some(Value::Array(_)) => None,
            None | Some(Value::Null) => {
                self.content(at);
                Some(json!([]))
            }
            Some(Value::String(said)) => Some(json!([{"text": said}])),
            Some(other) => Some(json!([other.take()])),
        };
        if let Some(content) = mended {
            if message["content"].is_string() || message["content"].is_null() {
                let at = format!("{at}/content");
                let fault = "the content is no list of blocks";
                if message["content"].is_string() {
                    self.fixed(&at, Code::BadContent, fault, "it is one now");
                }
            }
            message["content"] = content;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return;
        };
        for (index, block) in blocks.iter_mut().enumerate() {
            let at = format!("{at}/content/{index}/toolUse");
            let Some(call) = block.get_mut("toolUse").and_then(Value::as_object_mut) else {
                continue;
            };
            self.id(call, "toolUseId", &at);
            self.name(call, &at);
            self.object(call, "input", &format!("{at}/input"));
        }
    }

    fn gemini(&mut self, content: &mut Value, at: &str) {
        if !content.is_object() {
            let said = match content.take() {
                Value::Null => String::new(),
                other => as_text(&other),
            };
            self.fixed(at, Code::BadContent, "this is no content", "it is one now");
            *content = json!({"role": "model", "parts": [{"text": said}]});
            return;
        }
        match content.get_mut("parts") {
            None | Some(Value::Null) => {
                self.fixed(
                    &format!("{at}/parts"),
                    Code::EmptyContent,
                    NO_CONTENT,
                    "it has an empty one",
                );
                content["parts"] = json!([{"text": ""}]);
            }
            Some(part @ Value::Object(_)) => {
                let part = part.take();
                self.fixed(
                    &format!("{at}/parts"),
                    Code::BadContent,
                    "the parts are no list",
                    "they are one now",
                );
                content["parts"] = json!([part]);
            }
            Some(_) => {}
        }
        let Some(Value::Array(parts)) = content.get_mut("parts") else {
            return;
        };
        for (index, part) in parts.iter_mut().enumerate() {
            let at = format!("{at}/parts/{index}");
            let key = ["functionCall", "function_call"]
                .into_iter()
                .find(|key| part.get(key).is_some_and(Value::is_object));
            let Some(call) = key.and_then(|key| part[key].as_object_mut()) else {
                continue;
            };
            self.name(call, &at);
            // No arguments are no fault here.
            if says_something(call.get("args")) {
                self.object(call, "args", &at);
            }
        }
    }

    fn responses(&mut self, value: &mut Value) {
        let base = match value.get("output") {
            Some(Value::Array(_)) if text(value, "type").is_none() => "/output",
            _ => "",
        };
        let items = match value {
            Value::Array(items) => items,
            Value::Object(fields) if !base.is_empty() => {
                let Some(Value::Array(items)) = fields.get_mut("output") else {
                    return;
                };
                items
            }
            other => return self.item(other, ""),
        };
        for (index, item) in items.iter_mut().enumerate() {
            self.item(item, &format!("{base}/{index}"));
        }
    }

    fn item(&mut self, item: &mut Value, at: &str) {
        let kind = text(item, "type").unwrap_or("message").to_owned();
        let Some(fields) = item.as_object_mut() else {
            return;
        };
        if kind == "function_call" {
            self.id(fields, "call_id", at);
            self.name(fields, at);
            return self.text(fields, "arguments", &format!("{at}/arguments"));
        }
        if kind != "message" {
            return;
        }
        let place = format!("{at}/content");
        let is_response = fields.contains_key("id");
        match fields.get_mut("content") {
            None | Some(Value::Null) => {
                self.content(at);
                fields.insert("content".to_owned(), json!([]));
            }
            Some(Value::String(said)) if is_response => {
                let said = std::mem::take(said);
                let part = json!({"type": "output_text", "text": said, "annotations": []});
                self.fixed(
                    &place,
                    Code::BadContent,
                    "the content is no list of parts",
                    "it is one now",
                );
                fields.insert("content".to_owned(), json!([part]));
            }
            Some(_) => {}
        }
    }

    fn langchain(&mut self, message: &mut Value) {
        let inside = crate::wire::langchain_body(message).1;
        let body = match inside.strip_prefix('/') {
            Some(key) => &mut message[key],
            None => message,
        };
        let Some(fields) = body.as_object_mut() else {
            return;
        };
        let acts = ["tool_calls", "invalid_tool_calls", "content_blocks"]
            .iter()
            .any(|key| says_something(fields.get(*key)));
        let is_absent = !fields.contains_key("content");
        // A constructor leaves out what is empty.
        let may_lack = acts && is_absent && inside == "/kwargs";
        if matches!(fields.get("content"), None | Some(Value::Null)) && !may_lack {
            self.content(inside);
            fields.insert("content".to_owned(), json!(""));
        }
        let Some(Value::Array(calls)) = fields.get_mut("tool_calls") else {
            return;
        };
        for (index, call) in calls.iter_mut().enumerate() {
            let at = format!("{inside}/tool_calls/{index}");
            let Some(call) = call.as_object_mut() else {
                continue;
            };
            self.id(call, "id", &at);
            self.name(call, &at);
            self.object(call, "args", &format!("{at}/args"));
        }
    }

    fn role(&mut self, message: &mut Value, at: &str) {
        if message.get("role").is_some_and(|role| role == "assistant") {
            return;
        }
        self.fixed(
            &format!("{at}/role"),
            Code::WrongRole,
            "the answer is not said to be the model's",
            "its role is now \"assistant\"",
        );
        message["role"] = json!("assistant");
    }

    fn content(&mut self, at: &str) {
        self.fixed(
            &format!("{at}/content"),
            Code::EmptyContent,
            NO_CONTENT,
            "it has an empty one",
        );
    }

    /// Every call has an id of its own. One that is there stays, whatever it looks like: its provider may read it.
    fn id(&mut self, call: &mut Map<String, Value>, key: &str, at: &str) {
        let at = format!("{at}/{key}");
        let own = match call.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(own)) => own.clone(),
            Some(odd) => {
                let own = as_text(odd);
                self.fixed(&at, Code::BadCallId, "the id is no string", "it is one now");
                call.insert(key.to_owned(), json!(own));
                own
            }
        };
        if own.is_empty() && ids::are_optional(self.provider) {
            return;
        }
        if !own.is_empty() && self.ids.insert(own.clone()) {
            return;
        }
        let (code, fault) = match own.as_str() {
            "" => (Code::BadCallId, "the call has no id".to_owned()),
            // Where nobody needs ids, two calls may share one.
            _ if ids::are_optional(self.provider) => return,
            own => (
                Code::DuplicateCallId,
                format!("another call of this answer has the id {own}"),
            ),
        };
        let number = self.ids.len();
        let made = ids::made(self.provider, &format!("{number} {at} {}", self.seed));
        self.fixed(&at, code, fault, format!("its id is now {made}"));
        self.ids.insert(made.clone());
        call.insert(key.to_owned(), json!(made));
    }

    fn name(&mut self, call: &mut Map<String, Value>, at: &str) {
        let is_named = |name: &Value| name.as_str().is_some_and(|name| !name.is_empty());
        if call.get("name").is_some_and(is_named) {
            return;
        }
        self.fixed(
            &format!("{at}/name"),
            Code::BadCallName,
            "the call has no name",
            format!("it is called {}, which is no tool", texts::NO_NAME),
        );
        call.insert("name".to_owned(), json!(texts::NO_NAME));
    }

    /// Arguments that must be an object. What is no object and not the text of one stays.
    fn object(&mut self, call: &mut Map<String, Value>, key: &str, at: &str) {
        let (fault, object) = match call.get(key) {
            Some(Value::Object(_)) => return,
            None | Some(Value::Null) => ("the call has no arguments", json!({})),
            Some(Value::String(said)) if said.trim().is_empty() => {
                ("the call has no arguments", json!({}))
            }
            // What can be read in two ways stays what it is: it is not run.
            Some(Value::String(said)) if RepeatedName::first_in(said).is_some() => return,
            Some(Value::String(said)) => match serde_json::from_str::<Value>(said) {
                Ok(object @ Value::Object(_)) => ("the arguments are text, not an object", object),
                _ => return,
            },
            Some(_) => return,
        };
        self.fixed(
            at,
            Code::BadArguments,
            fault,
            "they are written as an object",
        );
        call.insert(key.to_owned(), object);
    }

    /// Arguments that must be the text of an object. What is no JSON stays: nobody can run it by mistake.
    fn text(&mut self, call: &mut Map<String, Value>, key: &str, at: &str) {
        let (fault, said) = match call.get(key) {
            Some(Value::String(said)) if !said.trim().is_empty() => return,
            None | Some(Value::Null | Value::String(_)) => {
                ("the call has no arguments", "{}".to_owned())
            }
            Some(Value::Object(_)) if self.provider == Provider::Mistral => return,
            Some(other) => ("the arguments are not a text", other.to_string()),
        };
        self.fixed(at, Code::BadArguments, fault, "they are written as a text");
        call.insert(key.to_owned(), json!(said));
    }

    fn fixed(&mut self, at: &str, code: Code, fault: impl Into<String>, fix: impl Into<String>) {
        self.log.found(at, code, fault).fixed(fix);
    }
}

const NO_CONTENT: &str = "the answer has no content, and calls no tool";

fn says_something(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}
