//! Keys at `/mcp`: a session is for whoever opened it, and a key hears of its own tools alone.

use serde_json::{Value, json};

use super::{TOOLS, key};
use crate::serve::{Reply, Served};
use crate::support::Workplace;

pub(super) async fn send(
    served: &Served,
    key: &str,
    session: Option<&str>,
    message: &Value,
) -> Reply {
    let shown = format!("Bearer {key}");
    let mut headers = vec![
        ("authorization", shown.as_str()),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    headers.extend(session.map(|session| ("mcp-session-id", session)));
    served
        .send("POST", "/mcp", &headers, &message.to_string())
        .await
}

pub(super) async fn begin(served: &Served, key: &str) -> String {
    begin_as(served, key, "2025-11-25").await
}

/// A session of a version of the protocol.
pub(super) async fn begin_as(served: &Served, key: &str, version: &str) -> String {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let begun = send(served, key, None, &initialize).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let session = begun.header("mcp-session-id").expect("a session");
    session.to_owned()
}

pub(super) fn call(id: u64, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn a_key_at_mcp_hears_of_its_tools_and_uses_them_in_a_session_of_its_own() {
    let workplace = Workplace::with_config(TOOLS);
    let ann = key(
        &workplace,
        "ann",
        &["--tool", "weather", "--rate", "2/hour"],
    );
    let bob = key(&workplace, "bob", &[]);
    let eye = key(&workplace, "eye", &["--role", "viewer"]);
    let served = Served::in_place(workplace).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(served.post("/mcp", list.clone()).await.status, 401);
    assert_eq!(send(&served, &eye, None, &list).await.status, 403);

    let session = begin(&served, &ann).await;
    let listed = send(&served, &ann, Some(&session), &list).await;
    assert!(
        listed.text.contains("\"weather\"") && !listed.text.contains("shell"),
        "{}",
        listed.text
    );
    let resources = json!({"jsonrpc": "2.0", "id": 3, "method": "resources/list"});
    let listed = send(&served, &ann, Some(&session), &resources).await;
    assert!(listed.text.contains("\"resources\":[]"), "{}", listed.text);
    // A session is for whoever opened it.
    assert_eq!(send(&served, &bob, Some(&session), &list).await.status, 404);
    let headers = [("mcp-session-id", session.as_str())];
    let shown = format!("Bearer {bob}");
    let theirs = [headers[0], ("authorization", shown.as_str())];
    assert_eq!(served.send("DELETE", "/mcp", &theirs, "").await.status, 404);

    let refused = send(&served, &ann, Some(&session), &call(4, "shell")).await;
    assert!(
        refused.text.contains("ann may not use 'shell'"),
        "{}",
        refused.text
    );
    for id in 5..7 {
        let answered = send(&served, &ann, Some(&session), &call(id, "weather")).await;
        assert!(answered.text.contains("rain"), "{}", answered.text);
    }
    let beyond = send(&served, &ann, Some(&session), &call(8, "weather")).await;
    assert!(
        beyond.text.contains("may make 2/hour calls"),
        "{}",
        beyond.text
    );
    let all = begin(&served, &bob).await;
    let listed = send(&served, &bob, Some(&all), &list).await;
    assert!(listed.text.contains("\"shell\""), "{}", listed.text);
    let calls = super::with_key(&served, &bob, "GET", "/v1/calls", "").await;
    assert_eq!(calls.json()["calls"], json!([]), "{}", calls.text);
    let calls = super::with_key(&served, &ann, "GET", "/v1/calls?tool=weather", "").await;
    assert!(calls.text.contains("@ann/mcp test"), "{}", calls.text);
}
