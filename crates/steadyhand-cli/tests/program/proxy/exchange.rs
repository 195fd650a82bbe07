//! The same scenario straight to a provider and through the proxy, with the makers' SDKs: the provider gets the same
//! requests, and the client the same answers, byte for byte.

use std::process::Stdio;

use axum::body::{Body, Bytes};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::clouds::message;
use super::sdks::script;
use super::{Asked, Provider, json_answer, peer, proxy_with, typed_answer};
use crate::support::PATIENCE;

/// Heads that differ from one request to the next, or from one connection to the next.
const CHANGING: [&str; 5] = [
    "host",
    "connection",
    "amz-sdk-invocation-id",
    "amz-sdk-request",
    "x-amz-date",
];

/// What browsers are told about every answer that passes: it is not from this server's own pages. Programs do not look
/// at it, but some SDKs hand it on.
const FOR_BROWSERS: [&str; 6] = [
    "content-security-policy",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
];

/// What a client gets, without what is for browsers.
fn for_programs(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !FOR_BROWSERS.contains(&name.to_ascii_lowercase().as_str()));
            fields.values_mut().for_each(for_programs);
        }
        Value::Array(items) => items.iter_mut().for_each(for_programs),
        _ => {}
    }
}

/// What a provider was asked: everything that is not about one connection.
fn essence(asked: &[Asked]) -> Vec<Value> {
    let one = |asked: &Asked| {
        let mut headers: Vec<(String, String)> = asked
            .headers
            .iter()
            .filter(|(name, value)| {
                let is = |start: &[u8]| value.as_bytes().starts_with(start);
                // A signature is made for one moment, and boto3 names its features in no order.
                !CHANGING.contains(&name.as_str()) && !is(b"AWS4-") && !is(b"Boto3/")
            })
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                (name.to_string(), value)
            })
            .collect();
        headers.sort();
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        json!({"method": asked.method.as_str(), "uri": asked.uri.to_string(), "headers": headers, "body": body})
    };
    asked.iter().map(one).collect()
}

fn streamed(kind: &str, body: Vec<u8>) -> Response {
    let pieces = body
        .chunks(61)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)));
    let pieces: Vec<Result<Bytes, std::io::Error>> = pieces.collect();
    typed_answer(
        200,
        kind,
        Body::from_stream(futures_util::stream::iter(pieces)),
    )
}

fn events(all: &[Value]) -> Vec<u8> {
    let event = |value: &Value| {
        let kind = value["type"].as_str();
        let kind = kind.map(|kind| format!("event: {kind}\n"));
        format!("{}data: {value}\n\n", kind.unwrap_or_default())
    };
    all.iter().map(event).collect::<String>().into_bytes()
}

/// Answers as the makers document them; what asks for the model `refused` is refused.
fn answer(asked: &Asked) -> Response {
    let path = asked.uri.path();
    let body = String::from_utf8_lossy(&asked.body);
    let is_streaming = body.contains("\"stream\":true") || body.contains("\"stream\": true");
    let ends = |end: &str| path.ends_with(end);
    if body.contains("refused") || path.contains("refused") {
        let error = json!({"type": "invalid_request_error", "message": "model: refused", "code": 400, "status": "INVALID_ARGUMENT"});
        let mut refusal = json_answer(
            400,
            &json!({"type": "error", "error": error, "message": "refused"}),
        );
        let kind = "ValidationException".parse().expect("a value");
        refusal.headers_mut().insert("x-amzn-errortype", kind);
        return refusal;
    }
    let sse = "text/event-stream; charset=utf-8";
    let of_model = "é, \"18 °C\" \u{1F327}";
    match () {
        () if ends("/models") => json_answer(200, &json!({"object": "list", "data": [{"id": "m", "object": "model", "type": "model", "display_name": "M", "created_at": "2025-01-01T00:00:00Z", "created": 1, "owned_by": "us"}], "has_more": false, "first_id": "m", "last_id": "m"})),
        () if ends("/api/tags") => json_answer(200, &json!({"models": [{"model": "qwen3", "size": 5}]})),
        () if ends("/count_tokens") => json_answer(200, &json!({"input_tokens": 12})),
        () if ends(":countTokens") => json_answer(200, &json!({"totalTokens": 12})),
        () if ends("/messages") || ends("awPredict") || ends("/invoke") => {
            let usage = json!({"input_tokens": 5, "output_tokens": 3});
            let mut whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": of_model}], "stop_reason": "end_turn", "stop_sequence": null, "usage": usage});
            if !is_streaming && !ends(":streamRawPredict") {
                return json_answer(200, &whole);
            }
            whole["content"] = json!([]);
            whole["stop_reason"] = Value::Null;
            streamed(sse, events(&[
                json!({"type": "message_start", "message": whole}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "ping"}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": of_model}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ]))
        }
        () if ends("/chat/completions") => {
            let chunk = |delta: Value, reason: Value| json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            if !is_streaming {
                return json_answer(200, &json!({"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": of_model, "refusal": null}}], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}));
            }
            let mut body = events(&[
                chunk(json!({"role": "assistant", "content": ""}), Value::Null),
                chunk(json!({"content": of_model}), Value::Null),
                chunk(json!({}), json!("stop")),
                json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}),
            ]);
            body.extend_from_slice(b"data: [DONE]\n\n");
            streamed(sse, body)
        }
        () if ends("/responses") => {
            let text = json!({"type": "output_text", "text": of_model, "annotations": []});
            let item = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]});
            let whole = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5", "output": [item], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "temperature": 1.0, "top_p": 1.0});
            match is_streaming {
                false => json_answer(200, &whole),
                true => streamed(sse, events(&[
                    json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}}),
                    json!({"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": of_model, "logprobs": []}),
                    json!({"type": "response.completed", "sequence_number": 2, "response": whole}),
                ])),
            }
        }
        () if ends("/api/chat") => {
            let said = |text: &str, done: bool| json!({"model": "qwen3", "created_at": "2025-01-01T00:00:00Z", "message": {"role": "assistant", "content": text}, "done": done, "done_reason": done.then_some("stop")});
            match is_streaming {
                false => json_answer(200, &said(of_model, true)),
                true => streamed("application/x-ndjson", format!("{}\n{}\n", said(of_model, false), said("", true)).into_bytes()),
            }
        }
        () if path.contains("enerateContent") => {
            let said = |reason: Option<&str>| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": of_model}]}, "finishReason": reason}], "modelVersion": "gemini-2.5-pro"});
            match ends(":streamGenerateContent") {
                false => json_answer(200, &said(Some("STOP"))),
                true => {
                    let text = format!("data: {}\r\n\r\ndata: {}\r\n\r\n", said(None).to_string().replace(",\"finishReason\":null", ""), said(Some("STOP")));
                    streamed("text/event-stream", text.into_bytes())
                }
            }
        }
        () if ends("/converse") => json_answer(200, &json!({"output": {"message": {"role": "assistant", "content": [{"text": of_model}]}}, "stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8}, "metrics": {"latencyMs": 5}})),
        () if ends("/converse-stream") => streamed("application/vnd.amazon.eventstream", [
            message("messageStart", &json!({"role": "assistant"})),
            message("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": of_model}})),
            message("contentBlockStop", &json!({"contentBlockIndex": 0})),
            message("messageStop", &json!({"stopReason": "end_turn"})),
            message("metadata", &json!({"usage": {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8}, "metrics": {"latencyMs": 5}})),
        ].concat()),
        () if ends("/invoke-with-response-stream") => {
            let event = json!({"type": "message_stop"}).to_string();
            streamed("application/vnd.amazon.eventstream", message("chunk", &json!({"bytes": BASE64.encode(event)})))
        }
        () => json_answer(404, &json!({"error": {"message": format!("nothing is at {path}")}})),
    }
}

/// What a client says about the scenario at this base URL.
async fn run(program: &str, words: &[String], name: &str, url: &str) -> Value {
    let output = Command::new(peer(program))
        .args(words)
        .args([name, url])
        .stdin(Stdio::null())
        .env_remove("HTTP_PROXY")
        .env_remove("http_proxy")
        .env("NO_PROXY", "127.0.0.1")
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE * 4, output).await;
    let output = output.expect("it ends in time").expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{name}: {error}: {said}\n{stderr}"))
}

/// Straight and through: the same.
async fn compare(program: &str, words: &[String], name: &str, steps: usize) {
    let site = match name {
        "azure" => "openai",
        site => site,
    };
    let provider = Provider::answering(|asked| {
        let mut answer = answer(asked);
        let date = "Wed, 01 Jan 2025 00:00:00 GMT".parse().expect("a date");
        answer.headers_mut().insert("date", date);
        answer
    })
    .await;
    let straight = run(program, words, name, &provider.url()).await;
    let asked_straight = essence(&provider.asked());
    let served = proxy_with(site, provider.url(), "host = \"original\"").await;
    let url = format!("http://{}/proxy/{site}", served.address);
    let mut through = run(program, words, name, &url).await;
    for_programs(&mut through);
    let asked_through = essence(&provider.asked()[asked_straight.len()..]);
    let given = straight["given"].as_array().expect("steps");
    assert_eq!(given.len(), steps, "{name}: {straight}");
    let failed = given.iter().filter(|one| one["error"].is_string());
    assert_eq!(
        failed.count(),
        1,
        "only the last is refused: {name}: {given:#?}"
    );
    for (number, (straight, through)) in asked_straight.iter().zip(&asked_through).enumerate() {
        assert_eq!(straight, through, "{name}: request {number}");
    }
    assert_eq!(asked_straight.len(), asked_through.len(), "{name}");
    assert_eq!(straight, through, "{name}: what the client gets");
    let listed = served.get("/v1/exchanges").await.json();
    assert_eq!(
        listed,
        json!({"exchanges": []}),
        "{name}: nothing was mended or broken"
    );
}

async fn python(home: &str, name: &str, steps: usize) {
    let words = ["-I".to_owned(), script("exchange.py")];
    compare(&format!("{home}/bin/python"), &words, name, steps).await;
}

async fn node(home: &str, name: &str, steps: usize) {
    let words = [script("exchange.mjs"), peer(home).display().to_string()];
    compare("conformance/bin/node", &words, name, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropics_sdks_see_no_difference() {
    python("model-sdks-py", "anthropic", 5).await;
    node("model-sdks-js", "anthropic", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_sdks_see_no_difference() {
    python("model-sdks-py", "openai", 6).await;
    python("model-sdks-py", "azure", 3).await;
    node("model-sdks-js", "openai", 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ollamas_sdk_sees_no_difference() {
    python("model-sdks-py", "ollama", 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn googles_sdks_see_no_difference() {
    python("cloud-sdks-py", "gemini", 4).await;
    python("cloud-sdks-py", "vertex", 3).await;
    node("cloud-sdks-js", "gemini", 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn amazons_sdks_see_no_difference() {
    python("cloud-sdks-py", "bedrock", 4).await;
    node("cloud-sdks-js", "bedrock", 4).await;
}

/// The signatures that the proxy makes, made again by Amazon's own code.
#[tokio::test(flavor = "multi_thread")]
async fn amazons_own_code_makes_the_signatures_that_we_make() {
    for token in ["", "session_token = \"a-token\"\n"] {
        let keys = format!(
            "[proxy.bedrock.aws]\naccess_key_id = \"AKID\"\nsecret_access_key = \"a-secret\"\nregion = \"eu-west-1\"\n{token}"
        );
        let provider = Provider::answering(answer).await;
        let served = proxy_with("bedrock", provider.url(), &keys).await;
        let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=other")];
        for (method, path, body) in [
            (
                "POST",
                "/model/us.anthropic.claude-x%3A0/converse",
                "{\"messages\": [{\"role\": \"user\", \"content\": [{\"text\": \"é\"}]}]}",
            ),
            (
                "POST",
                "/model/arn%3Aaws%3Abedrock%3Aprofile%2Fx/invoke?b=2&a=1",
                "{}",
            ),
            ("GET", "/async-invoke", ""),
        ] {
            let address = format!("/proxy/bedrock{path}");
            served.send(method, &address, &signed, body).await;
            let asked = provider.last();
            let header = |name: &str| {
                let value = asked.headers.get(name);
                value.map(|value| value.to_str().expect("text").to_owned())
            };
            let request = json!({"method": method, "url": format!("{}{path}", provider.url()), "body": body,
                "date": header("x-amz-date"), "token": header("x-amz-security-token")});
            let words = ["-I".to_owned(), script("signature.py")];
            let program = "cloud-sdks-py/bin/python";
            let made = run(program, &words, "signature", &request.to_string()).await;
            assert_eq!(
                made.as_str().map(str::to_owned),
                header("authorization"),
                "{path}"
            );
        }
    }
}
