//! Mistral's rules about roles: what may follow what, and how a conversation ends.

use serde_json::{Value, json};

use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::opening::go_on;
use crate::providers::wire::text;

/// What it says to a conversation that is one message of the model's.
pub(super) const ALONE: &str = "Conversation must start with a user message or system message";
/// What it says to one that ends with the model's words.
pub(super) const ENDS_BADLY: &str =
    "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant";

/// Mends roles that are wrong for where they stand.
pub(super) fn follow(messages: &mut [Value], base: &str, log: &mut Log) {
    let mut before = String::new();
    let last = messages.len().saturating_sub(1);
    for (index, message) in messages.iter_mut().enumerate() {
        let role = text(message, "role").unwrap_or_default().to_owned();
        let is_system = matches!(role.as_str(), "system" | "developer");
        if is_system && matches!(before.as_str(), "assistant" | "tool") {
            log.found(
                format!("{base}/{index}/role"),
                Code::WrongRole,
                format!("a system message cannot follow the role {before:?}"),
            )
            .says(format!("Unexpected role 'system' after role '{before}'"))
            .fixed("it is the user's now");
            message["role"] = json!("user");
        }
        if index < last && message.get("prefix") == Some(&Value::Bool(true)) {
            log.found(
                format!("{base}/{index}/prefix"),
                Code::BadField,
                "only the last message can be a beginning to go on from",
            )
            .says("Assistant message with prefix True must be last message".to_owned())
            .fixed("this one is none");
            message["prefix"] = json!(false);
        }
        if !is_system {
            before = role;
        } else if text(message, "role") == Some("user") {
            before = "user".to_owned();
        }
    }
}

/// Has the user ask the model to go on, where it does not by itself.
pub(super) fn end(messages: &mut Vec<Value>, places: Places<'_>, log: &mut Log) {
    let ends_badly = messages.last().is_some_and(|last| {
        let goes_on = last.get("prefix") == Some(&Value::Bool(true));
        last["role"] == "assistant" && !goes_on
    });
    let is_alone = messages.len() == 1 && messages[0]["role"] == "assistant";
    if is_alone {
        go_on(messages, places, ALONE, log);
        // Only the last message can be a beginning to go on from.
        if messages[0].get("prefix") == Some(&Value::Bool(true)) {
            messages[0]["prefix"] = json!(false);
        }
    } else if ends_badly {
        go_on(messages, places, ENDS_BADLY, log);
    }
}
