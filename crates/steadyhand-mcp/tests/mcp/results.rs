//! What servers answer, as outcomes: nothing lost, nothing made up (SPEC D7, D8, D13, L03).

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{
    Call, Category, Effect, Failure, FailureCode, Health, Output, ToolError, ToolExecutor,
    ToolManager,
};
use steadyhand_mcp::result::{read_result, read_rpc_error};

fn output(result: Value) -> Output {
    read_result(result).expect("a result")
}

fn texts(texts: &[&str]) -> Value {
    let parts = texts
        .iter()
        .map(|text| json!({"type": "text", "text": text}));
    json!({"content": parts.collect::<Vec<Value>>()})
}

/// The failure a call of a tool with this error ends in.
async fn failure(error: ToolError) -> Failure {
    let tools = ToolManager::new();
    tools.add(script("tool").fails(error).tool()).unwrap();
    let outcome = ToolExecutor::new(tools)
        .execute(Call::new("tool", json!({})).no_retry())
        .await;
    outcome.failure().expect("a failure").clone()
}

async fn failed(result: Value) -> Failure {
    failure(read_result(result).expect_err("an error")).await
}

// Texts

#[test]
fn l03_texts_are_one_string() {
    for (result, expected) in [
        (texts(&["hi"]), "hi"),
        (texts(&["a", "", "b\n"]), "a\n\nb\n"),
        (texts(&[""]), ""),
        (json!({"content": "a plain string"}), "a plain string"),
        (
            json!({"content": ["a", {"type": "text", "text": "b"}]}),
            "a\nb",
        ),
        (
            json!({"content": {"type": "text", "text": "no list"}}),
            "no list",
        ),
        (
            json!({"content": [{"type": "text", "text": "x"}], "isError": false}),
            "x",
        ),
        (
            json!({"content": [{"type": "text", "text": "x"}], "structuredContent": null}),
            "x",
        ),
        (
            json!({"content": [{"type": "text", "text": "x"}], "resultType": "complete", "_meta": {}}),
            "x",
        ),
    ] {
        let read = output(result.clone());
        assert_eq!(read, Output::json(expected), "{result}");
        assert_eq!(read.text(), expected);
    }
}

#[test]
fn l03_no_content_is_an_empty_value_and_a_sentence_for_the_model() {
    for result in [
        json!({}),
        json!({"content": []}),
        json!({"content": null, "isError": false}),
    ] {
        let read = output(result);
        assert_eq!(read.value(), "");
        assert_eq!(read.text(), "The tool answered with no content");
        assert_eq!(read.artifact(), None);
    }
}

#[test]
fn l03_structured_content_is_the_value_and_the_texts_are_what_the_model_reads() {
    let mut result = texts(&["It is 21.5 degrees"]);
    result["structuredContent"] = json!({"z": 21.5, "a": 18446744073709551615_u64});
    let read = output(result);
    assert_eq!(
        read.value().to_string(),
        r#"{"z":21.5,"a":18446744073709551615}"#
    );
    assert_eq!(read.text(), "It is 21.5 degrees");
    assert_eq!(read.artifact(), None);
}

#[test]
fn l03_structured_content_alone_is_read_as_json_whatever_it_is() {
    for value in [
        json!({"b": 1, "a": 2}),
        json!([1, 2]),
        json!(false),
        json!("text"),
    ] {
        let read = output(json!({"structuredContent": value}));
        assert_eq!(read, Output::json(value.clone()));
        let read = output(json!({"content": [], "structuredContent": value}));
        assert_eq!(read, Output::json(value));
    }
}

// Images, resources, things nobody knows

#[test]
fn l03_other_content_is_kept_whole_and_named_for_the_model() {
    let image = "A".repeat(16_400);
    let content = json!([
        {"type": "text", "text": "before"},
        {"type": "image", "data": image, "mimeType": "image/png", "vendor": 1},
        {"type": "audio", "data": "AAA=", "mimeType": "audio/wav"},
        {"type": "image"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside\nit"}},
        {"type": "resource", "resource": {"uri": "file:///b.pdf", "mimeType": "application/pdf", "blob": "AAAAAAAA"}},
        {"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "text/plain"},
        {"type": "resource_link", "uri": "file:///y"},
        {"type": "hologram", "data": "?"},
        {"text": "no type"},
        {"type": "text"},
        null,
        "a string"
    ]);
    let read = output(json!({"content": content}));
    assert_eq!(*read.value(), content);
    assert_eq!(read.artifact(), None);
    assert_eq!(
        read.text().lines().collect::<Vec<&str>>(),
        [
            "before",
            "[image image/png, 12.3 kB]",
            "[audio audio/wav, 2 B]",
            "[image]",
            "inside",
            "it",
            "[resource file:///b.pdf, application/pdf, 6 B]",
            "[resource file:///x, text/plain]",
            "[resource file:///y]",
            "[content of type hologram]",
            "[an object without a type]",
            "[content of type text]",
            "[null without a type]",
            "a string",
        ]
    );
}

#[test]
fn l03_a_placeholder_is_one_short_line() {
    let uri = format!("data:\n,{}", "x".repeat(1_000_000));
    let read = output(json!({"content": [{"type": "resource_link", "uri": uri}]}));
    let text = read.text();
    assert!(text.len() < 300 && !text.contains('\n'), "{}", text.len());
}

#[test]
fn l03_what_the_value_leaves_out_goes_along_as_the_artifact() {
    let text = json!([{"type": "text", "text": "x"}]);
    let image = json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    for (result, value, read_by_model) in [
        (
            json!({"_meta": {"trace": 1}, "content": text}),
            json!("x"),
            "x",
        ),
        (json!({"content": text, "vendor": [1]}), json!("x"), "x"),
        (
            json!({"content": [{"type": "text", "text": "x", "annotations": {"priority": 0.5}}]}),
            json!("x"),
            "x",
        ),
        (
            json!({"content": text, "structuredContent": {"a": 1}, "_meta": {"b": 2}}),
            json!({"a": 1}),
            "x",
        ),
        (
            json!({"content": image, "structuredContent": {"a": 1}}),
            json!({"a": 1}),
            "[image image/png, 3 B]",
        ),
        (
            json!({"content": image, "_meta": {"b": 2}}),
            image,
            "[image image/png, 3 B]",
        ),
        (
            json!({"content": [], "_meta": {"b": 2}}),
            json!(""),
            "The tool answered with no content",
        ),
    ] {
        let read = output(result.clone());
        assert_eq!(*read.value(), value, "{result}");
        assert_eq!(read.text(), read_by_model, "{result}");
        assert_eq!(read.artifact(), Some(&result));
    }
}

#[test]
fn l03_a_bare_object_of_a_careless_server_is_not_called_empty() {
    let result = json!({"toolResult": {"b": 1, "a": 2}});
    let read = output(result.clone());
    assert_eq!(*read.value(), result);
    assert_eq!(read.text(), r#"{"toolResult":{"b":1,"a":2}}"#);
}

// Errors of the tool itself

#[tokio::test]
async fn d08_is_error_is_an_answer_in_the_servers_own_words_and_done() {
    let mut result = texts(&["Device 'Lamp' not found", "timed out after 3 s\n"]);
    result["isError"] = json!(true);
    let failure = failed(result).await;
    assert_eq!(
        failure.message,
        "Device 'Lamp' not found\ntimed out after 3 s\n"
    );
    assert_eq!(failure.code, FailureCode::ToolExecutionError);
    assert_eq!(failure.effect, Effect::Done);
    assert!(!failure.retryable);
    assert_eq!(failure.health(), Health::Neutral);
    // People read the same words.
    let said = &failure.user_message;
    assert!(said.starts_with("Device 'Lamp' not found"), "{said}");
}

#[tokio::test]
async fn d13_an_error_without_words_says_so() {
    for (result, message) in [
        (
            json!({"isError": true}),
            "the tool reported an error and did not say which",
        ),
        (
            json!({"isError": true, "content": []}),
            "the tool reported an error and did not say which",
        ),
        (
            json!({"isError": true, "content": "as a string"}),
            "as a string",
        ),
        (
            json!({"isError": true, "structuredContent": {"code": 7}}),
            r#"{"code":7}"#,
        ),
        (
            json!({"isError": true, "content": [{"type": "image", "data": "AAAA"}]}),
            "the tool reported an error without words: [image 3 B]",
        ),
        (
            json!({"isError": true, "content": [{"type": "text", "text": "no"}, {"type": "image"}]}),
            "no",
        ),
    ] {
        let failure = failed(result).await;
        assert_eq!(failure.message, message);
        assert_eq!(failure.effect, Effect::Done);
    }
}

#[tokio::test]
async fn d07_a_result_that_is_none_is_a_failure_after_the_fact() {
    for (result, kind) in [
        (json!(null), "null"),
        (json!("done"), "a string"),
        (json!([{"type": "text", "text": "x"}]), "a list"),
        (json!(3), "a number"),
    ] {
        let failure = failed(result).await;
        let expected = format!("the server answered with {kind} instead of a tool result");
        assert_eq!(failure.message, expected);
        assert_eq!(failure.effect, Effect::Done);
        assert_eq!(failure.health(), Health::Unhealthy);
    }
}

#[tokio::test]
async fn d07_a_result_that_is_not_complete_is_never_a_success() {
    for kind in [
        json!("input_required"),
        json!("task"),
        json!("dream"),
        json!(1),
    ] {
        let mut result = texts(&["x"]);
        result["resultType"] = kind.clone();
        let failure = failed(result).await;
        assert_eq!(failure.effect, Effect::Unknown, "{kind}");
        assert!(!failure.retryable);
    }
}

// Errors of the protocol

#[tokio::test]
async fn d08_json_rpc_errors_are_read_by_their_code() {
    use FailureCode::{
        AuthenticationError, NetworkError, RateLimitError, Timeout, ToolExecutionError,
        ValidationError,
    };
    use Health::{Neutral, Unhealthy};
    for (code, message, expected, effect, health) in [
        (
            -32602,
            "Tool x not found",
            ValidationError,
            Effect::None,
            Neutral,
        ),
        (
            -32602,
            "deviceName is required",
            ValidationError,
            Effect::None,
            Neutral,
        ),
        (
            -32601,
            "Method not found",
            ToolExecutionError,
            Effect::None,
            Neutral,
        ),
        (
            -32600,
            "Invalid Request",
            ToolExecutionError,
            Effect::None,
            Neutral,
        ),
        (
            -32700,
            "Parse error",
            ToolExecutionError,
            Effect::None,
            Neutral,
        ),
        (
            -32022,
            "Unsupported protocol version",
            ToolExecutionError,
            Effect::None,
            Neutral,
        ),
        (
            -32603,
            "Internal error",
            ToolExecutionError,
            Effect::Unknown,
            Unhealthy,
        ),
        (
            -32000,
            "Server error",
            ToolExecutionError,
            Effect::Unknown,
            Unhealthy,
        ),
        (
            -32000,
            "Connection closed",
            NetworkError,
            Effect::Unknown,
            Unhealthy,
        ),
        (
            -32001,
            "Request timed out",
            Timeout,
            Effect::Unknown,
            Unhealthy,
        ),
        (
            -32002,
            "Resource not found",
            ToolExecutionError,
            Effect::Done,
            Neutral,
        ),
        (
            -32042,
            "Sign in first",
            AuthenticationError,
            Effect::None,
            Neutral,
        ),
        (
            -32800,
            "Request cancelled",
            ToolExecutionError,
            Effect::Unknown,
            Neutral,
        ),
        (
            -32801,
            "Content modified",
            ToolExecutionError,
            Effect::Unknown,
            Neutral,
        ),
        (
            401,
            "Unauthorized",
            AuthenticationError,
            Effect::None,
            Neutral,
        ),
        (403, "Forbidden", AuthenticationError, Effect::None, Neutral),
        (
            404,
            "No such page",
            ToolExecutionError,
            Effect::Done,
            Neutral,
        ),
        (429, "Slow down", RateLimitError, Effect::None, Unhealthy),
        (503, "Back soon", NetworkError, Effect::Unknown, Unhealthy),
        (0, "boom", ToolExecutionError, Effect::Unknown, Unhealthy),
        (
            i64::MIN,
            "boom",
            ToolExecutionError,
            Effect::Unknown,
            Unhealthy,
        ),
    ] {
        let failure = failure(read_rpc_error(code, message, None)).await;
        assert_eq!(failure.message, message, "{code}");
        assert_eq!(
            (failure.code, failure.effect, failure.health()),
            (expected, effect, health),
            "{code} {message}"
        );
    }
}

#[tokio::test]
async fn d13_a_needed_sign_in_says_where() {
    let url = "https://auth.example/start?flow=7";
    for data in [
        json!({"elicitations": [{"mode": "url", "elicitationId": "1", "url": url, "message": "m"}]}),
        json!({"url": url}),
    ] {
        let error = read_rpc_error(-32042, "This request needs more", Some(&data));
        assert_eq!(error.category(), Category::Authentication);
        assert_eq!(
            error.message(),
            format!("This request needs more (needs sign-in: {url})")
        );
        let failure = failure(error).await;
        assert_eq!(
            failure.user_message,
            format!("Please sign in first: {url} (It was not run.)")
        );
    }
    let endless = format!("https://auth.example/{}", "x".repeat(1_000_000));
    // A person is sent to pages, and to nothing else.
    for url in [
        &*endless,
        "javascript:alert(1)",
        "file:///etc/passwd",
        "vscode://open",
        "https://bank.example@evil.example/",
        "https://auth.example/\u{1b}[2J",
    ] {
        let error = read_rpc_error(-32042, "no", Some(&json!({ "url": url })));
        assert_eq!(error.message(), "no");
    }
}

#[tokio::test]
async fn d13_an_error_without_a_message_is_still_said() {
    let data = json!("from the data");
    assert_eq!(
        read_rpc_error(-32603, " ", Some(&data)).message(),
        "from the data"
    );
    assert_eq!(
        read_rpc_error(-32603, "", None).message(),
        "the server answered with error -32603 and no words"
    );
}

#[tokio::test]
async fn d04_the_wait_a_server_asks_for_is_passed_on() {
    let wait = |data: Value| async move {
        let failure = failure(read_rpc_error(429, "Slow down", Some(&data))).await;
        failure.retry_after.map(|wait| wait.as_millis())
    };
    assert_eq!(wait(json!({"retryAfter": 1.5})).await, Some(1_500));
    assert_eq!(wait(json!({"retry_after": 2})).await, Some(2_000));
    assert_eq!(wait(json!({"retry_after": 1e300})).await, None);
    assert_eq!(wait(json!({"retry_after": 1e9})).await, Some(86_400_000));
    assert_eq!(wait(json!({"retry_after": -1})).await, None);
    assert_eq!(wait(json!(null)).await, None);
}

#[test]
fn l03_half_an_emoji_is_marked_and_the_rest_of_the_text_is_kept() {
    let raw = r#"{"content":[{"type":"text","text":"a\ud83db \ud83d\ude00 \\ud83d"}]}"#;
    let output = steadyhand_mcp::result::read_raw_result(raw).expect("a text");
    assert_eq!(output.text(), "a\u{fffd}b \u{1f600} \\ud83d");
}

#[test]
fn d7_a_result_of_null_is_an_answer_to_its_request() {
    use steadyhand_mcp::wire::Incoming;
    for (line, is_result) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, true),
        (r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#, true),
        (r#"{"jsonrpc":"2.0","id":7}"#, false),
        (r#"{"jsonrpc":"2.0","id":7,"error":null}"#, false),
    ] {
        match Incoming::read(line.as_bytes()) {
            Some(Incoming::Response { id, result }) => {
                assert_eq!((id, result.is_ok()), (Some(7), is_result), "{line}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    let failed = steadyhand_mcp::result::read_raw_result("null");
    assert!(failed.is_err(), "null is no tool result");
}
