//! The beginning of a conversation, where somebody must have spoken before the model calls, and its end.

use serde_json::{Value, json};

use super::wire::Wire;
use crate::place::Places;
use crate::problem::{Code, Log};
use crate::texts;

/// Puts a note of the user's before the model's first words, if there is a call in the first `looked_at` of them.
pub(super) fn put_before_calls(
    wire: &dyn Wire,
    looked_at: usize,
    says: &str,
    messages: &mut Vec<Value>,
    origins: &mut Vec<usize>,
    base: &str,
    log: &mut Log,
) {
    let mut calls = Vec::new();
    let said = messages.iter().take_while(|one| wire.is_model(one));
    for message in said.take(looked_at) {
        wire.calls(message, &mut calls);
    }
    if calls.is_empty() {
        return;
    }
    log.found(
        format!("{base}/0"),
        Code::StartsWithCall,
        "the conversation begins with a call",
    )
    .says(says.to_owned())
    .fixed(NOTED);
    drop(calls);
    put(wire, messages, origins);
}

/// What is said of the note.
pub(super) const NOTED: &str = "a note of the user's says that its beginning is missing";

/// Puts a note of the user's before everything else.
pub(super) fn put(wire: &dyn Wire, messages: &mut Vec<Value>, origins: &mut Vec<usize>) {
    messages.insert(0, wire.user(texts::NO_BEGINNING));
    origins.insert(0, 0);
}

/// Lets the user say that the model should go on, where it does not by itself.
pub(super) fn go_on(messages: &mut Vec<Value>, places: Places<'_>, says: &str, log: &mut Log) {
    log.found(
        places.of(messages.len().saturating_sub(1)),
        Code::TrailingAssistant,
        "the conversation ends with the model's own words",
    )
    .says(says.to_owned())
    .fixed("the user asks it to go on");
    messages.push(json!({"role": "user", "content": texts::CONTINUE}));
}
