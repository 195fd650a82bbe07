//! One caller takes all that it can get, each thing at its full size, and keeps it: another caller is served all along.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::shares::{CALLS, Shared};
use super::{gateway, with_key};
use crate::gateway::{Events, Modern, fixture, memory};
use crate::serve::{Reply, reply, request, until};

/// Sessions that one caller may have.
const SESSIONS: usize = 8_192;
/// A session that was not used for so long makes room.
const UNUSED: Duration = Duration::from_secs(30);
/// Conversations of one caller whose budgets are followed.
const CONVERSATIONS: usize = 10_000;
/// Resources that one caller may watch, and that one subscription may name.
const WATCHED: usize = 2_500;
const WATCHED_AT_ONCE: usize = 1_000;
/// Requests of one caller that may wait for its answers.
const SUSPENDED: usize = 128;
/// Connections over which the greedy one asks at the same time.
const LINES: usize = 4;
const RESIDENT_MAX: usize = 600 * 1024 * 1024;

/// Asks so many times, on a few connections; the last answer of each.
async fn flood(
    shared: &Shared,
    count: usize,
    ask: impl Fn(usize) -> (String, Vec<(String, String)>, Value),
) -> Vec<Reply> {
    let line = async |first: usize| {
        let mut stream: TcpStream = shared.served.connect().await;
        let mut last = None;
        for number in (first..count).step_by(LINES) {
            let (path, headers, body) = ask(number);
            let shown = format!("Bearer {}", shared.greedy);
            let mut all = vec![("authorization", shown.as_str())];
            all.extend(headers.iter().map(|(name, value)| (&**name, &**value)));
            let text = request(
                shared.served.address,
                "POST",
                &path,
                &all,
                &body.to_string(),
            );
            stream.write_all(text.as_bytes()).await.expect("sent");
            let answer = reply(&mut stream).await;
            assert_eq!(answer.status, 200, "{number}: {}", answer.text);
            last = Some(answer);
        }
        last.expect("an answer")
    };
    join_all((0..LINES).map(line)).await
}

fn with(request: Modern, key: &str) -> Modern {
    request.with("authorization", &format!("Bearer {key}"))
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

fn watching(first: usize, count: usize, key: &str) -> Modern {
    let uris = first..first + count;
    let uris: Vec<String> = uris
        .map(|number| format!("test://template/{number}/data"))
        .collect();
    let params = json!({"notifications": {"resourceSubscriptions": uris}});
    with(Modern::of("subscriptions/listen", params, json!({})), key)
}

/// A call whose server asks its client something first.
fn asking(key: &str, back: &Value) -> Modern {
    let mut params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
    for (name, value) in back.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    with(
        Modern::of("tools/call", params, json!({"elicitation": {}})),
        key,
    )
}

/// Opens all the sessions that one caller may have.
async fn sessions(shared: &Shared) {
    let began = Instant::now();
    flood(shared, SESSIONS, |_| {
        let accept = "application/json, text/event-stream";
        let headers = vec![("accept".to_owned(), accept.to_owned())];
        ("/mcp".to_owned(), headers, initialize())
    })
    .await;
    let beyond = gateway::send(&shared.served, &shared.greedy, None, &initialize()).await;
    if began.elapsed() < UNUSED {
        assert_eq!(beyond.status, 503, "{}", beyond.text);
        let words = format!("greedy has {SESSIONS} sessions");
        assert!(beyond.text.contains(&words), "{}", beyond.text);
        assert!(
            beyond.text.contains("No session was begun"),
            "{}",
            beyond.text
        );
    }
    // Each of the other's calls in a session of its own.
    for id in 0..CALLS as u64 {
        let session = gateway::begin(&shared.served, &shared.other).await;
        let call = gateway::call(id, "weather");
        let answered = gateway::send(&shared.served, &shared.other, Some(&session), &call).await;
        assert!(answered.text.contains("rain"), "{id}: {}", answered.text);
    }
}

/// Names all the conversations that one caller may have budgets of.
async fn conversations(shared: &Shared) {
    let call = json!({"name": "weather"});
    // Its calls over MCP without a session were one.
    let answers = flood(shared, CONVERSATIONS - 1, |number| {
        let name = ("steadyhand-conversation".to_owned(), number.to_string());
        ("/v1/calls".to_owned(), vec![name], call.clone())
    })
    .await;
    for answer in answers {
        assert_eq!(answer.json()["status"], "success", "{}", answer.text);
    }
    let in_conversation = async |key: &str, name: &str| {
        let shown = format!("Bearer {key}");
        let headers = [
            ("authorization", shown.as_str()),
            ("steadyhand-conversation", name),
        ];
        let body = call.to_string();
        let answer = shared.served.send("POST", "/v1/calls", &headers, &body);
        answer.await.json()
    };
    let beyond = in_conversation(&shared.greedy, "one more").await;
    assert_eq!(beyond["error"]["code"], "OVERLOADED", "{beyond}");
    assert_eq!(beyond["error"]["effect"], "none", "{beyond}");
    let words = format!("greedy has {CONVERSATIONS} conversations");
    assert!(beyond.to_string().contains(&words), "{beyond}");
    for number in 0..CALLS {
        let answer = in_conversation(&shared.other, &format!("o{number}")).await;
        assert_eq!(answer["status"], "success", "{number}: {answer}");
    }
}

/// Watches all the resources that one caller may.
async fn resources(shared: &Shared) -> Vec<Events> {
    let mut open = Vec::new();
    for first in (0..WATCHED).step_by(WATCHED_AT_ONCE) {
        let count = WATCHED_AT_ONCE.min(WATCHED - first);
        let mut stream = watching(first, count, &shared.greedy)
            .stream(&shared.served)
            .await;
        let told = stream.next().await.expect("it is told").message;
        let accepted = &told["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(accepted.as_array().map(Vec::len), Some(count), "{first}");
        open.push(stream);
    }
    let beyond = watching(WATCHED, 1, &shared.greedy)
        .send(&shared.served)
        .await;
    let words = format!("greedy has {WATCHED} watched resources");
    assert!(beyond.text.contains(&words), "{}", beyond.text);
    assert!(
        beyond.text.contains("The resource is not watched"),
        "{}",
        beyond.text
    );
    // The other watches, too: resources that are watched already, and others.
    let mut stream = watching(WATCHED - 100, CALLS, &shared.other)
        .stream(&shared.served)
        .await;
    let told = stream.next().await.expect("it is told").message;
    let accepted = &told["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(accepted.as_array().map(Vec::len), Some(CALLS), "{told}");
    open
}

/// Leaves all the requests waiting that one caller may.
async fn suspended_requests(shared: &Shared) {
    for number in 0..SUSPENDED {
        let result = asking(&shared.greedy, &json!({}))
            .result(&shared.served)
            .await;
        assert_eq!(result["resultType"], "input_required", "{number}: {result}");
    }
    // Its server hears that nobody can be asked now.
    let beyond = asking(&shared.greedy, &json!({}))
        .send(&shared.served)
        .await;
    let words = format!("greedy has {SUSPENDED} requests that wait");
    assert!(beyond.text.contains(&words), "{}", beyond.text);
    assert!(
        beyond.text.contains("The client was not asked"),
        "{}",
        beyond.text
    );
    for number in 0..CALLS {
        let asked = asking(&shared.other, &json!({}))
            .result(&shared.served)
            .await;
        let answer = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
        let back = json!({"requestState": asked["requestState"], "inputResponses": answer});
        let result = asking(&shared.other, &back).result(&shared.served).await;
        assert_eq!(
            result["content"][0]["text"], "Hello, Ada!",
            "{number}: {result}"
        );
    }
}

/// Connections that say nothing, calls with a key that go on alone, readers of events, and calls that wait for a yes.
async fn connections(shared: &Shared) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for number in 0..200 {
        open.push(shared.served.connect().await);
        let call = json!({"name": "slow", "idempotency_key": format!("k{number}")}).to_string();
        let stream = shared.ask(&shared.greedy, ("POST", "/v1/calls"), &[], &call);
        drop(stream.await);
    }
    let events = [("accept", "text/event-stream")];
    for _ in 0..260 {
        let stream = shared.ask(&shared.greedy, ("GET", "/v1/events"), &events, "");
        open.push(stream.await);
    }
    let gated: Vec<Value> = (0..300)
        .map(|number| json!({"name": "unlock", "args": {"n": number}}))
        .collect();
    let body = json!({"calls": gated}).to_string();
    let batch = shared.ask(&shared.greedy, ("POST", "/v1/batches"), &[], &body);
    open.push(batch.await);
    until("as many wait for a yes as may", async || {
        let view = with_key(&shared.served, &shared.greedy, "GET", "/v1/approvals", "").await;
        (view.json()["waiting"].as_u64() >= Some(256)).then_some(())
    })
    .await;
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn s02_while_one_caller_takes_all_it_can_get_the_200_calls_of_another_all_succeed() {
    let server = format!("budget = {{ calls = 1000000 }}\n{}", fixture(""));
    let shared = Shared::with(&server).await;
    until("the server behind us is up", async || {
        let list = with(
            Modern::new("resources/templates/list", json!({})),
            &shared.other,
        );
        let listed = list.result(&shared.served).await.to_string();
        listed.contains("template").then_some(())
    })
    .await;
    sessions(&shared).await;
    shared.others_are_served().await;
    let _watching = resources(&shared).await;
    shared.others_are_served().await;
    suspended_requests(&shared).await;
    shared.others_are_served().await;
    conversations(&shared).await;
    shared.others_are_served().await;
    let _open = connections(&shared).await;
    shared.others_are_served().await;

    let page = with_key(&shared.served, &shared.greedy, "GET", "/metrics", "").await;
    let figure = |name: &str| {
        let mut lines = page.text.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix("{} "));
        let line = line.unwrap_or_else(|| panic!("no {name} in {}", page.text));
        line.parse::<f64>().expect("a number") as u64
    };
    let peak = figure("steadyhand_memory_accounted_peak");
    assert!(peak <= figure("steadyhand_memory_limit"), "{peak}");
    let resident = memory(&shared.served);
    assert!(resident < RESIDENT_MAX, "{resident}");
}
