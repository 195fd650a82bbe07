//! A server over HTTP that goes away and comes back (SPEC D17).

use std::time::Duration;

use serde_json::json;
use steadyhand::FailureCode::NetworkError;
use steadyhand::{Call, Effect};
use steadyhand_mcp::{Phase, Server, Step, What};
use tokio::time::Instant;

use super::faults::Fault;
use super::host::{Host, Speaks};
use crate::support::{Folder, PATIENCE, Stage, failure, until};

#[tokio::test]
async fn d17_http_calls_in_flight_are_told_and_later_ones_fail_at_once_until_it_is_back() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let host = Host::of(speaks, Fault::None).await;
        let stage = Stage::with(Folder::new(), host.settings()).await;
        let slow = json!({"message": "slow", "delay_ms": 60_000});
        let running = (0..16).map(|_| {
            let (executor, args) = (stage.executor.clone(), slow.clone());
            tokio::spawn(async move { executor.execute(Call::new("note", args)).await })
        });
        let running: Vec<_> = running.collect();
        until("all of them are there", || {
            host.heard_of("tools/call").len() == 16
        })
        .await;
        let killed = Instant::now();
        host.kill();
        for outcome in futures_util::future::join_all(running).await {
            let outcome = outcome.expect("an outcome");
            let (code, effect, words) = failure(&outcome);
            assert_eq!((code, effect), (NetworkError, Effect::Unknown), "{words}");
        }
        assert!(
            killed.elapsed() < PATIENCE,
            "told, and not after their time limit"
        );

        until("it is known to be down", || {
            stage.server.state().phase == Phase::Down
        })
        .await;
        // Its tool's breaker has counted those who were under way; whoever follows the server closes it.
        stage.executor.tools().reset_breaker("note");
        let outcome = stage.call("note", json!({"message": "lost"})).await;
        let (code, effect, words) = failure(&outcome);
        assert_eq!((code, effect), (NetworkError, Effect::None), "{words}");
        assert_eq!(outcome.attempts, 1, "no retry");
        assert!(
            words.contains("is not running: cannot be reached"),
            "{words}"
        );

        host.start();
        let back = stage
            .server
            .changes()
            .wait_for(|state| state.phase == Phase::Running)
            .await
            .map(drop);
        back.expect("it comes back by itself");
        for n in 0..32 {
            stage.text("note", json!({"message": n.to_string()})).await;
        }
        assert_eq!(host.notes().len(), 32, "{:?}", host.notes());
        stage.over().await;
    }
}

#[tokio::test]
async fn d17_http_the_call_that_finds_out_has_done_nothing() {
    let host = Host::of(Speaks::Modern, Fault::None).await;
    let stage = Stage::with(Folder::new(), host.settings()).await;
    host.kill();
    let outcome = stage.call("note", json!({"message": "x"})).await;
    let (code, effect, words) = failure(&outcome);
    // It may have been written into a connection that was just being reset.
    assert_eq!(code, NetworkError, "{words}");
    assert!(
        effect == Effect::None || words.contains("broke during the call"),
        "{words}"
    );
    assert!(host.notes().is_empty());
    stage.over().await;
}

#[tokio::test]
async fn v17_http_a_server_that_is_not_there_is_explained() {
    let host = Host::of(Speaks::Modern, Fault::None).await;
    host.kill();
    let mut settings = host.settings();
    settings.place = Some("steadyhand.toml:3".to_owned());
    let stage = Stage::with(Folder::new(), settings).await;
    let state = stage.server.state();
    assert_eq!(state.phase, Phase::Down);
    let failure = state.failure.expect("a failure");
    assert_eq!(failure.step, Step::Connect);
    assert!(matches!(failure.what, What::Unreachable(_)), "{failure}");
    let text = failure.v17(&[]);
    assert!(
        text.starts_with("❌ Failed to initialize MCP tools after 3 attempts\n"),
        "{text}"
    );
    assert!(
        text.contains("   Reason: Connection to http server 'remote' failed\n"),
        "{text}"
    );
    assert!(text.contains("Connection refused"), "{text}");
    let detail = failure.detail();
    assert!(
        detail.contains(&format!("Nothing listens at {}", host.url())),
        "{detail}"
    );
    assert!(detail.contains("steadyhand.toml:3"), "{detail}");
    // It is found as soon as it is there.
    host.start();
    until("it is up", || stage.server.state().phase == Phase::Running).await;
    stage.take_tools();
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn v17_http_what_is_no_mcp_server_is_explained() {
    let cases = [
        (
            "401 Unauthorized",
            "text/plain",
            "no",
            "wants to know who asks",
        ),
        ("404 Not Found", "text/plain", "no", "no MCP endpoint"),
        (
            "200 OK",
            "text/html",
            "<html><title>Shop</title></html>",
            "no MCP endpoint",
        ),
        (
            "500 Internal Server Error",
            "text/plain",
            "oops",
            "a fault of its own",
        ),
    ];
    for (status, kind, body, sentence) in cases {
        let address = answering(status, kind, body).await;
        let mut settings =
            steadyhand_mcp::ServerSettings::http("odd", format!("http://{address}/x?key=hidden"));
        settings.start.waits = vec![Duration::ZERO];
        let server = Server::new(settings, None);
        server.start();
        server.settled(PATIENCE).await;
        let failure = server.state().failure.expect("a failure");
        assert_eq!(failure.step, Step::Initialize, "{}", failure.detail());
        let detail = failure.detail();
        assert!(detail.contains(sentence), "{detail}");
        assert!(!detail.contains("hidden"), "{detail}");
        assert!(
            detail.contains(&format!("http://{address}/x?…")),
            "{detail}"
        );
        server.stop().await;
    }
}

/// Answers everything alike.
async fn answering(
    status: &'static str,
    kind: &'static str,
    body: &'static str,
) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut wire = super::bare::Wire::new(stream);
                while let Ok(Some(_)) = wire.request().await {
                    if wire
                        .respond(status, &[("content-type", kind)], body)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn v17_http_a_setting_that_cannot_be_is_explained() {
    for (url, header, words) in [
        ("ftp://example.com", None, "must begin with http"),
        ("http://user:pw@127.0.0.1/", None, "use a header"),
        (
            "http://127.0.0.1:1/",
            Some(("Accept", "x")),
            "set by the protocol",
        ),
        (
            "http://127.0.0.1:1/",
            Some(("a b", "x")),
            "no name of a header",
        ),
    ] {
        let mut settings = steadyhand_mcp::ServerSettings::http("odd", url);
        if let Some((name, value)) = header {
            settings
                .as_http()
                .headers
                .push((name.to_owned(), value.to_owned()));
        }
        let why = settings.as_http().check().expect_err("wrong");
        assert!(why.contains(words), "{why}");
        assert!(!why.contains("pw"), "{why}");
        let server = Server::new(settings, None);
        server.start();
        server.settled(PATIENCE).await;
        let failure = server.state().failure.expect("a failure");
        assert!(failure.detail().contains(words), "{}", failure.detail());
        server.stop().await;
    }
}
