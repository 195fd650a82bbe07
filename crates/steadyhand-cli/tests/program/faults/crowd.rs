//! Ten thousand calls at the same time, on a thousand connections, against a tool that takes fifty at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::routing::get;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Fault, rss_mb};
use crate::serve::{Served, reply, request};

const CALLS: usize = 10_000;
const CALLS_EACH: usize = 10;
const AT_ONCE: usize = 50;

/// A service that counts how many are in it at the same time.
#[derive(Default)]
struct Narrow {
    inside: AtomicUsize,
    peak: AtomicUsize,
    seen: AtomicUsize,
}

impl Narrow {
    async fn pass(&self) -> &'static str {
        self.seen.fetch_add(1, Ordering::SeqCst);
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(inside, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
        "done"
    }
}

/// Ten calls in one request; gives back how many were run and how many were refused.
async fn client(address: SocketAddr, start: Arc<Semaphore>) -> (usize, usize) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    // All of them begin when all of them are connected.
    let _ = start.acquire().await;
    let batch = json!({"calls": vec![json!({"name": "narrow"}); CALLS_EACH]}).to_string();
    let batch = request(address, "POST", "/v1/batches", &[], &batch);
    stream.write_all(batch.as_bytes()).await.expect("sent");
    let reply = reply(&mut stream).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let answer = reply.json();
    let outcomes = answer["outcomes"].as_array().expect("a list");
    assert_eq!(outcomes.len(), CALLS_EACH);
    let (mut run, mut refused) = (0, 0);
    for outcome in outcomes {
        match outcome["error"]["code"].as_str() {
            None => run += 1,
            Some("OVERLOADED") => {
                assert_eq!(outcome["error"]["effect"], "none");
                refused += 1;
            }
            other => panic!("{other:?}: {outcome}"),
        }
    }
    (run, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_callers_at_once_each_get_one_outcome_and_the_limit_holds() {
    let fault = Fault::begin(
        "10,000 calls, 1,000 connections",
        "one outcome each: run, or OVERLOADED with effect none; never more at a time than the limit",
    );
    let narrow = Arc::new(Narrow::default());
    let inside = Arc::clone(&narrow);
    let app = axum::Router::new().route("/", get(async move || inside.pass().await));
    let tool = crate::support::serve(app).await;
    let served = Served::with_config(&format!(
        r#"
[tools.narrow]
kind = "http"
description = "Few at a time"
url = "http://{tool}/"
input = {{ type = "object" }}
limits = {{ concurrency = {AT_ONCE}, queue = 200 }}
retry = {{ attempts = 1 }}
breaker = {{ enabled = false }}
"#
    ))
    .await;
    let start = Arc::new(Semaphore::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CALLS / CALLS_EACH {
        clients.spawn(client(served.address, Arc::clone(&start)));
    }
    start.add_permits(Semaphore::MAX_PERMITS / 2);
    let (mut run, mut refused) = (0, 0);
    while let Some(counts) = clients.join_next().await {
        let (some, others) = counts.expect("no client panics");
        run += some;
        refused += others;
    }
    assert_eq!(run + refused, CALLS);
    assert_eq!(narrow.seen.load(Ordering::SeqCst), run, "each was run once");
    let peak = narrow.peak.load(Ordering::SeqCst);
    assert!(peak <= AT_ONCE, "{peak} at a time");
    assert!(run >= AT_ONCE, "those who had a place were not served");
    let metrics = served.get("/v1/metrics/narrow").await.json();
    assert_eq!(metrics["totalExecutions"], run);
    assert_eq!(metrics["rejected"], refused);
    assert_eq!(
        (&metrics["inFlight"], &metrics["queued"]),
        (&json!(0), &json!(0))
    );
    let running = served.get("/v1/calls?state=running").await.json();
    assert_eq!(running["calls"], json!([]));
    let memory = rss_mb(&served);
    assert!(memory < 800, "{memory} MB");
    fault.got(format!(
        "{run} run, {refused} OVERLOADED; {peak} at a time at most; {memory} MB"
    ));
}
