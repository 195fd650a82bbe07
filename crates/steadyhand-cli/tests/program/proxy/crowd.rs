//! A thousand streams at once: each gets all of its own, and none takes more memory than its share.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::StreamExt;

use super::{Provider, proxy_with, typed_answer};
use crate::serve::{Served, until};
use crate::support::{PATIENCE, client};

const STREAMS: usize = 1000;
const EVENTS: usize = 20;

/// What the process takes, in KiB.
fn resident_kib(served: &Served) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.expect("its memory");
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_streams_at_once_each_get_their_own_answer() {
    // All of them begin, then all are open at once, then all go on.
    let (go_on, wait) = watch::channel(false);
    let provider = Provider::answering(move |asked| {
        let number = asked.headers["x-number"].to_str().expect("text").to_owned();
        let wait = wait.clone();
        let events = futures_util::stream::unfold((0, wait), move |(event, mut wait)| {
            let number = number.clone();
            async move {
                if event == 1 {
                    let _ = wait.wait_for(|go_on| *go_on).await;
                }
                if event > EVENTS {
                    return None;
                }
                let reason = (event == EVENTS).then_some("stop");
                let data = json!({"choices": [{"index": 0, "delta": {"content": format!("{number}-{event} ")}, "finish_reason": reason}]});
                let bytes = Bytes::from(format!("data: {data}\n\n"));
                Some((Ok::<_, std::io::Error>(bytes), (event + 1, wait)))
            }
        });
        typed_answer(200, "text/event-stream", Body::from_stream(events))
    })
    .await;
    let more = "[server]\nlimits = { connections = 1200 }";
    let served = Arc::new(proxy_with("openai", provider.url(), more).await);
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "x".repeat(2000)}]});
    let body = Bytes::from(body.to_string());
    let url = format!("http://{}/proxy/openai/v1/chat/completions", served.address);
    let before = resident_kib(&served);
    let client = client();
    // Connections are made a hundred at a time: a queue of a listener is shorter than a thousand.
    let making = Arc::new(Semaphore::new(100));
    let mut streams = JoinSet::new();
    for number in 0..STREAMS {
        let (client, url, body) = (client.clone(), url.clone(), body.clone());
        let making = Arc::clone(&making);
        streams.spawn(async move {
            let turn = making.acquire().await.expect("open");
            let sent = client
                .post(url)
                .header("x-number", number.to_string())
                .body(body)
                .send();
            let answer = timeout(PATIENCE, sent)
                .await
                .expect("in time")
                .expect("an answer");
            assert_eq!(answer.status(), 200);
            let mut pieces = answer.bytes_stream();
            let mut got = Vec::new();
            let first = timeout(PATIENCE, pieces.next()).await.expect("in time");
            got.extend_from_slice(&first.expect("an event").expect("no error"));
            drop(turn);
            while let Some(piece) = timeout(PATIENCE, pieces.next()).await.expect("in time") {
                got.extend_from_slice(&piece.expect("no error"));
            }
            let got = String::from_utf8(got).expect("text");
            for event in 0..=EVENTS {
                assert!(
                    got.contains(&format!("\"{number}-{event} \"")),
                    "{number}: {got}"
                );
            }
            assert_eq!(got.matches("data: ").count(), EVENTS + 1);
        });
    }
    until("all are open", async || {
        let figures = served.get("/metrics").await.text;
        figures
            .contains(&format!("steadyhand_proxy_open{{}} {STREAMS}.0"))
            .then_some(())
    })
    .await;
    let open = resident_kib(&served);
    go_on.send(true).expect("they wait");
    while let Some(done) = streams.join_next().await {
        done.expect("its own answer");
    }
    let each = open.saturating_sub(before) / STREAMS;
    println!("\n{STREAMS} streams open: {each} KiB each ({before} KiB before, {open} KiB then)");
    // Two connections, their buffers, and what is looked at; a stream that was held would take more with every event.
    assert!(each < 512, "{each} KiB for each stream");
    until("none is left", async || {
        let figures = served.get("/metrics").await.text;
        figures
            .contains("steadyhand_proxy_open{} 0.0")
            .then_some(())
    })
    .await;
}
