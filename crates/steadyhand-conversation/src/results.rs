//! Results in a provider's own shape: of an outcome, or of an error.

use serde_json::Value;

use crate::providers::Provider;
use crate::providers::names::legal_name;
use crate::providers::wire;
use crate::texts;
use steadyhand::Outcome;

/// A well-formed result that says that a call failed: `Error: <message>` (SPEC R14, L03).
///
/// It is a whole message, to be put behind the one with the call.
pub fn error_result(provider: Provider, call_id: &str, name: &str, message: &str) -> Value {
    let text = texts::error(message);
    let id = Some(call_id).filter(|id| !id.is_empty());
    let result = wire::of(provider).error(id, name, &text);
    let mut packed = wire::of(provider).pack(vec![result]);
    packed.swap_remove(0)
}

/// The messages that answer calls with their outcomes, in the order given.
///
/// Each answer is the id the provider gave its call, if it gave one, and the outcome.
pub fn result_messages<'a>(
    provider: Provider,
    answers: impl IntoIterator<Item = (Option<&'a str>, &'a Outcome)>,
) -> Vec<Value> {
    let result = |(id, outcome): (Option<&str>, &Outcome)| of_outcome(provider, id, outcome);
    let results: Vec<Value> = answers.into_iter().map(result).collect();
    if results.is_empty() {
        return Vec::new();
    }
    wire::of(provider).pack(results)
}

/// One result, not yet in a message.
pub(super) fn of_outcome(provider: Provider, id: Option<&str>, outcome: &Outcome) -> Value {
    let message = outcome.message();
    let said = message.content.text();
    let text = match &*said {
        "" if message.is_error => texts::NO_REASON,
        text => text,
    };
    let name = legal_name(provider, &outcome.tool_name);
    let mut result = wire::of(provider).error(id, &name, text);
    if message.is_error {
        return result;
    }
    provider.rules().succeed(&mut result, text);
    result
}
