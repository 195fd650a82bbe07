//! What callers share: while one of them takes as much as it can get, the others are served.

use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{TOOLS, key, with_key};
use crate::serve::{Served, reply, request, runs, until, whole_reply};
use crate::support::Workplace;

/// How many calls the other caller makes.
pub(super) const CALLS: usize = 200;

/// A server with two keys that may call, and one that may look.
pub(super) struct Shared {
    pub(super) served: Served,
    pub(super) greedy: String,
    pub(super) other: String,
    viewer: String,
    operator: String,
}

impl Shared {
    pub(super) async fn with(server: &str) -> Shared {
        let config = format!("{TOOLS}{GATED}\n[server]\n{server}\n");
        let workplace = Workplace::with_config(&config);
        let greedy = key(&workplace, "greedy", &["--role", "operator"]);
        let other = key(&workplace, "other", &[]);
        let viewer = key(&workplace, "viewer", &["--role", "viewer"]);
        let operator = key(&workplace, "operator", &["--role", "operator"]);
        let served = Served::in_place(workplace).await;
        Shared {
            served,
            greedy,
            other,
            viewer,
            operator,
        }
    }

    /// A connection on which something was asked, with a key.
    pub(super) async fn ask(
        &self,
        key: &str,
        what: (&str, &str),
        more: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let shown = format!("Bearer {key}");
        let mut headers = vec![("authorization", shown.as_str())];
        headers.extend(more);
        let (method, path) = what;
        let mut stream = self.served.connect().await;
        let text = request(self.served.address, method, path, &headers, body);
        stream.write_all(text.as_bytes()).await.expect("sent");
        stream
    }

    /// The other caller's calls, each on a connection of its own, half of them with an idempotency key.
    pub(super) async fn others_are_served(&self) {
        for number in 0..CALLS {
            let mut call = json!({"name": "weather", "args": {}});
            if number % 2 == 0 {
                call["idempotency_key"] = json!(format!("other-{number}"));
            }
            let reply = with_key(
                &self.served,
                &self.other,
                "POST",
                "/v1/calls",
                &call.to_string(),
            )
            .await;
            assert_eq!(reply.status, 200, "call {number}: {}", reply.text);
            assert_eq!(
                reply.json()["status"],
                "success",
                "call {number}: {}",
                reply.text
            );
        }
    }
}

const GATED: &str = r#"
[tools.unlock]
kind = "mock"
description = "Unlocks a door"
input = { type = "object" }
answers = [{ result = "unlocked" }]
approval = "always"
"#;

#[tokio::test]
async fn s02_idle_connections_of_one_client_make_room_for_others() {
    let shared = Shared::with("limits = { connections = 40 }").await;
    // Far more than may be open. Some have asked something, some have begun to, most say nothing.
    let mut idle = Vec::new();
    for number in 0..400 {
        let mut stream = shared.served.connect().await;
        match number % 10 {
            0 => {
                let ask = request(shared.served.address, "GET", "/health/live", &[], "");
                // On a busy machine it may have had to make room by now.
                let _ = stream.write_all(ask.as_bytes()).await;
            }
            1 => {
                let _ = stream.write_all(b"GET /health/li").await;
            }
            _ => {}
        }
        idle.push(stream);
    }
    // All of them came at once: whoever comes while they are taken in may find no room.
    until("the burst is over", async || {
        let mut stream = shared.served.connect().await;
        let ask = request(shared.served.address, "GET", "/health/live", &[], "");
        stream.write_all(ask.as_bytes()).await.ok()?;
        whole_reply(&mut stream).await.map(drop)
    })
    .await;
    shared.others_are_served().await;
    drop(idle);
}

#[tokio::test]
async fn s02_slow_calls_of_one_caller_leave_connections_for_others() {
    let shared = Shared::with("limits = { connections = 8 }").await;
    let body = json!({"name": "slow"}).to_string();
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(
            shared
                .ask(&shared.greedy, ("POST", "/v1/calls"), &[], &body)
                .await,
        );
    }
    runs_so_many(&shared, 8).await;
    let mut refused = shared
        .ask(&shared.greedy, ("POST", "/v1/calls"), &[], &body)
        .await;
    let refused = reply(&mut refused).await;
    let (status, code, message) = refused.refusal();
    assert_eq!((status, code.as_str()), (503, "server_busy"), "{message}");
    assert!(message.contains("greedy has 8 connections"), "{message}");
    shared.others_are_served().await;
    // A whole body is not needed to keep a connection in use.
    let unfinished = "POST /v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{";
    for _ in 0..40 {
        let mut stream = shared.served.connect().await;
        let _ = stream.write_all(unfinished.as_bytes()).await;
        slow.push(stream);
    }
    shared.others_are_served().await;
}

async fn runs_so_many(shared: &Shared, count: usize) {
    until("they run", async || {
        let ready = shared.served.get("/health/ready").await.json();
        (ready["running"] == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn s02_an_operator_is_served_when_all_connections_are_in_use() {
    let shared = Shared::with("limits = { connections = 4 }").await;
    let body = json!({"name": "slow"}).to_string();
    let mut slow = Vec::new();
    for key in [&shared.greedy, &shared.other] {
        for _ in 0..4 {
            slow.push(shared.ask(key, ("POST", "/v1/calls"), &[], &body).await);
        }
    }
    // Four of one, and the one that is kept for others.
    let running = "/v1/calls?state=running&tool=slow";
    until("they run", async || {
        let calls = with_key(&shared.served, &shared.operator, "GET", running, "").await;
        (calls.json()["calls"].as_array()?.len() == 5).then_some(())
    })
    .await;
    let calls = with_key(&shared.served, &shared.viewer, "GET", "/v1/calls", "").await;
    let (status, code, _) = calls.refusal();
    assert_eq!((status, code.as_str()), (503, "server_busy"));
    let calls = with_key(&shared.served, &shared.operator, "GET", "/v1/calls", "").await;
    assert_eq!(calls.status, 200, "{}", calls.text);
}

#[tokio::test]
async fn s02_calls_of_one_caller_that_go_on_without_it_leave_room_for_others() {
    let shared = Shared::with("limits = { calls = 40 }").await;
    let call = |number: usize| json!({"name": "slow", "idempotency_key": format!("k{number}")});
    for number in 0..60 {
        let body = call(number).to_string();
        // It is gone before it is answered: with a key the call goes on.
        let stream = shared
            .ask(&shared.greedy, ("POST", "/v1/calls"), &[], &body)
            .await;
        if number >= 40 {
            let mut stream = stream;
            let refused = reply(&mut stream).await;
            assert_eq!(refused.status, 503, "{}", refused.text);
        } else {
            runs_so_many(&shared, number + 1).await;
        }
    }
    shared.others_are_served().await;
}

#[tokio::test]
async fn s02_calls_of_one_caller_that_wait_for_a_yes_leave_room_for_others() {
    let shared = Shared::with("").await;
    let calls: Vec<Value> = (0..300)
        .map(|number| json!({"name": "unlock", "args": {"n": number}}))
        .collect();
    let body = json!({"calls": calls}).to_string();
    let _batch = shared
        .ask(&shared.greedy, ("POST", "/v1/batches"), &[], &body)
        .await;
    let waiting = async |count: usize| {
        until("they wait", async || {
            let view = with_key(&shared.served, &shared.operator, "GET", "/v1/approvals", "").await;
            (view.json()["waiting"] == count).then_some(())
        })
        .await;
    };
    waiting(256).await;
    let body = json!({"name": "unlock"}).to_string();
    let _call = shared
        .ask(&shared.other, ("POST", "/v1/calls"), &[], &body)
        .await;
    waiting(257).await;
    shared.others_are_served().await;
}

#[tokio::test]
async fn s02_readers_of_events_and_pages_of_one_caller_leave_room_for_others() {
    let shared = Shared::with("").await;
    let mut open = Vec::new();
    let stream = [("accept", "text/event-stream")];
    for (path, share) in [("/v1/events", 256), ("/tools", 64)] {
        let mut statuses = Vec::new();
        for _ in 0..share + 4 {
            let mut reader = shared.ask(&shared.greedy, ("GET", path), &stream, "").await;
            statuses.push(status(&mut reader).await);
            open.push(reader);
        }
        let served = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 503).count();
        assert_eq!((served, refused), (share, 4), "{path}");
        let mut other = shared.ask(&shared.viewer, ("GET", path), &stream, "").await;
        assert_eq!(status(&mut other).await, 200, "{path}");
    }
    shared.others_are_served().await;
}

/// The status of an answer that goes on.
async fn status(stream: &mut TcpStream) -> u16 {
    use tokio::io::AsyncReadExt;
    let mut head = [0; 12];
    let read = tokio::time::timeout(crate::support::PATIENCE, stream.read_exact(&mut head)).await;
    read.expect("an answer").expect("an answer");
    let head = String::from_utf8_lossy(&head).into_owned();
    head[9..]
        .parse()
        .unwrap_or_else(|_| panic!("no status: {head}"))
}

#[tokio::test]
async fn s02_a_name_that_a_caller_gives_itself_opens_no_second_share() {
    let config = format!(
        "{TOOLS}\n[server]\nlimits = {{ per_caller = 1 }}\nbudget = {{ calls = 3, per = \"key\" }}\n"
    );
    let served = Served::with_config(&config).await;
    let call = async |name: &str, tool: &str| {
        let body = json!({"name": tool}).to_string();
        let headers = [("steadyhand-caller", name)];
        served.send("POST", "/v1/calls", &headers, &body).await
    };
    let mut slow = served.connect().await;
    let body = json!({"name": "slow"}).to_string();
    let text = request(
        served.address,
        "POST",
        "/v1/calls",
        &[("steadyhand-caller", "anna")],
        &body,
    );
    slow.write_all(text.as_bytes()).await.expect("sent");
    runs(&served, "slow").await;
    let refused = call("bert", "weather").await;
    assert_eq!(
        (refused.status, refused.refusal().1.as_str()),
        (429, "too_many_calls")
    );
    let id = runs(&served, "slow").await;
    served.delete(&format!("/v1/calls/{id}")).await;
    until("it has ended", async || {
        let ready = served.get("/health/ready").await.json();
        (ready["running"] == 0).then_some(())
    })
    .await;
    // One was the slow one.
    for name in ["carla", "@greedy"] {
        assert_eq!(call(name, "weather").await.json()["status"], "success");
    }
    let beyond = call("dora", "weather").await.json();
    assert_eq!(beyond["error"]["code"], "OVERLOADED", "{beyond}");
}

#[tokio::test]
async fn s02_a_budget_counts_the_calls_of_every_way_in() {
    let config = format!("{TOOLS}\n[server]\nbudget = {{ calls = 6, per = \"key\" }}\n");
    let workplace = Workplace::with_config(&config);
    let ours = key(&workplace, "ours", &[]);
    let served = Served::in_place(workplace).await;
    let shown = format!("Bearer {ours}");
    let own = ("authorization", shown.as_str());
    let rest = json!({"name": "weather"}).to_string();
    assert_eq!(
        served.send("POST", "/v1/calls", &[own], &rest).await.json()["status"],
        "success"
    );
    let batch = json!({"calls": [{"name": "weather"}]}).to_string();
    let batch = served
        .send("POST", "/v1/batches", &[own], &batch)
        .await
        .json();
    assert_eq!(batch["outcomes"][0]["status"], "success");
    let message = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]});
    let turn = served
        .send(
            "POST",
            "/v1/turns?format=anthropic",
            &[own],
            &message.to_string(),
        )
        .await
        .json();
    assert_eq!(turn["outcomes"][0]["status"], "success", "{turn}");
    let session = super::gateway::begin(&served, &ours).await;
    for (id, version) in [(4, "older"), (5, "newer"), (6, "newer")] {
        let answered = match version {
            "older" => {
                super::gateway::send(
                    &served,
                    &ours,
                    Some(&session),
                    &super::gateway::call(id, "weather"),
                )
                .await
            }
            _ => modern(&served, own).await,
        };
        assert!(answered.text.contains("rain"), "{id}: {}", answered.text);
    }
    for answered in [
        modern(&served, own).await,
        super::gateway::send(
            &served,
            &ours,
            Some(&session),
            &super::gateway::call(8, "weather"),
        )
        .await,
    ] {
        assert!(
            answered.text.contains("the 6 calls it may make"),
            "{}",
            answered.text
        );
    }
}

#[tokio::test]
async fn s02_calls_of_the_newer_protocol_are_counted_where_each_conversation_has_a_budget() {
    let config = format!("{TOOLS}\n[server]\nbudget = {{ calls = 2 }}\n");
    let workplace = Workplace::with_config(&config);
    let ours = key(&workplace, "ours", &[]);
    let served = Served::in_place(workplace).await;
    let shown = format!("Bearer {ours}");
    let own = ("authorization", shown.as_str());
    for _ in 0..2 {
        let answered = modern(&served, own).await;
        assert!(answered.text.contains("rain"), "{}", answered.text);
    }
    let beyond = modern(&served, own).await;
    assert!(
        beyond.text.contains("the 2 calls it may make"),
        "{}",
        beyond.text
    );
}

/// A call in the newer protocol.
async fn modern(served: &Served, own: (&str, &str)) -> crate::serve::Reply {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "weather", "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        own,
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "weather"),
    ];
    served
        .send("POST", "/mcp", &headers, &body.to_string())
        .await
}

/// The file of idempotency keys, open as another program would have it.
fn kept_keys(served: &Served) -> Connection {
    let folder = served.workplace.file(".local/state/steadyhand/history");
    let files = fs::read_dir(folder).expect("a folder").flatten();
    let mut files = files.map(|entry| entry.path());
    let file = files.find(|path| path.to_string_lossy().ends_with(".keys.db"));
    Connection::open(file.expect("a file of keys")).expect("it opens")
}

/// Those whom kept keys count for.
fn key_callers(served: &Served) -> Vec<String> {
    let file = kept_keys(served);
    let mut list = file
        .prepare("SELECT name FROM callers WHERE keys > 0 ORDER BY name")
        .expect("a table");
    let names = list.query_map([], |row| row.get(0)).expect("rows");
    names.map(|name| name.expect("a name")).collect()
}

#[tokio::test]
async fn s02_kept_idempotency_keys_of_one_caller_leave_room_for_others() {
    let shared = Shared::with("").await;
    let greedy = async |key: &str| {
        let shown = format!("Bearer {}", shared.greedy);
        let headers = [
            ("authorization", shown.as_str()),
            ("steadyhand-caller", "somebody-else"),
        ];
        let body = json!({"name": "weather", "idempotency_key": key}).to_string();
        let reply = shared.served.send("POST", "/v1/calls", &headers, &body);
        reply.await.json()
    };
    assert_eq!(greedy("first").await["status"], "success");
    assert_eq!(key_callers(&shared.served), ["@greedy"]);
    // As many as it could take in a day.
    let file = kept_keys(&shared.served);
    file.execute_batch(
        "UPDATE callers SET keys = keys + 600000 WHERE name = '@greedy';
         UPDATE totals SET keys = keys + 600000;",
    )
    .expect("counted");
    let told = shared.served.workplace.json("calls keys --json");
    let most = json!([{"name": "greedy", "keys": 600_001}]);
    assert_eq!(told["usage"]["callers"], most, "{told}");
    let refused = greedy("second").await;
    assert_eq!(refused["error"]["code"], "OVERLOADED", "{refused}");
    assert_eq!(refused["error"]["effect"], "none", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("greedy has 600001 kept keys"), "{message}");
    // What it has still holds, and nobody else is refused.
    assert_eq!(greedy("first").await["replayed"], true);
    shared.others_are_served().await;
    assert_eq!(key_callers(&shared.served), ["@greedy", "@other"]);
}

#[tokio::test]
async fn s02_on_an_open_server_kept_keys_count_for_the_address_and_not_for_what_callers_say() {
    let served = Served::with_config(TOOLS).await;
    for said in ["one", "@two", "three"] {
        let body = json!({"name": "weather", "idempotency_key": said}).to_string();
        let headers = [("steadyhand-caller", said)];
        let reply = served.send("POST", "/v1/calls", &headers, &body).await;
        assert_eq!(reply.json()["status"], "success", "{}", reply.text);
    }
    assert_eq!(key_callers(&served), ["this machine"]);
}
