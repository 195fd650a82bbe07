//! The provider proxy as its clients see it: the real program between real SDKs and strict providers, and between raw
//! sockets that misbehave.

mod alerts;
mod browsers;
mod cases;
mod clouds;
mod connections;
mod corpus;
mod crowd;
mod exchange;
mod execute;
mod faults;
mod floods;
mod forwarding;
mod history;
mod repair;
mod sanitize;
mod sdks;
mod streams;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::serve::{Served, until};
use crate::support::{Workplace, serve};

/// A proxy before one provider.
async fn proxy(site: &str, upstream: impl std::fmt::Display) -> Served {
    proxy_with(site, upstream, "").await
}

/// The same with more settings.
pub(crate) async fn proxy_with(site: &str, upstream: impl std::fmt::Display, more: &str) -> Served {
    Served::in_place(workplace(site, upstream, more)).await
}

/// The newest exchange that the history lists. It is written after the client has its answer.
async fn newest_exchange(served: &Served) -> Value {
    until("it is in the history", async || {
        let listed = served.get("/v1/exchanges").await.json();
        listed["exchanges"].get(0).cloned()
    })
    .await
}

fn workplace(site: &str, upstream: impl std::fmt::Display, more: &str) -> Workplace {
    Workplace::with_config(&format!(
        "[proxy.{site}]\nupstream = \"{upstream}\"\n{more}\n"
    ))
}

/// What a provider was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    method: Method,
    pub(crate) uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Asked {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// A provider that remembers what it was asked, and answers as it is told.
#[derive(Clone)]
pub(crate) struct Provider {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

type Answer = Arc<dyn Fn(&Asked) -> Response + Send + Sync>;

impl Provider {
    pub(crate) async fn answering(
        answer: impl Fn(&Asked) -> Response + Send + Sync + 'static,
    ) -> Provider {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let answer: Answer = Arc::new(answer);
        let state = (Arc::clone(&asked), answer);
        let router = Router::new()
            .fallback(heard)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(state);
        Provider {
            address: serve(router).await,
            asked,
        }
    }

    /// Answers everything with this.
    pub(crate) async fn json(answer: Value) -> Provider {
        Provider::answering(move |_| json_answer(200, &answer)).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics here").clone()
    }

    fn last(&self) -> Asked {
        self.asked().pop().expect("it was asked")
    }
}

async fn heard(
    State((asked, answer)): State<(Arc<Mutex<Vec<Asked>>>, Answer)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let one = Asked {
        method,
        uri,
        headers,
        body,
    };
    let response = answer(&one);
    asked.lock().expect("no test panics here").push(one);
    response
}

pub(crate) fn json_answer(status: u16, answer: &Value) -> Response {
    typed_answer(status, "application/json", answer.to_string())
}

fn typed_answer(status: u16, kind: &str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = body.into().into_response();
    *response.status_mut() = axum::http::StatusCode::from_u16(status).expect("a status");
    let kind = kind.parse().expect("a type");
    response.headers_mut().insert("content-type", kind);
    response
}

/// An answer of Anthropic's that says ok.
pub(crate) fn ok() -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
}

/// A conversation that Anthropic refuses: a call without a result.
pub(crate) fn broken() -> Value {
    json!({"model": "m", "max_tokens": 10, "messages": [
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
        {"role": "user", "content": "Hello?"}],
        "tools": [{"name": "weather", "description": "d", "input_schema": {"type": "object"}}]})
}

fn valid() -> Value {
    json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]})
}

/// A program that `./test` installs below `target/peers`.
fn peer(path: &str) -> PathBuf {
    let ancestors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut found = ancestors.map(|folder| folder.join("target/peers").join(path));
    found.find(|path| path.exists()).unwrap_or_else(|| {
        panic!("target/peers/{path} is not installed: run ./test, or: . scripts/peers.sh && install_peers target/peers")
    })
}
