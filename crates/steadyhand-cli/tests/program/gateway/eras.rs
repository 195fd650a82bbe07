//! Both eras of the protocol on one address: which request is of which, and what each must say.

use serde_json::{Value, json};

use super::{BOTH, Modern, Session, gateway, meta};
use crate::serve::Served;

const CALL: &str = "tools/call";

fn simple() -> Value {
    json!({"name": "test_simple_text", "arguments": {}})
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_every_version_is_answered_as_it_was_asked_for() {
    let served = Served::start().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Session::of(&served, version, json!({})).await;
        assert_eq!(session.version, version);
        let listed = session.ask(&served, "tools/list", json!({})).await;
        assert!(listed["result"]["tools"].is_array(), "{listed}");
        assert!(listed["result"]["resultType"].is_null(), "{listed}");
    }
    for unknown in ["1999-01-01", "2026-07-28", "2031-01-01"] {
        let session = Session::of(&served, unknown, json!({})).await;
        assert_eq!(session.version, "2025-11-25", "asked for {unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_request_without_a_handshake_is_answered_in_full() {
    let served = Served::start().await;
    let discovered = Modern::new("server/discover", json!({}))
        .result(&served)
        .await;
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(discovered["resultType"], "complete");
    assert!(discovered["capabilities"]["tools"].is_object());
    let listed = Modern::new("tools/list", json!({})).result(&served).await;
    assert!(
        listed["ttlMs"].is_u64() && listed["cacheScope"] == "private",
        "{listed}"
    );
    let us = &listed["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(us["name"], "steadyhand");
    let params = json!({"name": "echo", "arguments": {"text": "hello"}});
    let called = Modern::new(CALL, params).result(&served).await;
    assert_eq!(
        called["structuredContent"],
        json!({"echo": {"text": "hello"}})
    );
    assert_eq!(called["resultType"], "complete");
    let id = called["_meta"]["io.steadyhand/callId"]
        .as_str()
        .expect("the call's id");
    let kept = crate::serve::until("it is in the history", async || {
        let reply = served.get(&format!("/v1/calls/{id}")).await;
        (reply.status == 200).then(|| reply.json())
    })
    .await;
    assert_eq!(kept["caller"], "mcp test", "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d20_a_result_names_the_arguments_that_the_tool_did_not_get() {
    let served = Served::with_config(
        r#"
[tools.pay]
kind = "mock"
description = "Pays"
input = { type = "object", properties = { sum = { type = "integer" } }, additionalProperties = false }
mock_response = { paid = true }
"#,
    )
    .await;
    let params = json!({"name": "pay", "arguments": {"sum": 3, "currency": "EUR"}});
    let called = Modern::new(CALL, params).result(&served).await;
    let dropped = &called["_meta"]["io.steadyhand/droppedArguments"];
    assert_eq!(*dropped, json!(["currency"]), "{called}");
    let params = json!({"name": "pay", "arguments": {"sum": 3}});
    let called = Modern::new(CALL, params).result(&served).await;
    let dropped = called["_meta"].get("io.steadyhand/droppedArguments");
    assert!(dropped.is_none(), "{called}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_what_headers_repeat_must_be_there_and_say_the_same() {
    let served = Served::start().await;
    let call = || Modern::new(CALL, json!({"name": "echo", "arguments": {}}));
    let table = [
        ("no version", call().without("mcp-protocol-version")),
        (
            "another version",
            call().with("mcp-protocol-version", "2025-11-25"),
        ),
        ("no method", call().without("mcp-method")),
        ("another method", call().with("mcp-method", "tools/list")),
        (
            "a method in other letters",
            call().with("mcp-method", "Tools/Call"),
        ),
        ("no name", call().without("mcp-name")),
        ("another name", call().with("mcp-name", "slow")),
        ("bad base64", call().with("mcp-name", "=?base64?ZWNob!!?=")),
    ];
    for (what, request) in table {
        assert_eq!(request.refused(&served).await, (400, -32020), "{what}");
    }
    let encoded = call().with("mcp-name", "=?base64?ZWNobw==?=");
    assert_eq!(encoded.result(&served).await["resultType"], "complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_what_is_missing_or_unknown_is_told_by_its_code() {
    let served = Served::start().await;
    let mut unknown =
        Modern::new("server/discover", json!({})).with("mcp-protocol-version", "2030-01-01");
    unknown.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
        json!("2030-01-01");
    let reply = unknown.send(&served).await;
    assert_eq!(reply.status, 400);
    let error = &reply.json()["error"];
    assert_eq!(error["code"], -32022);
    assert_eq!(
        error["data"],
        json!({"supported": ["2026-07-28"], "requested": "2030-01-01"})
    );

    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut request = Modern::new("tools/list", json!({}));
        let meta = request.body["params"]["_meta"]
            .as_object_mut()
            .expect("an object");
        meta.remove(&format!("io.modelcontextprotocol/{missing}"));
        assert_eq!(request.refused(&served).await, (400, -32602), "{missing}");
    }
    // Before any header is looked at.
    for method in [
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
    ] {
        let request = Modern::new(method, json!({})).without("mcp-method");
        assert_eq!(request.refused(&served).await, (404, -32601), "{method}");
    }
    let nobody = Modern::new(CALL, json!({"name": "nobody"}));
    assert_eq!(nobody.refused(&served).await, (200, -32602));
    let nameless = Modern::new(CALL, json!({"arguments": {}}));
    assert_eq!(nameless.refused(&served).await, (200, -32602));
    let modern = [("mcp-protocol-version", "2026-07-28")];
    for method in ["GET", "DELETE"] {
        let reply = served.send(method, "/mcp", &modern, "").await;
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, Some("POST")),
            "{method}"
        );
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/whatever"});
    let reply = served
        .send("POST", "/mcp", &modern, &note.to_string())
        .await;
    assert_eq!((reply.status, reply.text.as_str()), (202, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_what_is_no_message_is_told_so() {
    let served = Served::start().await;
    let table = [
        ("hello", -32700),
        ("{\"a\":1}", -32600),
        ("", -32700),
        ("[]", -32600),
    ];
    for (body, code) in table {
        let reply = served.send("POST", "/mcp", &[("accept", BOTH)], body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        let answer = reply.json();
        assert_eq!(answer["error"]["code"], code, "{body}");
        assert!(answer["id"].is_null());
    }
    let reply = served.send("PUT", "/mcp", &[], "").await;
    assert_eq!(reply.status, 405);
    let odd = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]});
    let reply = served.send("POST", "/mcp", &[], &odd.to_string()).await;
    assert_eq!(
        (reply.status, reply.json()["error"]["code"].as_i64()),
        (400, Some(-32602))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_outcomes_are_results_and_only_faults_of_the_protocol_are_errors() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    let call = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        session.ask(&served, CALL, params).await["result"].clone()
    };
    let weather = call("weather", json!({"city": "Oslo"})).await;
    assert_eq!(weather["structuredContent"], json!({"sky": "rain"}));
    assert_eq!(weather["content"][0]["text"], "{\"sky\":\"rain\"}");
    let invalid = call("weather", json!({})).await;
    assert_eq!(invalid["isError"], true);
    let words = invalid["content"][0]["text"].as_str().expect("words");
    assert!(words.contains("missing 'city'"), "{words}");
    assert_eq!(
        invalid["_meta"]["io.steadyhand/error"]["code"],
        "VALIDATION_ERROR"
    );
    for _ in 0..2 {
        let ill = call("ill", json!({})).await;
        assert_eq!(ill["_meta"]["io.steadyhand/error"]["code"], "NETWORK_ERROR");
    }
    let open = call("ill", json!({})).await;
    assert_eq!(open["_meta"]["io.steadyhand/error"]["code"], "CIRCUIT_OPEN");
    assert_eq!(open["isError"], true);
    let unknown = session.ask(&served, CALL, json!({"name": "wether"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(unknown["error"]["message"], "Unknown tool: wether");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_both_eras_are_served_side_by_side() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let old = session.ask(&served, CALL, simple()).await["result"].clone();
    let new = Modern::new(CALL, simple()).result(&served).await;
    assert_eq!(old["content"], new["content"]);
    assert_eq!(
        (&old["resultType"], &new["resultType"]),
        (&Value::Null, &json!("complete"))
    );
    // A request that says everything by itself needs no session, and one in a session may say it, too.
    let mut both = Modern::new("tools/list", json!({}));
    both.headers
        .push(("mcp-session-id".to_owned(), session.id.clone()));
    assert!(both.result(&served).await["tools"].is_array());
    let mut wrong = meta(json!({}));
    wrong["io.modelcontextprotocol/protocolVersion"] = json!("2025-11-25");
    let params = json!({"_meta": wrong});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
    let reply = session.post(&served, &message).await;
    assert_eq!(reply.json()["error"]["code"], -32022, "{}", reply.text);
}
