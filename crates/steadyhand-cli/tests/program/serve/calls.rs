//! `POST /v1/calls`: a call goes in, exactly one outcome comes out, in the view that was asked for.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{Served, reply, request, runs, until};
use crate::faults::Fault;

#[tokio::test]
async fn d1_every_view_can_be_had_and_every_outcome_is_status_200() {
    let served = Served::start().await;
    let good = json!({"name": "weather", "args": {"city": "Oslo"}, "id": "c1"});
    let bad = json!({"name": "weather", "args": {}, "id": "c2"});

    let reply = served.post("/v1/calls", good.clone()).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("steadyhand-outcome"), Some("success"));
    assert_eq!(reply.header("steadyhand-call-id"), Some("c1"));
    let outcome = reply.json();
    assert_eq!(outcome["toolName"], "weather");
    assert_eq!(outcome["callId"], "c1");
    assert_eq!(outcome["status"], "success");
    assert_eq!(outcome["output"], json!({"sky": "rain"}));
    assert!(outcome["executionTime"].is_number());

    let flat = served
        .post("/v1/calls?view=flat", good.clone())
        .await
        .json();
    assert_eq!(flat["success"], true);
    assert_eq!(flat["result"], json!({"sky": "rain"}));
    assert_eq!(flat["tool_name"], "weather");
    assert!(flat["execution_time_ms"].is_number());

    let message = served.post("/v1/calls?view=message", good).await.json();
    assert_eq!(message["type"], "tool");
    assert_eq!(message["tool_call_id"], "c1");
    assert_eq!(message["content"], r#"{"sky":"rain"}"#);

    let reply = served.post("/v1/calls", bad.clone()).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("steadyhand-outcome"), Some("error"));
    assert_eq!(reply.header("steadyhand-code"), Some("VALIDATION_ERROR"));
    let outcome = reply.json();
    assert_eq!(
        outcome["error"]["message"],
        "Invalid parameters: missing 'city'"
    );
    assert_eq!(outcome["error"]["effect"], "none");
    let flat = served.post("/v1/calls?view=flat", bad).await.json();
    assert_eq!(flat["error"], "Invalid parameters: missing 'city'");
    assert_eq!(flat["effect"], "none");

    let unknown = served
        .post("/v1/calls?view=message", json!({"name": "wether"}))
        .await;
    assert_eq!(unknown.status, 200);
    assert_eq!(unknown.header("steadyhand-code"), Some("TOOL_NOT_FOUND"));
    assert_eq!(
        unknown.json()["content"],
        "Error: Unknown tool \"wether\"\nIt was not run."
    );
}

#[tokio::test]
async fn a_call_that_runs_out_of_time_says_so_in_the_header_and_the_outcome() {
    let served = Served::start().await;
    let call = json!({"name": "slow", "deadline_ms": 50});
    let reply = served.post("/v1/calls", call).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("steadyhand-outcome"), Some("timeout"));
    assert_eq!(reply.json()["error"]["code"], "TIMEOUT");
}

#[tokio::test]
async fn arguments_may_be_the_text_a_model_wrote_and_a_langchain_call_is_taken_as_it_is() {
    let served = Served::start().await;
    let text = json!({"name": "echo", "args": "{\"a\": 1}"});
    let outcome = served.post("/v1/calls", text).await.json();
    assert_eq!(outcome["output"], json!({"echo": {"a": 1}}));
    let cut_off = json!({"name": "echo", "args": "{\"a\": "});
    let outcome = served.post("/v1/calls", cut_off).await.json();
    assert_eq!(outcome["error"]["code"], "VALIDATION_ERROR");
    let langchain = json!({"name": "echo", "args": {"a": 1}, "id": "c", "type": "tool_call"});
    let outcome = served.post("/v1/calls", langchain).await.json();
    assert_eq!(outcome["status"], "success");
}

#[tokio::test]
async fn what_is_no_call_is_refused_with_its_place_and_nothing_is_run() {
    let fault = Fault::begin(
        "malformed JSON",
        "400 with what is wrong and where; nothing is run",
    );
    let served = Served::start().await;
    for (body, expected) in [
        ("", "the body is empty"),
        ("{\"name\": \"echo\",\n \"args\": }", "line 2, column 10"),
        ("[1]", "the body is a list, and must be an object"),
        ("{\"args\": {}}", "name is missing"),
        ("{\"name\": \"\"}", "name has 0 characters"),
        ("{\"name\": 5}", "name is a number, and must be a string"),
        (
            "{\"name\": \"echo\", \"argss\": {}}",
            "there is no field \"argss\" (did you mean args?)",
        ),
        (
            "{\"name\": \"echo\", \"name\": \"echo\"}",
            "the field \"name\" is there twice",
        ),
        ("{\"name\": \"echo\", \"id\": \"\"}", "id has 0 characters"),
        (
            "{\"name\": \"echo\", \"deadline_ms\": 9000000}",
            "deadline_ms is 9000000",
        ),
        (
            "{\"name\": \"echo\", \"deadline_ms\": -1}",
            "deadline_ms is -1, and must be at least 0",
        ),
        ("{\"name\": \"echo\"} trailing", "no JSON"),
        ("\u{feff}{\"name\": \"echo\"}", "no JSON"),
    ] {
        let reply = served.send("POST", "/v1/calls", &[], body).await;
        let (status, code, message) = reply.refusal();
        assert_eq!((status, code.as_str()), (400, "bad_request"), "{body}");
        assert!(message.contains(expected), "{body}: {message}");
    }
    let reply = served.send("POST", "/v1/calls?vue=flat", &[], "{}").await;
    assert!(
        reply
            .refusal()
            .2
            .contains("there is no parameter \"vue\" (it takes view)"),
        "{}",
        reply.text
    );
    let reply = served.send("POST", "/v1/calls?view=round", &[], "{}").await;
    assert!(reply.refusal().2.contains("view"), "{}", reply.text);
    let metrics = served.get("/v1/metrics/echo").await.json();
    assert_eq!(metrics["totalExecutions"], 0);
    fault.got("400 with line and column for all of them; nothing run");
}

/// serde's own words are about our types: nobody who sends a body knows those.
#[tokio::test]
async fn t05_a_body_of_the_wrong_shape_is_told_what_to_send_wherever_there_is_a_body() {
    let served = Served::start().await;
    let wrong: [(&str, Value, &str, &str); 14] = [
        (
            "/v1/calls",
            json!([]),
            "the body is a list, and must be an object",
            "{name, args}",
        ),
        (
            "/v1/calls",
            json!("echo"),
            "the body is a string, and must be an object",
            "{name, args}",
        ),
        (
            "/v1/calls",
            json!({"name": "echo", "retry": 1}),
            "retry is a number, and must be true or false",
            "{name, args}",
        ),
        (
            "/v1/batches",
            json!([{"name": "echo"}]),
            "the body is a list, and must be an object",
            "{calls}",
        ),
        ("/v1/batches", json!({}), "calls is missing", "{calls}"),
        (
            "/v1/batches",
            json!({"calls": {"name": "echo"}}),
            "calls is an object, and must be a list",
            "{calls}",
        ),
        (
            "/v1/error-response?provider=openai",
            json!({"id": "c1"}),
            "message is missing",
            "{id, name, message}",
        ),
        (
            "/v1/approvals/ap1",
            json!({"decision": "yes", "arguments_hash": "x"}),
            "decision is \"yes\", and must be one of approve, deny",
            "{decision, arguments_hash}",
        ),
        (
            "/v1/keys",
            json!({"name": "ci", "role": "boss"}),
            "role is \"boss\", and must be one of viewer, caller, operator, admin",
            "{name, role}",
        ),
        (
            "/v1/keys",
            json!({"name": "ci", "role": "caller", "alow": []}),
            "there is no field \"alow\" (did you mean allow?)",
            "{name, role}",
        ),
        (
            "/v1/turns?format=openai",
            json!(5),
            "there is no message of a model in the body",
            "an assistant message",
        ),
        (
            "/v1/turns?format=anthropic",
            json!("hello"),
            "there is no message of a model in the body",
            "an assistant message",
        ),
        (
            "/v1/repair?provider=openai",
            json!(5),
            "there is no list of messages in the body",
            "messages",
        ),
        (
            "/v1/repair?provider=gemini",
            json!({}),
            "there is no list of messages in the body",
            "contents",
        ),
    ];
    for (path, body, message, shape) in wrong {
        let reply = served.decide(path, body.clone()).await;
        let (status, code, said) = reply.refusal();
        assert_eq!(
            (status, code.as_str()),
            (400, "bad_request"),
            "{path} {body}"
        );
        assert_eq!(said, message, "{path} {body}");
        let help = reply.json()["error"]["help"].to_string();
        assert!(
            help.contains("Send ") && help.contains(shape),
            "{path}: {help}"
        );
    }
}

#[tokio::test]
async fn r10_one_that_is_no_call_fails_alone_and_the_others_of_its_batch_run() {
    let served = Served::start().await;
    let calls = json!([
        {"name": "echo", "args": {"n": 1}},
        {"args": {"n": 2}},
        {"name": null, "id": "mine"},
        {"name": ""},
        {"name": "  "},
        {"name": "echo", "deadline_ms": "soon"},
        {"name": "echo", "nme": 1},
        5,
        null,
        {"name": "echo", "args": {"n": 3}},
    ]);
    let reply = served.post("/v1/batches", json!({"calls": calls})).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let outcomes = reply.json()["outcomes"]
        .as_array()
        .expect("outcomes")
        .clone();
    assert_eq!(outcomes.len(), 10);
    assert_eq!(outcomes[0]["output"], json!({"echo": {"n": 1}}));
    assert_eq!(outcomes[9]["output"], json!({"echo": {"n": 3}}));
    let words = [
        "name is missing. Send an object: {name, args}",
        "name is null, and must be a string",
        "name has 0 characters",
        "it names no tool",
        "deadline_ms is a string, and must be a whole number",
        "there is no field \"nme\" (did you mean name?). Send",
        "it is a number, and must be an object",
        "it is null, and must be an object",
    ];
    for (outcome, words) in outcomes[1..9].iter().zip(words) {
        let error = &outcome["error"];
        assert_eq!(error["code"], "VALIDATION_ERROR", "{outcome}");
        assert_eq!(error["effect"], "none", "{outcome}");
        assert_eq!(outcome["attempts"], 0, "{outcome}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Invalid call: "), "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(outcomes[2]["callId"], "mine");
}

#[tokio::test]
async fn one_call_without_a_name_in_a_turn_fails_alone() {
    let served = Served::start().await;
    let turn = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "echo", "arguments": "{}"}},
    ]});
    let answer = served.post("/v1/turns?format=openai", turn).await.json();
    let outcomes = &answer["outcomes"];
    assert_eq!(outcomes[0]["error"]["code"], "VALIDATION_ERROR", "{answer}");
    assert_eq!(outcomes[0]["error"]["effect"], "none", "{answer}");
    assert_eq!(outcomes[1]["status"], "success", "{answer}");
    assert_eq!(answer["messages"][0]["tool_call_id"], "a");
    assert_eq!(answer["messages"][1]["tool_call_id"], "b");
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_same_shape() {
    let served = Served::start().await;
    for (method, path, expected) in [
        ("GET", "/nowhere", (404, "no_such_route")),
        ("GET", "/v2/calls", (404, "no_such_route")),
        ("PATCH", "/v1/calls", (405, "no_such_method")),
        ("GET", "/v1/tools/nothing", (404, "no_such_tool")),
        ("GET", "/v1/metrics/nothing", (404, "no_such_tool")),
        ("GET", "/v1/calls/nothing", (404, "no_such_call")),
        ("DELETE", "/v1/calls/nothing", (404, "no_such_call")),
        ("POST", "/v1/calls/nothing/replay", (404, "no_such_call")),
        (
            "POST",
            "/v1/servers/nothing/restart",
            (404, "no_such_server"),
        ),
        ("GET", "/v1/tools/%ff", (400, "bad_request")),
    ] {
        let reply = served.send(method, path, &[], "").await;
        let (status, code, _) = reply.refusal();
        assert_eq!((status, code.as_str()), expected, "{method} {path}");
    }
    let reply = served.send("PATCH", "/v1/calls", &[], "").await;
    let allowed = reply.header("allow").unwrap_or_default();
    assert!(
        allowed.contains("GET") && allowed.contains("POST"),
        "{allowed}"
    );
}

#[tokio::test]
async fn running_calls_are_listed_with_their_time_and_can_be_ended() {
    let served = Served::start().await;
    let mut caller = served.connect().await;
    let call = json!({"name": "slow", "id": "long one", "args": {}}).to_string();
    let headers = [("steadyhand-caller", "kitchen")];
    let call = request(served.address, "POST", "/v1/calls", &headers, &call);
    caller.write_all(call.as_bytes()).await.expect("sent");
    runs(&served, "slow").await;

    let listed = until("its first attempt has begun", async || {
        let listed = served.get("/v1/calls").await.json();
        (listed["calls"][0]["attempts"] == 1).then_some(listed)
    })
    .await;
    let running = &listed["calls"][0];
    assert_eq!(running["id"], "long one");
    assert_eq!(running["tool"], "slow");
    assert_eq!(running["state"], "running");
    assert_eq!(running["caller"], "kitchen");
    assert_eq!(running["deadline_ms"], 60_000.0);
    assert!(running["elapsed_ms"].as_f64() > Some(0.0));
    let one = served.get("/v1/calls/long%20one").await.json();
    assert_eq!(one["state"], "running");

    let ended = served.delete("/v1/calls/long%20one").await.json();
    assert_eq!(ended, json!({"id": "long one", "cancelled": 1}));
    let outcome = reply(&mut caller).await.json();
    assert_eq!(outcome["error"]["code"], "CANCELLED");
    assert_eq!(outcome["error"]["effect"], "unknown");

    let again = served.delete("/v1/calls/long%20one").await.refusal();
    assert_eq!((again.0, again.1.as_str()), (409, "call_has_ended"));
    let listed = served.get("/v1/calls?state=running").await.json();
    assert_eq!(listed["calls"], json!([]));
}

#[tokio::test]
async fn a_client_that_goes_away_withdraws_its_call() {
    let fault = Fault::begin(
        "client that goes away",
        "its call is ended, unless it has a key: that goes on for whoever comes back",
    );
    let served = Served::start().await;
    let mut caller = served.connect().await;
    let call = json!({"name": "slow", "id": "gone"}).to_string();
    let call = request(served.address, "POST", "/v1/calls", &[], &call);
    caller.write_all(call.as_bytes()).await.expect("sent");
    runs(&served, "slow").await;
    drop(caller);
    until("the call is cancelled", async || {
        let metrics = served.get("/v1/metrics/slow").await.json();
        (metrics["cancelled"] == 1 && metrics["inFlight"] == 0).then_some(())
    })
    .await;
    let listed = served.get("/v1/calls?state=running").await.json();
    assert_eq!(listed["calls"], json!([]));
    fault.got("counted as cancelled; nothing runs any more");
}

#[tokio::test]
async fn a_call_with_an_idempotency_key_goes_on_without_its_client_and_happens_once() {
    let served = Served::start().await;
    let call = json!({"name": "brief", "idempotency_key": "k1", "args": {"a": 1}});
    let mut caller = served.connect().await;
    let first = request(served.address, "POST", "/v1/calls", &[], &call.to_string());
    caller.write_all(first.as_bytes()).await.expect("sent");
    runs(&served, "brief").await;
    drop(caller);
    let outcome = served.post("/v1/calls", call).await.json();
    assert_eq!(outcome["status"], "success");
    assert_eq!(outcome["replayed"], true);
    let other = json!({"name": "brief", "idempotency_key": "k1", "args": {"a": 2}});
    let outcome = served.post("/v1/calls", other).await.json();
    assert_eq!(outcome["error"]["code"], "IDEMPOTENCY_CONFLICT");
    let metrics = served.get("/v1/metrics/brief").await.json();
    assert_eq!(metrics["totalExecutions"], 1);
    assert_eq!(metrics["joined"], 1);
}

#[tokio::test]
async fn an_idempotency_key_is_known_after_the_server_was_killed() {
    let served = Served::start().await;
    let call = json!({"name": "once", "idempotency_key": "pay 1", "args": {"a": 1}});
    let first = served.post("/v1/calls", call.clone()).await.json();
    assert_eq!(first["status"], "success", "{first}");
    let served = Served::in_place(served.killed().await).await;
    let again = served.post("/v1/calls", call).await.json();
    assert_eq!(again["status"], "success", "{again}");
    assert_eq!(again["replayed"], true, "{again}");
    let other = json!({"name": "once", "idempotency_key": "pay 1", "args": {"a": 2}});
    let refused = served.post("/v1/calls", other).await.json();
    assert_eq!(refused["error"]["code"], "IDEMPOTENCY_CONFLICT");
    let metrics = served.get("/v1/metrics/once").await.json();
    assert_eq!(metrics["totalExecutions"], 0);
}

#[tokio::test]
async fn r10_a_batch_gives_as_many_outcomes_as_calls_in_their_order() {
    let served = Served::start().await;
    let calls = json!({"calls": [
        {"name": "brief", "id": "same"},
        {"name": "nothing", "id": "same"},
        {"name": "weather", "args": {}},
        {"name": "ill"},
        {"name": "echo", "args": {"n": 5}, "id": "same"},
    ]});
    let reply = served.post("/v1/batches", calls.clone()).await;
    assert_eq!(reply.status, 200);
    let answer = reply.json();
    let tools: Vec<&Value> = answer["outcomes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|outcome| &outcome["toolName"])
        .collect();
    assert_eq!(tools, ["brief", "nothing", "weather", "ill", "echo"]);
    let flat = served.post("/v1/batches?view=flat", calls).await.json();
    assert_eq!(flat["outcomes"][4]["result"], json!({"echo": {"n": 5}}));
    assert_eq!(flat["outcomes"][1]["error"], "Tool 'nothing' not found");

    let empty = served
        .post("/v1/batches", json!({"calls": []}))
        .await
        .json();
    assert_eq!(empty, json!({"outcomes": []}));
}

#[tokio::test]
async fn v20_an_integer_that_would_be_rounded_is_refused_with_its_place() {
    let served = Served::start().await;
    let body = r#"{"name": "echo", "args": {"ids": [1, 18446744073709551616]}}"#;
    let reply = served.send("POST", "/v1/calls", &[], body).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    let error = &reply.json()["error"];
    let message = error["message"].as_str().expect("words");
    assert!(
        message.starts_with("/args/ids/1: the integer 18446744073709551616"),
        "{message}"
    );
    let whole =
        r#"{"name": "echo", "args": {"ids": [18446744073709551615, "18446744073709551616"]}}"#;
    let outcome = served.send("POST", "/v1/calls", &[], whole).await.json();
    let kept = json!([18446744073709551615_u64, "18446744073709551616"]);
    assert_eq!(outcome["output"]["echo"]["ids"], kept);
}
