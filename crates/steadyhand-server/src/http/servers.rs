//! MCP servers: what state each is in, what it printed, and starting one again.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand_mcp::Server;
use utoipa::IntoParams;

use super::status::{self, Refused, Why};
use super::{App, Asked, Named, shapes};
use crate::views;

/// The servers of the configuration, each with its state.
pub(super) fn states(app: &App) -> Vec<Value> {
    views::servers::all(&app.runtime)
}

/// MCP servers
///
/// Each with its state, the step it is at, what it said last, and the next try.
#[utoipa::path(
    get,
    operation_id = "list_servers",
    path = "/v1/servers",
    tag = "servers",
    responses(
        (status = 200, description = "The servers", body = shapes::ServerList),
        shapes::Errors,
    )
)]
pub async fn list(State(app): State<Arc<App>>) -> Response {
    status::answer(&views::servers::list(&app.runtime))
}

/// Start a server again
///
/// Calls that run on it end, with the truth about them. The answer has its state from before; `tries` grows when
/// the start is over.
#[utoipa::path(
    post,
    operation_id = "restart_server",
    path = "/v1/servers/{name}/restart",
    tag = "servers",
    params(("name" = String, Path, description = "The server")),
    responses(
        (status = 200, description = "It is being started", body = shapes::ServerList),
        shapes::NamedErrors,
    )
)]
pub async fn restart(State(app): State<Arc<App>>, Named(name): Named) -> Result<Response, Refused> {
    let server = find(&app, &name)?;
    let before = views::servers::one(&app.runtime, &name);
    server.restart();
    Ok(status::answer(&json!({"count": 1, "servers": [before]})))
}

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogAsked {
    /// `next` of an earlier answer: only what came since
    after: Option<u64>,
}

/// What a server printed
///
/// Its stderr, what on its stdout was no message, and what became of it: the last lines, the oldest first.
#[utoipa::path(
    get,
    operation_id = "get_server_logs",
    path = "/v1/servers/{name}/logs",
    tag = "servers",
    params(("name" = String, Path, description = "The server"), LogAsked),
    responses(
        (status = 200, description = "The lines", body = shapes::ServerLog),
        shapes::NamedErrors,
    )
)]
pub async fn logs(
    State(app): State<Arc<App>>,
    Named(name): Named,
    Asked(query): Asked<LogAsked>,
) -> Result<Response, Refused> {
    let server = find(&app, &name)?;
    let (lines, next) = server.logs_from(query.after.unwrap_or(0));
    Ok(status::answer(&views::servers::log(&name, &lines, next)))
}

pub fn find(app: &App, name: &str) -> Result<Server, Refused> {
    if let Some(server) = app.runtime.server(name) {
        return Ok(server);
    }
    let states = states(app);
    let unused = states.iter().find(|server| server["name"] == name);
    let (message, help) = match unused {
        Some(unused) => {
            let reason = unused["reason"].as_str().unwrap_or_default();
            (format!("{name} is not used: {reason}"), String::new())
        }
        None => {
            let names: Vec<&str> = states
                .iter()
                .filter_map(|server| server["name"].as_str())
                .collect();
            let help = match names.is_empty() {
                true => "No MCP servers are configured".to_owned(),
                false => format!("There are: {}", names.join(", ")),
            };
            (format!("there is no server {name:?}"), help)
        }
    };
    Err(Refused::new(Why::NoSuchServer, message, help))
}
