//! Tools whose definition is another than before: shown, accepted, rejected.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::status::{self, Refused, Why};
use super::{App, Named, shapes};

/// Tools whose definition changed
///
/// What is another than before, place by place; what is suspicious; and what is kept away until it is accepted.
#[utoipa::path(
    get,
    operation_id = "list_tool_changes",
    path = "/v1/tool-changes",
    tag = "tools",
    responses(
        (status = 200, description = "The changes", body = shapes::ToolChanges),
        shapes::Errors,
    )
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Response {
    let changes = app.pins.changes();
    status::answer(&json!({"count": changes.len(), "changes": changes}))
}

/// Accept the definition of a tool as it is now
///
/// It counts from here on; a tool that was kept away can be called again.
#[utoipa::path(
    post,
    operation_id = "accept_tool_change",
    path = "/v1/tool-changes/{name}/accept",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "It counts from here on", body = shapes::ToolAccepted),
        shapes::NamedErrors,
    )
)]
pub(crate) async fn accept(
    State(app): State<Arc<App>>,
    Named(name): Named,
) -> Result<Response, Refused> {
    let source = take_over(&app, &name).await?;
    Ok(status::answer(
        &json!({"name": name, "source": source, "accepted": true}),
    ))
}

/// Reject the definition of a tool as it is now
///
/// The tool stays away until its server gives it another definition, or until this one is accepted.
#[utoipa::path(
    post,
    operation_id = "reject_tool_change",
    path = "/v1/tool-changes/{name}/reject",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "It is kept away from here on", body = shapes::ToolRejected),
        shapes::NamedErrors,
    )
)]
pub(crate) async fn reject(
    State(app): State<Arc<App>>,
    Named(name): Named,
) -> Result<Response, Refused> {
    let source = turn_down(&app, &name).await?;
    Ok(status::answer(
        &json!({"name": name, "source": source, "rejected": true}),
    ))
}

/// The definition as it is now stays away; the server it comes from.
pub(crate) async fn turn_down(app: &App, name: &str) -> Result<String, Refused> {
    let Some(source) = app.pins.reject(name) else {
        return Err(nothing_waits(name));
    };
    app.runtime.renew(&source).await;
    Ok(source)
}

/// The definition as it is now counts from here on; the server it comes from.
pub(crate) async fn take_over(app: &App, name: &str) -> Result<String, Refused> {
    let Some(source) = app.pins.accept(name) else {
        return Err(nothing_waits(name));
    };
    app.runtime.renew(&source).await;
    Ok(source)
}

pub(crate) fn nothing_waits(name: &str) -> Refused {
    Refused::new(
        Why::NoSuchTool,
        format!("no change of a tool {name:?} waits to be accepted or rejected"),
        "GET /v1/tool-changes lists those that do",
    )
}
