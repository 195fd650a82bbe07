//! Notices a model that repeats itself: it is told first, then refused.

use std::collections::HashMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use steadyhand::{Message, ToolMessage};

use super::settings::LoopGuard;

/// What a note to the model begins with.
const NOTE: &str = "\n[Note: ";

/// What was called in this turn, and what came of it. Pure: rounds go in, verdicts come out.
#[derive(Debug)]
pub(super) struct Guard {
    rules: LoopGuard,
    seen: HashMap<Sign, Seen>,
    failing_rounds: u32,
}

/// Which call it is: its tool and its arguments, whatever order they came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sign([u8; 32]);

#[derive(Debug, Clone, Copy)]
struct Seen {
    times: u32,
    came_to: Came,
}

/// What a call came to. Failures are all alike: their texts may have times and numbers in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    ToNothing,
    To([u8; 32]),
}

impl Guard {
    /// One that knows what happened in the turn so far.
    pub(super) fn of(rules: LoopGuard, turn: &[Message]) -> Guard {
        let mut guard = Guard {
            rules,
            seen: HashMap::new(),
            failing_rounds: 0,
        };
        let mut rest = turn;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            let Message::Ai(ai) = first else { continue };
            let count = after
                .iter()
                .take_while(|message| matches!(message, Message::Tool(_)))
                .count();
            let mut round = Vec::new();
            for message in &after[..count] {
                let Message::Tool(result) = message else {
                    continue;
                };
                let call = ai
                    .tool_calls
                    .iter()
                    .find(|call| call.id == result.tool_call_id);
                if let Some(call) = call {
                    round.push((Sign::of(&call.name, &call.args), result));
                }
            }
            guard.record(&round);
            rest = &after[count..];
        }
        guard
    }

    /// Why this call is not run, if it is not.
    pub(super) fn refuses(&self, sign: Sign) -> Option<String> {
        if self.failing_rounds >= self.rules.failing_refused {
            return Some(format!(
                "this call was not run: for {} rounds nothing has worked. Tell the user what is missing",
                self.failing_rounds
            ));
        }
        let seen = self.seen.get(&sign)?;
        if seen.times.saturating_add(1) < self.rules.same_refused {
            return None;
        }
        let what = match seen.came_to {
            Came::ToNothing => "and it failed each time",
            Came::To(_) => "with the same result each time",
        };
        Some(format!(
            "this call was not run: it was made {} times for this question with these arguments, {what}. Use what you have, try something else, or tell the user what is missing",
            seen.times
        ))
    }

    /// What the model is told beside this result.
    pub(super) fn note(&self, sign: Sign, result: &ToolMessage) -> Option<String> {
        let times = match self.seen.get(&sign) {
            Some(seen) if seen.came_to == Came::of(result) => seen.times.saturating_add(1),
            _ => 1,
        };
        if times >= self.rules.same_told.max(2) {
            let what = match result.is_error {
                true => "failed each time",
                false => "had the same result each time",
            };
            return Some(format!(
                "{NOTE}this call was made {times} times for this question with the same arguments and {what}. Making it again will not help: use what you have, try something else, or tell the user.]"
            ));
        }
        let rounds = self.failing_rounds.saturating_add(1);
        if result.is_error && rounds >= self.rules.failing_told {
            return Some(format!(
                "{NOTE}for {rounds} rounds nothing has worked. Try something else, or tell the user what is missing.]"
            ));
        }
        None
    }

    /// One round is over. A call that was made twice in it counts once: it was one decision.
    pub(super) fn record(&mut self, round: &[(Sign, &ToolMessage)]) {
        let mut counted: Vec<Sign> = Vec::with_capacity(round.len());
        for (sign, result) in round {
            if counted.contains(sign) {
                continue;
            }
            counted.push(*sign);
            let came_to = Came::of(result);
            let seen = self.seen.entry(*sign).or_insert(Seen { times: 0, came_to });
            if seen.came_to != came_to {
                // Another result: somebody waits for something to change, and it does.
                *seen = Seen { times: 0, came_to };
            }
            seen.times = seen.times.saturating_add(1);
        }
        let all_failed = !round.is_empty() && round.iter().all(|(_, result)| result.is_error);
        self.failing_rounds = match all_failed {
            true => self.failing_rounds.saturating_add(1),
            false => 0,
        };
    }
}

impl Sign {
    pub(super) fn of(name: &str, args: &Map<String, Value>) -> Sign {
        let mut digest = Sha256::new();
        digest.update(name.as_bytes());
        digest.update([0]);
        fields(args, &mut digest);
        Sign(digest.finalize().into())
    }

    pub(super) fn of_text(name: &str, args: &str) -> Sign {
        let mut digest = Sha256::new();
        digest.update(name.as_bytes());
        digest.update([1]);
        digest.update(args.as_bytes());
        Sign(digest.finalize().into())
    }
}

impl Came {
    fn of(result: &ToolMessage) -> Came {
        if result.is_error {
            return Came::ToNothing;
        }
        let said = result.content.text();
        // A note of ours is no part of what the tool said.
        let said = said.rfind(NOTE).map_or(&*said, |at| &said[..at]);
        Came::To(Sha256::digest(said.as_bytes()).into())
    }
}

/// The same for the same arguments, whatever order they came in: Ollama's have a random one.
fn fields(object: &Map<String, Value>, digest: &mut Sha256) {
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort_unstable();
    digest.update(b"{");
    for key in keys {
        digest.update(Value::from(key.as_str()).to_string().as_bytes());
        value(&object[key], digest);
    }
    digest.update(b"}");
}

fn value(value_: &Value, digest: &mut Sha256) {
    match value_ {
        Value::Object(object) => fields(object, digest),
        Value::Array(items) => {
            digest.update(b"[");
            items.iter().for_each(|item| value(item, digest));
            digest.update(b"]");
        }
        plain => {
            digest.update(plain.to_string().as_bytes());
            digest.update(b",");
        }
    }
}
