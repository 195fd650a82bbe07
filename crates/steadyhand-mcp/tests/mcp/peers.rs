//! Servers on the official SDKs for Rust and Python: the same tools, the same answers.

use std::path::Path;

use serde_json::json;
use steadyhand::Effect;
use steadyhand::FailureCode::{NetworkError, ToolExecutionError, ValidationError};
use steadyhand_mcp::Phase;

use crate::support::{Folder, Stage, Watched, example, failure, peer, until, value};

async fn rmcp() -> Stage {
    let folder = Folder::new();
    let settings = folder.program("rmcp", &example("rmcp_server"), []);
    Stage::with(folder, settings).await
}

async fn python() -> Stage {
    let folder = Folder::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/python_server.py");
    let words = [script.display().to_string()];
    let settings = folder.program("python", &peer("mcp-py/bin/python"), words);
    Stage::with(folder, settings).await
}

/// What both do alike.
async fn assert_serves(stage: &Stage) {
    let state = stage.server.state();
    let why = state.failure.map(|failure| failure.detail());
    assert_eq!(state.phase, Phase::Running, "{}", why.unwrap_or_default());

    assert_eq!(stage.text("add", json!({"a": 19, "b": 23})).await, "42");
    let words = "Grüße, 世界 \u{1F980}\n\"two lines\"";
    assert_eq!(stage.text("say", json!({ "text": words })).await, words);
    let outcome = stage.call("calculate", json!({"a": 6, "b": 7})).await;
    assert_eq!(value(&outcome), &json!({"sum": 13, "product": 42}));

    let watched = Watched::of(&stage.executor);
    assert_eq!(
        stage.text("count", json!({"steps": 5})).await,
        "counted to 5"
    );
    until("the last step is told", || {
        watched.progress().last() == Some(&(5.0, Some(5.0)))
    })
    .await;

    let outcome = stage.call("add", json!({"a": "x"})).await;
    let (code, effect, _) = failure(&outcome);
    assert_eq!((code, effect), (ValidationError, Effect::None));
    let outcome = stage.call("fail", json!({"text": "no luck"})).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (ToolExecutionError, Effect::Done));
    assert!(words.ends_with("no luck"), "{words}");
    assert_eq!(outcome.attempts, 1);
}

/// Ends in the middle of a call, and is there again for the next one.
async fn assert_comes_back(stage: &Stage) {
    let outcome = stage.call("crash", json!({})).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (NetworkError, Effect::Unknown));
    assert!(words.contains("exited with code 7"), "{words}");
    assert_eq!(
        outcome.attempts, 1,
        "it may have run, so it is not run again"
    );
    assert_eq!(stage.text("add", json!({"a": 1, "b": 1})).await, "2");
    assert_eq!(stage.server.state().starts, 2);
}

#[tokio::test]
async fn d7_a_server_on_the_rust_sdk_is_served() {
    let stage = rmcp().await;
    assert_serves(&stage).await;
    let outcome = stage.call("refuse", json!({"text": "not today"})).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (ToolExecutionError, Effect::Unknown));
    assert_eq!(words, "not today");
    stage.over().await;
}

#[tokio::test]
async fn d7_a_server_on_the_rust_sdk_comes_back() {
    let stage = rmcp().await;
    assert_comes_back(&stage).await;
    stage.over().await;
}

#[tokio::test]
async fn d7_a_server_on_the_python_sdk_is_served() {
    let stage = python().await;
    assert_serves(&stage).await;
    let outcome = stage.call("dot", json!({})).await;
    assert_eq!(value(&outcome)[0]["mimeType"], "image/gif");
    stage.over().await;
}

#[tokio::test]
async fn d7_a_server_on_the_python_sdk_comes_back() {
    let stage = python().await;
    assert_comes_back(&stage).await;
    stage.over().await;
}

#[tokio::test]
async fn d7_only_what_a_server_declares_safe_is_safe_to_repeat() {
    for stage in [rmcp().await, python().await] {
        let is_safe = |tool: &str| {
            let policy = stage.executor.tools().policy(tool);
            policy.expect("a tool").safe_to_repeat
        };
        assert!(is_safe("add"), "readOnlyHint");
        assert!(is_safe("say"), "idempotentHint");
        assert!(!is_safe("calculate"), "nothing said");
        stage.over().await;
    }
}
