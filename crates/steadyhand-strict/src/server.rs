//! The one route: whose path it is, what the provider says to the body, and the answer in its envelope.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use steadyhand_conversation::Provider;
use steadyhand_conversation::strict;

use super::{Heard, Memory, reply};

/// Larger than any request of a test; Anthropic's own limit is 32 MB.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(super) fn router(memory: Arc<Memory>) -> Router {
    Router::new().fallback(answer).with_state(memory)
}

async fn answer(State(memory): State<Arc<Memory>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let Some(provider) = provider_of(path) else {
        let message = format!("nobody answers at {path}: see StrictProviders::base_url");
        return json_response(StatusCode::NOT_FOUND, &json!({ "error": message }));
    };
    let sent = to_bytes(body, BODY_BYTES_MAX).await;
    let asked = sent
        .ok()
        .and_then(|sent| serde_json::from_slice::<Value>(&sent).ok());
    let verdict = match &asked {
        Some(asked) => strict::check(provider, asked),
        None => Err(no_json(provider)),
    };
    let whole = parts.uri.to_string();
    let remember = |request: Option<Value>, status: u16, answer: &Value| {
        memory.remember(Heard {
            provider,
            path: whole.clone(),
            request: request.unwrap_or_default(),
            status,
            answer: answer.clone(),
        });
    };
    let asked = match (verdict, asked) {
        (Ok(()), Some(asked)) => asked,
        (Ok(()), None) => Value::Null,
        (Err((status, body)), asked) => {
            remember(asked, status, &body);
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            return json_response(status, &body);
        }
    };
    let said = memory.next_reply(provider);
    let said = said.unwrap_or_else(|| reply::ok(provider, &asked));
    let is_streamed = match provider {
        // Ollama streams where it is not told otherwise; Google's address says it.
        Provider::Ollama => asked["stream"] != false,
        Provider::Gemini => path.contains(":streamGenerateContent"),
        Provider::BedrockConverse => false,
        _ => asked["stream"] == true,
    };
    remember(Some(asked), 200, &said);
    if !is_streamed {
        return json_response(StatusCode::OK, &said);
    }
    let is_sse = parts
        .uri
        .query()
        .is_some_and(|query| query.contains("alt=sse"));
    let (kind, text) = reply::stream(provider, &said, is_sse);
    ([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response()
}

/// Whose path it is, wherever the client puts its version.
fn provider_of(path: &str) -> Option<Provider> {
    let (of, rest) = path.strip_prefix('/')?.split_once('/')?;
    let ends = |end: &str| rest.ends_with(end);
    match of {
        "anthropic" if ends("messages") => Some(Provider::Anthropic),
        "openai" if ends("chat/completions") => Some(Provider::OpenAi),
        "openai" if ends("responses") => Some(Provider::OpenAiResponses),
        "mistral" if ends("chat/completions") => Some(Provider::Mistral),
        "ollama" if ends("api/chat") => Some(Provider::Ollama),
        "bedrock" if ends("/converse") => Some(Provider::BedrockConverse),
        "gemini" if ends(":generateContent") || ends(":streamGenerateContent") => {
            Some(Provider::Gemini)
        }
        _ => None,
    }
}

fn no_json(provider: Provider) -> strict::Refusal {
    let body = match provider {
        Provider::Anthropic => {
            let error = json!({"type": "invalid_request_error", "message": "The request body is not valid JSON"});
            json!({"type": "error", "error": error, "request_id": "req_strict"})
        }
        Provider::OpenAi | Provider::OpenAiResponses | Provider::LangChain => {
            let message = "We could not parse the JSON body of your request.";
            json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
        }
        Provider::Mistral => {
            json!({"object": "error", "message": "Invalid JSON", "type": "invalid_request_error", "param": null, "code": null})
        }
        Provider::Gemini => {
            json!({"error": {"code": 400, "message": "Invalid JSON payload received.", "status": "INVALID_ARGUMENT"}})
        }
        Provider::BedrockConverse => json!({"message": "The request body is not valid JSON"}),
        Provider::Ollama => json!({"error": "invalid character in the body: it is no JSON"}),
    };
    (400, body)
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}
