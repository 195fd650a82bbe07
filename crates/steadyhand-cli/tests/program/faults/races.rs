//! Callers that race each other: the same key, the same id, places in the stream of events that never were.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Fault, TOOLS, calls_go_on};
use crate::serve::{Served, request, runs, until};
use crate::support::PATIENCE;

#[tokio::test]
async fn one_key_at_the_same_time_runs_once_and_other_arguments_are_a_conflict() {
    let fault = Fault::begin(
        "one key, many at once",
        "it runs once and all get that outcome; with other arguments IDEMPOTENCY_CONFLICT",
    );
    let served = Arc::new(Served::with_config(TOOLS).await);
    let mut callers = JoinSet::new();
    for number in 0..60 {
        let served = Arc::clone(&served);
        let call =
            json!({"name": "brief", "idempotency_key": "k", "args": {"other": number % 3 == 0}});
        callers.spawn(async move { served.post("/v1/calls", call).await.json() });
    }
    let (mut first, mut again, mut conflicts) = (0, 0, 0);
    while let Some(outcome) = callers.join_next().await {
        let outcome: Value = outcome.expect("no caller panics");
        match outcome["error"]["code"].as_str() {
            None if outcome["replayed"] == true => again += 1,
            None => first += 1,
            Some("IDEMPOTENCY_CONFLICT") => conflicts += 1,
            other => panic!("{other:?}: {outcome}"),
        }
    }
    assert_eq!(first, 1);
    assert_eq!(first + again + conflicts, 60);
    assert!(conflicts == 20 || conflicts == 40, "{conflicts}");
    let metrics = served.get("/v1/metrics/brief").await.json();
    assert_eq!(metrics["totalExecutions"], 1);
    fault.got(format!(
        "run once; {again} got that outcome; {conflicts} conflicts"
    ));
}

#[tokio::test]
async fn calls_that_are_cancelled_as_they_end_have_one_outcome() {
    let served = Arc::new(Served::with_config(TOOLS).await);
    let mut callers = JoinSet::new();
    for number in 0..30 {
        let served = Arc::clone(&served);
        callers.spawn(async move {
            let id = format!("c-{number}");
            let call = served.post("/v1/calls", json!({"name": "brief", "id": id}));
            let cancels = async {
                tokio::time::sleep(std::time::Duration::from_millis(85 + number)).await;
                let path = format!("/v1/calls/{id}");
                tokio::join!(served.delete(&path), served.delete(&path))
            };
            let (reply, (one, other)) = tokio::join!(call, cancels);
            for cancel in [one, other] {
                // Not known yet, being ended, or over.
                assert!([200, 404, 409].contains(&cancel.status), "{}", cancel.text);
            }
            let outcome = reply.json();
            let code = outcome["error"]["code"].as_str().map(str::to_owned);
            assert!(
                code.is_none() || code.as_deref() == Some("CANCELLED"),
                "{outcome}"
            );
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.expect("no caller panics");
    }
    let metrics = served.get("/v1/metrics/brief").await.json();
    assert_eq!(metrics["inFlight"], 0);
    let done = metrics["totalExecutions"].as_u64().unwrap_or(0);
    assert_eq!(
        done + metrics["cancelled"].as_u64().unwrap_or(0),
        30,
        "{metrics}"
    );
    // Three that share an id are ended together.
    let mut sharing = Vec::new();
    for _ in 0..3 {
        let mut stream = served.connect().await;
        let call = json!({"name": "slow", "id": "same"}).to_string();
        let call = request(served.address, "POST", "/v1/calls", &[], &call);
        stream.write_all(call.as_bytes()).await.expect("sent");
        sharing.push(stream);
    }
    until("all three run", async || {
        let listed = served.get("/v1/calls?state=running").await.json();
        (listed["calls"].as_array().map(Vec::len) == Some(3)).then_some(())
    })
    .await;
    assert_eq!(served.delete("/v1/calls/same").await.json()["cancelled"], 3);
    for stream in &mut sharing {
        let outcome = crate::serve::reply(stream).await.json();
        assert_eq!(outcome["error"]["code"], "CANCELLED");
    }
}

#[tokio::test]
async fn a_place_in_the_events_that_never_was_begins_with_a_snapshot() {
    let served = Served::with_config(TOOLS).await;
    calls_go_on(&served, "c", 3).await;
    let first = async |last: &[u8]| {
        let mut stream = served.connect().await;
        let head = format!("GET /v1/events HTTP/1.1\r\nhost: {}\r\n", served.address);
        let head = [head.as_bytes(), b"last-event-id: ", last, b"\r\n\r\n"].concat();
        stream.write_all(&head).await.expect("sent");
        let mut text = String::new();
        while !text.contains("\n\n\r\n") {
            let mut piece = [0; 4096];
            let read = timeout(PATIENCE, stream.read(&mut piece)).await;
            let read = read.expect("an event in time").expect("a stream");
            assert!(read > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        text
    };
    let begun = first(b"").await;
    let id = begun
        .split("id: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let run = id.and_then(|id| id.split('-').next()).expect("an id");
    let forged = |number: &str| format!("{run}-{number}").into_bytes();
    for last in [
        b"x".to_vec(),
        b"-1".to_vec(),
        b"\xff\xfe".to_vec(),
        vec![b'a'; 5000],
        b"zzzzzz-5".to_vec(),
        forged("99999"),
        forged("18446744073709551615"),
        forged("99999999999999999999"),
        forged("-1"),
        forged(""),
    ] {
        let text = first(&last).await;
        assert!(text.contains("event: snapshot\n"), "{last:?}: {text}");
    }
    let text = first(&forged("0")).await;
    assert!(!text.contains("event: snapshot\n"), "{text}");
}

#[tokio::test]
async fn a_call_that_runs_or_was_not_kept_whole_is_not_run_again() {
    let served = Served::with_config(TOOLS).await;
    let mut stream = served.connect().await;
    let call = json!({"name": "slow", "id": "s1"}).to_string();
    let call = request(served.address, "POST", "/v1/calls", &[], &call);
    stream.write_all(call.as_bytes()).await.expect("sent");
    runs(&served, "slow").await;
    let reply = served
        .post("/v1/calls/s1/replay?force=true", json!({}))
        .await;
    let (status, code, _) = reply.refusal();
    // It may not be in the history yet.
    assert!([404, 409].contains(&status), "{status} {code}");
    let text = "x".repeat(40_000);
    let large = json!({"name": "once", "id": "o1", "args": {"text": text}});
    served.post("/v1/calls", large).await;
    until("it is in the history", async || {
        (served.get("/v1/calls/o1").await.status == 200).then_some(())
    })
    .await;
    let reply = served
        .post("/v1/calls/o1/replay?force=true", json!({}))
        .await;
    let (status, _, message) = reply.refusal();
    assert_eq!(status, 409);
    assert!(message.contains("not kept whole"), "{message}");
    let metrics = served.get("/v1/metrics/once").await.json();
    assert_eq!(metrics["totalExecutions"], 1);
}
