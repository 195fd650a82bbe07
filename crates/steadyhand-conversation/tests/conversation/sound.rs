//! What is sound at a glance, held against the repair.

use serde_json::{Value, json};
use steadyhand_conversation::{Provider, SoundRequest, repair};

use super::corpus::shared;

fn glance(provider: Provider, bytes: &[u8]) -> Option<SoundRequest> {
    provider.format().sound_request(bytes)
}

/// Sound means that the repair has nothing to do.
fn check(provider: Provider, request: &Value) -> bool {
    let is_sound = glance(provider, request.to_string().as_bytes()).is_some();
    if is_sound {
        let (_, fixes) = repair(provider, request.clone());
        assert!(fixes.is_empty(), "{provider}: {fixes:?}\n{request:#}");
    }
    is_sound
}

fn anthropic() -> Value {
    json!({"model": "m", "max_tokens": 10, "system": "Be brief.", "stream": true,
        "tools": [{"name": "w", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Rome?"},
            {"role": "assistant", "content": [{"type": "text", "text": "\n I look."}, {"type": "tool_use", "id": "t1", "name": "w", "input": {"a": 1}}, {"type": "tool_use", "id": "t2", "name": "w", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "18 C"}, {"type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": [{"type": "text", "text": "no"}]}, {"type": "text", "text": "And?"}]},
            {"role": "assistant", "content": "Warm."},
            {"role": "user", "content": [{"type": "text", "text": "Thanks"}]}]})
}

fn openai() -> Value {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "w", "arguments": "{\"a\": 1}"}});
    json!({"model": "m", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": null, "tool_calls": [call("c1"), call("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "18 C"},
        {"role": "tool", "tool_call_id": "c2", "content": "19 C"},
        {"role": "assistant", "content": "Warm."},
        {"role": "user", "content": "Thanks"}]})
}

#[test]
fn the_usual_conversations_are_sound_at_a_glance() {
    assert!(check(Provider::Anthropic, &anthropic()));
    assert!(check(Provider::OpenAi, &openai()));
    let sound = glance(Provider::Anthropic, anthropic().to_string().as_bytes());
    let expected = SoundRequest {
        model: Some("m".to_owned()),
        streams: true,
    };
    assert_eq!(sound, Some(expected));
}

/// Everything that is one step away: a value left out, doubled, emptied, moved or replaced.
fn neighbours(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for odd in [
        json!(null),
        json!(""),
        json!(" "),
        json!([]),
        json!({}),
        json!(7),
        json!("x y"),
        json!("assistant"),
        json!("user"),
        json!("t1"),
    ] {
        all.push(odd);
    }
    match value {
        Value::Array(items) => {
            for index in 0..items.len() {
                let mut without = items.clone();
                let taken = without.remove(index);
                all.push(Value::Array(without));
                let mut twice = items.clone();
                twice.insert(index, taken);
                all.push(Value::Array(twice));
                let mut swapped = items.clone();
                swapped.swap(index, (index + 1) % items.len());
                all.push(Value::Array(swapped));
                for inner in neighbours(&items[index]) {
                    let mut changed = items.clone();
                    changed[index] = inner;
                    all.push(Value::Array(changed));
                }
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let mut without = fields.clone();
                without.shift_remove(key);
                all.push(Value::Object(without));
                for inner in neighbours(field) {
                    let mut changed = fields.clone();
                    changed.insert(key.clone(), inner);
                    all.push(Value::Object(changed));
                }
            }
            for extra in [
                "cache_control",
                "thinking",
                "prefix",
                "refusal",
                "tool_call_id",
                "content",
            ] {
                let mut more = fields.clone();
                more.insert(extra.to_owned(), json!({"type": "ephemeral"}));
                all.push(Value::Object(more));
            }
        }
        _ => {}
    }
    all
}

#[test]
fn nothing_that_must_be_mended_is_sound_at_a_glance() {
    for (provider, request) in [
        (Provider::Anthropic, anthropic()),
        (Provider::OpenAi, openai()),
    ] {
        let all = neighbours(&request);
        let sound = all.iter().filter(|one| check(provider, one)).count();
        assert!(all.len() > 500 && sound > 20, "{sound} of {}", all.len());
    }
}

#[test]
fn what_real_clients_send_is_judged_as_the_repair_judges_it() {
    // It says so where there are none.
    let Some(path) = shared("data/provider-corpus.jsonl") else {
        return;
    };
    let corpus = std::fs::read_to_string(path).expect("the corpus can be read");
    let (mut seen, mut sound) = (0, 0);
    for line in corpus.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let provider = match row["path"].as_str() {
            Some("/v1/messages") => Provider::Anthropic,
            Some("/v1/chat/completions") if row["provider"] != "mistral" => Provider::OpenAi,
            _ => continue,
        };
        let request = &row["request"];
        seen += 1;
        sound += usize::from(check(provider, request));
        let messages = request["messages"].as_array().expect("messages");
        for (index, message) in messages.iter().enumerate() {
            let mut without = request.clone();
            without["messages"]
                .as_array_mut()
                .expect("a list")
                .remove(index);
            check(provider, &without);
            let mut twice = request.clone();
            let list = twice["messages"].as_array_mut().expect("a list");
            list.insert(index, message.clone());
            check(provider, &twice);
        }
    }
    assert!(seen > 300 && sound > 100, "{sound} of {seen}");
}
