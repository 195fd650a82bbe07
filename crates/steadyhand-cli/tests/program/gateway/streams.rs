//! What clients are told on the way and unasked: progress, logs, lists that change; and that nothing of it is lost to
//! one who was cut off.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Events, Modern, Session, gateway};
use crate::serve::{Served, request, until};
use crate::support::Workplace;

const PROGRESS: &str = "notifications/progress";

#[tokio::test(flavor = "multi_thread")]
async fn v05_progress_and_logs_come_before_the_answer_in_their_order() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": "mine"}});
    let stream = session
        .stream(&served, 5, "tools/call", params.clone())
        .await;
    assert!(
        stream
            .head
            .to_ascii_lowercase()
            .contains("x-accel-buffering: no")
    );
    let events = stream.all().await;
    let progress: Vec<&Value> = events
        .iter()
        .filter(|event| event.message["method"] == PROGRESS)
        .map(|event| &event.message["params"])
        .collect();
    assert_eq!(
        progress,
        [0, 50, 100]
            .map(|done| json!({"progress": done, "total": 100, "progressToken": "mine"}))
            .iter()
            .collect::<Vec<_>>()
    );
    let last = events.last().expect("the answer");
    assert_eq!(
        (
            &last.message["id"],
            &last.message["result"]["content"][0]["text"]
        ),
        (&json!(5), &json!("It is done."))
    );
    assert!(
        events.iter().all(|event| event.id.is_some()),
        "each can be come back to"
    );
    let modern = Modern::new("tools/call", params)
        .stream(&served)
        .await
        .all()
        .await;
    assert_eq!(modern.len(), 4, "{modern:?}");
    assert_eq!(modern[3].message["result"]["resultType"], "complete");

    // Who wants to hear of a log says so: a server of the newer protocol says nothing unasked.
    session
        .ask(&served, "logging/setLevel", json!({"level": "info"}))
        .await;
    let logged = json!({"name": "test_tool_with_logging"});
    let events = session
        .stream(&served, 6, "tools/call", logged.clone())
        .await
        .all()
        .await;
    let words: Vec<&Value> = events
        .iter()
        .filter(|event| event.message["method"] == "notifications/message")
        .map(|event| &event.message["params"]["data"])
        .collect();
    assert_eq!(
        words,
        [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed"
        ]
    );
    session
        .ask(&served, "logging/setLevel", json!({"level": "error"}))
        .await;
    let quiet = session.ask(&served, "tools/call", logged).await;
    assert!(quiet["result"].is_object(), "{quiet}");
    let refused = session
        .ask(&served, "logging/setLevel", json!({"level": "loud"}))
        .await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_tool_of_our_own_tells_its_progress_in_order_too() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    // It has none to tell: the answer is plain JSON, with a token or without.
    let params = json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": 3}});
    let answer = session.ask(&served, "tools/call", params).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"echo": {}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_who_was_cut_off_gets_the_rest_of_its_answer() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 1}});
    let mut stream = session.stream(&served, 9, "tools/call", params).await;
    let first = stream.next().await.expect("an event");
    assert_eq!(first.message["params"]["progress"], 0);
    drop(stream);
    let id = first.id.expect("an id");
    let rest = session.listen(&served, Some(&id)).await.all().await;
    let done: Vec<&Value> = rest
        .iter()
        .map(|event| &event.message["params"]["progress"])
        .collect();
    assert_eq!(done, [&json!(50), &json!(100), &Value::Null]);
    assert_eq!(rest[2].message["id"], 9);
    // Whoever comes late gets it, too, and whoever has it all gets nothing.
    let again = session.listen(&served, Some(&id)).await.all().await;
    assert_eq!(again, rest);
    let last = rest[2].id.clone().expect("an id");
    assert_eq!(session.listen(&served, Some(&last)).await.all().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_session_is_told_when_lists_change_also_those_it_missed() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let change = async |what: &str| {
        let params = json!({"name": format!("test_trigger_{what}_change"), "arguments": {}});
        session.ask(&served, "tools/call", params).await;
    };
    // Before it listens.
    change("prompt").await;
    until("the prompt is there", async || {
        let listed = session.ask(&served, "prompts/list", json!({})).await;
        listed.to_string().contains("test_came_later").then_some(())
    })
    .await;
    let mut news = session.listen(&served, None).await;
    news.until_method("notifications/prompts/list_changed")
        .await;
    change("tool").await;
    news.until_method("notifications/tools/list_changed").await;
    let listed = session.ask(&served, "tools/list", json!({})).await;
    assert!(
        listed.to_string().contains("test_came_later"),
        "told when it is so"
    );
    // A second one takes the place of the first, and goes on where that was.
    let mut newer = session.listen(&served, None).await;
    assert_eq!(news.next().await, None, "one stream is enough");
    change("tool").await;
    let event = newer.next().await.expect("an event");
    assert_eq!(event.message["method"], "notifications/tools/list_changed");
    let id = event.id.expect("an id");
    drop(newer);
    change("prompt").await;
    let mut back = session.listen(&served, Some(&id)).await;
    back.until_method("notifications/prompts/list_changed")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_listener_hears_what_it_asked_for_and_nothing_else() {
    let served = gateway("").await;
    let listen = |notifications: Value| {
        let mut request = Modern::new(
            "subscriptions/listen",
            json!({ "notifications": notifications }),
        );
        request.body["id"] = json!("sub-1");
        request
    };
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://watched-resource", "test://no-such"]});
    let mut heard = listen(wanted).stream(&served).await;
    let first = heard.next().await.expect("an event").message;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"]["promptsListChanged"], true);
    assert!(first["params"]["notifications"]["toolsListChanged"].is_null());
    let tag = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(first["params"]["_meta"][tag], "sub-1");
    let call = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        Modern::new("tools/call", params).result(&served).await;
    };
    call("test_trigger_tool_change", json!({})).await;
    call(
        "test_touch_resource",
        json!({"uri": "test://watched-resource"}),
    )
    .await;
    let updated = heard.next().await.expect("an event").message;
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], "test://watched-resource");
    assert_eq!(updated["params"]["_meta"], json!({tag: "sub-1"}));
    call("test_trigger_prompt_change", json!({})).await;
    let changed = heard.next().await.expect("an event").message;
    assert_eq!(
        changed["method"], "notifications/prompts/list_changed",
        "the tools were not asked for"
    );
    assert_eq!(changed["params"]["_meta"][tag], "sub-1");
    let odd = Modern::new("subscriptions/listen", json!({}));
    assert_eq!(odd.refused(&served).await, (200, -32602));
    // The end of the server is the end of the stream, told as such.
    served.signal(rustix::process::Signal::TERM);
    let last = heard.next().await.expect("an event").message;
    assert_eq!(
        (&last["id"], &last["result"]["resultType"]),
        (&json!("sub-1"), &json!("complete"))
    );
    assert_eq!(heard.next().await, None);
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_resources_are_watched_in_sessions_and_let_go() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let other = Session::begin(&served).await;
    let watched = json!({"uri": "test://watched-resource"});
    let done = session
        .ask(&served, "resources/subscribe", watched.clone())
        .await;
    assert_eq!(done["result"], json!({}));
    let mut news = session.listen(&served, None).await;
    let touch = async || {
        let params = json!({"name": "test_touch_resource", "arguments": watched});
        other.ask(&served, "tools/call", params).await;
    };
    touch().await;
    let updated = news.until_method("notifications/resources/updated").await;
    assert_eq!(updated["params"], watched);
    session
        .ask(&served, "resources/unsubscribe", watched.clone())
        .await;
    let change = async |what: &str| {
        let params = json!({"name": format!("test_trigger_{what}_change"), "arguments": {}});
        other.ask(&served, "tools/call", params).await;
    };
    // While what is listened to changes, one touch may be told twice: all of that is behind this.
    change("prompt").await;
    news.until_method("notifications/prompts/list_changed")
        .await;
    touch().await;
    // It hears of this, and of that no more.
    change("tool").await;
    loop {
        let next = news.next().await.expect("an event").message;
        assert_ne!(next["method"], "notifications/resources/updated");
        if next["method"] == "notifications/tools/list_changed" {
            break;
        }
    }
}

/// Someone who asks for a stream and does not read it is cut off, and everyone else does not notice.
#[tokio::test(flavor = "multi_thread")]
async fn v05_slow_readers_are_cut_off_and_hold_up_nobody() {
    let mut config = super::fixture("");
    config.push_str("[server]\nlimits = { patience = \"1s\" }\n");
    let served = super::up(Workplace::with_config(&config)).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let session = Session::begin(&served).await;
        let asked = request(served.address, "GET", "/mcp", &session.headers(), "");
        let mut stream = served.connect().await;
        stream.write_all(asked.as_bytes()).await.expect("sent");
        slow.push((session, stream));
    }
    let session = Session::begin(&served).await;
    let mut reader = session.listen(&served, None).await;
    for _ in 0..4 {
        let params = json!({"name": "test_trigger_tool_change", "arguments": {}});
        session.ask(&served, "tools/call", params).await;
        reader
            .until_method("notifications/tools/list_changed")
            .await;
    }
    // Their sessions are as they were.
    for (session, _) in &slow {
        assert_eq!(
            session.ask(&served, "ping", json!({})).await["result"],
            json!({})
        );
    }
}

/// A client that takes a long list a byte at a time, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn v05_a_client_that_takes_nothing_is_cut_off() {
    let mut config = String::from("[server]\nlimits = { patience = \"1s\" }\n");
    let words = "long ".repeat(4_000);
    for n in 0..300 {
        config.push_str(&format!(
            "[tools.t{n}]\nkind = \"mock\"\ndescription = \"{words}\"\nmock_response = 1\n"
        ));
    }
    let served = Served::in_place(Workplace::with_config(&config)).await;
    let session = Session::begin(&served).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let asked = request(served.address, "POST", "/mcp", &session.headers(), &list);
    let before = until("no connection is open", async || {
        let now = open_files(&served);
        tokio::time::sleep(Duration::from_millis(100)).await;
        (open_files(&served) == now).then_some(now)
    })
    .await;
    let mut stream = served.connect().await;
    stream.write_all(asked.as_bytes()).await.expect("sent");
    let whole = 300 * words.len();
    let mut taken = vec![0; 4096];
    let mut count = stream.read(&mut taken).await.expect("the beginning");
    // When the server has waited long enough it closes the connection: reading then comes to an end early.
    until("the connection is closed", async || {
        (open_files(&served) <= before).then_some(())
    })
    .await;
    while let Ok(read) = stream.read(&mut taken).await {
        count += read;
        if read == 0 {
            break;
        }
    }
    assert!(count < whole, "it was cut off: {count} of {whole} bytes");
    let listed = session.ask(&served, "tools/list", json!({})).await;
    assert_eq!(
        listed["result"]["tools"].as_array().map(Vec::len),
        Some(300)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_who_takes_only_one_of_json_and_events_gets_that() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let headers = |accept: &'static str| {
        let mut headers = session.headers().to_vec();
        headers[0].1 = accept;
        headers
    };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "test_tool_with_progress", "_meta": {"progressToken": 1}}})
    .to_string();
    let reply = served
        .send("POST", "/mcp", &headers("application/json"), &call)
        .await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json()["result"]["content"][0]["text"], "It is done.");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let events = Events::open(&served, "POST", &headers("text/event-stream"), &ping).await;
    assert_eq!(events.all().await[0].message["result"], json!({}));
    let reply = served
        .send("GET", "/mcp", &headers("application/json"), "")
        .await;
    assert_eq!(reply.status, 406);
}

fn open_files(served: &Served) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", served.pid()));
    files.expect("Linux").count()
}

/// Someone whose stream runs away from it misses what was only told, and never the answer.
#[tokio::test(flavor = "multi_thread")]
async fn v05_a_reader_that_falls_behind_gets_its_answer() {
    const SAID: usize = 4000;
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    session
        .ask(&served, "logging/setLevel", json!({"level": "info"}))
        .await;
    let params = json!({"name": "test_chatty", "arguments": {"count": SAID, "bytes": 8000}});
    let mut stream = session.stream(&served, 4, "tools/call", params).await;
    let first = stream.next().await.expect("an event");
    // It is answered while nobody reads.
    until("the call is over", async || {
        let listed = served.get("/v1/calls?tool=test_chatty").await.json();
        let call = listed["calls"].as_array()?.first()?.clone();
        (call["state"] != "running").then_some(())
    })
    .await;
    let rest = stream.all().await;
    assert!(
        rest.len() < SAID / 2,
        "not everything is kept: {}",
        rest.len()
    );
    let end = &rest.last().expect("the end").message;
    let text = &end["result"]["content"][0]["text"];
    assert_eq!(
        (&end["id"], text),
        (&json!(4), &json!("It has said everything."))
    );
    // Coming back from the very beginning is no different.
    let again = session
        .listen(&served, first.id.as_deref())
        .await
        .all()
        .await;
    assert!(again.len() <= 256, "so much is kept: {}", again.len());
    assert_eq!(again.last(), rest.last());
}
