//! The end of a server under load, asked for or not: nothing is lost, and nothing happens twice.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::routing::post;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Fault, TOOLS, kept};
use crate::serve::{Reply, Served, request, until, whole_reply};
use crate::support::PATIENCE;

/// What callers were told, over all of them.
#[derive(Default)]
struct Tally {
    issued: AtomicUsize,
    /// Ids of calls whose outcome arrived.
    delivered: Mutex<HashSet<String>>,
    refused: AtomicUsize,
    cut: AtomicUsize,
}

impl Tally {
    fn count(&self) -> usize {
        self.delivered.lock().expect("whole").len()
    }

    fn add(&self, reply: Option<Reply>) -> bool {
        let Some(reply) = reply else {
            self.cut.fetch_add(1, Ordering::SeqCst);
            return false;
        };
        if reply.status == 503 {
            assert_eq!(reply.refusal().1, "shutting_down", "{}", reply.text);
            self.refused.fetch_add(1, Ordering::SeqCst);
            return false;
        }
        let outcome = reply.json();
        assert_eq!(outcome["status"], "success", "{outcome}");
        let id = outcome["callId"].as_str().expect("an id").to_owned();
        let is_new = self.delivered.lock().expect("whole").insert(id);
        assert!(is_new, "one outcome came twice");
        // Who is told that the connection ends does not use it again.
        reply.header("connection") != Some("close")
    }
}

/// Calls on one connection until the server does not take any more.
async fn client(address: SocketAddr, number: usize, tally: Arc<Tally>) {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return;
    };
    for round in 0.. {
        let call = json!({"name": "brief", "id": format!("c-{number}-{round}")}).to_string();
        let call = request(address, "POST", "/v1/calls", &[], &call);
        tally.issued.fetch_add(1, Ordering::SeqCst);
        let sent = stream.write_all(call.as_bytes()).await;
        let reply = match sent {
            Ok(()) => whole_reply(&mut stream).await,
            Err(_) => None,
        };
        if !tally.add(reply) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_end_under_load_answers_every_call_it_has_begun() {
    let fault = Fault::begin(
        "SIGTERM under load",
        "calls that run are answered, new ones 503; what was run is what was answered and what is kept",
    );
    let served = Served::with_config(TOOLS).await;
    let tally = Arc::new(Tally::default());
    let mut clients = JoinSet::new();
    for number in 0..32 {
        clients.spawn(client(served.address, number, Arc::clone(&tally)));
    }
    until("calls are answered", async || {
        (tally.count() > 200).then_some(())
    })
    .await;
    // Some come at the very moment.
    for number in 100..116 {
        clients.spawn(client(served.address, number, Arc::clone(&tally)));
    }
    served.signal(Signal::TERM);
    while let Some(client) = clients.join_next().await {
        client.expect("no client panics");
    }
    let (code, stderr, workplace) = served.left().await;
    assert_eq!(code, Some(0), "{stderr}");
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    let (issued, refused, cut) = (
        count(&tally.issued),
        count(&tally.refused),
        count(&tally.cut),
    );
    assert_eq!(issued, tally.count() + refused + cut);

    let served = Served::in_place(workplace).await;
    let written: HashSet<String> = kept(&served).await.into_iter().collect();
    let delivered = tally.delivered.lock().expect("whole");
    let lost: Vec<&String> = written.symmetric_difference(&delivered).take(5).collect();
    assert_eq!(lost, Vec::<&String>::new(), "run and answered differ");
    fault.got(format!(
        "{issued} issued = {} answered + {refused} told 503 + {cut} cut before they began; all {} kept",
        delivered.len(),
        written.len()
    ));
}

/// None if the connection is cut, or there is none to be had.
async fn ask(address: SocketAddr, call: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let call = request(address, "POST", "/v1/calls", &[], &call.to_string());
    stream.write_all(call.as_bytes()).await.ok()?;
    let reply = whole_reply(&mut stream).await?;
    assert_eq!(reply.status, 200, "{}", reply.text);
    Some(reply.json())
}

/// How often each payment arrived.
type Ledger = Arc<Mutex<HashMap<String, usize>>>;

/// Pays until told to stop, each time with a key of its own, and asks again with the same key until there is an answer.
async fn payer(
    number: usize,
    address: Arc<Mutex<SocketAddr>>,
    stop: Arc<AtomicBool>,
    paid: Arc<AtomicUsize>,
) -> Vec<(String, Value)> {
    let mut outcomes = Vec::new();
    for round in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let name = format!("p-{number}-{round}");
        let call = json!({"name": "pay", "args": {"n": name}, "idempotency_key": name});
        let patience = Instant::now() + PATIENCE;
        let outcome = loop {
            let there = *address.lock().expect("whole");
            if let Some(outcome) = ask(there, &call).await {
                break outcome;
            }
            assert!(Instant::now() < patience, "{name} is never answered");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        paid.fetch_add(1, Ordering::SeqCst);
        outcomes.push((name, outcome));
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_a_key_happen_at_most_once_however_often_the_server_is_killed() {
    let fault = Fault::begin(
        "kill -9, and the same keys again",
        "every call is answered in the end, none is run twice; where nobody can know, it says so",
    );
    let ledger = Ledger::default();
    let book = Arc::clone(&ledger);
    let pay = async move |Json(body): Json<Value>| {
        let name = body["n"].as_str().unwrap_or_default().to_owned();
        *book.lock().expect("whole").entry(name).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(30)).await;
        Json(json!({"paid": true}))
    };
    let bank = crate::support::serve(axum::Router::new().route("/", post(pay))).await;
    let mut served = Served::with_config(&format!(
        r#"
[tools.pay]
kind = "http"
method = "POST"
description = "Pays once"
url = "http://{bank}/"
body = {{ n = "{{n}}" }}
input = {{ type = "object", required = ["n"], properties = {{ n = {{ type = "string" }} }} }}
breaker = {{ enabled = false }}
"#
    ))
    .await;
    let address = Arc::new(Mutex::new(served.address));
    let (stop, paid) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let mut payers = JoinSet::new();
    for number in 0..8 {
        let (address, stop, paid) = (Arc::clone(&address), Arc::clone(&stop), Arc::clone(&paid));
        payers.spawn(payer(number, address, stop, paid));
    }
    const KILLS: usize = 3;
    for _ in 0..KILLS {
        let before = paid.load(Ordering::SeqCst);
        until("some are paid", async || {
            (paid.load(Ordering::SeqCst) > before + 60).then_some(())
        })
        .await;
        served = Served::in_place(served.killed().await).await;
        *address.lock().expect("whole") = served.address;
    }
    let before = paid.load(Ordering::SeqCst);
    until("some are paid after the last one", async || {
        (paid.load(Ordering::SeqCst) > before + 20).then_some(())
    })
    .await;
    stop.store(true, Ordering::SeqCst);
    let (mut sure, mut unsure) = (0, 0);
    while let Some(outcomes) = payers.join_next().await {
        for (name, outcome) in outcomes.expect("no payer panics") {
            let times = ledger.lock().expect("whole").get(&name).copied();
            if outcome["status"] == "success" {
                assert_eq!(times, Some(1), "{name} {outcome}");
                sure += 1;
            } else {
                // Killed in the middle: nobody can know, and nobody tries.
                assert_eq!(outcome["error"]["effect"], "unknown", "{name} {outcome}");
                assert!(times <= Some(1), "{name} was paid {times:?} times");
                unsure += 1;
            }
        }
    }
    assert_eq!(sure + unsure, paid.load(Ordering::SeqCst));
    assert!(unsure <= KILLS * 8, "{unsure} of {sure} are not known");
    let most = ledger.lock().expect("whole").values().copied().max();
    assert_eq!(most, Some(1));
    fault.got(format!(
        "{KILLS} kills; {sure} paid exactly once, {unsure} told \"it may have run\" and not run again"
    ));
}
