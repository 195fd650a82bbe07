//! OpenAI's rules about items and those beside them, other than calls and results; and DeepSeek's.

use std::collections::HashMap;

use serde_json::Value;

use super::messages::{ResponsesWire, is_reference};
use crate::problem::{Code, Log};
use crate::providers::foreign::Given;
use crate::providers::wire::{self, Wire, text};

/// Puts items where DeepSeek's Responses finds them: what the model says before its calls, their outputs right behind
/// them, and everything else after those. OpenAI's own find an output anywhere.
pub(super) fn rearrange(
    items: Vec<Value>,
    given: Option<Vec<Given>>,
    base: &str,
    log: &mut Log,
) -> (Vec<Value>, Option<Vec<Given>>) {
    let given = given.unwrap_or_else(|| {
        let own = |index| Given {
            index,
            is_same: true,
        };
        (0..items.len()).map(own).collect()
    });
    let wire = ResponsesWire::DeepSeek;
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

/// An item that is there twice is left out; another one under the same id loses the id.
pub(super) fn unique_items(items: &mut [Value], base: &str, log: &mut Log) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for index in 0..items.len() {
        let Some(id) = wire::id(&items[index], "id").map(str::to_owned) else {
            continue;
        };
        if is_reference(&items[index]) {
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
pub(super) fn parted_reasoning(items: &mut [Value], base: &str, log: &mut Log) {
    let wire = ResponsesWire::OpenAi;
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
    let wire = ResponsesWire::OpenAi;
    for (offset, item) in items.iter_mut().enumerate() {
        let kind = text(item, "type").unwrap_or("message").to_owned();
        if item.is_null() {
            continue;
        }
        if !wire.is_model(item) || kind == "reasoning" || is_reference(item) {
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
pub(super) fn dangling_reasoning(items: &mut [Value], base: &str, log: &mut Log) {
    let wire = ResponsesWire::OpenAi;
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
