//! A model's answer: where it is in a response, whether it is whole, and the same one mended.

mod error;
mod mend;

pub use error::error_response;
pub(super) use mend::mend;

use serde_json::Value;

use super::problem::{Code, Log};
use super::provider::Provider;
use super::wire::{self, At, text};

/// The messages of the model in a response, or in what is one itself, each with its place.
pub(super) fn said(provider: Provider, value: &Value) -> Vec<(String, &Value)> {
    let found = |pointer: &str| value.pointer(pointer).map(|one| (pointer.to_owned(), one));
    let itself = || (String::new(), value);
    match provider {
        Provider::OpenAi | Provider::Mistral => {
            vec![found("/choices/0/message").unwrap_or_else(itself)]
        }
        Provider::Ollama => vec![found("/message").unwrap_or_else(itself)],
        Provider::Gemini => vec![found("/candidates/0/content").unwrap_or_else(itself)],
        Provider::BedrockConverse => vec![found("/output/message").unwrap_or_else(itself)],
        Provider::OpenAiResponses => {
            let (base, items) = match value {
                Value::Array(items) => ("", items.as_slice()),
                Value::Object(fields) => match fields.get("output") {
                    Some(Value::Array(items)) if text(value, "type").is_none() => {
                        ("/output", items.as_slice())
                    }
                    _ => return vec![itself()],
                },
                _ => return vec![itself()],
            };
            let place = |(index, item)| (format!("{base}/{index}"), item);
            items.iter().enumerate().map(place).collect()
        }
        Provider::Anthropic | Provider::LangChain => vec![itself()],
    }
}

/// Says what is wrong with an answer (SPEC R02).
pub(super) fn check(provider: Provider, value: &Value, log: &mut Log) {
    if is_error(provider, value) {
        log.found("", Code::ErrorResponse, "the answer is an error");
        return;
    }
    if let Some((at, fault)) = absent(provider, value) {
        log.found(at, Code::NoMessages, fault);
        return;
    }
    let wire = wire::of(provider);
    let mut calls = 0;
    let is_cut = is_cut_off(provider, value);
    let messages = said(provider, value);
    let last = messages.len().saturating_sub(1);
    for (number, (pointer, message)) in messages.into_iter().enumerate() {
        if !message.is_object() {
            log.found(
                pointer,
                Code::NoMessages,
                "there is no answer of the model here",
            );
            continue;
        }
        let before = log.len();
        let mut copy = message.clone();
        if provider == Provider::Anthropic
            && let Some(fields) = copy.as_object_mut()
        {
            // What an answer has beside them is refused only when it is sent back.
            fields.retain(|key, _| key == "role" || key == "content");
        }
        if let Some(fields) = copy.as_object_mut() {
            // So is a list of calls that has none, which many servers write.
            let says_nothing = |calls: &Value| match calls {
                Value::Array(calls) => calls.is_empty(),
                other => other.is_null(),
            };
            if fields.get("tool_calls").is_some_and(says_nothing) {
                fields.shift_remove("tool_calls");
            }
        }
        let at = At { base: "", index: 0 };
        wire.normalise(&mut copy, at, log, &mut Vec::new());
        log.rebase(before, "/0", &pointer);
        // An empty text is poor, not malformed; what it is filled up with concerns histories.
        log.forget(before, Code::EmptyContent);
        if let Some(place) = without_content(provider, message) {
            log.found(
                format!("{pointer}{place}"),
                Code::EmptyContent,
                "the answer has no content, and calls no tool",
            );
        }
        if is_cut {
            log.rename(before, Code::UnfinishedArguments, Code::TruncatedCall);
        }
        let mut found = Vec::new();
        wire.calls(&copy, &mut found);
        calls += found.len();
        let mut found = Vec::new();
        wire.calls(message, &mut found);
        if is_cut
            && number == last
            && let Some(call) = found.last()
            && let Some(place) = unsure(provider, message, call.part)
        {
            log.found(
                format!("{pointer}{place}"),
                Code::TruncatedCall,
                "the answer ran out of tokens in this call: its arguments may not be whole",
            );
        }
    }
    let stops_for_tools = match provider {
        Provider::Anthropic => value["stop_reason"] == "tool_use",
        Provider::BedrockConverse => value["stopReason"] == "tool_use",
        Provider::OpenAi | Provider::Mistral => {
            value.pointer("/choices/0/finish_reason") == Some(&Value::from("tool_calls"))
        }
        _ => false,
    };
    if stops_for_tools && calls == 0 {
        log.found(
            "",
            Code::BadContent,
            "the answer stops for tools and calls none",
        );
    }
}

/// Where an answer should be and there is none: an empty list, or nothing at all.
fn absent(provider: Provider, value: &Value) -> Option<(String, String)> {
    if !value.is_object() {
        return None;
    }
    let (list, answer, own) = match provider {
        Provider::OpenAi | Provider::Mistral => {
            ("choices", "/choices/0/message", &["role", "content"][..])
        }
        Provider::Gemini => (
            "candidates",
            "/candidates/0/content",
            &["role", "parts"][..],
        ),
        Provider::Ollama => ("message", "/message", &["role", "content"][..]),
        Provider::BedrockConverse => ("output", "/output/message", &["role", "content"][..]),
        // An item of it may be given by itself. What is not done yet has nothing to show, nor need what broke off: its
        // status says so.
        Provider::OpenAiResponses => {
            let is_response =
                value.get("output").is_some() || text(value, "object") == Some("response");
            let is_told = matches!(
                text(value, "status"),
                Some("queued" | "in_progress" | "incomplete" | "failed" | "cancelled")
            );
            let output = value.get("output").and_then(Value::as_array);
            let is_missing = output.is_none_or(Vec::is_empty) && text(value, "type").is_none();
            return (is_response && is_missing && !is_told).then(|| {
                (
                    "/output".to_owned(),
                    "the response has no output of the model".to_owned(),
                )
            });
        }
        Provider::Anthropic | Provider::LangChain => return None,
    };
    let is_message = value.get(list).is_none() && own.iter().any(|key| value.get(key).is_some());
    if is_message || value.pointer(answer).is_some() {
        return None;
    }
    let reason = match provider {
        Provider::Gemini => value
            .pointer("/promptFeedback/blockReason")
            .or_else(|| value.pointer("/candidates/0/finishReason")),
        _ => None,
    };
    let reason = reason.and_then(Value::as_str);
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let is_list = value.pointer(&format!("/{list}/0")).is_some();
    let (at, what) = match (provider, is_list) {
        (Provider::BedrockConverse, _) => (answer.to_owned(), "no message of the model"),
        (Provider::Ollama, _) => ("/message".to_owned(), "no message of the model"),
        (_, false) => (format!("/{list}"), "no answer of the model"),
        (_, true) => (
            answer.to_owned(),
            "no answer of the model in its first place",
        ),
    };
    Some((at, format!("the response has {what}{reason}")))
}

/// Where the content of an answer is missing or null, with no call to make up for it.
fn without_content(provider: Provider, message: &Value) -> Option<&'static str> {
    let (body, inside) = match provider {
        Provider::LangChain => wire::langchain_body(message),
        _ => (message, ""),
    };
    let has = |key: &str| match body.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    };
    let place = match provider {
        Provider::OpenAiResponses if !matches!(text(body, "type"), None | Some("message")) => {
            return None;
        }
        Provider::Gemini => "/parts",
        Provider::LangChain if inside == "/data" => "/data/content",
        Provider::LangChain if inside == "/kwargs" => "/kwargs/content",
        _ => "/content",
    };
    let key = place.rsplit('/').next().unwrap_or_default();
    if body.get(key).is_some_and(|content| !content.is_null()) {
        return None;
    }
    let acts = [
        "tool_calls",
        "invalid_tool_calls",
        "function_call",
        "audio",
        "refusal",
        "content_blocks",
    ];
    let may_act = !matches!(
        provider,
        Provider::Anthropic | Provider::Gemini | Provider::BedrockConverse
    );
    (!(may_act && acts.iter().any(|key| has(key)))).then_some(place)
}

/// Whether nothing follows this part of a message: where the tokens ran out, they ran out in it.
pub(super) fn is_last(provider: Provider, message: &Value, part: usize) -> bool {
    let parts = match provider {
        Provider::Anthropic | Provider::BedrockConverse => &message["content"],
        Provider::OpenAi | Provider::Mistral | Provider::Ollama => &message["tool_calls"],
        Provider::Gemini => &message["parts"],
        // One call each.
        Provider::OpenAiResponses | Provider::LangChain => return true,
    };
    parts.as_array().is_none_or(|parts| part + 1 >= parts.len())
}

/// The place of arguments that came as an object, in the last call of an answer that was cut off: an object cannot
/// show where it broke off. Text can, and is looked at elsewhere.
fn unsure(provider: Provider, message: &Value, part: usize) -> Option<String> {
    let place = match provider {
        Provider::Anthropic => format!("/content/{part}/input"),
        Provider::BedrockConverse => format!("/content/{part}/toolUse/input"),
        Provider::Ollama => format!("/tool_calls/{part}/function/arguments"),
        Provider::Gemini => format!("/parts/{part}/functionCall/args"),
        Provider::OpenAi | Provider::Mistral | Provider::OpenAiResponses | Provider::LangChain => {
            return None;
        }
    };
    let is_object = message.pointer(&place).is_some_and(Value::is_object);
    (is_object && is_last(provider, message, part)).then_some(place)
}

fn is_error(provider: Provider, value: &Value) -> bool {
    let error = value.get("error").is_some_and(|error| !error.is_null());
    match provider {
        Provider::Anthropic => text(value, "type") == Some("error"),
        Provider::Mistral => text(value, "object") == Some("error") || error,
        Provider::Gemini => error || value.get(0).is_some_and(|one| one.get("error").is_some()),
        Provider::OpenAi | Provider::OpenAiResponses | Provider::Ollama => error,
        // An exception of the service's is a message by itself.
        Provider::BedrockConverse => {
            value.get("output").is_none() && value.get("message").is_some_and(Value::is_string)
        }
        Provider::LangChain => false,
    }
}

/// Whether the model had to stop before it was done.
pub(super) fn is_cut_off(provider: Provider, value: &Value) -> bool {
    let reason = match provider {
        Provider::Anthropic => text(value, "stop_reason"),
        Provider::BedrockConverse => text(value, "stopReason"),
        Provider::OpenAi | Provider::Mistral => value
            .pointer("/choices/0/finish_reason")
            .and_then(Value::as_str),
        Provider::Gemini => value
            .pointer("/candidates/0/finishReason")
            .and_then(Value::as_str),
        Provider::Ollama => text(value, "done_reason"),
        Provider::OpenAiResponses => value
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str),
        Provider::LangChain => None,
    };
    matches!(
        reason,
        Some("max_tokens" | "length" | "MAX_TOKENS" | "max_output_tokens" | "model_length")
    )
}
