//! Valid traffic is forwarded byte for byte, both ways: every exchange of the corpus that a real provider accepted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Provider, typed_answer};
use crate::serve::Served;
use crate::support::client;

#[derive(Deserialize)]
struct Row<'a> {
    provider: &'a str,
    path: &'a str,
    source: &'a str,
    status: u16,
    /// As it stands in the file, spaces and all.
    #[serde(borrow)]
    request: &'a RawValue,
    content_type: Option<&'a str>,
    response: String,
}

fn corpus() -> Option<String> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("STEADYHAND_SHARED").map_or_else(beside, PathBuf::from);
    let path = folder.join("data/provider-corpus.jsonl");
    if !path.exists() {
        println!(
            "SKIPPED: {} is absent; set STEADYHAND_SHARED to the folder with the recordings",
            path.display()
        );
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the corpus can be read"))
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_every_conversation_that_a_provider_accepted_passes_byte_for_byte() {
    let Some(corpus) = corpus() else { return };
    let rows: Vec<Row<'_>> = corpus
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .filter(|row: &Row<'_>| row.status == 200)
        .collect();
    let answers: HashMap<String, (String, String)> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let kind = row.content_type.filter(|kind| kind.contains('/'));
            let is_stream = row.response.starts_with("event:") || row.response.starts_with("data:");
            let kind = match is_stream {
                true => kind.unwrap_or("text/event-stream"),
                false => kind.unwrap_or("application/json"),
            };
            let kind = kind.to_owned();
            (index.to_string(), (kind, row.response.clone()))
        })
        .collect();
    let answers = Arc::new(answers);
    let provider = Provider::answering(move |asked| {
        let row = asked.headers["x-row"].to_str().expect("a number");
        let (kind, body) = &answers[row];
        typed_answer(200, kind, body.clone())
    })
    .await;
    let sites = ["anthropic", "openai", "ollama", "gemini", "mistral"];
    let upstream = provider.url();
    let config = |more: &str| {
        let config =
            sites.map(|site| format!("[proxy.{site}]\nupstream = \"{upstream}\"\n{more}\n"));
        config.join("\n")
    };
    // What a provider itself took passes by its own rules, which are the narrowest.
    let original = Served::with_config(&config("host = \"original\"")).await;
    let compatible = Served::with_config(&config("")).await;
    let client = client();
    let mut passed = 0;
    for (index, row) in rows.iter().enumerate() {
        let site = match row.provider {
            site if sites.contains(&site) => site,
            // Those who speak OpenAI's language.
            _ => "openai",
        };
        let place = format!("{} {}", row.path, row.source);
        let is_of_maker = match row.provider {
            "gemini" => row.path.contains("enerateContent"),
            provider => ["anthropic", "openai", "mistral"].contains(&provider),
        };
        let served = if is_of_maker { &original } else { &compatible };
        let url = format!("http://{}/proxy/{site}{}", served.address, row.path);
        let sent = client
            .post(url)
            .header("content-type", "application/json")
            .header("x-row", index.to_string())
            .body(row.request.get().to_owned())
            .send()
            .await;
        let answer = sent.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(answer.status(), 200, "{place}");
        let fixes = answer.headers().get("steadyhand-fixes").cloned();
        let body = answer.bytes().await.expect("a whole answer");
        if row.source.ends_with("tool_calls_without_id.yaml") && fixes.is_some() {
            // A service that speaks OpenAI's language, and forgets the ids: the client gets some (SPEC R03).
            let fixes = fixes.as_ref().and_then(|fixes| fixes.to_str().ok());
            let all_ids = |fixes: &str| {
                fixes
                    .split(", ")
                    .all(|fix| fix.starts_with("bad_call_id;in=response;"))
            };
            assert!(fixes.is_some_and(all_ids), "{place}: {fixes:?}");
        } else {
            assert_eq!(fixes, None, "{place}");
            assert!(
                body == row.response.as_bytes(),
                "the answer changed: {place}"
            );
        }
        let asked = provider.last();
        assert_eq!(asked.uri, row.path, "{place}");
        assert!(
            asked.body == row.request.get().as_bytes(),
            "the request changed: {place}"
        );
        passed += 1;
    }
    assert!(
        passed == rows.len() && passed > 600,
        "{passed} of the corpus"
    );
    println!("\n{passed} requests and answers of the corpus passed byte for byte");
}
