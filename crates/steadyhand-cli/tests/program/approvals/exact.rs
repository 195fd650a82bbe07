//! An approval covers exactly what is sent: one meaning for what came, the same numbers, nothing twice.

use serde_json::{Value, json};

use super::{TOOLS, decide, waiting};
use crate::gateway::{Session, fixture, last_message, up};
use crate::serve::Served;
use crate::support::{Workplace, parts};

#[tokio::test(flavor = "multi_thread")]
async fn s03_a_server_gets_the_very_value_that_was_approved() {
    let approved = "[mcp.fixture.each.test_odd_result]\napproval = \"always\"\n";
    let config = format!("{}\n{approved}", fixture(""));
    let served = up(Workplace::with_config(&config)).await;
    let session = Session::begin(&served).await;
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"test_odd_result","arguments":{arguments}}}}}"#
        )
    };
    // As a value this number would be another one: nobody is asked.
    let rounded = call(r#"{"amount":12345678901234567890123}"#);
    let reply = served
        .send("POST", "/mcp", &session.headers(), &rounded)
        .await;
    let result = &last_message(&reply)["result"];
    assert_eq!(result["isError"], true, "{}", reply.text);
    assert!(
        reply.text.contains("does not fit into 64 bits"),
        "{}",
        reply.text
    );
    // Written in a way that a value does not keep: what is shown is what is sent.
    let odd = call(r#"{"amount" : 1.50,"to":"\u0041\ud83e\udd80","minus":-0,"nothing":1e0}"#);
    let headers = session.headers();
    let calling = served.send("POST", "/mcp", &headers, &odd);
    let saying = async {
        let approval = waiting(&served, 1).await.remove(0);
        assert_eq!(decide(&served, &approval, "approve").await.status, 200);
        approval["arguments"].clone()
    };
    let (reply, shown): (_, Value) = tokio::join!(calling, saying);
    let answer = last_message(&reply);
    let got = answer["result"]["content"][0]["text"].as_str();
    let got: Value = serde_json::from_str(got.expect("a text")).expect("JSON");
    assert_eq!(got, shown);
    assert_eq!(shown["amount"].to_string(), "1.5");
}

#[tokio::test]
async fn s03_a_repeated_name_is_refused_over_rest_and_by_commands() {
    let served = Served::with_config(TOOLS).await;
    let post = async |path: &str, body: &str| served.send("POST", path, &[], body).await;
    let twice = r#"{"name":"weather","args":{"path":"/etc/shadow","\u0070ath":"/tmp/harmless"}}"#;
    let refused = post("/v1/calls", twice).await;
    let (status, code, message) = refused.refusal();
    assert_eq!((status, code.as_str()), (400, "bad_request"));
    assert!(message.contains("/args/path"), "{message}");
    assert_eq!(refused.json()["error"]["at"], "/args/path");
    let as_text = r#"{"name":"weather","args":"{\"a\":1,\"a\":2}"}"#;
    let outcome = post("/v1/calls", as_text).await.json();
    assert_eq!(outcome["error"]["code"], "VALIDATION_ERROR", "{outcome}");
    assert_eq!(outcome["error"]["problems"][0]["at"], "/a", "{outcome}");
    // Of a batch, the one call alone.
    let batch = format!(r#"{{"calls":[{{"name":"weather"}},{twice},{as_text}]}}"#);
    let outcomes = post("/v1/batches", &batch).await.json()["outcomes"].clone();
    let ended: Vec<&Value> = (0..3).map(|index| &outcomes[index]["status"]).collect();
    assert_eq!(
        ended,
        [&json!("success"), &json!("error"), &json!("error")],
        "{outcomes}"
    );
    assert_eq!(outcomes[1]["error"]["effect"], "none", "{outcomes}");
    // A model's turn: what it wrote as an object, and as a text.
    let turn = r#"{"content":[{"type":"tool_use","id":"t1","name":"weather","input":{"a":1,"a":2}}],"role":"assistant"}"#;
    assert_eq!(post("/v1/turns?format=anthropic", turn).await.status, 400);
    let turn = r#"{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"weather","arguments":"{\"a\":1,\"a\":2}"}}]}"#;
    let answered = post("/v1/turns?format=openai", turn).await;
    assert!(answered.text.contains("twice"), "{}", answered.text);

    served.workplace.write(
        "calls.ndjson",
        &format!("{{\"name\":\"weather\"}}\n{twice}\n"),
    );
    for words in [
        vec!["call", "weather", "--args", r#"{"a":1,"a":2}"#],
        vec!["call", "weather", r#"x:={"a":{"b":1,"b":2}}"#],
        vec!["batch", "calls.ndjson"],
    ] {
        let (code, _, stderr) = parts(&served.workplace.run_words(&words));
        assert_eq!(code, 2, "{words:?}: {stderr}");
        assert!(stderr.contains("twice"), "{words:?}: {stderr}");
    }
}
