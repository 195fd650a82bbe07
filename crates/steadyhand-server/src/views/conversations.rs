//! Conversations as providers want them: what is wrong with one, and the same one mended (SPEC R01–R03, R14).

use serde_json::{Value, json};
use steadyhand_conversation::{self as conversation, Host, Options, Problem, Provider, What};

/// What a provider would refuse.
pub fn validated(
    provider: Provider,
    host: Host,
    what: What,
    value: &Value,
) -> (Value, Vec<Problem>) {
    let options = Options::new().host(host);
    let problems = conversation::validate_with(provider, &options, what, value);
    let view = json!({"valid": problems.is_empty(), "problems": problems});
    (view, problems)
}

/// The conversation as its provider accepts it, and every change that was made. It is named what it is: `messages` for
/// a list, `request` for a whole request.
pub fn repaired(provider: Provider, host: Host, value: Value) -> Value {
    let options = Options::new().host(host);
    let (repaired, fixes) = conversation::repair_with(provider, &options, value);
    match repaired.is_array() {
        true => json!({"messages": repaired, "fixes": fixes}),
        false => json!({"request": repaired, "fixes": fixes}),
    }
}

/// A model's response that can be relied on, and every change that was made.
pub fn repaired_response(provider: Provider, value: Value) -> Value {
    let (response, fixes) = conversation::repair_response(provider, value);
    json!({"response": response, "fixes": fixes})
}

/// Whether this is what it is said to be; a response may look like anything.
pub fn is_what_is_said(provider: Provider, what: Option<What>, value: &Value) -> bool {
    match what {
        None => is_conversation(provider, value),
        Some(What::Response) => true,
        Some(What::Request) => value.is_object() && is_conversation(provider, value),
        Some(What::Match) => value.is_array(),
    }
}

/// Whether there is something to repair: what is no conversation cannot be said to be in order.
pub fn is_conversation(provider: Provider, value: &Value) -> bool {
    let is_one_text = conversation::is_one_text(provider, value);
    is_one_text || conversation::messages(provider, value).is_some()
}

/// What a repair needs, in words.
pub fn wanted(provider: Provider, what: Option<What>) -> String {
    let key = conversation::messages_key(provider);
    let request = format!("a request of {provider}'s with a list of messages under {key:?}");
    match what {
        Some(What::Match) => "a list of messages".to_owned(),
        Some(What::Request) => request,
        None | Some(What::Response) => format!("a list of messages, or {request}"),
    }
}
