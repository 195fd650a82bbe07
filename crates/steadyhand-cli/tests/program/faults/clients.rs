//! Clients that send slowly, do not read, or come in numbers: they are let go, and hold up nobody.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Fault, TOOLS, calls_go_on, push, rest};
use crate::serve::{Served, reply, request, until};
use crate::support::PATIENCE;

/// The tools with limits that a test can reach.
async fn limited(limits: &str) -> Served {
    let server = format!("[server]\nlimits = {{ {limits} }}");
    Served::with_config(&TOOLS.replace("[server]", &server)).await
}

/// Sends one byte after the other until the server has had enough; gives back its last words.
async fn drip(mut stream: TcpStream, head: String, drop: &'static [u8]) -> String {
    stream.write_all(head.as_bytes()).await.expect("sent");
    while stream.write_all(drop).await.is_ok() {
        let is_over = stream.readable();
        tokio::select! {
            _ = is_over => break,
            () = sleep(Duration::from_millis(50)) => {}
        }
    }
    rest(&mut stream).await
}

#[tokio::test]
async fn a_hundred_clients_that_drip_their_requests_are_let_go_and_hold_up_nobody() {
    let fault = Fault::begin(
        "slow senders (slowloris)",
        "a head or a body has so long (patience); then 408 or the end; others are answered meanwhile",
    );
    let served = limited("patience = \"1s\"").await;
    let (mut heads, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..50 {
        let head = format!("GET /v1/tools HTTP/1.1\r\nhost: {}\r\nx-", served.address);
        heads.spawn(drip(served.connect().await, head, b"a"));
        let head = format!(
            "POST /v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-length: 100000\r\n\r\n{{",
            served.address
        );
        bodies.spawn(drip(served.connect().await, head, b" "));
    }
    calls_go_on(&served, "meanwhile", 20).await;
    while let Some(words) = heads.join_next().await {
        let words = words.expect("no client panics");
        let is_refused = words.is_empty() || words.starts_with("HTTP/1.1 408");
        assert!(is_refused, "{words}");
    }
    let mut told = 0;
    while let Some(words) = bodies.join_next().await {
        let words = words.expect("no client panics");
        told += usize::from(words.starts_with("HTTP/1.1 408") && words.contains("too_slow"));
    }
    assert_eq!(told, 50);
    fault.got("50 heads cut off, 50 bodies told 408; 20 of 20 calls answered meanwhile");
}

/// Asks, and reads nothing of the answer but that there is one.
async fn deaf(served: &Served, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut stream = socket.connect(served.address).await.expect("it listens");
    let ask = request(served.address, "GET", path, &[], "");
    stream.write_all(ask.as_bytes()).await.expect("sent");
    let mut begin = [0; 12];
    let heard = timeout(PATIENCE, stream.read_exact(&mut begin)).await;
    heard.expect("an answer in time").expect("an answer");
    assert_eq!(&begin, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn exports_that_nobody_reads_leave_the_history_to_others() {
    let fault = Fault::begin(
        "slow readers of exports",
        "three of one caller at a time, further ones 503; others may export; the history and calls answer meanwhile",
    );
    let served = Served::with_config(TOOLS).await;
    // More than the buffers between here and there hold.
    let text = "x".repeat(15_000);
    let calls: Vec<Value> = (0..300)
        .map(|_| json!({"name": "echo", "args": {"text": text}}))
        .collect();
    served.post("/v1/batches", json!({ "calls": calls })).await;
    until("enough of them are written", async || {
        let written = super::history(&served).await["written"].as_u64();
        (written > Some(200)).then_some(())
    })
    .await;
    let mut readers = Vec::new();
    for _ in 0..3 {
        readers.push(deaf(&served, "/v1/calls.ndjson").await);
    }
    let refused = served.get("/v1/calls.ndjson?tool=none").await;
    let (status, code, message) = refused.refusal();
    assert_eq!((status, code.as_str()), (503, "server_busy"));
    assert!(
        message.contains("127.0.0.1 has 3 running exports"),
        "{message}"
    );
    assert!(message.contains("nothing was exported"), "{message}");
    let shown = format!("Bearer {}", served.local_token());
    let other = [("authorization", shown.as_str())];
    let exported = served.send("GET", "/v1/calls.ndjson?tool=none", &other, "");
    assert_eq!(exported.await.status, 200, "another caller's");
    assert_eq!(served.get("/v1/calls?limit=1").await.status, 200);
    assert_eq!(served.get("/v1/trends").await.status, 200);
    let reloaded = served.post("/v1/config/reload", json!({})).await;
    assert_eq!(reloaded.status, 200);
    calls_go_on(&served, "c", 10).await;
    drop(readers);
    until("there is room again", async || {
        (served.get("/v1/calls.ndjson?tool=none").await.status == 200).then_some(())
    })
    .await;
    fault.got("3 stalled, the fourth 503, another caller's 200; pages, trends, reload and 10 of 10 calls answered");
}

#[tokio::test]
async fn a_refusal_is_read_even_by_those_who_still_send() {
    let fault = Fault::begin(
        "refused while sending",
        "the answer (403, 404, 413 …) reaches a client that is still sending its body",
    );
    let served = limited("body = \"1MiB\"").await;
    let body = vec![b'x'; 4_000_000];
    let own = served.address.to_string();
    for (line, host, status) in [
        ("POST /nothing", own.as_str(), 404),
        ("POST /v1/tools", &own, 405),
        ("POST /v1/calls?view=round", &own, 400),
        ("POST /v1/calls", &own, 413),
        ("POST /v1/calls", "evil.example", 403),
    ] {
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let reply = push(&served, &head, &body).await;
        assert_eq!(reply.status, status, "{line}: {}", reply.text);
    }
    fault.got("403, 404, 405, 400, 413 read after 4 MB were sent");
}

#[tokio::test]
async fn who_asks_before_sending_too_much_is_told_before_sending() {
    let served = limited("body = \"1MiB\"").await;
    let ask = |length: usize| {
        format!(
            "POST /v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n",
            served.address
        )
    };
    let mut stream = served.connect().await;
    stream
        .write_all(ask(2_000_000).as_bytes())
        .await
        .expect("sent");
    let (status, code, _) = reply(&mut stream).await.refusal();
    assert_eq!((status, code.as_str()), (413, "too_large"));
    let mut stream = served.connect().await;
    stream.write_all(ask(16).as_bytes()).await.expect("sent");
    let mut interim = [0; 25];
    let heard = timeout(PATIENCE, stream.read_exact(&mut interim)).await;
    heard.expect("a word in time").expect("it is told to go on");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
        .write_all(b"{\"name\": \"echo\"}")
        .await
        .expect("sent");
    assert_eq!(reply(&mut stream).await.json()["status"], "success");
}

#[tokio::test]
async fn silent_connections_beyond_the_limit_do_not_keep_others_out() {
    let fault = Fault::begin(
        "more connections than may be",
        "told 503, or closed when there are too many to tell; whoever comes when there is room is served",
    );
    let served = limited("connections = 4, patience = \"1s\"").await;
    let mut inside = Vec::new();
    for _ in 0..4 {
        let mut stream = served.connect().await;
        let ask = request(served.address, "GET", "/health/live", &[], "");
        stream.write_all(ask.as_bytes()).await.expect("sent");
        assert_eq!(reply(&mut stream).await.status, 200);
        inside.push(stream);
    }
    // More than are told so at the same time, and none of them says a word.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(served.connect().await);
    }
    drop(inside);
    until("there is room for those who speak", async || {
        let mut stream = TcpStream::connect(served.address).await.ok()?;
        let ask = request(served.address, "GET", "/health/live", &[], "");
        stream.write_all(ask.as_bytes()).await.ok()?;
        let reply = crate::serve::whole_reply(&mut stream).await?;
        (reply.status == 200).then_some(())
    })
    .await;
    fault.got("100 silent ones beyond 4; served as soon as there was room");
}

#[tokio::test]
async fn heads_without_end_are_refused_before_they_take_much() {
    let served = Served::with_config(TOOLS).await;
    for (bytes, status) in [(30_000, 200), (300_000, 431)] {
        let head = format!(
            "GET /health/live HTTP/1.1\r\nhost: {}\r\nx-long: {}\r\n\r\n",
            served.address,
            "a".repeat(bytes)
        );
        let reply = push(&served, &head, b"").await;
        assert_eq!(reply.status, status, "{bytes}");
    }
}
