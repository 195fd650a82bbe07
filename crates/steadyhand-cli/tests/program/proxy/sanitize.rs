//! Answers on their way to the client: mended where that is safe, replaced by an error where nobody could use them.

use std::io::Write;

use serde_json::{Value, json};

use super::{Provider, newest_exchange, ok, proxy, proxy_with, typed_answer, valid};

fn gemini() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_an_answer_whose_calls_lack_something_reaches_the_client_whole() {
    // Numbers that no double holds keep their digits.
    let answer = r#"{"id": "c", "object": "chat.completion", "big": 123456789012345678901234567890, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "write", "arguments": {"path": "a"}}}]}}]}"#;
    let provider =
        Provider::answering(move |_| typed_answer(200, "application/json", answer)).await;
    let served = proxy("openai", provider.url()).await;
    let reply = served
        .post("/proxy/openai/v1/chat/completions", valid())
        .await;
    assert_eq!(reply.status, 200);
    assert!(
        reply.text.contains("123456789012345678901234567890"),
        "{}",
        reply.text
    );
    let call = &reply.json()["choices"][0]["message"]["tool_calls"][0];
    assert!(
        call["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("call_")),
        "{call}"
    );
    assert_eq!(call["function"]["arguments"], r#"{"path":"a"}"#);
    let listed = reply.header("steadyhand-fixes").expect("it is listed");
    assert!(
        listed.contains("bad_call_id;in=response;at=\"/choices/0/message/tool_calls/0/id\""),
        "{listed}"
    );
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["fix_count"], 2, "{exchange}");
    let message = exchange["fixes"][0]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("in the response: "), "{exchange}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_a_content_that_is_not_there_is_an_empty_one_for_the_client() {
    let rows = [
        (
            "anthropic",
            "/v1/messages",
            json!({"id": "m", "type": "message", "role": "assistant", "content": null, "stop_reason": "max_tokens"}),
            valid(),
            "/content",
            json!([]),
        ),
        (
            "openai",
            "/v1/chat/completions",
            json!({"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": null}}]}),
            valid(),
            "/choices/0/message/content",
            json!(""),
        ),
        (
            "ollama",
            "/api/chat",
            json!({"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "x", "arguments": "{\"a\": 1}"}}]}, "done": true}),
            json!({"model": "m", "stream": false, "messages": [{"role": "user", "content": "Hello"}]}),
            "/message/tool_calls/0/function/arguments",
            json!({"a": 1}),
        ),
        (
            "gemini",
            "/v1beta/models/g:generateContent",
            json!({"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}),
            gemini(),
            "/candidates/0/content/parts",
            json!([{"text": ""}]),
        ),
    ];
    for (site, path, answer, request, place, expected) in rows {
        let provider = Provider::json(answer).await;
        let served = proxy(site, provider.url()).await;
        let reply = served.post(&format!("/proxy/{site}{path}"), request).await;
        assert_eq!(reply.status, 200, "{site}: {}", reply.text);
        assert_eq!(
            reply.json().pointer(place),
            Some(&expected),
            "{site}: {}",
            reply.text
        );
        assert!(reply.header("steadyhand-fixes").is_some(), "{site}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_a_compressed_answer_is_mended_and_comes_in_plain_text() {
    let mut answer = ok();
    answer["content"] = json!([{"type": "tool_use", "name": "write", "input": {}}]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(answer.to_string().as_bytes())
        .expect("memory");
    let body = gzip.finish().expect("memory");
    let provider = Provider::answering(move |_| {
        let mut response = typed_answer(200, "application/json", body.clone());
        let coding = "gzip".parse().expect("a coding");
        response.headers_mut().insert("content-encoding", coding);
        response
    })
    .await;
    let served = proxy("anthropic", provider.url()).await;
    let reply = served.post("/proxy/anthropic/v1/messages", valid()).await;
    assert_eq!(
        (reply.status, reply.header("content-encoding")),
        (200, None)
    );
    let id = reply.json()["content"][0]["id"].clone();
    assert!(
        id.as_str().is_some_and(|id| id.starts_with("toolu_")),
        "{id}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_an_answer_that_nobody_can_use_is_an_error_in_the_providers_shape() {
    let unusable = json!({"type": "tool_use", "id": "t", "name": "pay", "input": "{oh"});
    let rows = [
        (
            "gemini",
            "/v1beta/models/g:generateContent",
            json!({"candidates": []}),
            gemini(),
            "/error/status",
            json!("UNAVAILABLE"),
        ),
        (
            "openai",
            "/v1/chat/completions",
            json!({"id": "c", "choices": []}),
            valid(),
            "/error/type",
            json!("server_error"),
        ),
        (
            "anthropic",
            "/v1/messages",
            json!({"type": "message", "role": "assistant", "content": [unusable], "stop_reason": "tool_use"}),
            valid(),
            "/error/type",
            json!("api_error"),
        ),
    ];
    for (site, path, answer, request, place, expected) in rows {
        let provider = Provider::json(answer).await;
        let served = proxy(site, provider.url()).await;
        let reply = served.post(&format!("/proxy/{site}{path}"), request).await;
        assert_eq!(reply.status, 502, "{site}: {}", reply.text);
        assert_eq!(
            reply.json().pointer(place),
            Some(&expected),
            "{site}: {}",
            reply.text
        );
        assert_eq!(reply.header("steadyhand-error"), Some("upstream_garbage"));
        let exchange = newest_exchange(&served).await;
        assert_eq!(
            exchange["problems"].as_array().map(Vec::len),
            Some(1),
            "{exchange}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t06_an_answer_that_needs_no_mending_keeps_its_bytes() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let provider = Provider::json(blocked.clone()).await;
    let served = proxy("gemini", provider.url()).await;
    let reply = served
        .post("/proxy/gemini/v1beta/models/g:generateContent", gemini())
        .await;
    assert_eq!(
        (reply.status, reply.json()),
        (200, blocked),
        "the provider says why"
    );

    let odd = "{ \"id\":\"m\", \"type\":\"message\",\"role\" : \"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\"}],\"stop_reason\":\"end_turn\",\"n\":1.50}";
    let provider = Provider::answering(move |_| typed_answer(200, "application/json", odd)).await;
    let served = proxy("anthropic", provider.url()).await;
    let reply = served.post("/proxy/anthropic/v1/messages", valid()).await;
    assert_eq!((reply.status, reply.text.as_str()), (200, odd));
    assert_eq!(reply.header("steadyhand-fixes"), None);

    // A number of tokens is no answer of a model's.
    let tokens = json!({"input_tokens": 5});
    let provider = Provider::json(tokens.clone()).await;
    let served = proxy("anthropic", provider.url()).await;
    let reply = served
        .post("/proxy/anthropic/v1/messages/count_tokens", valid())
        .await;
    assert_eq!((reply.status, reply.json()), (200, tokens));

    // Where nothing is to be mended, nothing is.
    let broken = json!({"choices": [{"message": {"role": "assistant", "content": null}}]});
    let provider = Provider::json(broken.clone()).await;
    let served = proxy_with("openai", provider.url(), "repair = false").await;
    let reply = served
        .post("/proxy/openai/v1/chat/completions", valid())
        .await;
    assert_eq!((reply.status, reply.json()), (200, broken));
}
