//! Bodies that are small on the wire and large in memory: counted before they are read.

use serde_json::json;

use super::{Fault, TOOLS, calls_go_on, push, rss_mb};
use crate::serve::{Reply, Served};

async fn post(served: &Served, path: &str, body: &str) -> Reply {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
        served.address,
        body.len()
    );
    push(served, &head, body.as_bytes()).await
}

/// `[it,it,…]`
fn list(it: &str, count: usize) -> String {
    format!("[{}{it}]", format!("{it},").repeat(count - 1))
}

#[tokio::test]
async fn bodies_of_millions_of_values_are_refused_before_they_are_read() {
    let fault = Fault::begin(
        "bodies that grow in memory",
        "413 beyond a million values (300,000 in a conversation), before they are read",
    );
    let served = Served::with_config(TOOLS).await;
    let zeros = list("0", 3_000_000);
    let empty = list("{}", 1_000_000);
    let nameless = list("{\"name\":\"\"}", 600_000);
    let before = rss_mb(&served);
    for (path, body) in [
        (
            "/v1/calls",
            format!("{{\"name\": \"echo\", \"args\": {{\"a\": {zeros}}}}}"),
        ),
        ("/v1/batches", format!("{{\"calls\": {nameless}}}")),
        ("/v1/validate?provider=anthropic", empty.clone()),
        ("/v1/repair?provider=openai", empty.clone()),
        (
            "/v1/turns?format=openai",
            format!("{{\"tool_calls\": {empty}}}"),
        ),
    ] {
        let (status, code, message) = post(&served, path, &body).await.refusal();
        assert_eq!((status, code.as_str()), (413, "too_large"), "{path}");
        assert!(message.contains(" values, and may have "), "{message}");
    }
    let grown = rss_mb(&served).saturating_sub(before);
    assert!(grown < 200, "{grown} MB more");
    // Commas in a text are no values.
    let text = format!(
        "{{\"name\": \"echo\", \"args\": {{\"a\": \"{}\"}}}}",
        ",[{\\\"".repeat(150_000)
    );
    let outcome = post(&served, "/v1/calls", &text).await;
    assert_eq!(outcome.status, 200, "{}", outcome.text);
    calls_go_on(&served, "c", 3).await;
    fault.got(format!(
        "413 for 5 bodies of up to 7 MB; {grown} MB more memory"
    ));
}

#[tokio::test]
async fn a_batch_or_a_turn_with_too_many_calls_is_refused_as_a_whole() {
    let served = Served::with_config(TOOLS).await;
    let calls = list("{\"name\": \"echo\"}", 10_001);
    let batch = format!("{{\"calls\": {calls}}}");
    let (status, _, message) = post(&served, "/v1/batches", &batch).await.refusal();
    assert_eq!(status, 400);
    assert!(
        message.contains("calls has more than 10000 items"),
        "{message}"
    );
    let call =
        r#"{"id":"c","type":"function","function":{"name":"no_such_tool","arguments":"{}"}}"#;
    let turn = format!(
        "{{\"role\": \"assistant\", \"tool_calls\": {}}}",
        list(call, 10_001)
    );
    let reply = post(&served, "/v1/turns?format=openai", &turn).await;
    let (status, _, message) = reply.refusal();
    assert_eq!(status, 400);
    assert!(message.contains("10001 calls"), "{message}");
    let metrics = served.get("/v1/metrics/echo").await.json();
    assert_eq!(metrics["totalExecutions"], 0);
}

#[tokio::test]
async fn numbers_and_texts_at_the_edge_come_back_as_they_are_or_are_refused() {
    let served = Served::with_config(TOOLS).await;
    for args in [
        r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":0.1,"d":-0.0}"#,
        r#"{"a":"\u0000\u001b[31m\u202e\ud83d\ude00","b":"é中"}"#,
        r#"{"__proto__":{"x":1},"constructor":1,"":2}"#,
    ] {
        let body = format!("{{\"name\": \"echo\", \"args\": {args}}}");
        let reply = post(&served, "/v1/calls", &body).await;
        let expected: serde_json::Value = serde_json::from_str(args).expect("JSON");
        assert_eq!(reply.json()["output"], json!({ "echo": expected }));
    }
    for args in [
        r#"{"a": 1e400}"#,
        r#"{"a": "\ud800"}"#,
        r#"{"a": 01}"#,
        r#"{"a": NaN}"#,
        r#"{"a": "tab	in it"}"#,
    ] {
        let body = format!("{{\"name\": \"echo\", \"args\": {args}}}");
        let (status, code, _) = post(&served, "/v1/calls", &body).await.refusal();
        assert_eq!((status, code.as_str()), (400, "bad_request"), "{args}");
    }
    // A field that is there twice could mean either.
    let twice = r#"{"name": "echo", "name": "once"}"#;
    assert_eq!(post(&served, "/v1/calls", twice).await.refusal().0, 400);
    // An id can be anything, and stays out of headers it does not fit in.
    for id in ["a\r\nx-evil: 1", "é中\u{202e}"] {
        let call = json!({"name": "echo", "id": id}).to_string();
        let reply = post(&served, "/v1/calls", &call).await;
        assert_eq!(reply.json()["callId"], id);
        assert_eq!(reply.header("x-evil"), None);
        assert_eq!(reply.header("steadyhand-call-id"), None);
    }
}
