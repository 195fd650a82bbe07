//! Conversations as providers want them: what is wrong with one, and the same one mended (SPEC R01–R03, R14).

use serde_json::{Value, json};
use steadyhand::conversation::{self, Problem, Provider, What};

/// What a provider would refuse.
pub(crate) fn validated(provider: Provider, what: What, value: &Value) -> (Value, Vec<Problem>) {
    let problems = conversation::validate(provider, what, value);
    let view = json!({"valid": problems.is_empty(), "problems": problems});
    (view, problems)
}

/// The conversation as its provider accepts it, and every change that was made.
pub(crate) fn repaired(provider: Provider, value: Value) -> Value {
    let (messages, fixes) = conversation::repair(provider, value);
    json!({"messages": messages, "fixes": fixes})
}

/// Whether there is something to repair: what is no conversation cannot be said to be in order.
pub(crate) fn is_conversation(provider: Provider, value: &Value) -> bool {
    let is_one_text = provider == Provider::OpenAiResponses && value["input"].is_string();
    is_one_text || conversation::messages(provider, value).is_some()
}

/// What a repair needs, in words.
pub(crate) fn wanted(provider: Provider) -> String {
    let key = conversation::messages_key(provider);
    format!("a list of messages, or a request of {provider}'s with one under {key:?}")
}
