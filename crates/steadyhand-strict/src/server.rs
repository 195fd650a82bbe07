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

use super::{Heard, Memory};

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
    let rules = strict::stand_in(provider);
    let sent = to_bytes(body, BODY_BYTES_MAX).await;
    let asked = sent
        .ok()
        .and_then(|sent| serde_json::from_slice::<Value>(&sent).ok());
    let verdict = match &asked {
        Some(asked) => rules.check(asked),
        None => Err((400, rules.not_json())),
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
    let said = said.unwrap_or_else(|| {
        let model = asked.get("model").cloned();
        rules.ok(&model.unwrap_or_else(|| json!("strict")))
    });
    let is_streamed = rules.is_streamed(&asked, path);
    remember(Some(asked), 200, &said);
    if !is_streamed {
        return json_response(StatusCode::OK, &said);
    }
    let is_sse = parts
        .uri
        .query()
        .is_some_and(|query| query.contains("alt=sse"));
    let (kind, text) = rules.stream(&said, is_sse);
    ([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response()
}

/// Whose path it is, wherever the client puts its version.
fn provider_of(path: &str) -> Option<Provider> {
    let (of, rest) = path.strip_prefix('/')?.split_once('/')?;
    Provider::ALL.into_iter().find(|provider| {
        let rules = strict::stand_in(*provider);
        let ends = rules.path_ends();
        rules.name_in_addresses() == of && ends.iter().any(|end| rest.ends_with(end))
    })
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}
