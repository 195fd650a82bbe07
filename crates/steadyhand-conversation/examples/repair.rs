//! Three conversations that died in public, repaired and explained: `cargo run --example repair`.

use serde_json::{Value, json};
use steadyhand_conversation::{Provider, explain, repair};

#[allow(clippy::print_stdout, reason = "that is what an example is for")]
fn main() {
    for (thread, provider, broken) in threads() {
        let (repaired, fixes) = repair(provider, broken.clone());
        println!("== {thread}\n");
        println!("{}", explain(provider, &broken, &repaired, &fixes));
    }
}

fn threads() -> [(&'static str, Provider, Value); 3] {
    let tool = |id: &str| json!({"id": id, "type": "function", "function": {"name": "search", "arguments": "{}"}});
    [
        (
            "anthropics/claude-code#5989: interrupted with two calls in flight",
            Provider::Anthropic,
            json!([
                {"role": "user", "content": "Run the tests and look at the log"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "toolu_A", "name": "run", "input": {"command": "make test"}},
                    {"type": "tool_use", "id": "toolu_B", "name": "read", "input": {"path": "test.log"}},
                ]},
                {"role": "user", "content": "Stop, that takes too long"},
            ]),
        ),
        (
            "github/copilot-sdk#1922: an image between the results",
            Provider::OpenAi,
            json!([
                {"role": "user", "content": "Compare the two pages"},
                {"role": "assistant", "content": null, "tool_calls": [tool("call_A"), tool("call_B")]},
                {"role": "tool", "tool_call_id": "call_A", "content": "page one"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
                {"role": "tool", "tool_call_id": "call_B", "content": "page two"},
            ]),
        ),
        (
            "google-gemini/gemini-cli#16415: fewer responses than calls",
            Provider::Gemini,
            json!([
                {"role": "user", "parts": [{"text": "What is in these files?"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "read", "args": {"path": "a"}}},
                    {"functionCall": {"name": "read", "args": {"path": "b"}}},
                ]},
                {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "A"}}}]},
            ]),
        ),
    ]
}
