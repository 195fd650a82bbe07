//! A model's answer: where it is in a response, and whether it is whole.

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
        let at = At { base: "", index: 0 };
        wire.normalise(&mut copy, at, log, &mut Vec::new());
        log.rebase(before, "/0", &pointer);
        // An empty answer is poor, not malformed; what it is filled up with concerns histories.
        log.forget(before, Code::EmptyContent);
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

/// Whether nothing follows this part of a message: where the tokens ran out, they ran out in it.
pub(super) fn is_last(provider: Provider, message: &Value, part: usize) -> bool {
    let parts = match provider {
        Provider::Anthropic => &message["content"],
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
        Provider::LangChain => false,
    }
}

/// Whether the model had to stop before it was done.
pub(super) fn is_cut_off(provider: Provider, value: &Value) -> bool {
    let reason = match provider {
        Provider::Anthropic => text(value, "stop_reason"),
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
