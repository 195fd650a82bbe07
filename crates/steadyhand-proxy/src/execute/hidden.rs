//! Turns that a client has not seen, and a model must: they are put back when the client goes on with a call of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use steadyhand::cut;
use steadyhand_conversation::{Provider, Turn, messages_key};

/// Turns that are remembered, and their bytes. Then the oldest are forgotten, of the caller that has most.
const TURNS_MAX: usize = 512;
const BYTES_MAX: usize = 16 * 1024 * 1024;

impl Table {
    /// Nobody's turns are forgotten because of what others have.
    fn forget_one(&mut self) {
        let is_by_bytes = self.bytes > BYTES_MAX;
        let mut shares: HashMap<&str, usize> = HashMap::new();
        for turn in &self.turns {
            *shares.entry(&turn.caller).or_default() += if is_by_bytes { turn.bytes } else { 1 };
        }
        let most = shares.into_iter().max_by_key(|(_, share)| *share);
        let Some(most) = most.map(|(caller, _)| caller.to_owned()) else {
            return;
        };
        let oldest = self.turns.iter().position(|turn| turn.caller == most);
        if let Some(oldest) = oldest.and_then(|place| self.turns.remove(place)) {
            self.bytes -= oldest.bytes;
        }
    }
}

/// What happened inside before a client's own call, by that call.
#[derive(Default)]
pub(crate) struct Hidden(Mutex<Table>);

#[derive(Default)]
struct Table {
    turns: VecDeque<Remembered>,
    bytes: usize,
}

struct Remembered {
    caller: String,
    call_id: String,
    messages: Vec<Value>,
    bytes: usize,
}

impl Hidden {
    /// Remembers what was hidden before this call.
    pub(super) fn remember(&self, caller: &str, call_id: &str, messages: Vec<Value>) {
        let bytes = messages
            .iter()
            .map(|message| cut::json_bytes(message, BYTES_MAX))
            .sum();
        if bytes > BYTES_MAX {
            return;
        }
        let mut table = self.table();
        table.bytes += bytes;
        table.turns.push_back(Remembered {
            caller: caller.to_owned(),
            call_id: call_id.to_owned(),
            messages,
            bytes,
        });
        while table.bytes > BYTES_MAX || table.turns.len() > TURNS_MAX {
            table.forget_one();
        }
    }

    /// Puts back what was hidden before the calls in a conversation.
    pub(super) fn restore(&self, provider: Provider, caller: &str, request: &mut Value) {
        let table = self.table();
        let Some(Value::Array(messages)) = request.get_mut(messages_key(provider)) else {
            return;
        };
        if table.turns.is_empty() {
            return;
        }
        let mut whole = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            let turn = Turn::read(provider, &message);
            let before = turn.calls().iter().find_map(|call| {
                table
                    .turns
                    .iter()
                    .find(|it| it.call_id == call.id && it.caller == caller)
            });
            whole.extend(before.iter().flat_map(|it| it.messages.iter().cloned()));
            whole.push(message);
        }
        *messages = whole;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn s02_hidden_turns_of_one_caller_push_out_none_of_others() {
        let hidden = Hidden::default();
        let turn = |bytes: usize| vec![json!({"role": "tool", "content": "x".repeat(bytes)})];
        hidden.remember("other", "o1", turn(1_000_000));
        for number in 0..2 * TURNS_MAX {
            hidden.remember("greedy", &number.to_string(), turn(10));
        }
        assert_eq!(hidden.table().turns.len(), TURNS_MAX);
        for number in 0..40 {
            hidden.remember("greedy", &format!("large {number}"), turn(1_000_000));
        }
        let table = hidden.table();
        assert!(table.bytes <= BYTES_MAX, "{}", table.bytes);
        assert_eq!(table.turns[0].call_id, "o1");
        let newest = table.turns.back().map(|turn| turn.call_id.as_str());
        assert_eq!(newest, Some("large 39"));
    }
}
