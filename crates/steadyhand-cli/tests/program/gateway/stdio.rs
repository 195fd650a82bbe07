//! `steadyhand mcp-stdio`: the same on stdin and stdout, where messages are all there is.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::{fixture, meta, up};
use crate::serve::program;
use crate::support::{PATIENCE, Workplace};

/// A client on the other end.
pub(crate) struct Client {
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    _workplace: Workplace,
}

impl Client {
    /// The fixture behind it is known from before, so that it is listed at once.
    async fn start() -> Client {
        let served = up(Workplace::with_config(&fixture(""))).await;
        served.signal(rustix::process::Signal::TERM);
        let workplace = served.stopped().await;
        Client::of(workplace)
    }

    pub(crate) fn of(workplace: Workplace) -> Client {
        let mut process = program(&workplace, &["mcp-stdio"]);
        let mut process = process
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        Client {
            to: process.stdin.take().expect("a pipe"),
            from: BufReader::new(process.stdout.take().expect("a pipe")).lines(),
            process,
            _workplace: workplace,
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.to.write_all(line.as_bytes()).await.expect("a reader");
    }

    /// The next message; every line must be one (SPEC V11).
    pub(crate) async fn next(&mut self) -> Value {
        let line = timeout(PATIENCE, self.from.next_line()).await;
        let line = line.expect("in time").expect("a line").expect("no end");
        let message: Value = serde_json::from_str(&line).expect("every line is JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// The answer to a request; what comes before it is passed over.
    pub(crate) async fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == *id && message["method"].is_null() {
                return message;
            }
        }
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        self.answer(&json!(id)).await
    }

    pub(crate) async fn until_method(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    pub(crate) async fn end(mut self) {
        drop(self.to);
        let ended = timeout(PATIENCE, self.process.wait()).await;
        let status = ended.expect("it ends in time").expect("a status");
        assert!(status.success(), "{status}");
    }
}

fn modern(mut params: Value) -> Value {
    let mut all = meta(json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    if let (Some(all), Some(more)) = (all.as_object_mut(), params["_meta"].as_object()) {
        all.extend(more.clone());
    }
    params["_meta"] = all;
    params
}

#[tokio::test(flavor = "multi_thread")]
async fn v11_the_older_protocols_on_stdio() {
    let mut client = Client::start().await;
    let capabilities = json!({"elicitation": {}});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"}});
    let greeted = client.ask(1, "initialize", hello).await;
    assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let listed = client.ask(2, "tools/list", json!({})).await;
    assert!(listed.to_string().contains("test_elicitation"), "{listed}");
    // A question comes between the call and its answer.
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "test_elicitation", "arguments": {"message": "Who?"}}});
    client.send(&call).await;
    let question = client.until_method("elicitation/create").await;
    assert_eq!(question["params"]["message"], "Who?");
    let answer = json!({"action": "accept", "content": {"username": "ada", "email": "a@b"}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
        .await;
    let called = client.answer(&json!(3)).await;
    assert!(
        called["result"]["content"][0]["text"]
            .to_string()
            .contains("ada"),
        "{called}"
    );
    // It is told what changes, and of what it asked to be told.
    let done = client
        .ask(
            4,
            "resources/subscribe",
            json!({"uri": "test://watched-resource"}),
        )
        .await;
    assert_eq!(done["result"], json!({}));
    let touch =
        json!({"name": "test_touch_resource", "arguments": {"uri": "test://watched-resource"}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": touch}))
        .await;
    let updated = client.until_method("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "test://watched-resource");
    let change = json!({"name": "test_trigger_tool_change", "arguments": {}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": change}))
        .await;
    client
        .until_method("notifications/tools/list_changed")
        .await;
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v11_the_newer_protocol_on_stdio() {
    let mut client = Client::start().await;
    let discovered = client.ask(1, "server/discover", modern(json!({}))).await;
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": "mine"}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": modern(params)}))
        .await;
    for done in [0, 50, 100] {
        let progress = client.until_method("notifications/progress").await;
        assert_eq!(progress["params"]["progress"], done);
        assert_eq!(progress["params"]["progressToken"], "mine");
    }
    assert_eq!(
        client.answer(&json!(2)).await["result"]["resultType"],
        "complete"
    );
    // A call that needs an answer is answered with the question.
    let asking = |more: Value| {
        let mut params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
        for (key, value) in more.as_object().expect("an object") {
            params[key] = value.clone();
        }
        modern(params)
    };
    let asked = client.ask(3, "tools/call", asking(json!({}))).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let given = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
    let back = asking(json!({"inputResponses": given, "requestState": asked["requestState"]}));
    let called = client.ask(4, "tools/call", back).await;
    assert_eq!(called["result"]["content"][0]["text"], "Hello, Ada!");
    // A subscription, until it is cancelled.
    let listen = modern(json!({"notifications": {"toolsListChanged": true}}));
    client.send(&json!({"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": listen})).await;
    let first = client.next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let tag = "io.modelcontextprotocol/subscriptionId";
    let change = modern(json!({"name": "test_trigger_tool_change", "arguments": {}}));
    client
        .send(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": change}))
        .await;
    let changed = client
        .until_method("notifications/tools/list_changed")
        .await;
    assert_eq!(changed["params"]["_meta"][tag], "sub");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "sub"}}))
        .await;
    let unknown = client.ask(6, "ping", modern(json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let missing = client.ask(7, "server/discover", json!({})).await;
    assert_eq!(missing["error"]["code"], -32602);
    let mut old = modern(json!({}));
    old["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2024-11-05");
    assert_eq!(
        client.ask(8, "tools/list", old).await["error"]["code"],
        -32022
    );
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v11_calls_on_stdio_are_in_the_history() {
    let mut client = Client::start().await;
    let call = json!({"name": "test_simple_text", "arguments": {}});
    let called = client.ask(1, "tools/call", call).await;
    let id = called["result"]["_meta"]["io.steadyhand/callId"]
        .as_str()
        .expect("an id")
        .to_owned();
    drop(client.to);
    let ended = timeout(PATIENCE, client.process.wait()).await;
    ended.expect("it ends in time").expect("a status");
    let workplace = client._workplace;
    let show =
        tokio::task::spawn_blocking(move || workplace.json(&format!("calls show {id} --json")));
    let shown = show.await.expect("it ran");
    assert!(shown.to_string().contains("test_simple_text"), "{shown}");
}
