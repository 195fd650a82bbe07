//! The strict providers over real sockets: refusals in each provider's words and envelope, replies, streams, a real client.

mod support;

use serde_json::{Value, json};
use steadyhand_conversation::{Provider, repair};
use steadyhand_strict::StrictProviders;

use support::{broken, path, post};

/// Where each provider has its words, and what they are.
fn refusal(provider: Provider) -> (&'static str, &'static str) {
    match provider {
        Provider::Anthropic => (
            "/error/message",
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: call00001. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ),
        Provider::OpenAi | Provider::LangChain => (
            "/error/message",
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call00001",
        ),
        Provider::OpenAiResponses => (
            "/error/message",
            "No tool output found for function call call00001.",
        ),
        Provider::Gemini => (
            "/error/message",
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
        ),
        Provider::Mistral => (
            "/message",
            "Not the same number of function calls and responses",
        ),
        Provider::BedrockConverse => (
            "/message",
            "Expected toolResult blocks at messages.2.content for the following Ids: call00001",
        ),
        // The real one says nothing and misleads the model.
        Provider::Ollama => ("/error", "strict: a call has no result"),
    }
}

const SEVEN: [Provider; 7] = [
    Provider::Anthropic,
    Provider::OpenAi,
    Provider::OpenAiResponses,
    Provider::Gemini,
    Provider::Mistral,
    Provider::Ollama,
    Provider::BedrockConverse,
];

#[tokio::test]
async fn r01_a_call_without_its_result_is_refused_in_the_providers_words_and_its_repair_is_not() {
    let providers = StrictProviders::start().await.expect("a port");
    for provider in SEVEN {
        let broken = broken(provider);
        let url = format!("{}{}", providers.base_url(provider), path(provider));
        let (status, body) = post(&url, &broken).await;
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let (place, words) = refusal(provider);
        assert_eq!(status, 400, "{provider}: {body}");
        let said = body.pointer(place).and_then(Value::as_str);
        assert_eq!(said, Some(words), "{provider}: {body}");
        let (repaired, _) = repair(provider, broken);
        let (status, body) = post(&url, &repaired).await;
        assert_eq!(status, 200, "{provider}: {body}");
        assert!(body.contains("ok"), "{provider}: {body}");
    }
    let heard = providers.heard();
    let statuses: Vec<u16> = heard.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [400, 200].repeat(SEVEN.len()));
    assert_eq!(heard[0].request, broken(Provider::Anthropic));
}

#[tokio::test]
async fn r01_each_envelope_is_its_providers() {
    let providers = StrictProviders::start().await.expect("a port");
    for provider in SEVEN {
        let url = format!("{}{}", providers.base_url(provider), path(provider));
        let (status, body) = post(&url, &json!("no request")).await;
        assert_eq!(status, 400, "{provider}: {body}");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let fits = match provider {
            Provider::Anthropic => {
                body["type"] == "error" && body["error"]["type"] == "invalid_request_error"
            }
            Provider::OpenAi | Provider::OpenAiResponses | Provider::LangChain => {
                body["error"]["type"] == "invalid_request_error"
                    && body["error"].get("code").is_some()
            }
            Provider::Gemini => body["error"]["status"] == "INVALID_ARGUMENT",
            Provider::Mistral => body["object"] == "error",
            Provider::Ollama => body["error"].is_string(),
            Provider::BedrockConverse => body["message"].is_string(),
        };
        assert!(fits, "{provider}: {body}");
    }
    let url = format!("{}/v2/nothing", providers.base_url(Provider::OpenAi));
    let (status, _) = post(&url, &json!({})).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn l01_what_a_test_prepares_is_what_the_model_says_whole_or_streamed() {
    let providers = StrictProviders::start().await.expect("a port");
    let content =
        json!([{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "Rome"}}]);
    let said = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    providers.reply(Provider::Anthropic, said.clone());
    providers.reply(Provider::Anthropic, said.clone());
    let url = format!("{}/v1/messages", providers.base_url(Provider::Anthropic));
    let mut asked =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Where?"}]});
    let (_, whole) = post(&url, &asked).await;
    assert_eq!(serde_json::from_str::<Value>(&whole).expect("JSON"), said);
    asked["stream"] = json!(true);
    let (_, stream) = post(&url, &asked).await;
    let names: Vec<&str> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert!(
        stream.contains(r#""partial_json":"{\"at\":\"Rome\"}""#),
        "{stream}"
    );
    asked["stream"] = json!(false);
    let (_, then) = post(&url, &asked).await;
    assert!(then.contains(r#""text":"ok""#), "{then}");
}

#[tokio::test]
async fn l01_every_provider_streams_in_its_own_way() {
    let providers = StrictProviders::start().await.expect("a port");
    for (provider, ends) in [
        (Provider::OpenAi, "data: [DONE]"),
        (Provider::Mistral, "data: [DONE]"),
        (Provider::OpenAiResponses, "event: response.completed"),
        (Provider::Ollama, r#""done_reason":"stop""#),
        (Provider::Gemini, r#""finishReason":"STOP""#),
    ] {
        let (mut asked, _) = repair(provider, broken(provider));
        let mut place = path(provider).to_owned();
        match provider {
            Provider::Gemini => place = place.replace(":generate", ":streamGenerate") + "?alt=sse",
            _ => asked["stream"] = json!(true),
        }
        let url = format!("{}{place}", providers.base_url(provider));
        let (status, stream) = post(&url, &asked).await;
        assert_eq!(status, 200, "{provider}: {stream}");
        let last = stream
            .trim_end()
            .lines()
            .rev()
            .take(2)
            .any(|line| line.contains(ends));
        assert!(last, "{provider}: {stream}");
    }
}

/// The `ollama` package of PyPI, against our Ollama.
#[tokio::test]
async fn r01_a_real_client_reads_refusals_and_replies() {
    let providers = StrictProviders::start().await.expect("a port");
    let fine = json!([{"role": "user", "content": "Hello"}]);
    let odd = json!([{"role": "user", "content": "Hello"}, {"role": "tool", "content": "r"}]);
    let input = json!({"host": providers.base_url(Provider::Ollama), "conversations": [fine, odd]});
    let answers = tokio::task::spawn_blocking(move || support::ask_ollama(&input));
    let answers = answers.await.expect("it ends");
    assert_eq!(
        answers,
        json!([
            ["ok", "ok"],
            [
                "400: strict: a result answers no call",
                "400: strict: a result answers no call"
            ]
        ])
    );
}
