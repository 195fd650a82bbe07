//! Turns that a client has not seen, and a model must: they are put back when the client goes on with a call of its own.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use steadyhand::cut;
use steadyhand_conversation::{Provider, Turn, messages_key};

/// Turns that are remembered, and their bytes; the oldest are forgotten.
const TURNS_MAX: usize = 512;
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// What happened inside before a client's own call, by that call.
#[derive(Default)]
pub(in crate::proxy) struct Hidden(Mutex<Table>);

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
            let Some(oldest) = table.turns.pop_front() else {
                break;
            };
            table.bytes -= oldest.bytes;
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
