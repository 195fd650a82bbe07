//! Fields of messages that belong to another provider's API, or to its answers: refused where they are not known.

use serde_json::{Map, Value, json};

use super::rules::RequestRules;
use crate::place::escape;
use crate::problem::{Code, Log};

/// What chat completions have beside the role and the content: some for their own histories, some in answers only.
pub(super) const OF_CHAT: &[&str] = &[
    "annotations",
    "audio",
    "function_call",
    "images",
    "name",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "tool_call_id",
    "tool_calls",
    "tool_name",
];

/// What Anthropic's answers and the messages of OpenAI's Responses have beside the role and the content: they say that they
/// are of type "message".
const OF_ANSWERS: &[&str] = &[
    "container",
    "id",
    "model",
    "phase",
    "status",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "type",
    "usage",
];

/// Whether a message with these fields is an answer that says so, and this is a field of it.
pub(super) fn is_of_an_answer(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get("type").is_some_and(|kind| kind == "message") && OF_ANSWERS.contains(&key)
}

/// Leaves out the fields that the provider refuses. Runs after each message was looked at by itself: what they say has
/// been taken over.
pub(super) fn leave_out(
    rules: &(impl RequestRules + ?Sized),
    messages: &mut [Value],
    base: &str,
    log: &mut Log,
) {
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(fields) = message.as_object_mut() else {
            continue;
        };
        // Nearly all messages: a role and a content, or parts.
        if fields.len() <= 2 && fields.contains_key("role") {
            continue;
        }
        if rules.has_no_refusals() {
            keep_refusal(fields);
        }
        let is_refused = |key: &&String| rules.refuses_message_field(fields, key);
        let refused: Vec<String> = fields.keys().filter(is_refused).cloned().collect();
        for key in refused {
            fields.shift_remove(&key);
            log.found(
                format!("{base}/{index}/{}", escape(&key)),
                Code::BadField,
                "this is no field of a message here",
            )
            .says(rules.says_to_message_field(index, &key))
            .fixed("it is left out");
        }
    }
}

/// The words of a refusal stand beside the content in chat completions; where there is no content they are it.
fn keep_refusal(fields: &mut Map<String, Value>) {
    let said = fields.get("refusal").and_then(Value::as_str);
    let Some(said) = said.filter(|said| !said.is_empty()).map(str::to_owned) else {
        return;
    };
    let is_silent = |content: Option<&Value>| match content {
        None | Some(Value::Null) => true,
        Some(Value::String(said)) => said.is_empty(),
        Some(Value::Array(parts)) => parts.is_empty(),
        Some(_) => false,
    };
    if is_silent(fields.get("content")) {
        fields.insert("content".to_owned(), json!(said));
    }
}
