//! What it costs to check and repair a conversation of a thousand messages, and whether the cost is linear.

use std::hint::black_box;

use serde_json::{Value, json};
use steadyhand_conversation::{Provider, repair};
use steadyhand_benches::measure::{Case, measure};
use steadyhand_benches::table;

fn main() {
    let mut cases = Vec::new();
    for (name, provider) in [
        ("anthropic", Provider::Anthropic),
        ("openai", Provider::OpenAi),
    ] {
        for count in [100, 1_000, 10_000] {
            for (kind, every) in [("valid", usize::MAX), ("each 10th result missing", 10)] {
                let whole = conversation(provider, count, every);
                let copied = whole.clone();
                // A repair takes the conversation and gives it back: copying it is the measurement's own cost.
                cases.push(Case::new(
                    format!("{name}, {count} messages, {kind}: copying alone"),
                    move |times| {
                        for _ in 0..times {
                            black_box(black_box(&copied).clone());
                        }
                    },
                ));
                cases.push(Case::new(
                    format!("{name}, {count} messages, {kind}: copying and repair"),
                    move |times| {
                        for _ in 0..times {
                            black_box(repair(provider, black_box(&whole).clone()));
                        }
                    },
                ));
            }
        }
    }
    table::print(&measure(cases));
}

/// So many messages, in turns of four: the user, a call, its result, an answer.
fn conversation(provider: Provider, count: usize, every: usize) -> Value {
    let mut messages = Vec::with_capacity(count);
    for turn in 0..count / 4 {
        let id = format!("call_{turn:06}");
        let text = format!(
            "Turn {turn}: what is the weather in Rome, and what should I wear to walk there?"
        );
        messages.push(json!({"role": "user", "content": text}));
        let (call, result) = match provider {
            Provider::Anthropic => (
                json!({"role": "assistant", "content": [
                    {"type": "text", "text": "I will look."},
                    {"type": "tool_use", "id": id, "name": "weather", "input": {"city": "Rome", "unit": "celsius"}},
                ]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "18 C, sunny"}]}),
            ),
            _ => (
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": id, "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\",\"unit\":\"celsius\"}"}},
                ]}),
                json!({"role": "tool", "tool_call_id": id, "content": "18 C, sunny"}),
            ),
        };
        messages.push(call);
        if turn % every != every - 1 {
            messages.push(result);
        }
        messages.push(json!({"role": "assistant", "content": "It is warm: wear something light."}));
    }
    Value::Array(messages)
}
