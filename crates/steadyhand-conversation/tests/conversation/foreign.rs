//! What others write into messages and requests: taken in, left out, or named.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Provider, What, repair, validate};

use super::render::{check, request};

fn said_by(provider: Provider, broken: &Value) -> String {
    let (_, body) = strict::check(provider, broken).expect_err("it is refused");
    body["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn r03_an_answer_that_was_stored_whole_is_a_message_again() {
    let stored = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "a1x"}, {"type": "tool_use", "id": "t1", "name": "look", "input": {}}],
        "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    assert_eq!(validate(Provider::Anthropic, What::Response, &stored), []);
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r1x"}]});
    let messages = json!([{"role": "user", "content": "u1x"}, stored, result]);
    let broken = request(Provider::Anthropic, messages);
    let says = "messages.1.id: Extra inputs are not permitted";
    assert_eq!(said_by(Provider::Anthropic, &broken), says);
    let found = validate(Provider::Anthropic, What::Request, &broken);
    assert_eq!(found[0].at, "/messages/1/id");
    assert_eq!(found[0].provider_text.as_deref(), Some(says));
    let (repaired, fixes) = check(Provider::Anthropic, &broken);
    let content = &broken["messages"][1]["content"];
    let kept = json!({"role": "assistant", "content": content});
    assert_eq!(repaired["messages"][1], kept);
    assert!(fixes.iter().all(|fix| fix.code == Code::BadField));
    assert_eq!(fixes.len(), 6);
}

#[test]
fn r03_a_history_of_openais_is_one_of_anthropics() {
    let function = json!({"name": "look", "arguments": "{\"at\": \"a1x\"}"});
    let call = json!({"id": "call_1", "type": "function", "function": function});
    let messages = json!([
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "r1x"},
        {"role": "assistant", "content": "a2x", "refusal": null, "annotations": []},
        {"role": "user", "content": "u2x", "name": "Ann"},
    ]);
    let (repaired, _) = check(Provider::Anthropic, &request(Provider::Anthropic, messages));
    assert_eq!(
        repaired["messages"],
        json!([
            {"role": "user", "content": "u1x"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "a1x"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "r1x"}]},
            {"role": "assistant", "content": "a2x"},
            {"role": "user", "content": "u2x"},
        ])
    );
}

#[test]
fn r03_words_under_another_name_are_the_content_where_there_is_none() {
    for odd in [
        json!({"role": "user", "text": "u1x"}),
        json!({"role": "user", "parts": [{"text": "u1x"}]}),
        json!({"role": "user", "content": null, "text": "u1x"}),
    ] {
        let broken = request(Provider::Anthropic, json!([odd]));
        let (repaired, _) = check(Provider::Anthropic, &broken);
        let said = json!([{"role": "user", "content": "u1x"}]);
        assert_eq!(repaired["messages"], said);
    }
}

#[test]
fn r03_a_cache_mark_of_a_message_goes_to_its_last_block() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let messages = json!([{"role": "user", "content": "u1x", "cache_control": mark}]);
    let (repaired, fixes) = check(Provider::Anthropic, &request(Provider::Anthropic, messages));
    let block = json!({"type": "text", "text": "u1x", "cache_control": mark});
    assert_eq!(repaired["messages"][0]["content"], json!([block]));
    assert_eq!(fixes.len(), 1);
    assert_eq!(fixes[0].code, Code::CacheControl);
}

#[test]
fn r01_a_field_that_a_request_cannot_have_is_named() {
    let mut asked = request(
        Provider::Anthropic,
        json!([{"role": "user", "content": "u1x"}]),
    );
    asked["zzz_unknown"] = json!(1);
    let mut input = request(
        Provider::OpenAiResponses,
        json!([{"role": "user", "content": "u1x"}]),
    );
    input["n"] = json!(2);
    for (provider, broken, at, says) in [
        (
            Provider::Anthropic,
            asked,
            "/zzz_unknown",
            "zzz_unknown: Extra inputs are not permitted",
        ),
        (
            Provider::OpenAiResponses,
            input,
            "/n",
            "Unknown parameter: 'n'.",
        ),
    ] {
        assert_eq!(said_by(provider, &broken), says);
        let found = validate(provider, What::Request, &broken);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].at, at);
        assert_eq!(found[0].provider_text.as_deref(), Some(says));
        // Only the sender knows what was meant: it stays.
        assert_eq!(repair(provider, broken.clone()), (broken, vec![]));
    }
}
