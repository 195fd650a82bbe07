//! A model's answer: where it is in a response, whether it is whole, and the same one mended.

use serde_json::Value;

use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::mender::Mender;
use crate::providers::rules::Rules;
use crate::providers::wire::{self, At, text};
use crate::texts;

/// Says what is wrong with an answer (SPEC R02).
pub(super) fn check(provider: Provider, value: &Value, log: &mut Log) {
    let rules = provider.rules();
    if rules.is_error(value) {
        log.found("", Code::ErrorResponse, "the answer is an error");
        return;
    }
    if let Some((at, fault)) = rules.absent(value) {
        log.found(at, Code::NoMessages, fault);
        return;
    }
    let wire = wire::of(provider);
    let mut calls = 0;
    let is_cut = is_cut_off(rules, value);
    let messages = rules.said(value);
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
        if let Some(fields) = copy.as_object_mut() {
            rules.leave_out_of_answer(fields);
            // A list of calls that has none, which many servers write, is refused only when it is sent back.
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
        if let Some(place) = without_content(rules, message) {
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
            && let Some(place) = unsure(rules, message, call.part)
        {
            log.found(
                format!("{pointer}{place}"),
                Code::TruncatedCall,
                "the answer ran out of tokens in this call: its arguments may not be whole",
            );
        }
    }
    if rules.stops_for_tools(value) && calls == 0 {
        log.found(
            "",
            Code::BadContent,
            "the answer stops for tools and calls none",
        );
    }
}

/// Where the content of an answer is missing or null, with no call to make up for it.
fn without_content(rules: &dyn Rules, message: &Value) -> Option<&'static str> {
    let (body, place) = rules.content_place(message)?;
    let has = |key: &str| match body.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
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
    let acts = rules.has_calls_beside_content() && acts.iter().any(|key| has(key));
    (!acts).then_some(place)
}

/// Whether nothing follows this part of a message: where the tokens ran out, they ran out in it.
pub(super) fn is_last(rules: &dyn Rules, message: &Value, part: usize) -> bool {
    let parts = rules.parts(message).and_then(Value::as_array);
    parts.is_none_or(|parts| part + 1 >= parts.len())
}

/// The place of arguments that came as an object, in the last call of an answer that was cut off: an object cannot
/// show where it broke off. Text can, and is looked at elsewhere.
fn unsure(rules: &dyn Rules, message: &Value, part: usize) -> Option<String> {
    let place = rules.object_place(part)?;
    let is_object = message.pointer(&place).is_some_and(Value::is_object);
    (is_object && is_last(rules, message, part)).then_some(place)
}

/// Whether the model had to stop before it was done.
pub(super) fn is_cut_off(rules: &dyn Rules, value: &Value) -> bool {
    matches!(
        rules.stop_reason(value),
        Some("max_tokens" | "length" | "MAX_TOKENS" | "max_output_tokens" | "model_length")
    )
}

/// The answer, mended where that is safe. An error of the provider's stays as it is.
pub(super) fn mend(provider: Provider, mut value: Value, log: &mut Log) -> Value {
    let rules = provider.rules();
    if rules.is_error(&value) || rules.is_stream(&value) {
        return value;
    }
    let may_be = value.is_object() || (value.is_array() && rules.may_be_list());
    if !may_be {
        let fault = "this is no response of a model";
        log.found("", Code::NoMessages, fault)
            .fixed("a response that says so takes its place");
        return error_response(provider, "", fault);
    }
    if let Some((at, fault)) = rules.absent(&value) {
        fill(provider, &mut value, &fault);
        log.found(at, Code::NoMessages, fault)
            .fixed("an answer that says so is put there");
        return value;
    }
    let mut mender = Mender::new(rules, &value, log);
    rules.mend(&mut mender, &mut value);
    value
}

/// Puts an answer that says what is wrong where there is none.
fn fill(provider: Provider, value: &mut Value, fault: &str) {
    let model = text(value, "model").unwrap_or_default().to_owned();
    let Value::Object(error) = error_response(provider, &model, fault) else {
        return;
    };
    if provider.rules().fill(value, &error) {
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

/// A well-formed response whose answer says that the model could not be asked, or did not answer: `Error: <message>`.
///
/// It is the `createErrorResponse` for those who wait for an answer of a model: it calls no tool, ends the turn, and
/// passes [`validate`](crate::validate).
///
/// ```
/// use steadyhand_conversation::{Provider, What, error_response, validate};
///
/// let response = error_response(Provider::OpenAi, "gpt-4o", "the provider did not answer in time");
/// assert_eq!(response["choices"][0]["message"]["content"], "Error: the provider did not answer in time");
/// assert!(validate(Provider::OpenAi, What::Response, &response).is_empty());
/// ```
pub fn error_response(provider: Provider, model: &str, message: &str) -> Value {
    provider
        .rules()
        .error_response(model, &texts::error(message))
}
