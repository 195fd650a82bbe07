//! Many at once: ten thousand calls against a limit, and a server that is killed under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Served, request, until, whole_reply};

const LIMITED: &str = r#"
[tools.narrow]
kind = "mock"
description = "Few at a time"
input = { type = "object" }
answers = [{ result = "done", delay = "100ms" }]
limits = { concurrency = 50, queue = 200 }
breaker = { enabled = false }

[tools.echo]
kind = "builtin"
use = "echo"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_at_once_against_a_limit_all_get_their_outcome() {
    let served = Arc::new(Served::with_config(LIMITED).await);
    let calls: Vec<_> = (0..100).map(|_| json!({"name": "narrow"})).collect();
    let batch = json!({ "calls": calls });
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (served, batch) = (Arc::clone(&served), batch.clone());
        clients.spawn(async move { served.post("/v1/batches", batch).await });
    }
    let (mut succeeded, mut overloaded) = (0, 0);
    while let Some(reply) = clients.join_next().await {
        let reply = reply.expect("no client panics");
        assert_eq!(reply.status, 200, "{}", reply.text);
        let answer = reply.json();
        let outcomes = answer["outcomes"].as_array().expect("a list");
        assert_eq!(outcomes.len(), 100);
        for outcome in outcomes {
            match outcome["error"]["code"].as_str() {
                None => succeeded += 1,
                Some("OVERLOADED") => overloaded += 1,
                other => panic!("{other:?}: {outcome}"),
            }
        }
    }
    assert_eq!(succeeded + overloaded, 10_000);
    assert!(overloaded > 0, "the limit was never reached");
    assert!(
        succeeded >= 250,
        "those who had a place were not served: {succeeded}"
    );
    let metrics = served.get("/v1/metrics/narrow").await.json();
    assert_eq!(metrics["totalExecutions"], succeeded);
    assert_eq!(metrics["rejected"], overloaded);
    assert_eq!(
        (&metrics["inFlight"], &metrics["queued"]),
        (&json!(0), &json!(0))
    );
    let running = served.get("/v1/calls?state=running").await.json();
    assert_eq!(running["calls"], json!([]));
    assert!(rss_mb(served.pid()) < 600, "{} MB", rss_mb(served.pid()));
}

/// What the process holds in memory.
fn rss_mb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kb.expect("a size") / 1024
}

#[derive(Default)]
struct Tally {
    issued: AtomicU64,
    delivered: AtomicU64,
    cut: AtomicU64,
    stop: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_nothing_that_it_had_answered() {
    let served = Served::with_config(LIMITED).await;
    let tally = Arc::new(Tally::default());
    let address = served.address;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let tally = Arc::clone(&tally);
        clients.spawn(async move {
            let Ok(mut stream) = TcpStream::connect(address).await else {
                return;
            };
            let call = json!({"name": "echo", "args": {"a": 1}}).to_string();
            let call = request(address, "POST", "/v1/calls", &[], &call);
            while !tally.stop.load(Ordering::SeqCst) {
                tally.issued.fetch_add(1, Ordering::SeqCst);
                let sent = stream.write_all(call.as_bytes()).await;
                match (sent, whole_reply(&mut stream).await) {
                    (Ok(()), Some(reply)) if reply.status == 200 => {
                        tally.delivered.fetch_add(1, Ordering::SeqCst);
                    }
                    (_, Some(reply)) => panic!("{}", reply.text),
                    (_, None) => {
                        tally.cut.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                }
            }
        });
    }
    until("many calls are answered", async || {
        (tally.delivered.load(Ordering::SeqCst) > 2_000).then_some(())
    })
    .await;
    let workplace = served.killed().await;
    tally.stop.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.expect("no client panics");
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    let (issued, delivered, cut) = (
        count(&tally.issued),
        count(&tally.delivered),
        count(&tally.cut),
    );
    assert_eq!(issued, delivered + cut);

    // It comes back by itself: its address file is of no use any more, its history is whole.
    let served = Served::in_place(workplace).await;
    let outcome = served.call("echo", json!({"b": 2})).await;
    assert_eq!(outcome["status"], "success");
    let ready = served.get("/health/ready").await.json();
    assert_eq!(ready["history"]["state"], "ok", "{ready}");
    let exported = served.get("/v1/calls.ndjson?tool=echo").await;
    let kept = exported
        .text
        .lines()
        .filter(|line| line.starts_with('{'))
        .count() as u64;
    let queue_max = ready["history"]["queue_max"].as_u64().expect("a number");
    assert!(
        kept + queue_max > delivered,
        "{kept} of {delivered} are kept"
    );
    assert!(kept <= issued + 1, "{kept} kept of {issued}");
}
