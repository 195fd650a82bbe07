//! L06: messages are exchanged with the real LangChain, for Python and for JavaScript.

use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use steadyhand::AiMessage;
use steadyhand::Content;
use steadyhand::InvalidToolCall;
use steadyhand::Message;
use steadyhand::ToolCall;
use steadyhand::ToolMessage;

#[test]
fn l06_messages_pass_through_langchain_for_python_unchanged() {
    let mut ours = conversation();
    ours.push(read(
        r#"{"type":"chat","content":"hear, hear","role":"audience"}"#,
    ));
    ours.push(read(r#"{"type":"remove","content":"","id":"m7"}"#));
    let peer = pass_through_python(&ours);
    assert_eq!(list(&peer["dicts"]), ours);
    assert_eq!(list(&peer["constructors"]), ours);
    assert_eq!(list(&peer["flat"]), ours);
}

#[test]
fn l06_messages_pass_through_langchain_for_javascript_unchanged() {
    let mut ours = conversation();
    ours.push(read(
        r#"{"type":"generic","content":"hear, hear","role":"audience"}"#,
    ));
    let peer = pass_through_javascript(&ours);
    assert_eq!(list(&peer["dicts"]), ours);
    assert_eq!(list(&peer["constructors"]), ours);
}

#[test]
fn l06_messages_go_from_python_to_javascript_and_back() {
    let ours = conversation();
    let from_python = list(&pass_through_python(&ours)["dicts"]);
    let from_javascript = list(&pass_through_javascript(&from_python)["constructors"]);
    assert_eq!(list(&pass_through_python(&from_javascript)["flat"]), ours);
}

#[test]
fn l06_what_python_wrote_is_written_back_to_the_last_field() {
    let peer = pass_through_python(&conversation());
    let dicts: Vec<Value> = list(&peer["dicts"]).iter().map(Message::to_dict).collect();
    assert_eq!(Value::from(dicts), peer["dicts"]);
    let flat = serde_json::to_value(list(&peer["flat"])).unwrap();
    assert_eq!(flat, peer["flat"]);
}

#[test]
fn l06_a_tool_message_is_written_flat_and_in_this_order() {
    let mut message = ToolMessage::new("c1", "warm".into());
    message.name = Some("weather".to_owned());
    check_written(
        &message.clone().into(),
        r#"{"type":"tool","content":"warm","tool_call_id":"c1","name":"weather","status":"success"}"#,
    );
    message.artifact = Some(json!({"degrees": 21}));
    message.is_error = true;
    check_written(
        &message.into(),
        r#"{"type":"tool","content":"warm","tool_call_id":"c1","name":"weather","status":"error","artifact":{"degrees":21}}"#,
    );
}

#[test]
fn l06_unknown_fields_keep_their_values_and_their_order() {
    let table = [
        r#"{"type":"human","content":"hi","zebra":1,"id":null,"additional_kwargs":{},"apple":{"z":1,"a":[null]}}"#,
        r#"{"type":"ai","content":[{"type":"thinking","signature":"s","thinking":"hm"}],"tool_calls":[],"zebra":1,"invalid_tool_calls":[],"id":"run-1","usage_metadata":{"total_tokens":3,"input_tokens":1},"apple":2}"#,
        r#"{"type":"ai","content":"","tool_calls":[{"name":"f","args":{"z":1,"a":2},"id":"c","type":"tool_call","zebra":1,"extras":{"signature":"s"}}],"b":1,"a":2}"#,
        r#"{"type":"tool","content":"","tool_call_id":"c","status":"success","zebra":1,"name":null,"artifact":null,"id":"m","apple":2}"#,
        r#"{"type":"function","zebra":1,"content":"","name":"f","apple":2}"#,
    ];
    for text in table {
        check_written(&read(text), text);
    }
}

#[test]
fn l06_what_javascript_leaves_out_or_names_otherwise_is_understood() {
    let calling = || Message::from(AiMessage::calling("", vec![call("a", json!({}))]));
    let table = [
        // Only tool calls, no content.
        (
            r#"{"type":"ai","data":{"tool_calls":[{"name":"f","args":{},"id":"a"}],"invalid_tool_calls":[]}}"#,
            calling(),
        ),
        (
            r#"{"type":"ai","content":null,"tool_calls":[{"name":"f","args":null,"id":"a"}]}"#,
            calling(),
        ),
        // Standard content blocks.
        (
            r#"{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],"kwargs":{"content_blocks":[{"type":"text","text":"q"}]}}"#,
            Message::human(vec![json!({"type": "text", "text": "q"})]),
        ),
        // No status.
        (
            r#"{"type":"tool","data":{"content":"r","tool_call_id":"a","additional_kwargs":{},"response_metadata":{}}}"#,
            ToolMessage::new("a", "r".into()).into(),
        ),
        // Data that looks like a constructor is escaped.
        (
            r#"{"type":"ai","data":{"content":"","tool_calls":[{"name":"f","args":{"__lc_escaped__":{"lc":1}},"id":"a"}]}}"#,
            AiMessage::calling("", vec![call("a", json!({"lc": 1}))]).into(),
        ),
        // A chunk is the message it is a piece of.
        (
            r#"{"lc":1,"type":"constructor","id":["langchain_core","messages","AIMessageChunk"],"kwargs":{"content":"a"}}"#,
            AiMessage::saying("a").into(),
        ),
        (
            r#"{"type":"AIMessageChunk","data":{"content":"a","type":"AIMessageChunk"}}"#,
            AiMessage::saying("a").into(),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn l06_an_error_names_the_place_and_what_belongs_there() {
    let types = r#""system", "human", "ai", "tool" or another LangChain message type"#;
    let table = [
        (r#"[7]"#, "/0: expected a message, a JSON object, found the number 7".to_owned()),
        (r#"{}"#, "the whole: expected a list of messages, found an object".to_owned()),
        (r#"[{"role":"user","content":"hi"}]"#, format!("/0/type: expected {types}, found nothing")),
        (r#"[{"type":"assistant","content":"hi"}]"#, format!(r#"/0/type: expected {types}, found the string "assistant""#)),
        (r#"[{"type":"human"}]"#, "/0/content: expected a string or a list of blocks, found nothing".to_owned()),
        (r#"[{"type":"human","content":["a",null]}]"#, "/0/content/1: expected an object or a string, found null".to_owned()),
        (r#"[{"type":"human","content":""},{"type":"ai","data":{"content":"","tool_calls":[{"name":"f","id":"c","args":"{}"}]}}]"#, r#"/1/data/tool_calls/0/args: expected an object, found the string "{}""#.to_owned()),
        (r#"[{"type":"ai","content":"","tool_calls":{}}]"#, "/0/tool_calls: expected a list, found an object".to_owned()),
        (r#"[{"type":"ai","content":"","tool_calls":[{"args":{}}]}]"#, "/0/tool_calls/0/name: expected a string, found nothing".to_owned()),
        (r#"[{"type":"tool","content":""}]"#, "/0/tool_call_id: expected a string, found nothing".to_owned()),
        (r#"[{"type":"tool","content":"","tool_call_id":"c","status":"ok"}]"#, r#"/0/status: expected "success" or "error", found the string "ok""#.to_owned()),
        (r#"[{"type":"ai","data":[]}]"#, "/0/data: expected an object, found a list".to_owned()),
        (r#"[{"lc":1,"type":"not_implemented","id":["x"]}]"#, r#"/0/type: expected "constructor", found the string "not_implemented""#.to_owned()),
        (r#"[{"lc":1,"type":"constructor","id":["x"],"kwargs":{}}]"#, r#"/0/id: expected a list that ends with a LangChain message class, like "AIMessage", found a list"#.to_owned()),
        (r#"[{"lc":1,"type":"constructor","id":["x","ToolMessage"],"kwargs":{"content":3}}]"#, "/0/kwargs/content: expected a string or a list of blocks, found the number 3".to_owned()),
    ];
    for (text, expected) in table {
        let error = Message::list_from_json(serde_json::from_str(text).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn l06_one_kind_of_message_is_not_read_as_another() {
    let error =
        serde_json::from_str::<ToolMessage>(r#"{"type":"human","content":"hi"}"#).unwrap_err();
    let expected = r#"the whole: expected a tool message (type "tool"), found a human message"#;
    assert_eq!(error.to_string(), expected);
    assert!(serde_json::from_str::<AiMessage>(r#"{"type":"ai","content":"hi"}"#).is_ok());
}

#[test]
fn l06_an_empty_field_equals_an_absent_one_and_a_filled_one_does_not() {
    let plain = read(r#"{"type":"human","content":"hi"}"#);
    assert_eq!(
        read(r#"{"type":"human","content":"hi","id":null,"additional_kwargs":{}}"#),
        plain
    );
    assert_ne!(read(r#"{"type":"human","content":"hi","id":"m1"}"#), plain);
    assert_ne!(plain, read(r#"{"type":"human","content":"hi","id":"m1"}"#));
}

/// Something of everything that both LangChains know.
fn conversation() -> Vec<Message> {
    let blocks = vec![
        json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        json!({"type": "text", "text": "Let me look – «ø» 🔧"}),
    ];
    let mut ai = AiMessage::calling(
        blocks,
        vec![
            call("c1", json!({"z": 1, "a": [2.5, null, {"deep": true}]})),
            call("c2", json!({"lc": 1, "data": {}})),
        ],
    );
    ai.invalid_tool_calls = vec![InvalidToolCall {
        id: Some("c3".to_owned()),
        name: Some("f".to_owned()),
        args: Some("{\"half\":".to_owned()),
        ..InvalidToolCall::default()
    }];
    ai.extra.insert(
        "usage_metadata".to_owned(),
        json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    );
    ai.extra.insert(
        "response_metadata".to_owned(),
        json!({"model": "m", "logprobs": null}),
    );
    ai.extra.insert(
        "additional_kwargs".to_owned(),
        json!({"reasoning": {"effort": "low"}}),
    );
    ai.extra.insert("id".to_owned(), json!("run-1"));

    let mut found = ToolMessage::new("c1", "21 °C".into());
    found.name = Some("f".to_owned());
    found.artifact = Some(json!({"rows": [[1, 2], []]}));
    let text = json!({"type": "text", "text": "no such city"});
    let mut failed = ToolMessage::new("c2", Content::Blocks(vec![text]));
    failed.is_error = true;

    vec![
        Message::system("Be kind."),
        Message::human(vec![
            json!({"type": "text", "text": "What is this?"}),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}),
        ]),
        ai.into(),
        found.into(),
        failed.into(),
        AiMessage::saying("It is warm.").into(),
        read(r#"{"type":"function","content":"42","name":"f"}"#),
    ]
}

fn call(id: &str, args: Value) -> ToolCall {
    let Value::Object(args) = args else {
        panic!("arguments are an object: {args}")
    };
    ToolCall::with_id(id, "f", args)
}

fn read(text: &str) -> Message {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn list(value: &Value) -> Vec<Message> {
    Message::list_from_json(value.clone()).unwrap_or_else(|error| panic!("{error}: {value:#}"))
}

fn check_written(message: &Message, expected: &str) {
    assert_eq!(serde_json::to_string(message).unwrap(), expected);
}

fn pass_through_python(messages: &[Message]) -> Value {
    let mut python = Command::new(peer("langchain-py/bin/python"));
    // Nothing of a test may leave this machine, nor depend on what its user has set.
    python
        .arg("-I")
        .arg(script("langchain_roundtrip.py"))
        .env("LANGSMITH_TRACING", "false");
    exchange(python, messages)
}

fn pass_through_javascript(messages: &[Message]) -> Value {
    let mut node = Command::new("node");
    node.arg(script("langchain_roundtrip.mjs"))
        .arg(peer("langchain-js"))
        .env("LANGSMITH_TRACING", "false");
    exchange(node, messages)
}

fn exchange(command: Command, messages: &[Message]) -> Value {
    let dicts: Vec<Value> = messages.iter().map(Message::to_dict).collect();
    let answer = run(
        command,
        json!({"dicts": dicts, "flat": messages}).to_string(),
    );
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers")
        .join(name)
}

/// Something in `target/peers` of the workspace, which is this crate's directory or one above it.
fn peer(path: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("target/peers").join(path))
        .find(|candidate| candidate.exists());
    found.expect("run ./test once: it installs LangChain")
}

/// Long enough for a cold start on a busy machine.
const PEER_TIME_MAX: Duration = Duration::from_secs(120);

fn run(mut command: Command, input: String) -> String {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    // Each pipe has a thread, or a full one would block the other end for good.
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());

    let worked = wait(&mut child);
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    assert!(worked, "{command:?} failed or took too long:\n{stderr}");
    writer.join().unwrap().unwrap();
    stdout
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "a real process lives in real time"
)]
fn wait(child: &mut Child) -> bool {
    let started = Instant::now();
    while started.elapsed() < PEER_TIME_MAX {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}
