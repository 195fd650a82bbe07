//! What servers ask of clients: as requests of their own in the older protocols, as a pause of the request in the
//! newer one; whatever era the server is of.

use serde_json::{Value, json};

use super::{Modern, Session, gateway};
use crate::serve::{Served, until};

const ASKING: &str = "test_input_required_result_elicitation";
const CALL: &str = "tools/call";

fn all() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn call(name: &str, more: Value) -> Modern {
    let mut params = json!({"name": name, "arguments": {}});
    for (key, value) in more.as_object().expect("an object") {
        params[key] = value.clone();
    }
    Modern::of(CALL, params, all())
}

fn named(name: &str) -> Value {
    json!({"user_name": {"action": "accept", "content": {"name": name}}})
}

/// A request that is answered with a question; its state.
async fn asked(served: &Served, request: &Modern) -> (Value, String) {
    let result = request.result(served).await;
    assert_eq!(result["resultType"], "input_required", "{result}");
    let state = result["requestState"].as_str().expect("a state").to_owned();
    (result["inputRequests"].clone(), state)
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_client_of_the_newer_protocol_comes_back_with_answers() {
    let served = gateway("").await;
    let (questions, state) = asked(&served, &call(ASKING, json!({}))).await;
    assert_eq!(questions["user_name"]["method"], "elicitation/create");
    assert_eq!(
        questions["user_name"]["params"]["message"],
        "What is your name?"
    );
    let back = call(
        ASKING,
        json!({"inputResponses": named("Ada"), "requestState": state}),
    );
    let result = back.result(&served).await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
    // A state is good for one time.
    assert_eq!(back.refused(&served).await, (200, -32602));
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_state_is_bound_to_its_request_and_cannot_be_made() {
    let served = gateway("").await;
    let (_, state) = asked(&served, &call(ASKING, json!({}))).await;
    let with = |state: &str| {
        call(
            ASKING,
            json!({"inputResponses": named("Eve"), "requestState": state}),
        )
    };
    let other = call(
        "test_simple_text",
        json!({"inputResponses": named("Eve"), "requestState": state}),
    );
    let mut arguments = with(&state);
    arguments.body["params"]["arguments"] = json!({"other": 1});
    let mut changed = state.clone().into_bytes();
    changed[3] = if changed[3] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).expect("text");
    let table = [
        ("of another tool", other),
        ("with other arguments", arguments),
        ("with more at its end", with(&format!("{state}-TAMPERED"))),
        ("with a letter changed", with(&changed)),
        ("made up", with("AAAA")),
        ("empty", with("")),
    ];
    for (what, request) in table {
        assert_eq!(request.refused(&served).await, (200, -32602), "{what}");
    }
    let right = with(&state).result(&served).await;
    assert_eq!(
        right["content"][0]["text"], "Hello, Eve!",
        "and the right one still works"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_answers_that_are_missing_are_asked_for_again() {
    let served = gateway("").await;
    let many = "test_input_required_result_multiple_inputs";
    let answers = json!({
        "user_name": named("Ada")["user_name"],
        "greeting": {"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "m"},
        "client_roots": {"roots": []},
    });
    let mut answered: Vec<String> = Vec::new();
    let mut result = call(many, json!({})).result(&served).await;
    while result["resultType"] == "input_required" {
        let questions = result["inputRequests"].as_object().expect("questions");
        for key in &answered {
            assert!(!questions.contains_key(key), "{key} was answered before");
        }
        // One at a time, and something that nobody asked for.
        let key = questions.keys().next().expect("a question").clone();
        let given = json!({key.clone(): answers[&key], "nobody_asked": {"action": "accept"}});
        let state = result["requestState"].clone();
        let back = call(
            many,
            json!({"inputResponses": given, "requestState": state}),
        );
        answered.push(key);
        result = back.result(&served).await;
        assert_ne!(result["requestState"], state, "each is good for one time");
    }
    answered.sort();
    assert_eq!(answered, ["client_roots", "greeting", "user_name"]);
    let said = result["content"][0]["text"].to_string();
    assert!(said.contains("Ada") && said.contains("Hi"), "{said}");
    for odd in [json!(12), json!({"user_name": 12345}), json!([1])] {
        let request = call(ASKING, json!({"inputResponses": odd}));
        assert_eq!(request.refused(&served).await, (200, -32602), "{odd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_question_in_a_session_is_a_request_on_the_stream_of_its_call() {
    let served = gateway("").await;
    let session = Session::of(&served, "2025-11-25", all()).await;
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let mut stream = session.stream(&served, 3, CALL, params.clone()).await;
    let question = stream.next().await.expect("a question").message;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who?");
    assert_eq!(
        question["params"]["requestedSchema"]["required"],
        json!(["username", "email"])
    );
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {
        "action": "accept", "content": {"username": "ada", "email": "a@b.c"}, "x-vendor": 12345678901234567890_u64}});
    assert_eq!(session.post(&served, &answer).await.status, 202);
    let last = stream.next().await.expect("the answer").message;
    assert_eq!(last["id"], 3);
    let words = last["result"]["content"][0]["text"]
        .as_str()
        .expect("words");
    assert!(
        words.contains("ada") && words.contains("12345678901234567890"),
        "{words}"
    );
    assert_eq!(stream.next().await, None);

    // A client that says no in its own way.
    let mut stream = session.stream(&served, 4, CALL, params).await;
    let question = stream.next().await.expect("a question").message;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "not now"}});
    session.post(&served, &answer).await;
    let last = stream.next().await.expect("the answer").message;
    let words = last["result"]["content"][0]["text"]
        .as_str()
        .expect("words");
    assert!(
        words.contains("not now") || words.contains("error"),
        "{words}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_a_question_that_was_missed_is_there_when_the_client_comes_back() {
    let served = gateway("").await;
    let session = Session::of(&served, "2025-11-25", all()).await;
    let params = json!({"name": "test_sampling", "arguments": {"prompt": "Say hi"}});
    let mut stream = session.stream(&served, 3, CALL, params).await;
    let asked = stream.next().await.expect("a question");
    drop(stream);
    let stream_number = asked
        .id
        .as_deref()
        .and_then(|id| id.split('-').next())
        .expect("an id");
    let mut back = session
        .listen(&served, Some(&format!("{stream_number}-0")))
        .await;
    let again = back.next().await.expect("the question again");
    assert_eq!(again, asked);
    let answer = json!({"jsonrpc": "2.0", "id": again.message["id"], "result": {
        "role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}});
    session.post(&served, &answer).await;
    let last = back.next().await.expect("the answer").message;
    assert_eq!(last["result"]["content"][0]["text"], "LLM response: hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_who_cannot_be_asked_is_not_asked() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let answer = session.ask(&served, CALL, params.clone()).await;
    assert!(answer["result"].is_object(), "{answer}");
    let unable = Modern::of(CALL, params, json!({"sampling": {}}));
    let reply = unable.send(&served).await.json();
    assert_ne!(reply["result"]["resultType"], "input_required", "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_prompts_may_ask_too() {
    let served = gateway("").await;
    let name = "test_input_required_result_prompt";
    let get = |more: Value| {
        let mut params = json!({"name": name});
        for (key, value) in more.as_object().expect("an object") {
            params[key] = value.clone();
        }
        Modern::of("prompts/get", params, all())
    };
    let (questions, state) = asked(&served, &get(json!({}))).await;
    assert!(questions["user_context"].is_object(), "{questions}");
    let answers = json!({"user_context": {"action": "accept", "content": {"context": "here"}}});
    let got = get(json!({"inputResponses": answers, "requestState": state}))
        .result(&served)
        .await;
    assert!(got["messages"][0].to_string().contains("here"), "{got}");

    let session = Session::of(&served, "2025-06-18", all()).await;
    let mut stream = session
        .stream(&served, 1, "prompts/get", json!({ "name": name }))
        .await;
    let question = stream.next().await.expect("a question").message;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": answers["user_context"]});
    session.post(&served, &answer).await;
    let last = stream.next().await.expect("the answer").message;
    assert!(
        last["result"]["messages"][0].to_string().contains("here"),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v07_a_client_that_hangs_up_while_it_is_asked_ends_the_call() {
    let served = gateway("").await;
    let session = Session::of(&served, "2025-11-25", all()).await;
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let mut stream = session.stream(&served, 3, CALL, params).await;
    stream.next().await.expect("a question");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    session.post(&served, &cancelled).await;
    // The question is withdrawn, or the stream just ends.
    while let Some(event) = stream.next().await {
        assert_eq!(
            event.message["method"], "notifications/cancelled",
            "{event:?}"
        );
    }
    until("nothing runs", async || {
        let running = served.get("/v1/calls?state=running").await.json();
        running["calls"].as_array()?.is_empty().then_some(())
    })
    .await;
}
