//! A server that is killed under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::faults::Fault;

use super::{Served, request, until, whole_reply};

const TOOLS: &str = r#"
[tools.echo]
kind = "builtin"
use = "echo"
"#;

#[derive(Default)]
struct Tally {
    issued: AtomicU64,
    delivered: AtomicU64,
    cut: AtomicU64,
    stop: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_nothing_that_it_had_answered() {
    let fault = Fault::begin(
        "kill -9 under load, and restart",
        "issued = answered + connections cut; it starts again by itself; what was written is kept, what waited in the queue is not",
    );
    let served = Served::with_config(TOOLS).await;
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
    // What the server says is written must be there afterwards, whatever else is lost.
    let written = until("some of them are written", async || {
        let ready = served.get("/health/ready").await.json();
        let written = ready["history"]["written"].as_u64()?;
        (written > 500).then_some(written)
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
    assert!(kept >= written, "{kept} kept, {written} were written");
    assert!(kept <= issued + 1, "{kept} kept of {issued}");
    fault.got(format!(
        "{issued} issued = {delivered} answered + {cut} cut; {kept} kept ({written} were written a moment before); ready again"
    ));
}
