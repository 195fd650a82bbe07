//! Shortens a conversation to a budget, and never splits a call from its result.

use std::collections::HashMap;

use serde_json::Value;

use crate::envelope::Envelope;
use crate::providers::Provider;
use crate::providers::ids;
use crate::providers::wire::{self, Wire, text};
use steadyhand::cut::json_bytes;

/// What is left of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Trimmed {
    /// The conversation, in the form it was given.
    pub value: Value,
    /// Which messages are gone, by their index.
    pub dropped: Vec<usize>,
    /// Whether it is within the budget. The last turn is kept whole even if it is not.
    pub fits: bool,
}

/// Shortens a conversation to so many bytes of JSON.
pub fn trim(provider: Provider, value: Value, budget_bytes: usize) -> Trimmed {
    let bytes = |message: &Value| json_bytes(message, usize::MAX);
    trim_by(provider, value, budget_bytes, bytes)
}

/// Shortens a conversation until the costs of its messages are within a budget.
///
/// What the system is told stays. The oldest exchanges go first, each as a whole: what a user said, and all
/// that followed. When the last exchange alone is too long, its opening words and its latest steps stay.
/// Give it a valid conversation: calls without results are kept with what follows them.
pub fn trim_by(
    provider: Provider,
    value: Value,
    budget: usize,
    cost: impl Fn(&Value) -> usize,
) -> Trimmed {
    let (envelope, messages) = match Envelope::open(provider, value) {
        Ok(opened) => opened,
        Err(value) => {
            return Trimmed {
                value,
                dropped: Vec::new(),
                fits: true,
            };
        }
    };
    let wire = wire::of(provider);
    let costs: Vec<usize> = messages.iter().map(cost).collect();
    let cut = choose(wire, &messages, &costs, budget);
    let keeps =
        |index: usize| index < cut.head || index >= cut.tail || cut.opening.contains(&index);
    let mut dropped = Vec::new();
    let mut kept = Vec::with_capacity(messages.len());
    let mut total = 0;
    for (index, message) in messages.into_iter().enumerate() {
        if keeps(index) {
            total += costs[index];
            kept.push(message);
        } else {
            dropped.push(index);
        }
    }
    Trimmed {
        value: envelope.close(kept),
        dropped,
        fits: total <= budget,
    }
}

/// What stays: everything before `head`, the `opening`, and everything from `tail` on.
struct Cut {
    head: usize,
    opening: std::ops::Range<usize>,
    tail: usize,
}

fn choose(wire: &dyn Wire, messages: &[Value], costs: &[usize], budget: usize) -> Cut {
    let head = messages.iter().take_while(|one| is_system(one)).count();
    let nothing = 0..0;
    let of_head: usize = costs[..head].iter().sum();
    // What it costs to keep everything from a message on.
    let mut from = vec![0; messages.len() + 1];
    for index in (0..messages.len()).rev() {
        from[index] = from[index + 1] + costs[index];
    }
    let places = Places::find(wire, messages, head);
    let fits = |start: &&usize| of_head + from[**start] <= budget;
    if of_head + from[head] <= budget {
        return Cut {
            head,
            opening: nothing,
            tail: head,
        };
    }
    if let Some(tail) = places.exchanges.iter().find(fits) {
        return Cut {
            head,
            opening: nothing,
            tail: *tail,
        };
    }
    let begin = places.exchanges.last().copied().unwrap_or(head);
    let is_model = |message: &Value| wire.is_model(message);
    let spoken = messages[begin..].iter().take_while(|one| !is_model(one));
    let opening = begin..begin + spoken.count();
    let of_opening = from[opening.start] - from[opening.end];
    let steps: Vec<usize> = places
        .steps
        .into_iter()
        .filter(|step| *step >= opening.end)
        .collect();
    let fitting = steps
        .iter()
        .find(|step| of_head + of_opening + from[**step] <= budget);
    let tail = fitting.or(steps.last()).copied().unwrap_or(opening.end);
    Cut {
        head,
        opening,
        tail,
    }
}

/// Where a conversation can be cut.
struct Places {
    /// Before what a user said, when no call was open.
    exchanges: Vec<usize>,
    /// Before a turn of the model's, when no call was open.
    steps: Vec<usize>,
}

impl Places {
    fn find(wire: &dyn Wire, messages: &[Value], head: usize) -> Places {
        let mut places = Places {
            exchanges: Vec::new(),
            steps: Vec::new(),
        };
        let speaks = speaking(wire, messages);
        let mut open = Open::default();
        let mut was_model = false;
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for (index, message) in messages.iter().enumerate().skip(head) {
            let is_model = wire.is_model(message);
            wire.results(message, &mut results);
            let may_open = wire.provider().rules().may_begin_with_system() || !is_system(message);
            let may_open = may_open && speaks[index];
            if open.is_empty() && results.is_empty() && !is_model && may_open {
                places.exchanges.push(index);
            }
            if open.is_empty() && is_model && !was_model {
                places.steps.push(index);
            }
            for result in results.drain(..) {
                let any_will_do = result.id.is_none() || ids::are_optional(wire.provider());
                open.close(result.id, any_will_do);
            }
            if is_model {
                wire.calls(message, &mut calls);
                for call in calls.drain(..).filter(|call| call.needs_result) {
                    open.open(call.id);
                }
            }
            was_model = is_model;
        }
        places
    }
}

/// For each message whether anything is said from it on until the model's turn: a turn without a word is refused.
fn speaking(wire: &dyn Wire, messages: &[Value]) -> Vec<bool> {
    let mut speaks = vec![false; messages.len()];
    let mut is_said = false;
    for (index, message) in messages.iter().enumerate().rev() {
        let is_model = wire.is_model(message);
        is_said = !is_model && (is_said || !wire.is_empty(message));
        speaks[index] = is_said;
    }
    speaks
}

/// The calls whose results are still to come.
#[derive(Default)]
struct Open {
    by_id: HashMap<String, usize>,
    count: usize,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn open(&mut self, id: Option<&str>) {
        self.count += 1;
        if let Some(id) = id {
            *self.by_id.entry(id.to_owned()).or_default() += 1;
        }
    }

    /// A result came. Where ids may be missing, on either side, any call may be the one it answers.
    fn close(&mut self, id: Option<&str>, any_will_do: bool) {
        let own = id.and_then(|id| self.by_id.get_mut(id).filter(|open| **open > 0));
        match own {
            Some(open) => *open -= 1,
            None if any_will_do => {}
            None => return,
        }
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            self.by_id.clear();
        }
    }
}

fn is_system(message: &Value) -> bool {
    let is_named = |key| matches!(text(message, key), Some("system" | "developer"));
    let class = message["id"].as_array().and_then(|path| path.last());
    is_named("role") || is_named("type") || class.is_some_and(|class| class == "SystemMessage")
}
