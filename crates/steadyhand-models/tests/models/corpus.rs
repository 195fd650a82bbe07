//! Real answers of many providers, from public recordings beside the project: skipped aloud where they are not.

use std::path::{Path, PathBuf};

use serde_json::Value;
use steadyhand_conversation::{What, convert_tools, validate};
use steadyhand_models::wire::{Assembler, decode, encode};
use steadyhand_models::{Delivery, Dialect, ModelRequest, ModelSettings, ToolChoice};

fn corpus() -> Option<String> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("STEADYHAND_SHARED").map_or_else(beside, PathBuf::from);
    let path = folder.join("data/provider-corpus.jsonl");
    if !path.exists() {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {} is absent; set STEADYHAND_SHARED to the folder with the recordings",
            path.display()
        );
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the recordings can be read"))
}

fn dialect_of(path: &str) -> Option<Dialect> {
    match path {
        "/v1/messages" => Some(Dialect::Anthropic),
        path if path.ends_with("/chat/completions") => Some(Dialect::OpenAi),
        "/v1/responses" | "/responses" => Some(Dialect::OpenAiResponses),
        _ => None,
    }
}

#[test]
fn real_answers_of_many_providers_are_read_and_go_back_as_valid_requests() {
    let Some(corpus) = corpus() else { return };
    let (mut whole, mut streamed, mut calls) = (0, 0, 0);
    for line in corpus.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let Some(dialect) = row["path"].as_str().and_then(dialect_of) else {
            continue;
        };
        let body = row["response"].as_str().unwrap_or_default();
        if row["status"] != 200 || body.is_empty() {
            continue;
        }
        let tools = convert_tools(dialect.provider(), []);
        let place = format!("{} {}", row["provider"], row["source"]);
        let is_stream =
            body.starts_with("event:") || body.starts_with("data:") || body.starts_with(':');
        let response = if is_stream {
            let mut assembler = Assembler::new(dialect, 1 << 26);
            let pushed = assembler.push(body.as_bytes(), &mut |_| {});
            // Some of them fail in the middle, as their providers did.
            if body.contains("event: error") || body.contains("\"error\":{") {
                continue;
            }
            pushed.unwrap_or_else(|error| panic!("{place}: {error}"));
            streamed += 1;
            assembler
                .finish(&mut |_| {})
                .unwrap_or_else(|error| panic!("{place}: {error}\n{body}"))
        } else {
            let Ok(response) = serde_json::from_str::<Value>(body) else {
                continue;
            };
            whole += 1;
            response
        };
        let reply = decode(dialect, response, &tools)
            .unwrap_or_else(|error| panic!("{place}: {error}\n{body}"));
        calls += reply.message.tool_calls.len();
        let messages = [steadyhand::Message::human("?"), reply.message.into()];
        let request = ModelRequest {
            messages: &messages,
            tools: &[],
            choice: ToolChoice::Auto,
            delivery: Delivery::Whole,
        };
        for other in Dialect::ALL {
            let settings = ModelSettings::new(other, "m");
            let body = encode(&settings, &request).body;
            let problems = validate(other.provider(), What::Match, &body);
            assert_eq!(problems, [], "{place} to {other}: {body}");
        }
    }
    assert!(
        whole > 300 && streamed > 20 && calls > 200,
        "{whole} whole, {streamed} streamed, {calls} calls"
    );
}
