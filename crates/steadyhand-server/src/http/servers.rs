//! MCP servers: what state each is in, and starting one again.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::status::{self, Refused, Why};
use super::{App, Named, shapes};
use crate::views;

/// MCP servers
///
/// Each with its state, the step it is at, what it printed last, and the next try.
#[utoipa::path(
    get,
    path = "/v1/servers",
    tag = "servers",
    responses(
        (status = 200, description = "The servers", body = shapes::Servers),
        shapes::Refusals,
    )
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Response {
    let servers = views::servers::all(&app.runtime);
    status::answer(&json!({"count": servers.len(), "servers": servers}))
}

/// Start a server again
#[utoipa::path(
    post,
    path = "/v1/servers/{name}/restart",
    tag = "servers",
    params(("name" = String, Path, description = "The server")),
    responses(
        (status = 200, description = "It is being started", body = shapes::ServerRestarted),
        shapes::NamedRefusals,
    )
)]
pub(crate) async fn restart(
    State(app): State<Arc<App>>,
    Named(name): Named,
) -> Result<Response, Refused> {
    if app.runtime.restart_server(&name) {
        return Ok(status::answer(&json!({"name": name, "restarting": true})));
    }
    let servers = app.runtime.servers();
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let help = match names.is_empty() {
        true => "No MCP servers are configured".to_owned(),
        false => format!("There are: {}", names.join(", ")),
    };
    Err(Refused::new(
        Why::NoSuchServer,
        format!("there is no server {name:?}"),
        help,
    ))
}
