//! Is the process up, and can it take calls.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use super::{App, Peer, shapes, status};
use crate::views;
use steadyhand_config::role::Right;

/// Whether the process lives
///
/// It runs and answers. No credentials are asked for.
#[utoipa::path(
    get,
    operation_id = "get_liveness",
    path = "/health/live",
    tag = "health",
    responses((status = 200, description = "It does", body = shapes::Liveness), shapes::OpenErrors)
)]
pub(crate) async fn live(State(app): State<Arc<App>>) -> Response {
    status::answer(&json!({
        "status": "live",
        "name": "steadyhand",
        "version": env!("CARGO_PKG_VERSION"),
        "instance": app.instance,
        "uptime_ms": app.started.elapsed().as_millis() as u64,
    }))
}

/// Whether it can take calls
///
/// With the state of each server; a server that is down takes only its own tools with it.
#[utoipa::path(
    get,
    operation_id = "get_readiness",
    path = "/health/ready",
    tag = "health",
    responses(
        (status = 200, description = "It can", body = shapes::Readiness),
        shapes::OpenErrors,
        (status = 503, description = "It cannot", body = shapes::Readiness),
    )
)]
pub(crate) async fn ready(
    State(app): State<Arc<App>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let is_ready = !app.closing.is_cancelled();
    let reason = (!is_ready).then_some("the server is about to end");
    // Names of servers are for those who may see the rest.
    let access = app.access.load_full();
    let asks = access.identify(&headers, peer.ip()).await;
    let may_see = asks.is_ok_and(|identity| identity.may(Right::View));
    let servers: Vec<Value> = match may_see {
        true => views::servers::all(&app.runtime),
        false => Vec::new(),
    };
    let mut view = json!({
        "ready": is_ready,
        "reason": reason,
        "generation": app.runtime.generation().number,
        "tools": app.runtime.manager().len(),
        "running": app.admission.running.count(),
        "servers": servers,
    });
    if may_see {
        view["history"] = json!(app.history.health());
        view["audit"] = json!(shapes::AuditHealth::of(&app));
        view["idempotency_keys"] = json!(shapes::KeysHealth::of(&app));
    }
    status::readiness(is_ready, &view)
}
