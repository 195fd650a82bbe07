//! What is written down of calls that wait for a person: one row each, which tells the truth.

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{TOOLS, decide, waiting};
use crate::serve::{Served, reply, request, until};
use crate::support::parts;

const SLOW: &str = r#"
[tools.siren]
kind = "mock"
description = "Sounds the siren"
input = { type = "object" }
answers = [{ result = "heard", delay = "50s" }]
approval = "always"
timeout = "55s"
"#;

async fn rows(served: &Served, tool: &str) -> Vec<Value> {
    let path = format!("/v1/calls?tool={tool}");
    let listed = served.get(&path).await.json();
    listed["calls"].as_array().expect("a list").clone()
}

/// The one row of a tool that was called once.
async fn only_row(served: &Served, tool: &str) -> Value {
    let mut rows = rows(served, tool).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

async fn call_waits(served: &Served, tool: &str, args: Value) -> (TcpStream, Value) {
    let body = json!({"name": tool, "id": format!("{tool}-1"), "args": args}).to_string();
    let body = request(served.address, "POST", "/v1/calls", &[], &body);
    let mut stream = served.connect().await;
    stream.write_all(body.as_bytes()).await.expect("sent");
    let approval = waiting(served, 1).await.remove(0);
    (stream, approval)
}

/// Waits until the call has waited for so long.
async fn has_waited(approval: &Value, ms: u64) {
    let asked = approval["asked_ms"].as_u64().expect("a time");
    until("it has waited for a while", async || {
        let now = jiff::Timestamp::now().as_millisecond() as u64;
        (now > asked + ms).then_some(())
    })
    .await;
}

#[tokio::test]
async fn t02_an_approved_call_is_one_row_with_its_wait_and_who_approved_it() {
    // Its deadline is 2 s: what it waits for is not a part of that.
    let served = Served::with_config(TOOLS).await;
    let (mut caller, approval) = call_waits(&served, "unlock", json!({"door": "front"})).await;
    has_waited(&approval, 2_500).await;

    let running = only_row(&served, "unlock").await;
    assert_eq!(running["state"], "running", "{running}");
    assert_eq!(running["waiting_for_approval"], true, "{running}");
    let elapsed = |row: &Value| row["elapsed_ms"].as_f64().expect("a time");
    let approval_ms = |row: &Value| row["approval_ms"].as_f64().expect("a time");
    assert!(
        elapsed(&running) - approval_ms(&running) < 2_000.0,
        "{running}"
    );
    let page = served.get("/calls/unlock-1").await.text;
    assert!(page.contains("Waiting for approval"), "{page}");
    assert!(!page.contains("</span> of 2"), "{page}");
    let workplace = served.workplace.shared();
    let listed = tokio::task::spawn_blocking(move || parts(&workplace.run("calls list")));
    let (_, listed, _) = listed.await.expect("it ran");
    assert!(listed.contains("waiting for approval"), "{listed}");
    assert!(!listed.contains(" of 2s"), "{listed}");

    assert_eq!(decide(&served, &approval, "approve").await.status, 200);
    let outcome = reply(&mut caller).await.json();
    assert_eq!(outcome["status"], "success", "{outcome}");
    let took = outcome["executionTime"].as_f64().expect("a time");
    let waited = outcome["approvalTime"].as_f64().expect("a time");
    assert!(took >= waited && waited >= 2_500.0, "{outcome}");

    let row = only_row(&served, "unlock").await;
    assert_eq!(
        (&row["state"], &row["id"]),
        (&json!("ok"), &json!("unlock-1"))
    );
    assert!(row["took_ms"].as_f64() >= Some(2_500.0), "{row}");
    let came_in = row["started_ms"].as_u64().expect("a time");
    assert!(
        came_in <= approval["asked_ms"].as_u64().expect("a time"),
        "{row}"
    );
    let record = served.get("/v1/calls/unlock-1").await.json();
    assert_eq!(record["approval"]["approved_by"], "127.0.0.1", "{record}");
    let stages = record["stages"].as_array().expect("stages");
    let kinds: Vec<&str> = stages.iter().filter_map(|it| it["kind"].as_str()).collect();
    assert!(
        kinds.contains(&"approval") && kinds.contains(&"attempt"),
        "{kinds:?}"
    );
    let page = served.get("/calls/unlock-1").await.text;
    for words in [
        "Wait for approval",
        "approved by 127.0.0.1",
        "waiting for approval, then",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
    let workplace = served.workplace.shared();
    let shown = tokio::task::spawn_blocking(move || parts(&workplace.run("calls show unlock-1")));
    let (_, shown, _) = shown.await.expect("it ran");
    assert!(shown.contains("approved by 127.0.0.1"), "{shown}");

    // How long a person takes says nothing about the tool.
    let metrics = served.get("/v1/metrics/unlock").await.json();
    assert!(
        metrics["avgExecutionTime"].as_f64() < Some(2_500.0),
        "{metrics}"
    );
    let trends = served.get("/v1/trends?tool=unlock").await.json();
    assert_eq!(
        (&trends["total"]["calls"], &trends["total"]["ran"]),
        (&json!(1), &json!(1))
    );
    assert!(trends["total"]["p95"].as_f64() < Some(2_500.0), "{trends}");
}

#[tokio::test]
async fn t02_a_call_that_waits_when_the_server_is_killed_is_one_row_that_says_it_was_not_run() {
    let served = Served::with_config(TOOLS).await;
    let (_caller, _) = call_waits(&served, "unlock", json!({"door": "front"})).await;
    until("it is in the file", async || {
        let record = served.get("/v1/calls/unlock-1").await.json();
        (record["arguments"]["door"] == "front").then_some(())
    })
    .await;
    let served = Served::in_place(served.killed().await).await;
    let row = only_row(&served, "unlock").await;
    assert_eq!(row["state"], "interrupted", "{row}");
    assert_eq!(
        (&row["effect"], &row["attempts"]),
        (&json!("none"), &json!(0))
    );
    let message = row["message"].as_str().expect("a text");
    assert!(message.contains("it was not run"), "{message}");
    assert!(row.get("waiting_for_approval").is_none(), "{row}");
    let page = served.get("/calls/unlock-1").await.text;
    assert!(
        page.contains("it was not run") && !page.contains("is not known"),
        "{page}"
    );
    // Whoever said yes now would find nothing.
    assert_eq!(served.get("/v1/approvals").await.json()["count"], 0);
}

#[tokio::test]
async fn t02_an_approved_call_that_runs_when_the_server_is_killed_may_have_run() {
    let served = Served::with_config(SLOW).await;
    let (_caller, approval) = call_waits(&served, "siren", json!({})).await;
    assert_eq!(decide(&served, &approval, "approve").await.status, 200);
    until("it runs", async || {
        let row = only_row(&served, "siren").await;
        (row["attempts"] == 1).then_some(())
    })
    .await;
    let served = Served::in_place(served.killed().await).await;
    let row = only_row(&served, "siren").await;
    assert_eq!(row["state"], "interrupted", "{row}");
    assert_eq!(row["effect"], "unknown", "{row}");
    let message = row["message"].as_str().expect("a text");
    assert!(message.contains("may have run"), "{message}");
}

#[tokio::test]
async fn t02_a_call_that_waits_when_the_server_ends_is_answered_and_is_one_row() {
    let served = Served::with_config(TOOLS).await;
    let (mut caller, _) = call_waits(&served, "unlock", json!({"door": "front"})).await;
    served.signal(Signal::TERM);
    let outcome = reply(&mut caller).await.json();
    assert_eq!(outcome["error"]["code"], "CANCELLED", "{outcome}");
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    let served = Served::in_place(served.stopped().await).await;
    let row = only_row(&served, "unlock").await;
    assert_eq!(
        (&row["state"], &row["effect"]),
        (&json!("cancelled"), &json!("none"))
    );
}

#[tokio::test]
async fn t02_calls_that_are_denied_expire_or_are_withdrawn_are_one_row_each() {
    let config = format!("[server]\napproval_wait = \"700ms\"\n{TOOLS}");
    let served = Served::with_config(&config).await;
    for (door, decision) in [("a", Some("deny")), ("b", None), ("c", Some("withdraw"))] {
        let (mut caller, approval) = call_waits(&served, "unlock", json!({"door": door})).await;
        match decision {
            Some("withdraw") => drop(caller),
            Some(decision) => {
                decide(&served, &approval, decision).await;
                reply(&mut caller).await;
            }
            None => {
                reply(&mut caller).await;
            }
        }
        waiting(&served, 0).await;
    }
    let rows = until("all have ended", async || {
        let rows = rows(&served, "unlock").await;
        rows.iter()
            .all(|row| row["state"] != "running")
            .then_some(rows)
    })
    .await;
    let seen: Vec<&str> = rows.iter().filter_map(|row| row["code"].as_str()).collect();
    assert_eq!(seen, ["CANCELLED", "APPROVAL_EXPIRED", "APPROVAL_DENIED"]);
    for row in &rows {
        assert_eq!(row["effect"], "none", "{row}");
        assert!(row["approval_ms"].as_f64() > Some(0.0), "{row}");
    }
}
