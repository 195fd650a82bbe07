//! Conversations that are kept here: which there are, and what was said in one.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::status::{self, Refused, Why};
use super::{App, Asked, Named, shapes};
use crate::conversations::NotFound;
use crate::conversations::seen::{self, Conversations, SeenConversation};
use steadyhand_config::document::plain;

/// From where on.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BeforeAsked {
    /// `next` of an earlier answer: those that are older
    before: Option<String>,
}

/// Conversations
///
/// Those of `steadyhand chat`, and those through the proxy where `keep_conversations` is set; the one in which something was said last first.
#[utoipa::path(
    get,
    operation_id = "list_conversations",
    path = "/v1/conversations",
    tag = "conversations",
    params(BeforeAsked),
    responses(
        (status = 200, description = "The conversations", body = Conversations),
        shapes::Errors,
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<BeforeAsked>,
) -> Result<Response, Refused> {
    Ok(status::answer(&all(&app, asked.before).await?))
}

/// One conversation
///
/// Turn by turn, each call with its result; of one through the proxy also what was mended in its last request. Of a long one the last MiB.
#[utoipa::path(
    get,
    operation_id = "get_conversation",
    path = "/v1/conversations/{id}",
    tag = "conversations",
    params(("id" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The conversation", body = SeenConversation),
        shapes::NamedErrors,
    )
)]
pub async fn one(State(app): State<Arc<App>>, Named(id): Named) -> Result<Response, Refused> {
    Ok(status::answer(&read(&app, &id).await?))
}

/// The list.
pub async fn all(app: &App, before: Option<String>) -> Result<Conversations, Refused> {
    let state = state(app);
    let listed = tokio::task::spawn_blocking(move || seen::list(&state, before.as_deref())).await;
    match listed {
        Ok(Ok(listed)) => Ok(listed),
        Ok(Err(error)) => Err(unreadable(plain(&error))),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// One of them.
pub async fn read(app: &App, id: &str) -> Result<SeenConversation, Refused> {
    let (state, wanted) = (state(app), id.to_owned());
    match tokio::task::spawn_blocking(move || seen::read(&state, &wanted)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(NotFound::Io(_, error))) => Err(unreadable(plain(&error))),
        Ok(Err(not_found)) => Err(Refused::new(
            Why::NoSuchConversation,
            not_found.to_string(),
            "GET /v1/conversations lists them; the last 200 of each kind are kept",
        )),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

fn state(app: &App) -> PathBuf {
    app.state.get().cloned().unwrap_or_default()
}

fn unreadable(reason: String) -> Refused {
    Refused::new(
        Why::NoHistory,
        format!("conversations cannot be read: {reason}"),
        "Look at the folder conversations below the state folder",
    )
}
