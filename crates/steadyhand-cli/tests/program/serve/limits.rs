//! What a client may cost: sizes, depths, times and numbers all have an end, and the end is told.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::{Served, TOOLS, program, reply, request, until};
use crate::access::key;
use crate::faults::Fault;
use crate::support::{PATIENCE, Workplace};

/// The tools with limits that a test can reach.
async fn limited(limits: &str) -> Served {
    Served::with_config(&format!("[server]\nlimits = {{ {limits} }}\n{TOOLS}")).await
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_with_413() {
    let fault = Fault::begin(
        "bodies that are too large",
        "413 with the limit, with a length said before and without; the next call is answered",
    );
    let served = limited("body = \"64KiB\"").await;
    let body =
        |bytes: usize| json!({"name": "echo", "args": {"text": "x".repeat(bytes)}}).to_string();
    let fits = served.send("POST", "/v1/calls", &[], &body(60_000)).await;
    assert_eq!(fits.status, 200);
    for bytes in [70_000, 3_000_000] {
        let reply = served.send("POST", "/v1/calls", &[], &body(bytes)).await;
        let (status, code, message) = reply.refusal();
        assert_eq!((status, code.as_str()), (413, "too_large"), "{bytes}");
        assert!(message.contains("64.0 KiB"), "{message}");
    }
    // Without a length said before.
    let mut stream = served.connect().await;
    let head = format!(
        "POST /v1/calls HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let piece = format!("{:x}\r\n{}\r\n", 50_000, "x".repeat(50_000));
    for _ in 0..3 {
        let _ = stream.write_all(piece.as_bytes()).await;
    }
    let _ = stream.write_all(b"0\r\n\r\n").await;
    assert_eq!(reply(&mut stream).await.status, 413);
    assert_eq!(served.call("echo", json!({})).await["status"], "success");
    fault.got("413 for 70 kB, 3 MB and chunks; the next call answered");
}

#[tokio::test]
async fn json_that_is_nested_without_end_is_refused() {
    let fault = Fault::begin(
        "JSON nested without end",
        "400 beyond 128 levels, with the place",
    );
    let served = Served::start().await;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let body = format!("{{\"name\": \"echo\", \"args\": {deep}}}");
        let reply = served.send("POST", "/v1/calls", &[], &body).await;
        let (status, _, message) = reply.refusal();
        assert_eq!(status, 400);
        assert!(message.contains("nested more than 128 levels"), "{message}");
        let reply = served
            .send("POST", "/v1/repair?provider=openai", &[], &deep)
            .await;
        assert_eq!(reply.status, 400);
    }
    fault.got("400 for 100,000 levels of lists and of objects");
}

#[tokio::test]
async fn what_is_no_http_ends_the_connection_and_nothing_else() {
    let served = Served::start().await;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1_000_000));
    let many: String = (0..500).map(|n| format!("x-{n}: 1\r\n")).collect();
    let many = format!("GET /v1/tools HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    for bytes in [
        &b"\r\n\r\n\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/tools HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"GET /v1/tools HTTP/1.1\r\nhost : localhost\r\n\r\n",
        b"POST /v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /v1/calls HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/tools HTTP/1.1\r\n\r\n",
        b"GET /v1/\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ] {
        let mut stream = served.connect().await;
        // It may be closed before all is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        let _ = read.expect("the connection ends");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let sent = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.0 4");
        assert!(is_refused, "{sent:?} was answered {answer}");
    }
    assert_eq!(served.call("echo", json!({})).await["status"], "success");
}

#[tokio::test]
async fn clients_that_send_slowly_are_let_go_and_hold_up_nobody() {
    let served = limited("patience = \"1s\"").await;
    // A head that never ends, and a connection that never says anything.
    let mut slow = served.connect().await;
    slow.write_all(b"GET /v1/tools HTTP/1.1\r\nhost: loc")
        .await
        .expect("sent");
    let mut silent = served.connect().await;
    // A body that never ends.
    let mut unfinished = served.connect().await;
    let head = format!(
        "POST /v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-length: 100\r\n\r\n{{\"name\"",
        served.address
    );
    unfinished.write_all(head.as_bytes()).await.expect("sent");
    assert_eq!(served.call("echo", json!({})).await["status"], "success");
    let (status, code, _) = reply(&mut unfinished).await.refusal();
    assert_eq!((status, code.as_str()), (408, "too_slow"));
    for stream in [&mut slow, &mut silent] {
        let mut rest = Vec::new();
        let ended = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        let _ = ended.expect("the connection is closed");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_let_go() {
    let fault = Fault::begin(
        "slow readers of answers",
        "cut off when they take nothing for so long (patience); their place is free again",
    );
    let big = "x".repeat(200_000);
    let served = Served::with_config(&format!(
        "[server]\nlimits = {{ patience = \"1s\", connections = 2 }}\n[tools.big]\nkind = \"mock\"\ndescription = \"Large\"\ninput = {{ type = \"object\" }}\nmock_response = \"{big}\"\n"
    ))
    .await;
    // Far more than the buffers between here and there hold.
    let calls: Vec<_> = (0..200).map(|_| json!({"name": "big"})).collect();
    let body = json!({ "calls": calls }).to_string();
    let mut reader = served.connect().await;
    let batch = request(served.address, "POST", "/v1/batches", &[], &body);
    reader.write_all(batch.as_bytes()).await.expect("sent");
    let mut other = served.connect().await;
    other
        .write_all(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("sent");
    assert_eq!(reply(&mut other).await.status, 200);
    // While both are open there is no third; when the first is given up, there is room again.
    drop(other);
    until("both places are free again", async || {
        let mut streams = [served.connect().await, served.connect().await];
        for stream in &mut streams {
            // These are in use for as long as they are open.
            stream
                .write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .await
                .ok()?;
            let mut head = [0; 12];
            stream.read_exact(&mut head).await.ok()?;
            if !head.ends_with(b"200") {
                return None;
            }
        }
        Some(())
    })
    .await;
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, reader.read_to_end(&mut rest))
        .await
        .expect("it is cut off");
    assert!(rest.len() < 40_000_000, "the whole answer was taken");
    fault.got("cut off; both places free again");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so() {
    let served = limited("connections = 3").await;
    let ask = b"GET /v1/tools HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = served.connect().await;
        let call = json!({"name": "slow"}).to_string();
        let call = request(served.address, "POST", "/v1/calls", &[], &call);
        stream.write_all(call.as_bytes()).await.expect("sent");
        open.push(stream);
    }
    until("three calls run", async || {
        let ready = served.get("/health/ready").await.json();
        (ready["running"] == 3).then_some(())
    })
    .await;
    let refused = served.get("/v1/tools").await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    let (status, code, message) = refused.refusal();
    assert_eq!((status, code.as_str()), (503, "server_busy"));
    assert!(message.contains("3 connections"), "{message}");
    drop(open.pop());
    until("there is room again", async || {
        (served.get("/v1/tools").await.status == 200).then_some(())
    })
    .await;
    // One connection can be used again and again.
    let mut again = until("a connection is served", async || {
        // The one before may still count: its answer is here before the server knows that it was sent.
        let mut stream = served.connect().await;
        stream.write_all(ask).await.ok()?;
        (reply(&mut stream).await.status == 200).then_some(stream)
    })
    .await;
    for _ in 0..3 {
        again.write_all(ask).await.expect("sent");
        assert_eq!(reply(&mut again).await.status, 200);
    }
}

#[tokio::test]
async fn more_calls_than_may_run_are_refused_before_they_begin() {
    let config = format!("[server]\nlimits = {{ calls = 2, per_caller = 1 }}\n{TOOLS}");
    let workplace = Workplace::with_config(&config);
    let keys = ["anna", "bert", "cora"].map(|name| key(&workplace, name, &[]));
    let served = Served::in_place(workplace).await;
    let [anna, bert, cora] = keys.map(|key| format!("Bearer {key}"));
    let hold = async |shown: &str| {
        let mut stream = served.connect().await;
        let call = json!({"name": "slow"}).to_string();
        let headers = [("authorization", shown)];
        let call = request(served.address, "POST", "/v1/calls", &headers, &call);
        stream.write_all(call.as_bytes()).await.expect("sent");
        stream
    };
    let running = async |count: usize| {
        until("they run", async || {
            let ready = served.get("/health/ready").await.json();
            (ready["running"] == count).then_some(())
        })
        .await;
    };
    let _first = hold(&anna).await;
    running(1).await;
    let body = json!({"name": "echo"}).to_string();
    let again = served
        .send("POST", "/v1/calls", &[("authorization", &anna)], &body)
        .await;
    assert_eq!(again.header("retry-after"), Some("1"));
    let (status, code, message) = again.refusal();
    assert_eq!((status, code.as_str()), (429, "too_many_calls"));
    assert!(message.contains("anna"), "{message}");
    let _second = hold(&bert).await;
    running(2).await;
    let third = served
        .send("POST", "/v1/calls", &[("authorization", &cora)], &body)
        .await;
    let (status, code, _) = third.refusal();
    assert_eq!((status, code.as_str()), (503, "server_busy"));
}

#[tokio::test]
async fn memory_that_cannot_hold_a_body_is_told_before_the_server_starts() {
    let config = "[server]\nlimits = { body = \"16MiB\", memory = \"20MiB\" }\n";
    let workplace = Workplace::with_config(config);
    let refused = program(&workplace, &["config", "check"])
        .output()
        .await
        .expect("it ends");
    let told = [refused.stdout, refused.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("server.limits.memory"), "{told}");
    assert!(told.contains("20.0 MiB"), "{told}");
}

#[tokio::test]
async fn limits_that_make_no_sense_are_told_before_the_server_starts() {
    let workplace = Workplace::with_config("[server]\nlimits = { calls = 0, boddy = \"1MiB\" }\n");
    let refused = program(&workplace, &["serve"])
        .output()
        .await
        .expect("it ends");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("Did you mean body?"), "{stderr}");
    assert!(stderr.contains("server.limits.calls"), "{stderr}");
}
