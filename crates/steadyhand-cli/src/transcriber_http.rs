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
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use steadyhand_config::SecretText;
use steadyhand_runtime::admission::{CallerAccount, SlotLimits, Slots};
use steadyhand_server::http::{Access, Peer};
use steadyhand_voice::{BackgroundTranscriber, UTTERANCE_BYTES_MAX, Utterance};

/// Connections that are open at the same time.
const CONNECTIONS_MAX: usize = 256;
/// Connections that one address has open at the same time.
const CONNECTIONS_PER_ADDRESS_MAX: usize = 64;
/// How long whoever has too many may take to hear that.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);
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
    let places = connection_slots();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
                continue;
            }
        };
        let place = match places.take(&CallerAccount::of_address(peer.ip())) {
            Ok(place) => place,
            Err(full) => {
                refuse(stream, &full.to_string()).await;
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

fn connection_slots() -> Arc<Slots> {
    let limits = SlotLimits {
        total: CONNECTIONS_MAX,
        per_caller: CONNECTIONS_PER_ADDRESS_MAX,
        operator_reserve: 0,
    };
    Slots::new("connections", limits)
}

/// Tells whoever has too many. One at a time, for a moment: nobody is kept by those who do not listen.
async fn refuse(mut stream: TcpStream, full: &str) {
    tracing::debug!(reason = full, "a connection is refused");
    let body = json!({"error": {
        "code": "server_busy",
        "message": format!("{full}; nothing was heard"),
        "help": "Close one of them, then try again",
    }})
    .to_string();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // A fresh connection takes so little at once; where it does not, it is closed without a word.
    let written = stream.write_all(answer.as_bytes());
    let _ = tokio::time::timeout(REFUSAL_PATIENCE, written).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_connections_of_one_address_to_the_transcriber_leave_room_for_others() {
        let places = connection_slots();
        let [greedy, other] = ["10.0.0.1", "10.0.0.2"]
            .map(|address| CallerAccount::of_address(address.parse().expect("an address")));
        let held: Vec<_> = std::iter::from_fn(|| places.take(&greedy).ok()).collect();
        assert_eq!(held.len(), CONNECTIONS_PER_ADDRESS_MAX);
        assert!(places.take(&other).is_ok());
    }
}
