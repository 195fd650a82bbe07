//! Rules about messages and those beside them, other than calls and results.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::conversation::host::Host;
use crate::conversation::problem::{Code, Log};
use crate::conversation::provider::Provider;
use crate::conversation::wire::{self, text};

/// Mends roles that are wrong for where they stand. Runs before each message is looked at by itself.
pub(in crate::conversation) fn prepare(
    provider: Provider,
    messages: &mut [Value],
    base: &str,
    log: &mut Log,
) {
    match provider {
        Provider::Anthropic => place_system(messages, base, log),
        Provider::Mistral => follow_mistral(messages, base, log),
        Provider::OpenAi
        | Provider::OpenAiResponses
        | Provider::Gemini
        | Provider::Ollama
        | Provider::BedrockConverse
        | Provider::LangChain => {}
    }
}

/// Mends what is there twice or has lost its neighbour. Runs after each message was looked at by itself.
pub(in crate::conversation) fn settle(
    provider: Provider,
    host: Host,
    messages: &mut [Value],
    base: &str,
    log: &mut Log,
) {
    match provider {
        // Other hosts keep no items, and tie nothing to their ids.
        Provider::OpenAiResponses if host.is_strict() => {
            unique_items(messages, base, log);
            dangling_reasoning(messages, base, log);
            parted_reasoning(messages, base, log);
        }
        Provider::BedrockConverse => alternation(messages, base, log),
        _ => {}
    }
}

/// Bedrock wants the roles to alternate. What follows in the same role is joined to it once everything is in its place.
fn alternation(messages: &[Value], base: &str, log: &mut Log) {
    for index in 1..messages.len() {
        if text(&messages[index], "role") == text(&messages[index - 1], "role") {
            log.found(
                format!("{base}/{index}"),
                Code::ConsecutiveRoles,
                "the message before it has the same role",
            )
            .says("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.".to_owned())
            .fixed("they are one message");
        }
    }
}

/// Anthropic takes a system message only behind others, at the end or before the model's turn.
fn place_system(messages: &mut [Value], base: &str, log: &mut Log) {
    for index in 0..messages.len() {
        if text(&messages[index], "role") != Some("system") {
            continue;
        }
        let next = messages.get(index + 1);
        let ends_turn = next.is_none_or(|next| text(next, "role") == Some("assistant"));
        let answers = |block: &Value| {
            text(block, "type") == Some("tool_result") || block.get("tool_use_id").is_some()
        };
        let blocks = messages[index].get("content").and_then(Value::as_array);
        let has_results = blocks.is_some_and(|blocks| blocks.iter().any(answers));
        if index > 0 && ends_turn && !has_results {
            continue;
        }
        log.found(
            format!("{base}/{index}/role"),
            Code::WrongRole,
            "a system message cannot stand here",
        )
        .says(
            "messages: Unexpected role \"system\". Allowed roles are \"user\" or \"assistant\""
                .to_owned(),
        )
        .fixed("it is the user's now");
        messages[index]["role"] = json!("user");
    }
}

fn follow_mistral(messages: &mut [Value], base: &str, log: &mut Log) {
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

/// An item that is there twice is left out; another one under the same id loses the id.
fn unique_items(items: &mut [Value], base: &str, log: &mut Log) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for index in 0..items.len() {
        let Some(id) = wire::id(&items[index], "id").map(str::to_owned) else {
            continue;
        };
        if text(&items[index], "type") == Some("item_reference") {
            continue;
        }
        let Some(before) = first.get(&id).copied() else {
            first.insert(id, index);
            continue;
        };
        let is_same = items[before] == items[index];
        let found = log.found(
            format!("{base}/{index}"),
            Code::DuplicateItem,
            format!("the item {id} is here twice"),
        );
        found.says(format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again."));
        if is_same {
            found.fixed("the second is left out");
            items[index] = Value::Null;
        } else {
            found.fixed("the second has another content and goes without the id");
            if let Some(fields) = items[index].as_object_mut() {
                fields.shift_remove("id");
            }
        }
    }
}

/// Reasoning with an id is tied to the item behind it by the ids of both. Where that item has lost its id, the reasoning
/// is refused; without the reasoning, so are the ids of what else belonged to it.
fn parted_reasoning(items: &mut [Value], base: &str, log: &mut Log) {
    let wire = wire::of(Provider::OpenAiResponses);
    let mut index = 0;
    while index < items.len() {
        let is_reasoning = text(&items[index], "type") == Some("reasoning");
        let Some(id) = wire::id(&items[index], "id").filter(|_| is_reasoning) else {
            index += 1;
            continue;
        };
        let id = id.to_owned();
        let is_passed = |item: &Value| item.is_null() || text(item, "type") == Some("reasoning");
        let next = (index + 1..items.len()).find(|next| !is_passed(&items[*next]));
        let is_parted = next.is_some_and(|next| {
            wire.is_model(&items[next]) && wire::id(&items[next], "id").is_none()
        });
        let Some(next) = next.filter(|_| is_parted) else {
            index += 1;
            continue;
        };
        log.found(
            format!("{base}/{index}"),
            Code::DanglingReasoning,
            format!("the item behind this reasoning, {base}/{next}, has lost the id by which they belong together"),
        )
        .says(format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        ))
        .fixed("the reasoning is left out");
        items[index] = Value::Null;
        free_ids(&mut items[next..], next, base, &id, log);
        index += 1;
    }
}

/// Takes the ids of the model's items up to the user's next words or the next reasoning: they belong to reasoning that
/// is left out.
fn free_ids(items: &mut [Value], first: usize, base: &str, reasoning: &str, log: &mut Log) {
    let wire = wire::of(Provider::OpenAiResponses);
    for (offset, item) in items.iter_mut().enumerate() {
        let kind = text(item, "type").unwrap_or("message").to_owned();
        if item.is_null() {
            continue;
        }
        if !wire.is_model(item) || kind == "reasoning" || kind == "item_reference" {
            return;
        }
        let Some(id) = wire::id(item, "id").map(str::to_owned) else {
            continue;
        };
        log.found(
            format!("{base}/{}/id", first + offset),
            Code::DanglingReasoning,
            "the reasoning that this item belongs to is left out",
        )
        .says(format!(
            "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
        ))
        .fixed("it goes without its id");
        if let Some(fields) = item.as_object_mut() {
            fields.shift_remove("id");
        }
    }
}

/// Reasoning is taken only before what the model said or did after it.
fn dangling_reasoning(items: &mut [Value], base: &str, log: &mut Log) {
    let wire = wire::of(Provider::OpenAiResponses);
    let mut followed = false;
    for index in (0..items.len()).rev() {
        if items[index].is_null() {
            continue;
        }
        if text(&items[index], "type") != Some("reasoning") {
            followed = wire.is_model(&items[index]);
            continue;
        }
        if followed {
            continue;
        }
        let id = text(&items[index], "id").unwrap_or_default();
        log.found(
            format!("{base}/{index}"),
            Code::DanglingReasoning,
            "what the model did after this reasoning is missing",
        )
        .says(format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        ))
        .fixed("the reasoning is left out");
        items[index] = Value::Null;
    }
}
