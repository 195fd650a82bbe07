//! Tools: all of them, as a consumer wants them, one with everything about it, and its breaker.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::status::{self, Refused, Why};
use super::{App, Asked, Named, shapes};
use crate::views;

/// How the tools are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FormatAsked {
    /// anthropic, openai, openai-responses, gemini, mistral, ollama, langchain or mcp
    format: Option<String>,
}

/// All tools
///
/// In stable order. With a format, as that consumer wants them.
#[utoipa::path(
    get,
    path = "/v1/tools",
    tag = "tools",
    params(FormatAsked),
    responses(
        (status = 200, description = "The tools", body = shapes::ToolList),
        shapes::Refusals,
    )
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<FormatAsked>,
) -> Result<Response, Refused> {
    let view = match asked.format {
        None => views::tools::list(&app.runtime),
        Some(format) => {
            let format = format.parse().map_err(|wrong: String| {
                Refused::new(
                    Why::BadRequest,
                    wrong,
                    "Leave format out for the plain list",
                )
            })?;
            views::tools::converted(&app.runtime, format)
        }
    };
    Ok(status::answer(&view))
}

/// One tool
///
/// With its policy and where each value comes from, its breaker and its counters.
#[utoipa::path(
    get,
    path = "/v1/tools/{name}",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "The tool", body = shapes::Tool),
        shapes::NamedRefusals,
    )
)]
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    Named(name): Named,
) -> Result<Response, Refused> {
    match views::tools::one(&app.runtime, &name) {
        Some(view) => Ok(status::answer(&view)),
        None => Err(no_such_tool(&app, &name)),
    }
}

/// Close a breaker by hand
#[utoipa::path(
    post,
    path = "/v1/tools/{name}/breaker/reset",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "The breaker as it is now", body = shapes::BreakerReset),
        shapes::NamedRefusals,
    )
)]
pub(crate) async fn reset_breaker(
    State(app): State<Arc<App>>,
    Named(name): Named,
) -> Result<Response, Refused> {
    let manager = app.runtime.manager();
    let Some(tool) = manager.find(&name) else {
        return Err(no_such_tool(&app, &name));
    };
    manager.reset_breaker(&name);
    let breaker = manager.breaker(&name);
    Ok(status::answer(
        &json!({"name": tool.name(), "breaker": breaker}),
    ))
}

pub(crate) fn no_such_tool(app: &App, name: &str) -> Refused {
    let help = match views::tools::near(&app.runtime, name) {
        Some(near) => format!("Did you mean {near}? GET /v1/tools lists all"),
        None => "GET /v1/tools lists all".to_owned(),
    };
    Refused::new(Why::NoSuchTool, format!("there is no tool {name:?}"), help)
}
