//! Utterances over HTTP: `POST /utterances`, the answer is the reply.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Json;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::http::{Access, Peer};
use crate::transcriber::{BackgroundTranscriber, UTTERANCE_BYTES_MAX, Utterance};
use steadyhand_config::SecretText;

/// Connections that are open at the same time; one more waits.
const CONNECTIONS_MAX: usize = 256;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// When the machine has no more files to open, trying at once again does not help.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

/// Serves utterances at this address, for ever.
pub(super) async fn serve(
    transcriber: BackgroundTranscriber,
    listener: TcpListener,
    address: SocketAddr,
    token: Option<&SecretText>,
) -> Infallible {
    let access = Arc::new(Access::new(address, token, &[], None, None));
    let router = Router::new()
        .route("/utterances", post(hear))
        .fallback(nothing_here)
        .with_state(transcriber)
        .layer(from_fn_with_state(access, may_enter));
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
                continue;
            }
        };
        let router = router.clone().layer(Extension(Peer(peer)));
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
}

async fn may_enter(
    State(access): State<Arc<Access>>,
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let allowed = match access.check_address(&parts) {
        Ok(()) => access.identify(&parts.headers, peer.ip()).await,
        Err(refused) => Err(refused),
    };
    match allowed {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(refused) => refused.into_response(),
    }
}

async fn hear(State(transcriber): State<BackgroundTranscriber>, body: Body) -> Response {
    let body = to_bytes(body, UTTERANCE_BYTES_MAX);
    let body = match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let message = format!("more than {UTTERANCE_BYTES_MAX} bytes are no utterance");
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message);
        }
        Err(_) => {
            let message = "the utterance did not come in time";
            return refused(StatusCode::REQUEST_TIMEOUT, "too_slow", message);
        }
    };
    let Some(utterance) = Utterance::read(&body, "somebody") else {
        return refused(StatusCode::BAD_REQUEST, "bad_request", "nothing is said");
    };
    let answer = transcriber.hear(utterance).await;
    let status = match answer.stop_reason {
        "busy" => StatusCode::TOO_MANY_REQUESTS,
        "error" => StatusCode::BAD_GATEWAY,
        _ => StatusCode::OK,
    };
    (status, Json(answer)).into_response()
}

async fn nothing_here() -> Response {
    refused(StatusCode::NOT_FOUND, "not_found", "there is nothing here")
}

fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let error = json!({"error": {
        "code": code,
        "message": message,
        "help": "POST /utterances takes a text, or {\"speaker\": \"kitchen\", \"text\": \"…\"}",
    }});
    (status, Json(error)).into_response()
}
