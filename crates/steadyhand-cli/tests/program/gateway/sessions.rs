//! Sessions of the older protocols: they begin, are found, end, and none of them costs much.

use serde_json::{Value, json};

use super::{BOTH, Modern, Session, gateway};
use crate::serve::{Served, runs, until};
use crate::support::Workplace;

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_session_is_found_ended_and_then_unknown() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let reply = session.post(&served, &note).await;
    assert_eq!((reply.status, reply.text.as_str()), (202, ""));
    let pong = session.ask(&served, "ping", json!({})).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 7, "result": {}}));

    let ping = json!({"jsonrpc": "2.0", "id": "x", "method": "ping"}).to_string();
    let reply = served
        .send("POST", "/mcp", &[("accept", BOTH)], &ping)
        .await;
    assert_eq!(reply.status, 400, "without a session");
    assert_eq!(reply.json()["id"], "x");
    let unknown = [("accept", BOTH), ("mcp-session-id", "nobody")];
    let reply = served.send("POST", "/mcp", &unknown, &ping).await;
    assert_eq!(
        (reply.status, reply.json()["id"].as_str()),
        (404, Some("x"))
    );
    let odd = [
        ("mcp-session-id", session.id.as_str()),
        ("mcp-protocol-version", "1999-01-01"),
    ];
    let reply = served.send("POST", "/mcp", &odd, &ping).await;
    assert_eq!(reply.status, 400, "a version nobody speaks");

    let reply = served.send("DELETE", "/mcp", &session.headers(), "").await;
    assert_eq!(reply.status, 200);
    for method in ["POST", "GET", "DELETE"] {
        let reply = served.send(method, "/mcp", &session.headers(), &ping).await;
        assert_eq!(reply.status, 404, "{method}");
    }
    let reply = served.send("GET", "/mcp", &[("accept", BOTH)], "").await;
    assert_eq!(reply.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_restart_of_ours_strands_no_client() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    let address = served.address.to_string();
    let workplace = served.killed().await;
    let served = Served::listening(workplace, &address).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let reply = session.post(&served, &message).await;
    assert_eq!(reply.status, 404, "which says that it has to begin anew");
    let again = Session::begin(&served).await;
    assert!(again.ask(&served, "tools/list", json!({})).await["result"]["tools"].is_array());
    // The newer protocol has nothing that could be lost.
    let listed = Modern::new("tools/list", json!({})).result(&served).await;
    assert!(listed["tools"].is_array());
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_server_that_dies_costs_no_session() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let call = async || {
        let params = json!({"name": "test_simple_text", "arguments": {}});
        session.ask(&served, "tools/call", params).await["result"].clone()
    };
    assert_ne!(call().await["isError"], true);
    let before = served.get("/v1/servers").await.json()["servers"][0]["pid"].clone();
    let pid = i32::try_from(before.as_u64().expect("a pid")).expect("a small number");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    until("calls work again, in the same session", async || {
        let result = call().await;
        let is_new = served.get("/v1/servers").await.json()["servers"][0]["pid"] != before;
        (result["isError"] != true && is_new).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v07_a_cancelled_request_is_stopped_and_not_answered() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    let call = json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call",
        "params": {"name": "slow", "arguments": {}}});
    let answer = session.post(&served, &call);
    let cancel = async {
        runs(&served, "slow").await;
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": "long"}});
        session.post(&served, &cancelled).await
    };
    let (answer, cancelled) = tokio::join!(answer, cancel);
    assert_eq!((answer.status, answer.text.as_str()), (202, ""));
    assert_eq!(cancelled.status, 202);
    nothing_runs(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v07_the_end_of_a_session_and_a_hung_up_client_stop_what_runs() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "slow", "arguments": {}}});
    let answer = session.post(&served, &call);
    let end = async {
        runs(&served, "slow").await;
        served.send("DELETE", "/mcp", &session.headers(), "").await
    };
    let (answer, _) = tokio::join!(answer, end);
    assert_eq!(answer.status, 202);
    nothing_runs(&served).await;

    let session = Session::begin(&served).await;
    let request = crate::serve::request(
        served.address,
        "POST",
        "/mcp",
        &session.headers(),
        &call.to_string(),
    );
    let mut stream = served.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .expect("sent");
    runs(&served, "slow").await;
    drop(stream);
    nothing_runs(&served).await;
}

async fn nothing_runs(served: &Served) {
    until("nothing runs", async || {
        let running = served.get("/v1/calls?state=running").await.json();
        running["calls"].as_array()?.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_batches_are_taken_where_the_protocol_has_them() {
    let served = Served::start().await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
    ]);
    let session = Session::of(&served, "2025-03-26", json!({})).await;
    let answers = session.post(&served, &batch).await.json();
    let answers = answers.as_array().expect("a batch");
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(
        answers[1]["result"]["structuredContent"],
        json!({"echo": {"a": 1}})
    );
    assert_eq!(answers[2]["error"]["code"], -32601);
    let only = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(session.post(&served, &only).await.status, 202);
    let session = Session::of(&served, "2025-06-18", json!({})).await;
    assert_eq!(session.post(&served, &batch).await.status, 400);
}

/// Sessions without end: each of them lists and calls, and idle ones cost next to nothing.
#[tokio::test(flavor = "multi_thread")]
async fn v05_thousands_of_sessions_are_held() {
    const SESSIONS: usize = 3_000;
    let served = Served::start().await;
    // Everything that is made once is made.
    for _ in 0..50 {
        let session = Session::begin(&served).await;
        session.ask(&served, "tools/list", json!({})).await;
    }
    let before = memory(&served);
    let mut sessions = Vec::with_capacity(SESSIONS);
    for _ in 0..SESSIONS / 50 {
        let some = (0..50).map(|_| Session::begin(&served));
        sessions.extend(futures_util::future::join_all(some).await);
    }
    let each = (memory(&served).saturating_sub(before)) / SESSIONS;
    println!("{each} bytes for each of {SESSIONS} idle sessions");
    assert!(each < 32 * 1024, "{each} bytes for an idle session");
    for session in sessions.iter().step_by(100) {
        let params = json!({"name": "echo", "arguments": {"n": 1}});
        let called = session.ask(&served, "tools/call", params).await;
        assert_eq!(called["result"]["structuredContent"]["echo"]["n"], 1);
    }
    let ids: std::collections::HashSet<&str> = sessions.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), SESSIONS);
}

/// What the program takes of memory, in bytes.
pub(crate) fn memory(served: &Served) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid())).expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    let number = line
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse::<usize>().ok());
    number.expect("a number") * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_callers_are_bound_by_the_limits_of_the_server() {
    let config = "[server]\nlimits = { per_caller = 1 }\n[tools.brief]\nkind = \"mock\"\ndescription = \"Takes long\"\n\
        input = { type = \"object\" }\nanswers = [{ result = \"done\", delay = \"40s\" }]\ntimeout = \"50s\"\n";
    let served = Served::in_place(Workplace::with_config(config)).await;
    let session = Session::begin(&served).await;
    let call = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "brief", "arguments": {}}})
    };
    let first_call = call(1);
    let first = session.post(&served, &first_call);
    let second = async {
        runs(&served, "brief").await;
        let refused = session.post(&served, &call(2)).await;
        served.send("DELETE", "/mcp", &session.headers(), "").await;
        refused
    };
    let (_, refused) = tokio::join!(first, second);
    let error: Value = refused.json()["error"].clone();
    assert_eq!(error["code"], -32000, "{error}");
    let words = error["message"].as_str().expect("words");
    assert!(words.contains("mcp test has 1 calls running"), "{words}");
}
