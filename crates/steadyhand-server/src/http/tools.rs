//! Tools: all of them, as a consumer wants them, one with everything about it, and its breaker.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use steadyhand::Tool;
use steadyhand_conversation::Provider;
use utoipa::{IntoParams, ToSchema};

use super::status::{self, Refused, Why};
use super::{App, Asked, Asking, Named, shapes};
use crate::views::{self, tools::Format};
use steadyhand_config::role::Right;
use steadyhand_runtime::runtime::{NotSwitched, ToolSwitch};

/// How the tools are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FormatAsked {
    /// Whose shape; the plain list if not said
    #[param(required = false, nullable = false)]
    format: Option<FormatName>,
}

/// Whose shape tools are given in: a provider's, or MCP's.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ToolFormat)]
pub enum FormatName {
    Anthropic,
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Gemini,
    Mistral,
    Ollama,
    BedrockConverse,
    #[serde(rename = "langchain")]
    LangChain,
    Mcp,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Format {
        Format::Of(match name {
            FormatName::Anthropic => Provider::Anthropic,
            FormatName::OpenAi => Provider::OpenAi,
            FormatName::OpenAiResponses => Provider::OpenAiResponses,
            FormatName::Gemini => Provider::Gemini,
            FormatName::Mistral => Provider::Mistral,
            FormatName::Ollama => Provider::Ollama,
            FormatName::BedrockConverse => Provider::BedrockConverse,
            FormatName::LangChain => Provider::LangChain,
            FormatName::Mcp => return Format::Mcp,
        })
    }
}

/// All tools
///
/// In stable order. With a format, as that consumer wants them.
#[utoipa::path(
    get,
    operation_id = "list_tools",
    path = "/v1/tools",
    tag = "tools",
    params(FormatAsked),
    responses(
        (status = 200, description = "The tools", body = shapes::ToolList),
        shapes::Errors,
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<FormatAsked>,
    Asking(identity): Asking,
) -> Response {
    let may_use = |tool: &Tool| identity.tools.include(tool.name());
    let mut view = match asked.format {
        None => views::tools::list(&app.runtime, may_use),
        Some(format) => views::tools::converted(&app.runtime, format.into(), may_use),
    };
    if !identity.may(Right::View) {
        // What is the matter with tools of others is not for everybody.
        for name in ["problems", "left_out"] {
            if view.get(name).is_some() {
                view[name] = json!([]);
            }
        }
    }
    status::answer(&view)
}

/// One tool
///
/// With its policy and where each value comes from, its breaker and its counters.
#[utoipa::path(
    get,
    operation_id = "get_tool",
    path = "/v1/tools/{name}",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "The tool", body = shapes::Tool),
        shapes::NamedErrors,
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Named(name): Named,
    Asking(identity): Asking,
) -> Result<Response, Refused> {
    let found = app.runtime.manager().find(&name);
    let may_use = found.is_none_or(|tool| identity.tools.include(tool.name()));
    match views::tools::one(&app.runtime, &name) {
        Some(mut view) if may_use => {
            // The counters are of everybody's calls.
            if let (false, Some(fields)) = (identity.may(Right::View), view.as_object_mut()) {
                fields.remove("metrics");
            }
            Ok(status::answer(&view))
        }
        _ if identity.tools.are_all() => Err(no_such_tool(&app, &name)),
        // A name that is nearly right may be one of those that are not for this one.
        _ => Err(Refused::new(
            Why::NoSuchTool,
            format!("there is no tool {name:?}"),
            "GET /v1/tools lists all",
        )),
    }
}

/// Close a breaker by hand
///
/// Calls pass again at once, and its failures are counted from zero.
#[utoipa::path(
    post,
    operation_id = "reset_breaker",
    path = "/v1/tools/{name}/breaker/reset",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "The breaker as it is now", body = shapes::ToolBreaker),
        shapes::NamedErrors,
    )
)]
pub async fn reset_breaker(
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

/// Let one call through an open breaker
///
/// The next call is the trial, without waiting for the end of the rest; it decides whether the breaker closes.
#[utoipa::path(
    post,
    operation_id = "allow_breaker_trial",
    path = "/v1/tools/{name}/breaker/trial",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "The breaker as it is now", body = shapes::ToolBreaker),
        shapes::NamedErrors,
    )
)]
pub async fn allow_trial(
    State(app): State<Arc<App>>,
    Named(name): Named,
) -> Result<Response, Refused> {
    let manager = app.runtime.manager();
    let Some(tool) = manager.find(&name) else {
        return Err(no_such_tool(&app, &name));
    };
    manager.allow_trial(&name);
    let breaker = manager.breaker(&name);
    Ok(status::answer(
        &json!({"name": tool.name(), "breaker": breaker}),
    ))
}

/// Switch a tool off
///
/// Writes `enabled = false` into the configuration file and puts it in force: the tool is in no list and cannot be called.
#[utoipa::path(
    post,
    operation_id = "disable_tool",
    path = "/v1/tools/{name}/disable",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "It is switched off", body = shapes::ToolSwitched),
        shapes::NamedErrors,
    )
)]
pub async fn disable(State(app): State<Arc<App>>, Named(name): Named) -> Result<Response, Refused> {
    switched(&app, &name, false).await
}

/// Switch a tool on again
///
/// Writes `enabled = true` into the configuration file and puts it in force.
#[utoipa::path(
    post,
    operation_id = "enable_tool",
    path = "/v1/tools/{name}/enable",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "It is switched on", body = shapes::ToolSwitched),
        shapes::NamedErrors,
    )
)]
pub async fn enable(State(app): State<Arc<App>>, Named(name): Named) -> Result<Response, Refused> {
    switched(&app, &name, true).await
}

async fn switched(app: &App, name: &str, on: bool) -> Result<Response, Refused> {
    let switch = switch(app, name, on).await?;
    let setting = switch.setting(on);
    Ok(status::answer(
        &json!({"name": switch.tool, "enabled": on, "setting": setting}),
    ))
}

/// Switches a tool by the configuration file.
pub async fn switch(app: &App, name: &str, on: bool) -> Result<ToolSwitch, Refused> {
    app.runtime
        .switch_tool(name, on)
        .await
        .map_err(|why| match why {
            NotSwitched::NoSuchTool => no_such_tool(app, name),
            NotSwitched::File { message, help } => Refused::new(Why::ConfigInvalid, message, help),
            NotSwitched::Wrong(report) => Refused::new(
                Why::ConfigInvalid,
                format!("{name:?} is as it was: {report}"),
                "See what is wrong: steadyhand config check",
            ),
        })
}

/// What an answer repeats of a name that nobody knows.
const NAME_SHOWN_BYTES_MAX: usize = 300;

pub fn no_such_tool(app: &App, name: &str) -> Refused {
    let help = match views::tools::near(&app.runtime, name) {
        Some(near) => format!("Did you mean {near}? GET /v1/tools lists all"),
        None => "GET /v1/tools lists all".to_owned(),
    };
    let name = steadyhand::cut::text(name, NAME_SHOWN_BYTES_MAX);
    Refused::new(Why::NoSuchTool, format!("there is no tool {name:?}"), help)
}
