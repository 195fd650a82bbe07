//! Conversations over REST: checked, mended, and turns answered in the provider's own shape.

use serde_json::json;

use super::Served;

#[tokio::test]
async fn r02_r03_r14_a_conversation_is_checked_and_mended() {
    let served = Served::start().await;
    let broken = json!([
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
        {"role": "user", "content": "Hello?"},
    ]);
    let checked = served
        .post("/v1/validate?provider=anthropic", broken.clone())
        .await
        .json();
    assert_eq!(checked["valid"], false);
    assert_eq!(checked["problems"][0]["at"], "/1/content/0");
    assert_eq!(checked["problems"][0]["code"], "missing_result");
    let mended = served
        .post("/v1/repair?provider=anthropic", broken)
        .await
        .json();
    assert_eq!(mended["fixes"].as_array().map(Vec::len), Some(1));
    let messages = mended["messages"].clone();
    let checked = served
        .post("/v1/validate?provider=anthropic&what=match", messages)
        .await
        .json();
    assert_eq!(checked, json!({"valid": true, "problems": []}));
}

#[tokio::test]
async fn r03_what_was_mended_is_named_what_it_is() {
    let served = Served::start().await;
    let messages = json!([
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "Hm"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]);
    let request = json!({"model": "m", "messages": messages});
    let whole = served
        .post("/v1/repair?provider=openai", request.clone())
        .await
        .json();
    let members = |answer: &serde_json::Value| -> Vec<String> {
        answer
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(members(&whole), ["request", "fixes"]);
    assert_eq!(whole["request"]["model"], "m");
    assert_eq!(whole["request"]["messages"][2]["tool_call_id"], "a");
    assert_eq!(whole["fixes"][0]["at"], "/messages/4");
    let list = served
        .post("/v1/repair?provider=openai", messages.clone())
        .await
        .json();
    assert_eq!(members(&list), ["messages", "fixes"]);
    assert_eq!(list["messages"], whole["request"]["messages"]);
    assert_eq!(list["fixes"][0]["at"], "/4");
    // The same names say what a body is.
    let path = "/v1/repair?provider=openai&what=";
    assert_eq!(
        served
            .post(&format!("{path}request"), request.clone())
            .await
            .json(),
        whole
    );
    assert_eq!(
        served
            .post(&format!("{path}messages"), messages.clone())
            .await
            .json(),
        list
    );
    let (status, _, _) = served
        .post(&format!("{path}request"), messages.clone())
        .await
        .refusal();
    assert_eq!(status, 400);
    let (status, _, _) = served
        .post(&format!("{path}messages"), request)
        .await
        .refusal();
    assert_eq!(status, 400);
    for what in ["messages", "match"] {
        let path = format!("/v1/validate?provider=openai&what={what}");
        let checked = served.post(&path, messages.clone()).await.json();
        let code = &checked["problems"][0]["code"];
        assert_eq!(code, "misplaced_result", "{checked}");
    }
}

#[tokio::test]
async fn r03_r14_a_models_response_is_mended_and_an_error_written_as_one() {
    let served = Served::start().await;
    let response = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [
        {"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}},
    ]}}]});
    let path = "/v1/repair?provider=openai&what=response";
    let mended = served.post(path, response).await.json();
    let call = &mended["response"]["choices"][0]["message"]["tool_calls"][0];
    assert!(
        call["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("call_")),
        "{mended}"
    );
    assert_eq!(call["function"]["arguments"], r#"{"city":"Oslo"}"#);
    assert_eq!(mended["fixes"].as_array().map(Vec::len), Some(2));
    let empty = served
        .post(
            "/v1/repair?provider=gemini&what=response",
            json!({"candidates": []}),
        )
        .await
        .json();
    let said = &empty["response"]["candidates"][0]["content"]["parts"][0]["text"];
    assert!(
        said.as_str()
            .is_some_and(|said| said.starts_with("Error: ")),
        "{empty}"
    );

    let failed = json!({"message": "it did not answer", "model": "m"});
    for provider in [
        "anthropic",
        "openai",
        "openai-responses",
        "gemini",
        "mistral",
        "ollama",
        "langchain",
    ] {
        let path = format!("/v1/error-response?provider={provider}&what=response");
        let made = served.post(&path, failed.clone()).await.json();
        assert!(
            made.to_string().contains("Error: it did not answer"),
            "{made}"
        );
        let path = format!("/v1/validate?provider={provider}&what=response");
        let checked = served.post(&path, made).await.json();
        assert_eq!(
            checked,
            json!({"valid": true, "problems": []}),
            "{provider}"
        );
    }
    let (status, _, message) = served
        .post("/v1/error-response?provider=openai", failed)
        .await
        .refusal();
    assert_eq!(status, 400);
    assert_eq!(
        message,
        "the result of a call needs the call's id and the tool's name"
    );
}

#[tokio::test]
async fn r01_r02_what_a_model_cannot_see_and_what_is_no_answer_is_not_valid() {
    let served = Served::start().await;
    let tool = json!({"name": "weather", "description": "d", "schema": {"type": "object"}});
    let request =
        json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [tool]});
    let checked = served
        .post("/v1/validate?provider=ollama&what=request", request)
        .await
        .json();
    assert_eq!(
        checked["problems"][0]["code"], "bad_tool_shape",
        "{checked}"
    );
    for (provider, answer) in [
        ("gemini", json!({"candidates": []})),
        (
            "openai",
            json!({"choices": [{"message": {"role": "assistant", "content": null}}]}),
        ),
        ("anthropic", json!({"type": "message", "role": "assistant"})),
    ] {
        let path = format!("/v1/validate?provider={provider}&what=response");
        let checked = served.post(&path, answer).await.json();
        assert_eq!(checked["valid"], false, "{provider}");
    }
}

#[tokio::test]
async fn r01_a_request_is_checked_before_it_goes_to_a_model() {
    let served = Served::start().await;
    let request = json!({"messages": []});
    let path = "/v1/validate?provider=openai&what=request";
    let checked = served.post(path, request).await.json();
    assert_eq!(checked["valid"], false);
}

#[tokio::test]
async fn r14_an_error_response_has_the_providers_shape() {
    let served = Served::start().await;
    let call = json!({"id": "t1", "name": "weather", "message": "it rained"});
    let made = served
        .post("/v1/error-response?provider=anthropic", call.clone())
        .await
        .json();
    assert_eq!(made["content"][0]["tool_use_id"], "t1");
    assert_eq!(made["content"][0]["is_error"], true);
    let made = served
        .post("/v1/error-response?provider=openai", call)
        .await
        .json();
    assert_eq!(made["role"], "tool");
    assert_eq!(made["content"], "Error: it rained");
}

#[tokio::test]
async fn a_turn_is_answered_whole_and_in_the_providers_shape() {
    let served = Served::start().await;
    let said = json!({"role": "assistant", "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "t2", "name": "nothing", "input": {}},
    ]});
    let answer = served.post("/v1/turns?format=anthropic", said).await.json();
    let results = &answer["messages"][0]["content"];
    assert_eq!(results[0]["tool_use_id"], "t1");
    assert_eq!(results[0]["content"], r#"{"sky":"rain"}"#);
    assert_eq!(results[1]["tool_use_id"], "t2");
    assert_eq!(results[1]["is_error"], true);
    assert_eq!(answer["outcomes"].as_array().map(Vec::len), Some(2));

    let said = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}},
    ]}}]});
    let answer = served.post("/v1/turns?format=openai", said).await.json();
    assert_eq!(answer["messages"][0]["role"], "tool");
    assert_eq!(answer["messages"][0]["tool_call_id"], "c1");
    let nothing = json!({"role": "assistant", "content": "Hello"});
    let answer = served.post("/v1/turns?format=openai", nothing).await.json();
    assert_eq!(answer, json!({"messages": [], "outcomes": []}));
}

#[tokio::test]
async fn r03_what_is_no_conversation_is_refused_and_told_why() {
    let served = Served::start().await;
    for odd in [
        json!(5),
        json!(null),
        json!("x"),
        json!({}),
        json!({"messages": {}}),
    ] {
        let path = "/v1/repair?provider=anthropic";
        let (status, code, message) = served.post(path, odd.clone()).await.refusal();
        assert_eq!((status, code.as_str()), (400, "bad_request"), "{odd}");
        assert_eq!(message, "there is no list of messages in the body");
        let path = "/v1/validate?provider=anthropic";
        let checked = served.post(path, odd).await.json();
        assert_eq!(checked["problems"][0]["code"], "no_messages");
    }
    // A prompt that is one text is a whole conversation to the Responses.
    let text = json!({"model": "m", "input": "Hello"});
    let path = "/v1/repair?provider=openai-responses";
    let mended = served.post(path, text.clone()).await.json();
    assert_eq!(mended, json!({"request": text, "fixes": []}));
}

#[tokio::test]
async fn r03_a_large_conversation_is_mended_and_calls_do_not_wait_for_it() {
    let served = Served::start().await;
    let mut messages = Vec::new();
    for turn in 0..20_000 {
        let id = format!("t{turn}");
        messages.push(json!({"role": "user", "content": "What is the weather in Rome?"}));
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "weather", "input": {}}]}));
    }
    let mending = served.post("/v1/repair?provider=anthropic", json!(messages));
    let calling = served.post("/v1/calls", json!({"name": "echo", "args": {"word": "hi"}}));
    let (mended, called) = tokio::join!(mending, calling);
    assert_eq!(called.json()["status"], "success");
    assert_eq!(
        mended.json()["fixes"].as_array().map(Vec::len),
        Some(20_000)
    );
    let counted = served.get("/metrics").await.text;
    let line =
        r#"steadyhand_conversation_fixes_total{provider="anthropic",code="missing_result"} 20000"#;
    assert!(counted.contains(line), "{counted}");
}

#[tokio::test]
async fn r01_a_turn_with_more_calls_than_may_run_is_refused_at_once() {
    let served = Served::start().await;
    let call = |number: usize| json!({"type": "tool_use", "id": format!("t{number}"), "name": format!("nobody{number}"), "input": {}});
    let calls: Vec<_> = (0..20_000).map(call).collect();
    let said = json!({"role": "assistant", "content": calls});
    let (status, code, message) = served
        .post("/v1/turns?format=anthropic", said)
        .await
        .refusal();
    assert_eq!((status, code.as_str()), (400, "bad_request"), "{message}");
    assert_eq!(message, "the message has 20000 calls, and may have 10000");
}

#[tokio::test]
async fn t06_who_serves_an_api_decides_which_rules_apply() {
    let served = Served::start().await;
    let messages = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", "tool_calls": null},
    ]);
    let fixes = async |host: &str| {
        let path = format!("/v1/repair?provider=openai{host}");
        let answer = served.post(&path, messages.clone()).await.json();
        answer["fixes"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(fixes("").await, 1);
    assert_eq!(fixes("&host=compatible").await, 0);
    let converse = json!([{"role": "user", "content": [{"text": "Hi"}]}]);
    let checked = served
        .post("/v1/validate?provider=bedrock-converse", converse)
        .await
        .json();
    assert_eq!(checked["valid"], true, "{checked}");
}

#[tokio::test]
async fn whose_rules_must_be_said() {
    let served = Served::start().await;
    for path in [
        "/v1/validate",
        "/v1/repair",
        "/v1/turns",
        "/v1/error-response?provider=me",
    ] {
        let (status, _, message) = served.post(path, json!([])).await.refusal();
        assert_eq!(status, 400, "{path}");
        assert!(message.starts_with("the query does not fit"), "{message}");
    }
}
