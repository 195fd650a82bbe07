//! Rules about messages and those beside them, other than calls and results.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::extra_fields;
use crate::foreign::Given;
use crate::host::Host;
use crate::problem::{Code, Log};
use crate::provider::Provider;
use crate::wire::{self, text};

/// Mends roles that are wrong for where they stand. Runs before each message is looked at by itself.
pub(crate) fn prepare(provider: Provider, messages: &mut [Value], base: &str, log: &mut Log) {
    match provider {
        Provider::Mistral => follow_mistral(messages, base, log),
        Provider::Anthropic
        | Provider::OpenAi
        | Provider::OpenAiResponses
        | Provider::Gemini
        | Provider::Ollama
        | Provider::BedrockConverse
        | Provider::LangChain => {}
    }
}

/// Puts items where DeepSeek's Responses finds them: what the model says before its calls, their outputs right behind
/// them, and everything else after those. OpenAI's own find an output anywhere.
pub(crate) fn rearrange(
    provider: Provider,
    host: Host,
    items: Vec<Value>,
    given: Option<Vec<Given>>,
    base: &str,
    log: &mut Log,
) -> (Vec<Value>, Option<Vec<Given>>) {
    if provider != Provider::OpenAiResponses || host != Host::DeepSeek {
        return (items, given);
    }
    let given = given.unwrap_or_else(|| {
        let own = |index| Given {
            index,
            is_same: true,
        };
        (0..items.len()).map(own).collect()
    });
    let wire = wire::of(provider);
    let mut placed: Vec<(Value, Given)> = items.into_iter().zip(given).collect();
    let mut start = 0;
    while start < placed.len() {
        let run = |from: usize, is_model: bool| {
            let rest = placed[from..].iter();
            from + rest
                .take_while(|(item, _)| wire.is_model(item) == is_model)
                .count()
        };
        let model_end = run(start, true);
        let end = run(model_end, false);
        let mut calls = Vec::new();
        for (item, _) in &placed[start..model_end] {
            let mut found = Vec::new();
            wire.calls(item, &mut found);
            calls.extend(
                found
                    .into_iter()
                    .filter_map(|call| call.id.map(str::to_owned)),
            );
        }
        // What is said, the calls, their outputs, the rest.
        let rank = |(item, _): &(Value, Given)| {
            let id = wire::id(item, "call_id");
            let is_of = id.is_some_and(|id| calls.iter().any(|call| call == id));
            match text(item, "type").unwrap_or_default() {
                kind if is_of && kind.ends_with("_call") => 1,
                kind if is_of && kind.ends_with("_output") => 2,
                _ if wire.is_model(item) => 0,
                _ => 3,
            }
        };
        let ranks: Vec<u8> = placed[start..end].iter().map(rank).collect();
        for (offset, own) in ranks.iter().enumerate() {
            let (item, given) = &placed[start + offset];
            let stands_between = match own {
                0 => ranks[..offset].contains(&1),
                3 => ranks[offset..].contains(&2),
                _ => false,
            };
            if stands_between && !item.is_null() {
                let call = calls.first().map_or("", String::as_str);
                log.found(
                    format!("{base}/{}", given.index),
                    Code::MisplacedResult,
                    "this stands between calls and their results",
                )
                .says(format!("No tool output found for tool call {call}."))
                .fixed(match own {
                    0 => "it stands before the calls",
                    _ => "it stands behind the results",
                });
            }
        }
        placed[start..end].sort_by_key(rank);
        start = end.max(start + 1);
    }
    let (items, given) = placed.into_iter().unzip();
    (items, Some(given))
}

/// Mends what is there twice or has lost its neighbour. Runs after each message was looked at by itself.
pub(crate) fn settle(
    provider: Provider,
    host: Host,
    messages: &mut [Value],
    base: &str,
    log: &mut Log,
) {
    match provider {
        // Other hosts keep no items, and tie nothing to their ids.
        Provider::OpenAiResponses if host.is_strict() => {
            extra_fields::leave_out(provider, messages, base, log);
            unique_items(messages, base, log);
            dangling_reasoning(messages, base, log);
            parted_reasoning(messages, base, log);
        }
        Provider::Anthropic if host.is_strict() => {
            thoughts_at_the_end(messages, base, log);
            blank_turns(messages, base, log);
        }
        Provider::OpenAi | Provider::Gemini | Provider::Mistral | Provider::BedrockConverse
            if host.is_strict() =>
        {
            extra_fields::leave_out(provider, messages, base, log);
        }
        _ => {}
    }
}

/// Anthropic takes a system message only behind others, at the end or before the model's turn. Runs when everything is in
/// its place. `origins` says which message that was given each of them was.
pub(crate) fn place_system(
    messages: &mut Vec<Value>,
    origins: &mut Vec<usize>,
    base: &str,
    log: &mut Log,
) {
    let is_system = |message: &Value| text(message, "role") == Some("system");
    if !messages.iter().any(is_system) {
        return;
    }
    leave_out_silence(messages, origins, base, log);
    for index in 0..messages.len() {
        if !is_system(&messages[index]) {
            continue;
        }
        let next = messages.get(index + 1);
        let ends_turn = next.is_none_or(|next| text(next, "role") == Some("assistant"));
        let answers = |block: &Value| text(block, "type") == Some("tool_result");
        let blocks = messages[index].get("content").and_then(Value::as_array);
        let has_results = blocks.is_some_and(|blocks| blocks.iter().any(answers));
        if index > 0 && ends_turn && !has_results {
            continue;
        }
        log.found(
            format!("{base}/{}/role", origins[index]),
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

/// Leaves out messages in which nothing is said, where no words of the user's stand beside them.
fn leave_out_silence(
    messages: &mut Vec<Value>,
    origins: &mut Vec<usize>,
    base: &str,
    log: &mut Log,
) {
    let wire = wire::of(Provider::Anthropic);
    let role = |message: Option<&Value>| {
        message.map(|message| text(message, "role").unwrap_or_default().to_owned())
    };
    let mut index = 0;
    while index < messages.len() {
        let before = role(index.checked_sub(1).and_then(|before| messages.get(before)));
        let next = role(messages.get(index + 1));
        let own = role(messages.get(index));
        let is_beside =
            |role: &str| before.as_deref() == Some(role) || next.as_deref() == Some(role);
        let is_silent = own.as_deref() != Some("assistant") && wire.is_empty(&messages[index]);
        let is_left_out = match own.as_deref() {
            Some("system") => messages.len() > 1,
            _ => is_beside("system") && !is_beside("user"),
        };
        if !is_silent || !is_left_out {
            index += 1;
            continue;
        }
        let origin = origins[index];
        log.found(
            format!("{base}/{origin}"),
            Code::EmptyContent,
            "nothing is said in this message",
        )
        .says(format!(
            "messages.{origin}: user messages must have non-empty content"
        ))
        .fixed("it is left out");
        messages.remove(index);
        origins.remove(index);
    }
}

/// Anthropic takes no turn of the model's that ends with thinking: what an answer leaves that broke off.
fn thoughts_at_the_end(messages: &mut [Value], base: &str, log: &mut Log) {
    let is_model = |message: &Value| text(message, "role") == Some("assistant");
    for index in 0..messages.len() {
        // Messages of one role are one turn.
        let is_last = messages.get(index + 1).is_none_or(|next| !is_model(next));
        if !is_last || !is_model(&messages[index]) {
            continue;
        }
        let start = messages[..index]
            .iter()
            .rposition(|message| !is_model(message))
            .map_or(0, |before| before + 1);
        'turn: for at in (start..=index).rev() {
            let blocks = match messages[at].get_mut("content") {
                Some(Value::Array(blocks)) => blocks,
                Some(Value::String(said)) if said.is_empty() => continue,
                _ => break,
            };
            for (part, block) in blocks.iter_mut().enumerate().rev() {
                match text(block, "type") {
                    None if block.is_null() => continue,
                    Some("thinking" | "redacted_thinking") => {}
                    _ => break 'turn,
                }
                log.found(
                    format!("{base}/{at}/content/{part}"),
                    Code::DanglingReasoning,
                    "the turn ends with this thinking",
                )
                .says(format!(
                    "messages.{at}: The final block in an assistant message cannot be `thinking`."
                ))
                .fixed("it is left out");
                *block = Value::Null;
            }
        }
    }
}

/// Anthropic takes no turn of words that are only white space, whoever says them: blank words beside others are taken.
fn blank_turns(messages: &mut [Value], base: &str, log: &mut Log) {
    let mut start = 0;
    while start < messages.len() {
        let role = text(&messages[start], "role")
            .unwrap_or_default()
            .to_owned();
        let rest = messages[start..].iter();
        let end = start
            + rest
                .take_while(|one| text(one, "role") == Some(&role))
                .count()
                .max(1);
        blank_turn(
            &mut messages[start..end],
            start,
            role == "assistant",
            base,
            log,
        );
        start = end;
    }
}

fn blank_turn(turn: &mut [Value], first: usize, is_model: bool, base: &str, log: &mut Log) {
    let is_blank = |said: &str| !said.is_empty() && said.trim().is_empty();
    let mut has_blank = false;
    let mut has_others = false;
    for message in turn.iter() {
        match message.get("content") {
            Some(Value::String(said)) if said.is_empty() => {}
            Some(Value::String(said)) if is_blank(said) => has_blank = true,
            Some(Value::Array(blocks)) => {
                for block in blocks.iter().filter(|block| !block.is_null()) {
                    match text(block, "text").filter(|_| text(block, "type") == Some("text")) {
                        Some(said) if is_blank(said) => has_blank = true,
                        Some(_) => return,
                        None => has_others = true,
                    }
                }
            }
            _ => return,
        }
    }
    // Beside a call, blank words of the model are taken.
    if !has_blank || (is_model && has_others) {
        return;
    }
    for (offset, message) in turn.iter_mut().enumerate() {
        let at = format!("{base}/{}/content", first + offset);
        let mut found = |at: String| {
            log.found(at, Code::EmptyContent, "this text is white space only")
                .says("messages: text content blocks must contain non-whitespace text".to_owned())
                .fixed("it is left out");
        };
        let is_blank_whole = text(message, "content").is_some_and(is_blank);
        if is_blank_whole {
            found(at);
            message["content"] = json!([null]);
            continue;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        for (part, block) in blocks.iter_mut().enumerate() {
            let is_text = text(block, "type") == Some("text");
            if is_text && text(block, "text").is_some_and(is_blank) {
                found(format!("{at}/{part}"));
                *block = Value::Null;
            }
        }
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
        if wire::is_reference(&items[index]) {
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
        if !wire.is_model(item) || kind == "reasoning" || wire::is_reference(item) {
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
