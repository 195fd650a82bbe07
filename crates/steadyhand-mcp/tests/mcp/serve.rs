//! We as a server on stdio: with a real client of the Rust SDK, and with clients that send anything.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use steadyhand::{CallContext, Tool, ToolError, ToolExecutor, ToolManager};
use steadyhand_mcp::serve::Gateway;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

fn tools() -> ToolExecutor {
    let tools = ToolManager::new();
    let greet = Tool::function("greet", "Greets", |args: Value| async move {
        match args["name"].as_str() {
            Some(name) => Ok(json!({"greeting": format!("Hello {name}")})),
            None => Err(ToolError::answer("who?")),
        }
    });
    let slow = Tool::function(
        "slow",
        "Takes long",
        |context: CallContext, _: Value| async move {
            context.progress(1.0, Some(2.0), "half way");
            context.cancellation().cancelled().await;
            Ok::<_, ToolError>(json!("never"))
        },
    );
    for tool in [greet, slow] {
        tools.add(tool).expect("a tool");
    }
    ToolExecutor::new(tools)
}

async fn serve(
    executor: ToolExecutor,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let gateway = Gateway::new(Arc::new(executor));
    gateway.serve(input, output).await
}

/// A client that writes what it likes.
struct Raw {
    to: tokio::io::WriteHalf<DuplexStream>,
    from: tokio::io::Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
}

fn raw() -> (Raw, ToolExecutor) {
    raw_of(tools())
}

/// The same with these tools.
fn raw_of(executor: ToolExecutor) -> (Raw, ToolExecutor) {
    let (ours, theirs) = duplex(64 * 1024);
    tokio::spawn({
        let executor = executor.clone();
        async move {
            let (input, output) = tokio::io::split(theirs);
            serve(executor, input, output).await
        }
    });
    let (from, to) = tokio::io::split(ours);
    let raw = Raw {
        to,
        from: BufReader::new(from).lines(),
    };
    (raw, executor)
}

impl Raw {
    async fn send(&mut self, text: &str) {
        let line = format!("{text}\n");
        self.to.write_all(line.as_bytes()).await.expect("a reader");
    }

    async fn next(&mut self) -> Value {
        let line = timeout(PATIENCE, self.from.next_line()).await;
        let line = line.expect("in time").expect("a line").expect("no end");
        serde_json::from_str(&line).expect("every line is JSON")
    }
}

#[tokio::test]
async fn v11_a_client_of_the_rust_sdk_lists_and_calls_our_tools() {
    let executor = tools();
    let (ours, theirs) = duplex(64 * 1024);
    let server = tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        serve(executor, input, output).await
    });
    let client = ().serve(ours).await.expect("a handshake");
    let listed = client.list_all_tools().await.expect("tools");
    let names: Vec<&str> = listed.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["greet", "slow"]);
    let call = |args: Value| {
        let args = args.as_object().cloned().unwrap_or_default();
        client.call_tool(CallToolRequestParams::new("greet").with_arguments(args))
    };
    let greeted = call(json!({"name": "Ada"})).await.expect("a result");
    assert_eq!(
        greeted.structured_content,
        Some(json!({"greeting": "Hello Ada"}))
    );
    assert_ne!(greeted.is_error, Some(true));
    let refused = call(json!({})).await.expect("a result");
    assert_eq!(refused.is_error, Some(true));
    let unknown = client
        .call_tool(CallToolRequestParams::new("nothing"))
        .await;
    assert!(
        unknown
            .expect_err("an error")
            .to_string()
            .contains("Unknown tool: nothing")
    );
    client.cancel().await.expect("an end");
    let ended = timeout(PATIENCE, server).await.expect("the server ends");
    ended.expect("no panic").expect("no error");
}

#[tokio::test]
async fn v11_whatever_a_client_sends_every_line_back_is_json_rpc() {
    let (mut client, _) = raw();
    for garbage in [
        "hello",
        "{\"a\":",
        "42",
        "{\"level\":\"info\"}",
        "[]",
        "\u{1b}[31mred",
    ] {
        client.send(garbage).await;
        let answer = client.next().await;
        assert_eq!(answer["jsonrpc"], "2.0", "{garbage}");
        assert!(answer["error"]["code"].is_i64(), "{garbage}: {answer}");
    }
    // A stray notification before the handshake harms nobody.
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#)
        .await;
    client
        .send(r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"1999-01-01"}}"#)
        .await;
    let greeting = client.next().await;
    assert_eq!(greeting["id"], "a");
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#)
        .await;
    assert_eq!(client.next().await["error"]["code"], -32602);
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#)
        .await;
    assert_eq!(client.next().await["error"]["code"], -32601);
    client
        .send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await;
    assert_eq!(
        client.next().await,
        json!({"jsonrpc": "2.0", "id": 3, "result": {}})
    );
}

#[tokio::test]
async fn v11_progress_is_passed_on_and_a_cancelled_request_gets_no_answer() {
    let (mut client, executor) = raw();
    client
        .send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":"p"}}}"#)
        .await;
    let progress = client.next().await;
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(
        progress["params"],
        json!({"progressToken": "p", "progress": 1, "total": 2, "message": "half way"})
    );
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#)
        .await;
    client
        .send(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#)
        .await;
    assert_eq!(client.next().await["id"], 8);
    let slow = executor.tools();
    let ended = async {
        while slow
            .metrics("slow")
            .is_some_and(|metrics| metrics.in_flight > 0)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the call is stopped");
}

#[tokio::test]
async fn v11_a_client_is_told_when_the_tools_change() {
    let (mut client, executor) = raw();
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
        .await;
    client.next().await;
    executor.tools().remove("slow");
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)
        .await;
    let listed = client.next().await;
    let tools = listed["result"]["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), 1);
}

/// A client of 2025-11-25 of a server that attacks.
async fn attacked(attack: &str, capabilities: &Value) -> (crate::support::Stage, Raw) {
    let stage = crate::attacks::stage(attack, &crate::attacks::budget(64)).await;
    let (mut client, _) = raw_of(stage.executor.clone());
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    client.send(&greeting.to_string()).await;
    assert_eq!(client.next().await["id"], 1);
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"trouble","arguments":{}}}"#)
        .await;
    (stage, client)
}

#[tokio::test]
async fn s01_a_client_that_does_not_read_is_told_how_much_it_missed_before_its_answer() {
    let (stage, mut client) = attacked("talks", &json!({})).await;
    let metrics = || stage.executor.tools().metrics("trouble");
    crate::support::until("the call is over", || {
        metrics().is_some_and(|it| it.total_executions > 0 && it.in_flight == 0)
    })
    .await;
    let (mut told, mut lost) = (0, 0);
    loop {
        let message = client.next().await;
        if message["id"] == 2 {
            assert_eq!(message["result"]["content"][0]["text"], "after all that");
            break;
        }
        assert_eq!(message["method"], "notifications/message");
        match message["params"]["logger"] == "steadyhand" {
            false => told += 1,
            true => {
                let words = message["params"]["data"].as_str().expect("words");
                assert!(
                    words.ends_with("messages were dropped, because they were not read in time")
                );
                let count = words
                    .split(' ')
                    .next()
                    .and_then(|count| count.parse::<u64>().ok());
                lost += count.expect("a number");
            }
        }
    }
    assert!(told > 0 && lost > 0, "{told} told, {lost} lost");
    assert_eq!(told + lost, 5_000);
    stage.over().await;
}

#[tokio::test]
async fn s01_a_page_that_a_person_has_to_visit_is_told_to_a_client_that_can_send_it_there() {
    let (stage, mut client) = attacked("visit", &json!({"elicitation": {"url": {}}})).await;
    let error = client.next().await["error"].clone();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32042), &json!("Sign in first"))
    );
    let page = json!({"mode": "url", "url": "https://auth.example/start", "elicitationId": "2", "message": r"Sign\u{202e} in"});
    assert_eq!(error["data"]["elicitations"], json!([page]));
    let meta = &error["data"]["_meta"];
    assert_eq!(meta["foreign.io.steadyhand/callId"], "forged");
    let id = meta["io.steadyhand/callId"].as_str().expect("our own mark");
    assert_ne!(id, "forged");
    stage.over().await;
    // One that cannot is told in words, as a failure of the call.
    let (stage, mut client) = attacked("visit", &json!({})).await;
    let answer = client.next().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let words = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("words");
    assert!(
        words.contains("Sign in first (needs sign-in: https://auth.example/start)"),
        "{words}"
    );
    stage.over().await;
}
