//! V07: a call that takes too long is really aborted. The server sees the client go.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use steadyhand::{Call, ToolExecutor, ToolManager};
use tokio_util::sync::CancellationToken;

use super::server::{Act, BlackHole, Server, head};
use super::{eventually, failure, probe, run, verdict};

/// For a request to arrive on a busy machine.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

fn endless_body() -> Vec<u8> {
    let mut bytes = head(
        200,
        &[
            ("content-type", "text/plain"),
            ("content-length", "1000000"),
        ],
    );
    bytes.push(b'x');
    bytes
}

#[tokio::test]
async fn v07_on_timeout_the_request_is_aborted_and_the_server_sees_it() {
    let stories = [
        ("no answer", Act::Stall(Vec::new())),
        (
            "half a head",
            Act::Stall(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()),
        ),
        ("half a body", Act::Stall(endless_body())),
        (
            "a dripping head",
            Act::Drip(b"HTTP/1.1 200 OK\r\nx: y".to_vec()),
        ),
        ("a dripping body", Act::Drip(endless_body())),
    ];
    let told = stories.map(async |(what, act)| {
        let server = Server::start(vec![act]).await;
        let tool = probe("POST", &server.url("/")).await.timeout(LONG_ENOUGH);
        let outcome = run(tool, json!({})).await;
        assert_eq!(verdict(&outcome), "TIMEOUT unknown final 1", "{what}");
        let expected = format!("{} did not answer in time", server.address);
        assert_eq!(failure(&outcome).message, expected, "{what}");
        eventually(what, || server.departures() == 1).await;
    });
    join_all(told).await;
}

#[tokio::test]
async fn v07_each_timed_out_attempt_is_aborted() {
    let server = Server::start(vec![Act::Stall(Vec::new())]).await;
    let tool = probe("GET", &server.url("/")).await.timeout(LONG_ENOUGH);
    let outcome = run(tool, json!({})).await;
    assert_eq!(verdict(&outcome), "TIMEOUT unknown retryable 4");
    eventually("four aborted requests", || server.departures() == 4).await;
}

#[tokio::test]
async fn v07_a_cancelled_call_is_aborted() {
    let server = Server::start(vec![Act::Stall(Vec::new())]).await;
    let manager = ToolManager::new();
    manager
        .add(probe("GET", &server.url("/")).await)
        .expect("the tool is valid");
    let token = CancellationToken::new();
    let call = Call::new("probe", json!({})).cancellation(token.clone());
    let running = tokio::spawn(async move { ToolExecutor::new(manager).execute(call).await });
    eventually("the request", || server.seen().len() == 1).await;
    token.cancel();
    let outcome = running.await.expect("no panic");
    assert_eq!(failure(&outcome).code.as_str(), "CANCELLED");
    eventually("the abort", || server.departures() == 1).await;
}

#[tokio::test]
async fn d19_a_connection_that_is_never_accepted_has_no_effect() {
    let hole = BlackHole::dig().await;
    let tool = probe("POST", &hole.url)
        .await
        .timeout(LONG_ENOUGH)
        .no_retry();
    let outcome = run(tool, json!({})).await;
    assert_eq!(verdict(&outcome), "NETWORK_ERROR none retryable 1");
    let message = &failure(&outcome).message;
    assert!(message.contains("did not accept one in time"), "{message}");
}
