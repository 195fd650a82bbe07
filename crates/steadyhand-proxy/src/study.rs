//! What a provider's refusal means: the place it names, and whether it is by a rule that we know.

use serde_json::Value;
use steadyhand::{cut, redact};
use steadyhand_conversation::{Code, Options, Problem, Provider, What, validate_with};

const SAID_BYTES_MAX: usize = 2 * 1024;

/// Words of rules about the shape of a conversation: who follows whom, what a call and a result look like.
const OF_RULES: [&str; 18] = [
    "tool_use",
    "tool_result",
    "tool_call",
    "tool call",
    "tool message",
    "tool output",
    "function call",
    "function response",
    "functioncall",
    "function_call",
    "functionresponse",
    "role",
    "content block",
    "thinking",
    "thought_signature",
    "reasoning",
    "input_schema",
    "schema",
];
/// Refusals of another kind: size, money, models.
const OF_OTHER_THINGS: [&str; 8] = [
    "context length",
    "context window",
    "prompt is too long",
    "too many tokens",
    "credit balance",
    "quota",
    "does not exist",
    "api key",
];
/// Where places in a request begin.
const ROOTS: [&str; 5] = ["messages", "contents", "input", "tools", "system"];

/// A refusal that is about the shape of the conversation.
pub(super) struct Studied {
    /// In the provider's words, without what looks like a secret.
    pub(super) said: String,
    /// The place it names, as a JSON Pointer into the request.
    pub(super) at: Option<String>,
    /// What we would have said: nothing where the rule is not known here.
    pub(super) known: Vec<Problem>,
}

/// Reads a refusal of this request; none where it is about something else than its shape.
pub(super) fn study(
    provider: Provider,
    options: &Options,
    request: &Value,
    refusal: &[u8],
) -> Option<Studied> {
    let body: Value = serde_json::from_slice(refusal).ok()?;
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").unwrap_or(body);
    let message = error
        .as_str()
        .or_else(|| error.get("message").and_then(Value::as_str))?;
    let param = error.get("param").and_then(Value::as_str);
    let at = param
        .and_then(|param| place_in(request, param))
        .or_else(|| place_in(request, message));
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&OF_OTHER_THINGS) || !(says(&OF_RULES) || at.is_some()) {
        return None;
    }
    let mut known = validate_with(provider, options, What::Request, request);
    // What no provider refuses explains no refusal.
    known.retain(|problem| {
        problem.code != Code::MissingDescription && problem.code != Code::ResultOrder
    });
    if let Some(at) = &at {
        // What is wrong elsewhere explains nothing.
        known.retain(|problem| is_within(&problem.at, at) || is_within(at, &problem.at));
    }
    Some(Studied {
        said: cut::text(&redact::text(message), SAID_BYTES_MAX),
        at,
        known,
    })
}

fn is_within(place: &str, outer: &str) -> bool {
    place
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The first place that is named: `messages.22.content.0`, `messages[3].role`, `messages.[6].role`.
pub fn place_in(request: &Value, text: &str) -> Option<String> {
    let found = ROOTS.iter().filter_map(|root| {
        let start = text.match_indices(root).map(|(at, _)| at).find(|at| {
            let after = &text[at + root.len()..];
            let before = text[..*at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
                && after.starts_with(['.', '['])
        })?;
        Some((start, *root))
    });
    let (start, root) = found.min()?;
    let mut steps = vec![root];
    let is_step = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let path = &text[start + root.len()..];
    let end = path
        .find(|char: char| !is_step(char) && !matches!(char, '.' | '[' | ']'))
        .unwrap_or(path.len());
    steps.extend(
        path[..end]
            .split(|char| !is_step(char))
            .filter(|step| !step.is_empty()),
    );
    // What is named may be missing there, or be a kind of thing instead of a field: as far as it leads somewhere.
    while steps.len() > 1 {
        let pointer: String = steps.iter().map(|step| format!("/{step}")).collect();
        if request.pointer(&pointer).is_some() {
            return Some(pointer);
        }
        steps.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Value {
        json!({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": [{"type": "text"}]}]})
    }

    fn place(text: &str) -> Option<String> {
        place_in(&request(), text)
    }

    #[test]
    fn places_are_found_however_a_provider_writes_them() {
        let at = |pointer: &str| Some(pointer.to_owned());
        assert_eq!(
            place("messages.1.content.0: no"),
            at("/messages/1/content/0")
        );
        assert_eq!(place("Invalid 'messages[1]'. No."), at("/messages/1"));
        assert_eq!(place("messages.[1].role"), at("/messages/1/role"));
        assert_eq!(
            place("messages.1.content.0.tool_use.id: no"),
            at("/messages/1/content/0")
        );
        assert_eq!(place("messages.7.content: no"), None);
        assert_eq!(place("all messages are bad"), None);
    }

    #[test]
    fn a_refusal_for_another_reason_is_none_of_our_business() {
        let said = |message: &str| json!({"error": {"message": message}}).to_string();
        let about = |message: &str| {
            study(
                Provider::OpenAi,
                &Options::new(),
                &request(),
                said(message).as_bytes(),
            )
            .is_some()
        };
        assert!(about("Invalid 'messages[1]'. Content blocks are expected"));
        assert!(!about("This model's maximum context length is 8192 tokens"));
        assert!(!about("The model `x` does not exist"));
        assert!(!about("teapot"));
    }
}
