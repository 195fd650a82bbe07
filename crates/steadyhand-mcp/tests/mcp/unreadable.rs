//! SPEC V12: an answer that cannot be read fails its call with what could not be read, as soon as it is known whose it is.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Effect, FailureCode};
use steadyhand_mcp::wire::UnreadableAnswer;

use crate::support::{Folder, PATIENCE, Stage, failure, python, until};

/// Prints what it is told to print, in place of an answer. `ID` in it stands for the id of the request.
const SERVER: &str = r#"
import json, sys, threading
held = []
def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def result(id, value):
    say(json.dumps({"jsonrpc": "2.0", "id": id, "result": value}))
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        result(id, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}})
    elif method == "tools/list":
        names = ["print", "hold", "release"]
        schema = {"type": "object"}
        result(id, {"tools": [{"name": name, "description": name, "inputSchema": schema} for name in names]})
    elif method == "tools/call":
        name, args = message["params"]["name"], message["params"].get("arguments", {})
        if name == "hold":
            held.append(id)
            sys.stderr.write("held\n"); sys.stderr.flush()
        elif name == "release":
            for one in held:
                result(one, {"content": [{"type": "text", "text": "released"}]})
            held.clear()
            result(id, {"content": [{"type": "text", "text": "done"}]})
        else:
            for text in args.get("lines", []):
                say(text.replace("ID", str(id)))
            if args.get("open"):
                sys.stdout.write(args["open"].replace("ID", str(id)))
                sys.stdout.flush()
            if args.get("answer"):
                result(id, {"content": [{"type": "text", "text": args["answer"]}]})
    else:
        say(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}))
"#;

async fn stage() -> Stage {
    let folder = Folder::new();
    let words = ["-S", "-E", "-c", SERVER].map(str::to_owned);
    let settings = folder.program("printer", python(), words);
    Stage::with(folder, settings).await
}

/// A call whose time limit would be far longer than any test waits.
fn patient(tool: &str, args: Value) -> Call {
    Call::new(tool, args).deadline(PATIENCE * 2).no_retry()
}

/// The call fails with the content, long before its time limit; whether it ran is open.
async fn assert_fails_with(stage: &Stage, lines: &[&str], shown: &str) {
    let outcome = stage.run(patient("print", json!({"lines": lines}))).await;
    stage.executor.tools().reset_breaker("print");
    let (code, effect, message) = failure(&outcome);
    assert_eq!(code, FailureCode::ToolExecutionError, "{message}");
    assert_eq!(effect, Effect::Unknown, "{message}");
    assert!(
        message.contains("MCP server 'printer' sent an answer"),
        "{message}"
    );
    assert!(message.contains(shown), "no {shown} in {message}");
}

#[tokio::test]
async fn v12_an_answer_that_is_no_json_fails_its_call_with_its_content() {
    let stage = stage().await;
    let broken = [
        // A number that JSON has not; a comma too many; a quote that is not escaped.
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"value":NaN}}"#,
            r#""value":NaN"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],}}"#,
            r#""content":[],}"#,
        ),
        (
            r#"{"result":{"content":[{"type":"text","text":"5" tall"}]},"jsonrpc":"2.0","id":ID}"#,
            "tall",
        ),
        // Cut off, whatever comes first.
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","te"#,
            r#""te"#,
        ),
        (r#"{"jsonrpc":"2.0","id":ID,"res"#, r#""res"#),
        (r#"{"jsonrpc":"2.0""#, r#"{"jsonrpc":"2.0""#),
        (
            r#"{"result":{"content":[{"type":"text","text":"cut he"#,
            "cut he",
        ),
        (
            r#"{"error":{"code":-32000,"message":"cut he"#,
            r#""message":"cut he"#,
        ),
        // What Python and Node print.
        (
            "{'jsonrpc': '2.0', 'id': ID, 'result': {'content': []}}",
            "'content': []",
        ),
        (
            "{ jsonrpc: '2.0', id: ID, result: { content: [Array] } }",
            "[Array]",
        ),
        // JSON, and no JSON-RPC.
        (
            r#"{"id":ID,"result":{"content":[]}}"#,
            r#""result":{"content":[]}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":{"content":[]}}"#,
            r#"{"content":[]}"#,
        ),
    ];
    for (line, shown) in broken {
        assert_fails_with(&stage, &[line], shown).await;
    }
    // A line break that is not escaped makes two lines of one.
    let lines = [
        r#"{"result":{"content":[{"type":"text","text":"one"#,
        r#"two"}]},"jsonrpc":"2.0","id":ID}"#,
    ];
    assert_fails_with(&stage, &lines, "\"one").await;
    // The connection goes on with the next line.
    let args = json!({"lines": [], "answer": "well"});
    assert_eq!(stage.text("print", args).await, "well");
    stage.over().await;
}

#[tokio::test]
async fn v12_the_content_that_could_not_be_read_is_bounded() {
    let stage = stage().await;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":ID,"result":{{"text":"{}"#,
        "x".repeat(100_000)
    );
    let outcome = stage.run(patient("print", json!({"lines": [line]}))).await;
    let (_, _, message) = failure(&outcome);
    assert!(
        message.len() < 1_000 && message.contains("bytes)"),
        "{message}"
    );
    stage.over().await;
}

#[tokio::test]
async fn v12_a_server_that_could_not_read_a_request_fails_the_only_one() {
    let stage = stage().await;
    let line = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
    let outcome = stage.run(patient("print", json!({"lines": [line]}))).await;
    let (_, effect, message) = failure(&outcome);
    assert_eq!((effect, message), (Effect::None, "Parse error"));
    stage.over().await;
}

#[tokio::test]
async fn v12_lines_of_a_log_do_not_fail_a_call_that_is_answered() {
    let stage = stage().await;
    let noise = [
        r#"{"level":"info","id":ID,"msg":"x"}"#,
        "{'level': 'info', 'id': ID",
        "received {'jsonrpc': '2.0', 'id': ID, 'method': 'tools/call', 'params': {}}",
        "{ jsonrpc: '2.0', id: ID, method: 'tools/call' }",
        "answering {'jsonrpc': '2.0', 'id': ID, 'result': {'content': []}}",
        r#"answering {"jsonrpc":"2.0","id":ID,"result":{"content": ..."#,
        "upstream said {\"error\": {\"code\": 500, ...",
        r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
        "Traceback (most recent call last):",
    ];
    let args = json!({"lines": noise, "answer": "the answer"});
    assert_eq!(stage.text("print", args).await, "the answer");
    stage.over().await;
}

#[tokio::test]
async fn v12_of_two_calls_the_one_whose_id_can_be_read_fails_and_the_other_goes_on() {
    let stage = stage().await;
    let held = async { stage.run(patient("hold", json!({}))).await };
    let other = async {
        until("it holds a call", || {
            !stage.server.logs().is_empty() && is_held(&stage)
        })
        .await;
        let line = r#"{"jsonrpc":"2.0","id":ID,"result":{"value":NaN}}"#;
        assert_fails_with(&stage, &[line], "NaN").await;
        assert_eq!(stage.text("release", json!({})).await, "done");
    };
    let (held, ()) = tokio::join!(held, other);
    assert_eq!(crate::support::text(&held), "released");
    stage.over().await;
}

fn is_held(stage: &Stage) -> bool {
    stage.server.logs().iter().any(|line| line.text == "held")
}

#[tokio::test]
async fn v12_an_unreadable_answer_of_one_of_two_calls_is_attributed_when_the_other_is_answered() {
    let stage = stage().await;
    let held = async { stage.run(patient("hold", json!({}))).await };
    let broken = async {
        until("it holds a call", || is_held(&stage)).await;
        let line = r#"{"result":{"content":[{"type":"text","text":"whose is it"#;
        stage.run(patient("print", json!({"lines": [line]}))).await
    };
    let release = async {
        until("it has been read", || stage.server.state().noise_lines == 1).await;
        stage.text("release", json!({})).await
    };
    let (held, broken, _) = tokio::join!(held, broken, release);
    assert_eq!(crate::support::text(&held), "released");
    let (_, effect, message) = failure(&broken);
    assert_eq!(effect, Effect::Unknown);
    assert!(message.contains("whose is it"), "{message}");
    stage.over().await;
}

#[tokio::test]
async fn v12_a_handshake_that_cannot_be_read_fails_at_once_with_its_content() {
    let script = r#"
import json, sys
for line in sys.stdin:
    id = json.loads(line).get("id")
    if id is not None:
        print('{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":undefined}}' % id, flush=True)
"#;
    let folder = Folder::new();
    let words = ["-S", "-E", "-c", script].map(str::to_owned);
    let mut settings = folder.program("broken", python(), words);
    settings.start.limit = PATIENCE;
    settings.start.waits = vec![Duration::ZERO];
    let stage = Stage::with(folder, settings).await;
    let failure = stage.server.state().failure.expect("it did not start");
    let summary = failure.summary();
    assert!(
        summary.contains("sent an answer that is not valid JSON") && summary.contains("undefined"),
        "{summary}"
    );
    stage.over().await;
}

#[test]
fn an_unreadable_answer_is_told_from_everything_else() {
    let look = |line: &str| UnreadableAnswer::look(line.as_bytes());
    let answer = |id, is_certain| Some(UnreadableAnswer { id, is_certain });
    assert_eq!(
        look(r#"{"jsonrpc":"2.0","id":7,"result":{"#),
        answer(Some(7), true)
    );
    assert_eq!(
        look(r#"{"jsonrpc":"2.0","id":"7","result":{"#),
        answer(Some(7), true)
    );
    assert_eq!(
        look(r#"{"id": 7, "error": {"code": 1"#),
        answer(Some(7), true)
    );
    assert_eq!(look(r#"{"result":{"method":"GET""#), answer(None, true));
    assert_eq!(
        look(r#"[{"jsonrpc":"2.0","id":7,"result":{"#),
        answer(Some(7), false)
    );
    assert_eq!(
        look(r#"rest of a text"}]},"id":7,"jsonrpc":"2.0"}"#),
        answer(Some(7), true)
    );
    for other in [
        "",
        "{",
        "{}",
        "hello",
        "{'a': 1",
        r#"{"id":7,"#,
        r#"{"result":"ok","#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","#,
        r#"{"msg":"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}","#,
    ] {
        assert_eq!(look(other), None, "{other}");
    }
}

#[tokio::test]
async fn v12_an_answer_with_an_id_that_no_request_has_fails_the_call_that_is_open() {
    let stage = stage().await;
    let wrong =
        r#"{"jsonrpc":"2.0","id":987654,"result":{"content":[{"type":"text","text":"whose?"}]}}"#;
    assert_fails_with(&stage, &[wrong], "with the id 987654, which no request has").await;
    // One that comes late or twice is nobody's, and harms nobody.
    let outcome = stage
        .run(patient(
            "print",
            json!({"lines": [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#], "answer": "mine"}),
        ))
        .await;
    assert!(outcome.is_success(), "{outcome:?}");
}

#[tokio::test]
async fn v12_an_answer_whose_line_does_not_end_is_taken_if_it_is_whole_and_told_if_it_is_not() {
    let stage = stage().await;
    let whole =
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"whole"}]}}"#;
    let outcome = stage.run(patient("print", json!({"open": whole}))).await;
    assert!(outcome.is_success(), "{outcome:?}");
    // The next line begins where that one did not end.
    let outcome = stage
        .run(patient("print", json!({"answer": "the next one"})))
        .await;
    assert!(outcome.is_success(), "{outcome:?}");
    let cut = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"te"#;
    let outcome = stage.run(patient("print", json!({"open": cut}))).await;
    let (code, effect, message) = failure(&outcome);
    assert_eq!(code, FailureCode::ToolExecutionError, "{message}");
    assert_eq!(effect, Effect::Unknown, "{message}");
    assert!(
        message.contains("that is not valid JSON") && message.contains("\"te"),
        "{message}"
    );
}
