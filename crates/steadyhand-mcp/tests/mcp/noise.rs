//! SPEC V12: what is no message is named in the log, counted, never answered; the connection goes on.

use serde_json::{Value, json};

use crate::logs::Logs;
use crate::support::{Stage, until};

const SKIPPED: &str = "WARN failed to parse a line of an MCP server's stdout; it is skipped";

/// All that a client may have sent.
fn assert_noise_was_not_answered(heard: &Value) {
    let methods = [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "ping",
    ];
    for line in heard.as_array().expect("what it heard") {
        let line = line.as_str().unwrap_or_default();
        assert!(methods.contains(&line), "{line:?} in {heard}");
    }
}

/// Plays a mode; each content must be in the log, once for the start and once for the call.
async fn assert_logged(mode: &str, contents: &[&str]) {
    let logs = Logs::capture();
    let stage = Stage::of(&[mode]).await;
    assert_eq!(stage.text("trouble", json!({})).await, "after the noise");
    for content in contents {
        let content = format!("content={content}");
        let lines = logs.with(&[SKIPPED, "server=hostile", &content]);
        assert_eq!(lines.len(), 2, "{content} in {:#?}", logs.lines());
    }
    assert_eq!(stage.server.state().noise_lines, 2 * contents.len() as u64);
    assert_noise_was_not_answered(&stage.json("heard", json!({})).await);
    stage.over().await;
}

#[tokio::test]
async fn v12_plain_text_is_logged_with_the_servers_name_and_its_content() {
    assert_logged(
        "plain_text",
        &["Hello! I print to stdout", "Processing request 1 of 1"],
    )
    .await;
}

#[tokio::test]
async fn v12_colours_reach_no_terminal_through_the_log() {
    let logs = Logs::capture();
    let stage = Stage::of(&["ansi"]).await;
    logs.assert_has(&[SKIPPED, "INFO server is up"]);
    let escapes = logs.with(&["\u{1b}"]);
    assert!(escapes.is_empty(), "{escapes:?}");
    stage.over().await;
}

#[tokio::test]
async fn v12_bytes_that_are_no_text_are_logged_as_what_can_be_read_of_them() {
    assert_logged("invalid_utf8", &["\u{fffd}\u{fffd} caf\u{fffd} \u{fffd}"]).await;
}

#[tokio::test]
async fn v12_json_that_is_no_json_rpc_is_logged_and_gets_no_answer() {
    let contents = [
        r#"{"level":"info","msg":"starting"}"#,
        "42",
        "\"text\"",
        "null",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        "{}",
    ];
    let logs = Logs::capture();
    let stage = Stage::of(&["json_not_rpc"]).await;
    assert_eq!(stage.text("trouble", json!({})).await, "after the noise");
    for content in contents {
        logs.assert_has(&[SKIPPED, &format!("content={content}")]);
    }
    // More than ten lines within ten seconds are counted, and not shown one by one.
    assert_eq!(stage.server.state().noise_lines, 14);
    assert_noise_was_not_answered(&stage.json("heard", json!({})).await);
    stage.over().await;
}

#[tokio::test]
async fn v12_blank_lines_are_nothing() {
    let logs = Logs::capture();
    let stage = Stage::of(&["blank_lines"]).await;
    assert_eq!(stage.text("trouble", json!({})).await, "after the noise");
    assert_eq!(logs.with(&[SKIPPED]), Vec::<String>::new());
    stage.over().await;
}

#[tokio::test]
async fn v12_what_stood_before_a_glued_message_is_logged() {
    let logs = Logs::capture();
    let stage = Stage::of(&["glued"]).await;
    assert_eq!(stage.text("trouble", json!({})).await, "salvaged");
    logs.assert_has(&[SKIPPED, "content=Processing... 100%"]);
    stage.over().await;
}

#[tokio::test]
async fn v12_an_object_as_node_prints_it_is_logged_as_one_thing() {
    let content = "{ level: 'info', tools: [ 'echo' ], nested: { deep: true } }";
    assert_logged("node_objects", &[content]).await;
}

#[tokio::test]
async fn v12_of_a_very_long_line_the_beginning_and_the_length_are_logged() {
    let logs = Logs::capture();
    let stage = Stage::of(&["line_20mb"]).await;
    assert_eq!(
        stage.text("trouble", json!({})).await,
        "after the long line"
    );
    let length = (20 << 20).to_string();
    logs.assert_has(&[SKIPPED, "content=xxxxxxxxxx", &length]);
    let longest = logs.lines().iter().map(String::len).max();
    assert!(longest < Some(4096), "{longest:?}");
    stage.over().await;
}

#[tokio::test]
async fn v12_a_flood_is_counted_and_does_not_fill_the_log() {
    let logs = Logs::capture();
    let stage = Stage::of(&["log_storm"]).await;
    until("all of it has been counted", || {
        stage.server.state().noise_lines == 20_000
    })
    .await;
    let count = logs.with(&[SKIPPED]).len();
    assert!((1..=50).contains(&count), "{count}");
    let kept = stage.server.logs().len();
    assert!(kept <= 1000, "{kept}");
    assert_noise_was_not_answered(&stage.json("heard", json!({})).await);
    stage.over().await;
}

#[tokio::test]
async fn v12_a_flood_on_stderr_is_kept_in_bounded_memory() {
    let stage = Stage::of(&["stderr_flood"]).await;
    assert_eq!(stage.text("trouble", json!({})).await, "after the flood");
    let kept: usize = stage.server.logs().iter().map(|line| line.text.len()).sum();
    assert!(kept <= 1 << 20, "{kept}");
    stage.over().await;
}
