//! A collector on loopback that keeps what it gets, and OpenTelemetry's own messages to read it with.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;

use super::peer;
use crate::support;

#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    requests: Mutex<Vec<(String, HeaderMap, Bytes)>>,
    /// Answers it gives before it takes anything, the next one first.
    answers: Mutex<VecDeque<StatusCode>>,
}

impl Collector {
    pub(crate) async fn start() -> Collector {
        Collector::refusing([]).await
    }

    /// Answers with these statuses first.
    pub(crate) async fn refusing(statuses: impl IntoIterator<Item = u16>) -> Collector {
        let statuses = statuses.into_iter();
        let log = Arc::new(Log {
            answers: Mutex::new(
                statuses
                    .map(|it| StatusCode::from_u16(it).unwrap())
                    .collect(),
            ),
            ..Log::default()
        });
        let app = Router::new().fallback(take).with_state(Arc::clone(&log));
        Collector {
            address: support::serve(app).await,
            log,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent there, refused or not.
    pub(crate) fn requests(&self) -> Vec<(String, HeaderMap, Bytes)> {
        self.log.requests.lock().unwrap().clone()
    }

    /// All spans it has.
    pub(crate) async fn spans(&self) -> Vec<Value> {
        let scopes = self.read("traces").await;
        scopes
            .iter()
            .flat_map(|scope| scope["spans"].as_array().unwrap().clone())
            .collect()
    }

    /// What it got at `/v1/{signal}`, by resource and scope.
    pub(crate) async fn read(&self, signal: &'static str) -> Vec<Value> {
        let mut read = Vec::new();
        for (path, _, body) in self.requests() {
            if !path.ends_with(&format!("/v1/{signal}")) {
                continue;
            }
            let scopes = tokio::task::spawn_blocking(move || {
                peer::python("opentelemetry-proto", "otlp.py", &[signal], &body)
            });
            read.extend(scopes.await.unwrap().as_array().unwrap().clone());
        }
        read
    }
}

async fn take(
    State(log): State<Arc<Log>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let path = uri.path().to_owned();
    log.requests.lock().unwrap().push((path, headers, body));
    log.answers
        .lock()
        .unwrap()
        .pop_front()
        .unwrap_or(StatusCode::OK)
}
