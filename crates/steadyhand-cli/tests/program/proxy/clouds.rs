//! The same models elsewhere: Azure, Bedrock, Vertex, and services that speak OpenAI's language. Each has its own paths
//! and refuses other things; what it accepts passes as it is.

use axum::body::{Body, Bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Provider, broken, json_answer, newest_exchange, ok, proxy, proxy_with, typed_answer, valid,
};
use crate::serve::{Served, until};
use crate::support::{PATIENCE, client};

/// Nothing is said about an exchange: not in history, not counted as broken, no alert.
async fn left_no_trace(served: &Served, place: &str) {
    let listed = served.get("/v1/exchanges").await.json();
    assert_eq!(listed, json!({"exchanges": []}), "{place}");
    let alerts = served.get("/v1/alerts").await.json();
    assert_eq!(alerts["alerts"], json!([]), "{place}");
    let figures = served.get("/metrics").await.text;
    assert!(!figures.contains("broken_answers_total{"), "{figures}");
    assert!(!figures.contains("conversation_fixes_total{"), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_for_a_number_of_tokens_are_no_conversations() {
    let converse = json!({"input": {"converse": {"messages": [{"role": "assistant", "content": [{"text": "?"}]}]}}});
    let items = json!({"model": "m", "input": [{"type": "function_call", "call_id": "c1", "name": "w", "arguments": "{}"}]});
    let rows = [
        ("anthropic", "/v1/messages/count_tokens", broken()),
        ("openai", "/v1/responses/input_tokens", items),
        (
            "gemini",
            "/v1beta/models/g:countTokens",
            json!({"contents": []}),
        ),
        (
            "bedrock",
            "/model/anthropic.claude-x/count-tokens",
            converse,
        ),
        (
            "vertex",
            "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
            broken(),
        ),
    ];
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1: `tool_use` ids were found"}});
    for (site, path, body) in rows {
        for (status, answer) in [(200, json!({"input_tokens": 5})), (400, refusal.clone())] {
            let said = answer.clone();
            let provider = Provider::answering(move |_| json_answer(status, &said)).await;
            let served = proxy(site, provider.url()).await;
            let reply = served
                .post(&format!("/proxy/{site}{path}"), body.clone())
                .await;
            assert_eq!(
                (reply.status, reply.json()),
                (status, answer),
                "{site}{path}"
            );
            assert_eq!(reply.header("steadyhand-fixes"), None, "{site}{path}");
            assert_eq!(provider.last().body, body.to_string(), "{site}{path}");
            left_no_trace(&served, path).await;
        }
    }
}

fn of_chat() -> Value {
    json!({"messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"}]})
}

fn answer_of_chat() -> Value {
    json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn azures_requests_need_no_model() {
    let path = "/proxy/openai/openai/deployments/our%20gpt/chat/completions?api-version=2024-10-21";
    let provider = Provider::json(answer_of_chat()).await;
    let served = proxy("openai", provider.url()).await;
    let reply = served.post(path, of_chat()).await;
    assert_eq!(reply.header("steadyhand-fixes"), None);
    assert_eq!(provider.last().body, of_chat().to_string());
    assert_eq!(
        provider.last().uri,
        "/openai/deployments/our%20gpt/chat/completions?api-version=2024-10-21"
    );
    left_no_trace(&served, path).await;
    // What has to be mended is, and the deployment stands for the model.
    let mut cut = of_chat();
    cut["messages"].as_array_mut().expect("a list").pop();
    served.post(path, cut).await;
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["model"], "our gpt", "{exchange}");
    // The version that names the model in the body.
    let mut named = of_chat();
    named["model"] = json!("our gpt");
    let reply = served
        .post("/proxy/openai/openai/v1/chat/completions", named.clone())
        .await;
    assert_eq!(reply.header("steadyhand-fixes"), None);
    assert_eq!(provider.last().body, named.to_string());
}

/// That there is no model explains no refusal there.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_azures_is_not_explained_by_a_missing_model() {
    let refusal = json!({"error": {"message": "A tool message of this kind is not allowed", "type": "invalid_request_error"}});
    let provider = Provider::answering(move |_| json_answer(400, &refusal)).await;
    let served = proxy("openai", provider.url()).await;
    let path = "/proxy/openai/openai/deployments/gpt/chat/completions?api-version=2024-10-21";
    served.post(path, of_chat()).await;
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["refusal"]["is_known"], false, "{exchange}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_openai_itself_refuses_passes_at_others() {
    let long = "chatcmpl-tool-".to_owned() + &"0123456789".repeat(5);
    let mut request = of_chat();
    request["model"] = json!("vendor/model");
    request["messages"][1]["tool_calls"][0]["id"] = json!(long);
    request["messages"][2]["tool_call_id"] = json!(long);
    let said = json!({"role": "assistant", "content": "Done.", "tool_calls": null, "refusal": null, "reasoning": null});
    let messages = request["messages"].as_array_mut().expect("a list");
    messages.extend([said, json!({"role": "user", "content": "Thanks"})]);
    let path = "/proxy/openai/v1/chat/completions";
    for (host, is_mended) in [
        ("", false),
        ("host = \"compatible\"", false),
        ("host = \"original\"", true),
    ] {
        let provider = Provider::json(answer_of_chat()).await;
        let served = proxy_with("openai", provider.url(), host).await;
        let reply = served.post(path, request.clone()).await;
        assert_eq!(
            reply.header("steadyhand-fixes").is_some(),
            is_mended,
            "{host}"
        );
        let is_same = provider.last().body == request.to_string();
        assert_eq!(is_same, !is_mended, "{host}");
    }
}

/// Even a conversation that is sound at OpenAI.
#[tokio::test(flavor = "multi_thread")]
async fn what_deepseek_refuses_and_openai_takes_is_mended_there() {
    let mut request = of_chat();
    request["model"] = json!("deepseek-v4-flash");
    let developer = json!({"role": "developer", "content": "Be brief."});
    let messages = request["messages"].as_array_mut().expect("a list");
    messages.insert(0, developer);
    messages[2]["content"] = json!("Hm.");
    let path = "/proxy/openai/v1/chat/completions";
    for (host, is_mended) in [("original", false), ("deepseek", true)] {
        let provider = Provider::json(answer_of_chat()).await;
        let served = proxy_with("openai", provider.url(), &format!("host = \"{host}\"")).await;
        let reply = served.post(path, request.clone()).await;
        let fixes = reply.header("steadyhand-fixes").unwrap_or_default();
        assert_eq!(fixes.contains("wrong_role"), is_mended, "{host} {fixes}");
        assert_eq!(fixes.contains("thinking_lost"), is_mended, "{host} {fixes}");
        let is_same = provider.last().body == request.to_string();
        assert_eq!(is_same, !is_mended, "{host}");
    }
}

fn of_converse() -> Value {
    json!({"messages": [
        {"role": "user", "content": [{"text": "What is the weather in Rome?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "weather", "input": {}}}]},
        {"role": "user", "content": [{"text": "Hello?"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "description": "d", "inputSchema": {"json": {"type": "object"}}}}]}})
}

/// Anthropic's body as clouds take it: the address names the model.
fn of_claude(version: &str) -> Value {
    let mut body = broken();
    let fields = body.as_object_mut().expect("an object");
    fields.shift_remove("model");
    fields.insert("anthropic_version".to_owned(), json!(version));
    body
}

const CLAUDE: &str = "/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0";
const VERTEX: &str =
    "/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4@20250514";

#[tokio::test(flavor = "multi_thread")]
async fn r03_conversations_at_bedrock_and_vertex_are_mended_like_the_others() {
    let bedrock = || of_claude("bedrock-2023-05-31");
    let vertex = || of_claude("vertex-2023-10-16");
    let rows = [
        ("bedrock", format!("{CLAUDE}/converse"), of_converse()),
        ("bedrock", format!("{CLAUDE}/converse-stream"), of_converse()),
        ("bedrock", format!("{CLAUDE}/invoke"), bedrock()),
        ("bedrock", format!("{CLAUDE}/invoke-with-response-stream"), bedrock()),
        ("bedrock", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic.claude-x/invoke".to_owned(), bedrock()),
        ("vertex", format!("{VERTEX}:rawPredict"), vertex()),
        ("vertex", format!("{VERTEX}:streamRawPredict"), vertex()),
    ];
    for (site, path, body) in rows {
        let provider = Provider::json(ok()).await;
        let served = proxy(site, provider.url()).await;
        let key = [("authorization", "Bearer key-of-the-client")];
        let address = format!("/proxy/{site}{path}");
        let reply = served.send("POST", &address, &key, &body.to_string()).await;
        let fixes = reply.header("steadyhand-fixes").unwrap_or_default();
        assert_eq!(
            fixes, "missing_result;at=\"/messages/1/content/0\"",
            "{site}{path}"
        );
        let asked = provider.last();
        assert_eq!(asked.uri, *path);
        assert_eq!(asked.headers["authorization"], "Bearer key-of-the-client");
        assert!(asked.json()["messages"][2].to_string().contains("t1"));
        let exchange = newest_exchange(&served).await;
        assert_eq!(exchange["provider"], site);
        assert!(
            exchange["model"]
                .as_str()
                .is_some_and(|model| model.contains("claude") && !model.contains('%')),
            "{exchange}"
        );
        // What is in order is not touched.
        let mut sound = body.clone();
        sound["messages"]
            .as_array_mut()
            .expect("a list")
            .truncate(1);
        let reply = served.post(&address, sound.clone()).await;
        assert_eq!(reply.header("steadyhand-fixes"), None, "{site}{path}");
        assert_eq!(provider.last().body, sound.to_string(), "{site}{path}");
    }
    // Bodies of other models at Bedrock have other shapes.
    let provider = Provider::json(json!({})).await;
    let served = proxy("bedrock", provider.url()).await;
    let reply = served
        .post("/proxy/bedrock/model/meta.llama3/invoke", broken())
        .await;
    assert_eq!(reply.header("steadyhand-fixes"), None);
    assert_eq!(provider.last().body, broken().to_string());
}

const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=AKID/20250101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=00";

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_passes_as_it_is_and_what_is_wrong_with_it_is_said() {
    let provider = Provider::json(ok()).await;
    let served = proxy("bedrock", provider.url()).await;
    let headers = [
        ("authorization", SIGNED),
        ("x-amz-date", "20250101T000000Z"),
    ];
    let address = format!("/proxy/bedrock{CLAUDE}/converse");
    let reply = served
        .send("POST", &address, &headers, &of_converse().to_string())
        .await;
    assert_eq!(reply.header("steadyhand-fixes"), None);
    let unmended = reply.header("steadyhand-unmended").unwrap_or_default();
    assert_eq!(unmended, "missing_result;at=\"/messages/1/content/0\"");
    let asked = provider.last();
    assert_eq!(asked.body, of_converse().to_string());
    assert_eq!(asked.headers["authorization"], SIGNED);
    assert!(
        served
            .stderr()
            .contains("not mended, because the request is signed")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_is_mended_and_signed_anew_where_there_are_keys() {
    let keys = "[proxy.bedrock.aws]\naccess_key_id = \"OURKEY\"\nsecret_access_key = \"hidden-secret\"\nsession_token = \"hidden-token\"\nregion = \"eu-west-1\"";
    let provider = Provider::json(ok()).await;
    let served = proxy_with("bedrock", provider.url(), keys).await;
    let headers = [
        ("authorization", SIGNED),
        ("x-amz-date", "20250101T000000Z"),
    ];
    let address = format!("/proxy/bedrock{CLAUDE}/converse");
    let reply = served
        .send("POST", &address, &headers, &of_converse().to_string())
        .await;
    assert!(reply.header("steadyhand-fixes").is_some());
    assert_eq!(reply.header("steadyhand-unmended"), None);
    let asked = provider.last();
    assert!(
        asked.json()["messages"][2]
            .to_string()
            .contains("toolResult")
    );
    let authorization = asked.headers["authorization"].to_str().expect("text");
    assert!(
        authorization.starts_with("AWS4-HMAC-SHA256 Credential=OURKEY/"),
        "{authorization}"
    );
    assert!(authorization.contains("/eu-west-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="), "{authorization}");
    assert_ne!(asked.headers["x-amz-date"], "20250101T000000Z");
    assert_eq!(asked.headers["x-amz-security-token"], "hidden-token");
    assert!(!served.stderr().contains("hidden"));
    // An API key is the client's own business.
    let key = [("authorization", "Bearer key-of-the-client")];
    served
        .send("POST", &address, &key, &of_converse().to_string())
        .await;
    assert_eq!(
        provider.last().headers["authorization"],
        "Bearer key-of-the-client"
    );
}

/// A message of Amazon's event stream.
pub(super) fn message(kind: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ] {
        headers.push(name.len() as u8);
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string().into_bytes();
    let mut message = ((16 + headers.len() + payload.len()) as u32)
        .to_be_bytes()
        .to_vec();
    message.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(&headers);
    message.extend_from_slice(&payload);
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message
}

async fn passed(served: &Served, path: &str) -> (Vec<u8>, bool) {
    let url = format!("http://{}/proxy/bedrock{path}", served.address);
    let sent = client().post(url).body(valid().to_string()).send().await;
    let mut answer = sent.expect("an answer");
    let mut bytes = Vec::new();
    loop {
        match timeout(PATIENCE, answer.chunk()).await.expect("no hanging") {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) => return (bytes, true),
            Err(_) => return (bytes, false),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r02_bedrocks_streams_pass_and_what_is_wrong_in_them_is_reported() {
    let converse = [
        message("messageStart", &json!({"role": "assistant"})),
        message(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": {"text": "Hm."}}),
        ),
        message(
            "contentBlockStart",
            &json!({"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "w"}}}),
        ),
        message(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{\"pa"}}}),
        ),
        message("contentBlockStop", &json!({"contentBlockIndex": 1})),
        message("messageStop", &json!({"stopReason": "tool_use"})),
        message(
            "metadata",
            &json!({"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}),
        ),
    ];
    let wrapped = |event: Value| {
        message(
            "chunk",
            &json!({"bytes": BASE64.encode(event.to_string()), "p": "abc"}),
        )
    };
    let invoke = [
        wrapped(
            json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": null}}),
        ),
        wrapped(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "w", "input": {}}}),
        ),
        wrapped(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"pa"}}),
        ),
        wrapped(json!({"type": "content_block_stop", "index": 0})),
        wrapped(
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        ),
        wrapped(json!({"type": "message_stop"})),
    ];
    for (verb, messages, end) in [
        ("converse-stream", &converse[..], 5),
        ("invoke-with-response-stream", &invoke[..], 5),
    ] {
        let path = format!("{CLAUDE}/{verb}");
        let serving = async |count: usize| {
            let body = messages[..count].concat();
            let provider = Provider::answering(move |_| {
                let pieces = body
                    .chunks(29)
                    .map(|piece| Ok(Bytes::copy_from_slice(piece)));
                let pieces: Vec<Result<Bytes, std::io::Error>> = pieces.collect();
                let body = Body::from_stream(futures_util::stream::iter(pieces));
                typed_answer(200, "application/vnd.amazon.eventstream", body)
            })
            .await;
            proxy("bedrock", provider.url()).await
        };
        let served = serving(messages.len()).await;
        let got = passed(&served, &path).await;
        assert_eq!(got, (messages.concat(), true), "{verb}");
        let exchange = until("it is noted", async || {
            let listed = served.get("/v1/exchanges").await.json();
            listed["exchanges"].get(0).cloned()
        })
        .await;
        let problem = exchange["problems"][0]["code"].as_str().unwrap_or_default();
        assert!(problem.contains("arguments"), "{verb}: {exchange}");
        assert_eq!(exchange["failure"], Value::Null, "{verb}: {exchange}");
        // Without its end mark it ends with an exception, as Bedrock sends them.
        let served = serving(end).await;
        let (bytes, is_whole) = passed(&served, &path).await;
        assert!(!is_whole, "{verb}");
        let rest = bytes
            .strip_prefix(&*messages[..end].concat())
            .expect("what came has passed");
        let rest = String::from_utf8_lossy(rest);
        assert!(rest.contains("internalServerException"), "{verb}: {rest}");
        assert!(
            rest.contains("ended without its end mark"),
            "{verb}: {rest}"
        );
    }
}
