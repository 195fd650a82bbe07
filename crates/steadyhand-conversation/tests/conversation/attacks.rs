//! Conversations nobody would write: each provider's own messages with anything in any field, in any order.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Fix, Provider, What, repair, validate};

use super::render::{request, verdict};
use super::writer::Writer;

/// How many conversations each provider is given.
const ROUNDS: u64 = 300;

#[test]
fn r03_whatever_stands_in_whatever_field_is_mended() {
    everywhere(|provider, messages| {
        verdict(provider, &request(provider, json!(messages))).map(|_| ())
    });
}

#[test]
fn r01_the_validator_and_the_strict_provider_agree() {
    everywhere(|provider, messages| {
        // LangChain is no provider: nobody refuses anything.
        if provider == Provider::LangChain {
            return Ok(());
        }
        // Mistral does not look at its first message.
        let is_opening = messages[0]["role"] == "user" || messages[0]["role"] == "system";
        if provider == Provider::Mistral && !is_opening {
            return Ok(());
        }
        let broken = request(provider, json!(messages));
        let mut found = validate(provider, What::Request, &broken);
        // The order is a rule of ours (SPEC R02): providers find results by their ids.
        if provider != Provider::Ollama {
            found.retain(|one| one.code != Code::ResultOrder);
        }
        match strict::check(provider, &broken) {
            Ok(()) if !found.is_empty() => Err(format!("it is accepted: {found:#?}")),
            Err((_, body)) if found.is_empty() => Err(format!("nothing is found: {body}")),
            _ => Ok(()),
        }
    });
}

/// What no provider was seen to say: Ollama is silent and the model misled, or the fault is too odd to have been met.
const OUR_OWN: &[&str] = &[
    "strict: ",
    "json: cannot unmarshal into",
    "json: cannot unmarshal object into Go struct field Alias.tool_calls",
    "json: cannot unmarshal number into Go struct field Alias.tool_call_id",
    "Unexpected role ''",
    "Unexpected role 'bogus'",
];

#[test]
fn r01_what_the_strict_provider_says_is_what_the_validator_says() {
    let mut said = Vec::new();
    let mut refused = 0;
    for provider in Provider::ALL {
        for seed in 0..ROUNDS {
            let broken = request(provider, json!(Writer::new(provider, seed).messages()));
            let Err((_, body)) = strict::check(provider, &broken) else {
                continue;
            };
            let words = ["/error/message", "/message", "/error"];
            let words = words.iter().find_map(|place| body.pointer(place)?.as_str());
            let words = words.expect("it says why");
            if OUR_OWN.iter().any(|text| words.starts_with(text)) {
                continue;
            }
            refused += 1;
            let found = validate(provider, What::Request, &broken);
            let mut texts = found.iter().filter_map(|one| one.provider_text.as_deref());
            if !texts.any(|text| text == words) {
                said.push(format!("{provider} {seed} {words}\n{found:#?}"));
            }
        }
    }
    // Of faults nobody would make some are named otherwise; those that people make are in `threads.rs`, to the letter.
    let few = said.len() * 20 < refused;
    assert!(few, "{} of {refused} {}", said.len(), said.join("\n"));
}

#[test]
fn r03_whatever_was_sent_stays_as_it_was_sent() {
    everywhere(|provider, messages| {
        let mend = |messages: &[Value]| match repair(provider, json!(messages)).0 {
            Value::Array(messages) => messages,
            other => panic!("{other}"),
        };
        let whole = mend(messages);
        for end in request_boundaries(provider, messages) {
            let sent = mend(&messages[..end]);
            if !whole.starts_with(&sent) {
                let (sent, whole) = (json!(sent), json!(whole));
                return Err(format!("at {end}\nsent {sent}\nlater {whole}"));
            }
        }
        Ok(())
    });
}

#[test]
fn r03_thinking_is_never_touched_wherever_it_stands() {
    // Without a signature, or what it is a signature of, it is refused, and nobody can write it again.
    let is_whole = |block: &Value| {
        let is_signed = block["signature"]
            .as_str()
            .is_some_and(|one| !one.is_empty());
        is_signed && block["thinking"].is_string()
    };
    let is_thought = |block: &&Value| match block["type"].as_str() {
        Some("thinking") => is_whole(block),
        Some("redacted_thinking") => block["data"].is_string(),
        _ => false,
    };
    let bare = |block: &Value| {
        let mut block = block.clone();
        let fields = block.as_object_mut().expect("thinking is an object");
        fields.shift_remove("cache_control");
        block.to_string()
    };
    let thoughts = |messages: &[Value]| -> Vec<String> {
        let blocks = messages.iter().filter_map(|one| one["content"].as_array());
        blocks.flatten().filter(is_thought).map(bare).collect()
    };
    everywhere(|provider, messages| {
        if provider != Provider::Anthropic {
            return Ok(());
        }
        let (repaired, fixes) = repair(provider, json!(messages));
        let before = thoughts(messages);
        let after = thoughts(repaired.as_array().expect("messages"));
        // No turn may end with thinking: what is left of one goes without it, and is told of.
        let left_out = |fix: &&Fix| fix.code == Code::DanglingReasoning;
        let left_out = fixes.iter().filter(left_out).count();
        let mut rest = before.iter();
        let is_in_order = after.iter().all(|thought| rest.any(|one| one == thought));
        match is_in_order && after.len() + left_out == before.len() {
            true => Ok(()),
            false => Err(format!("{before:?}\n{after:?}")),
        }
    });
}

/// Checks conversations of every provider, and shows the shortest of each for which the check fails.
fn everywhere(check: impl Fn(Provider, &[Value]) -> Result<(), String>) {
    let mut failures = Vec::new();
    for provider in Provider::ALL {
        let check = |messages: &[Value]| check(provider, messages);
        let failed = (0..ROUNDS).find_map(|seed| {
            let messages = Writer::new(provider, seed).messages();
            check(&messages).err().map(|_| (seed, messages))
        });
        if let Some((seed, messages)) = failed {
            let (messages, fault) = shortest(messages, check);
            let messages = json!(messages);
            failures.push(format!("== {provider}, seed {seed}: {messages}\n{fault}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn shortest(
    mut messages: Vec<Value>,
    check: impl Fn(&[Value]) -> Result<(), String>,
) -> (Vec<Value>, String) {
    let mut index = 0;
    while index < messages.len() && messages.len() > 1 {
        let mut fewer = messages.clone();
        fewer.remove(index);
        match check(&fewer) {
            Ok(()) => index += 1,
            Err(_) => messages = fewer,
        }
    }
    let fault = check(&messages).err().unwrap_or_default();
    (messages, fault)
}

/// Where a request ended: the model speaks next, and did not speak last.
fn request_boundaries(provider: Provider, messages: &[Value]) -> Vec<usize> {
    let is_model = |message: &Value| match provider {
        Provider::Gemini => message["role"] == "model",
        Provider::LangChain => message["type"] == "ai",
        Provider::OpenAiResponses => {
            let is_call = matches!(
                message["type"].as_str(),
                Some("function_call" | "reasoning")
            );
            message["role"] == "assistant" || is_call
        }
        _ => message["role"] == "assistant",
    };
    // OpenAI's Responses take an output in a later request; then the earlier one cannot have been sent.
    let reaches_over = |end: usize| {
        let (before, after) = messages.split_at(end);
        provider == Provider::OpenAiResponses
            && after.iter().any(|late| {
                late["type"] == "function_call_output"
                    && before.iter().any(|call| call["call_id"] == late["call_id"])
            })
    };
    (1..messages.len())
        .filter(|end| is_model(&messages[*end]) && !is_model(&messages[end - 1]))
        .filter(|end| !reaches_over(*end))
        .collect()
}
