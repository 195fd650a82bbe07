//! The makers' own SDKs talk to our strict providers: if these were wrong, those would say so.

use serde_json::{Value, json};
use steadyhand_models::Dialect;
use steadyhand_models::testing::{Line, Said, StrictProvider};

use super::peers::{ask_peer, peer, script};

fn lines() -> Vec<Line> {
    let calls = || {
        let said = Said::text("Let me look.").call("get_weather", json!({"city": "Rome"}));
        Line::Says(said.call("get_weather", json!({"city": "Oslo \"«Ærlig»\""})))
    };
    vec![
        calls(),
        Line::says("18 degrees in both."),
        calls(),
        Line::says("18 degrees in both."),
    ]
}

/// How each provider says that a call has no result.
fn refusal(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => {
            "`tool_use` ids were found without `tool_result` blocks immediately after"
        }
        Dialect::OpenAi => "must be followed by tool messages responding to each 'tool_call_id'",
        Dialect::OpenAiResponses => "No tool output found for function call",
        Dialect::Ollama => "a call has no result",
    }
}

fn stops(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Anthropic => ("tool_use", "end_turn"),
        Dialect::OpenAi => ("tool_calls", "stop"),
        Dialect::OpenAiResponses => ("completed", "completed"),
        Dialect::Ollama => ("stop", "stop"),
    }
}

fn check(dialect: Dialect, told: &Value, provider: &StrictProvider) {
    let (first, last) = stops(dialect);
    for (streams, talk) in [(false, &told[0]), (true, &told[1])] {
        let place = format!("{dialect}, streaming {streams}: {talk}");
        assert_eq!(talk[0], "Let me look.", "{place}");
        assert_eq!(talk[1], first, "{place}");
        assert_eq!(
            talk[2],
            json!([["get_weather", {"city": "Rome"}], ["get_weather", {"city": "Oslo \"«Ærlig»\""}]]),
            "{place}"
        );
        assert_eq!(talk[3], "18 degrees in both.", "{place}");
        assert_eq!(talk[4], last, "{place}");
        assert!(
            talk[5]
                .as_str()
                .is_some_and(|said| said.contains(refusal(dialect))),
            "{place}"
        );
    }
    assert_eq!(provider.requests().len(), 4);
    assert_eq!(provider.refused().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_for_python_accept_our_strict_providers_and_are_accepted() {
    for dialect in Dialect::ALL {
        let provider = StrictProvider::start(dialect, lines()).await;
        let mut python = std::process::Command::new(peer("model-sdks-py/bin/python"));
        python
            .arg("-I")
            .arg(script("model_sdks.py"))
            .args([dialect.as_str(), &provider.url()]);
        check(dialect, &ask_peer(python).await, &provider);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_for_javascript_accept_our_strict_providers_and_are_accepted() {
    // Ollama's is only a thin fetch: its protocol is covered above.
    for dialect in [
        Dialect::Anthropic,
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
    ] {
        let provider = StrictProvider::start(dialect, lines()).await;
        // OpenAI's wants a newer Node than Debian has.
        let mut node = std::process::Command::new(peer("conformance/bin/node"));
        node.arg(script("model_sdks.mjs"))
            .arg(peer("model-sdks-js"))
            .args([dialect.as_str(), &provider.url()]);
        check(dialect, &ask_peer(node).await, &provider);
    }
}
