//! Sessions over HTTP, what a server says by itself, and what passes through.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand_mcp::Phase;
use tokio::time::{Instant, timeout};

use super::faults::Fault;
use super::host::{Host, Speaks};
use crate::relay::{Client, call, passage};
use crate::support::{Folder, PATIENCE, Stage, until};

async fn stage(host: &Host) -> Stage {
    Stage::with(Folder::new(), host.settings()).await
}

#[tokio::test]
async fn d17_http_many_who_find_the_session_lost_begin_one_anew_together() {
    let host = Host::of(Speaks::Legacy, Fault::None).await;
    let stage = stage(&host).await;
    assert_eq!(host.heard_of("initialize").len(), 1);
    host.forget_sessions();
    let calls = (0..50).map(|n| stage.text("note", json!({"message": n.to_string()})));
    let answers = futures_util::future::join_all(calls).await;
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(answers, expected);
    assert_eq!(host.heard_of("initialize").len(), 2, "once for all of them");
    let mut notes = host.notes();
    notes.sort_by_key(|note| note.parse::<u32>().unwrap_or_default());
    assert_eq!(notes, expected, "each exactly once");
    stage.over().await;
}

#[tokio::test]
async fn v16_http_the_session_is_ended_with_the_server() {
    let host = Host::of(Speaks::Legacy, Fault::None).await;
    let stage = stage(&host).await;
    stage.over().await;
    let ended = |host: &Host| {
        let heard = host.heard();
        heard.iter().any(|request| request.verb == "DELETE")
    };
    until("the session is ended", || ended(&host)).await;
}

#[tokio::test]
async fn v05_http_a_changed_list_is_read_anew_in_either_era() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let host = Host::of(speaks, Fault::None).await;
        let stage = stage(&host).await;
        let before = host.heard_of("tools/list").len();
        until("it has been told", || {
            host.tell(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}));
            host.heard_of("tools/list").len() > before
        })
        .await;
        stage.over().await;
    }
}

#[tokio::test]
async fn v13_http_subscriptions_are_told_again_when_a_session_begins_anew() {
    let host = Host::of(Speaks::Legacy, Fault::None).await;
    let stage = stage(&host).await;
    let passage = passage(&Client::named("Ada"), "{}");
    let ask = |method: &'static str, params: Value| {
        let (server, passage) = (stage.server.clone(), passage.clone());
        async move {
            let params = serde_json::value::to_raw_value(&params).expect("JSON");
            let asked = server.ask(method, Some(&params), &passage, Instant::now() + PATIENCE);
            timeout(PATIENCE, asked)
                .await
                .expect("no hang")
                .expect("a result")
        }
    };
    ask("resources/subscribe", json!({"uri": "test://one"})).await;
    ask("logging/setLevel", json!({"level": "warning"})).await;
    host.forget_sessions();
    stage.assert_next_call_works().await;
    until("both are told again", || {
        host.heard_of("resources/subscribe").len() == 2
            && host.heard_of("logging/setLevel").len() == 2
    })
    .await;
    let sessions: Vec<_> = host.heard_of("resources/subscribe");
    assert_ne!(
        sessions[0].header("mcp-session-id"),
        sessions[1].header("mcp-session-id")
    );
    stage.over().await;
}

#[tokio::test]
async fn v13_http_a_subscription_is_listened_to_in_the_newer_era() {
    let host = Host::of(Speaks::Modern, Fault::None).await;
    let stage = stage(&host).await;
    let mut notices = stage.server.notices();
    let passage = passage(&Client::named("Ada"), "{}");
    let params = serde_json::value::to_raw_value(&json!({"uri": "test://one"})).expect("JSON");
    let until_when = Instant::now() + PATIENCE;
    let asked = stage
        .server
        .ask("resources/subscribe", Some(&params), &passage, until_when);
    assert_eq!(asked.await.expect("accepted").get(), "{}");
    // Told that it is so, whoever asked hears of the very next change.
    host.tell(json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "test://one"}}));
    let mut heard = None;
    until("it is heard", || {
        heard = heard.take().or_else(|| notices.try_recv()?.ok());
        heard.is_some()
    })
    .await;
    let listened = host.heard_of("subscriptions/listen");
    let last = listened.last().expect("it is listened to");
    let wished = &last.body["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*wished, json!(["test://one"]));
    let heard = heard.expect("a notice");
    assert_eq!(&*heard.method, "notifications/resources/updated");
    let params = heard.params.expect("params");
    assert_eq!(
        params.get(),
        r#"{"uri":"test://one"}"#,
        "without our own mark"
    );
    stage.over().await;
}

#[tokio::test]
async fn v13_http_requests_of_the_newer_era_say_in_headers_what_they_are_about() {
    let host = Host::of(Speaks::Modern, Fault::None).await;
    let stage = stage(&host).await;
    let client = Client::named("Ada");
    let passage = passage(&client, r#"{"message": " Grüße, 世界"}"#);
    stage.run(call("mirror", &passage)).await;
    let heard = &host.heard_of("tools/call")[0];
    assert_eq!(heard.header("mcp-method"), Some("tools/call"));
    assert_eq!(heard.header("mcp-name"), Some("mirror"));
    assert_eq!(heard.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(heard.header("mcp-session-id"), None);
    assert_eq!(
        heard.header("mcp-param-message"),
        Some("=?base64?IEdyw7zDn2UsIOS4lueVjA==?=")
    );
    let meta = &heard.body["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"]["name"],
        "steadyhand"
    );
    // What its client can be asked, and nothing else.
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}, "sampling": {}, "elicitation": {}})
    );
    assert_eq!(meta["vendor/key"], json!({"kept": true}));
    stage.over().await;
}

#[tokio::test]
async fn v16_http_streams_and_plain_answers_are_alike() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let host = Host::of(speaks, Fault::None).await;
        host.answers_in_streams();
        let stage = stage(&host).await;
        for _ in 0..20 {
            stage.assert_next_call_works().await;
        }
        stage.over().await;
    }
}

#[tokio::test]
async fn v16_http_the_way_of_2024_is_found_and_its_end_is_mended() {
    let host = Host::of(Speaks::Sse, Fault::None).await;
    let stage = stage(&host).await;
    assert_eq!(stage.server.state().phase, Phase::Running);
    stage.assert_next_call_works().await;
    let running = stage.text("echo", json!({"message": "slow", "delay_ms": 300}));
    assert_eq!(running.await, "slow");
    host.tell(json!("cut"));
    stage.assert_comes_back().await;
    let until_up = stage.server.settled(Duration::from_secs(30));
    assert!(until_up.await);
    stage.assert_next_call_works().await;
    stage.over().await;
}
