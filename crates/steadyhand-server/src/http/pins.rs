//! Tools whose definition is another than before: shown, accepted, rejected.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::audit::WhatChanged;
use super::limits::{Sent, Wanted};
use super::status::{self, Refused, Why};
use super::{App, Asking, Named, shapes};
use steadyhand_runtime::access::{By, Identity};
use steadyhand_runtime::pins::{Change, NotDecided, SeenDefinition};

/// Which definition is meant
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ToolChangeDecision, example = json!({"definition_hash": "sha256:…"}))]
pub struct DefinitionSeen {
    /// What was seen: `definition_hash` of the change. Refused with 409 and the hash of now, if the definition changed
    /// since. Without it, the definition counts that the list showed to these credentials last
    #[schema(nullable = false)]
    pub definition_hash: Option<String>,
}

impl Wanted for DefinitionSeen {
    const SHAPE: &'static str = "an object: {definition_hash}";
    const EXAMPLE: &'static str = r#"{"definition_hash": "sha256:…"}"#;
    // Clients of 0.1.0 send no body.
    const IF_EMPTY: Option<&'static [u8]> = Some(b"{}");
}

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
pub async fn list(State(app): State<Arc<App>>, Asking(identity): Asking) -> Response {
    let changes = match reader(&identity) {
        Some(reader) => app.pins.changes_shown_to(&reader),
        None => app.pins.changes(),
    };
    status::answer(&json!({"count": changes.len(), "changes": changes}))
}

/// Accept the definition of a tool as it was seen
///
/// It counts from here on; a tool that was kept away can be called again. `definition_hash` says which definition was seen:
/// another one is not accepted.
#[utoipa::path(
    post,
    operation_id = "accept_tool_change",
    path = "/v1/tool-changes/{name}/accept",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    request_body = DefinitionSeen,
    responses(
        (status = 200, description = "It counts from here on", body = shapes::ToolAccepted),
        shapes::NamedBodyErrors,
    )
)]
pub async fn accept(
    State(app): State<Arc<App>>,
    Named(name): Named,
    Asking(identity): Asking,
    sent: Sent<DefinitionSeen>,
) -> Result<Response, Refused> {
    let reader = reader(&identity);
    let seen = match (&sent.value.definition_hash, &reader) {
        (Some(hash), _) => SeenDefinition::Hash(hash),
        (None, reader) => SeenDefinition::AsShownTo(reader.as_deref().unwrap_or_default()),
    };
    let change = take_over(&app, &name, seen).await?;
    let mut response = status::answer(&json!({
        "name": name, "source": change.source, "accepted": true, "definition_hash": change.definition_hash,
    }));
    response.extensions_mut().insert(decided(&change));
    Ok(response)
}

/// Reject the definition of a tool as it is now
///
/// The tool stays away until its server gives it another definition, or until this one is accepted. With
/// `definition_hash`, no other definition is rejected.
#[utoipa::path(
    post,
    operation_id = "reject_tool_change",
    path = "/v1/tool-changes/{name}/reject",
    tag = "tools",
    params(("name" = String, Path, description = "The tool")),
    request_body = DefinitionSeen,
    responses(
        (status = 200, description = "It is kept away from here on", body = shapes::ToolRejected),
        shapes::NamedBodyErrors,
    )
)]
pub async fn reject(
    State(app): State<Arc<App>>,
    Named(name): Named,
    sent: Sent<DefinitionSeen>,
) -> Result<Response, Refused> {
    // Without a hash it only takes away, whatever it is.
    let seen = sent.value.definition_hash.as_deref();
    let seen = seen.map_or(SeenDefinition::Any, SeenDefinition::Hash);
    let change = turn_down(&app, &name, seen).await?;
    let mut response = status::answer(&json!({
        "name": name, "source": change.source, "rejected": true, "definition_hash": change.definition_hash,
    }));
    response.extensions_mut().insert(decided(&change));
    Ok(response)
}

/// Who has seen the list; none where that could be anybody.
fn reader(identity: &Identity) -> Option<String> {
    let name = identity.name.as_deref().unwrap_or_default();
    (identity.by != By::Nothing).then(|| format!("{} {name}", identity.by.word()))
}

/// The definition that was seen stays away.
pub async fn turn_down(app: &App, name: &str, seen: SeenDefinition<'_>) -> Result<Change, Refused> {
    let rejected = app.pins.reject(name, seen);
    let change = rejected.map_err(|why| not_decided(name, &why))?;
    app.runtime.renew(&change.source).await;
    Ok(change)
}

/// The definition that was seen counts from here on.
pub async fn take_over(app: &App, name: &str, seen: SeenDefinition<'_>) -> Result<Change, Refused> {
    let accepted = app.pins.accept(name, seen);
    let change = accepted.map_err(|why| not_decided(name, &why))?;
    app.runtime.renew(&change.source).await;
    Ok(change)
}

/// What the audit log says of it afterwards.
pub fn decided(change: &Change) -> WhatChanged {
    WhatChanged {
        subject: change.tool.clone(),
        after: state_after(change),
    }
}

/// The definition that counts, or does not, after a decision.
pub fn state_after(change: &Change) -> Value {
    json!({
        "tool": change.tool,
        "source": change.source,
        "definition_hash": change.definition_hash,
        "accepted": !change.rejected,
    })
}

fn not_decided(name: &str, why: &NotDecided) -> Refused {
    let (definition_hash, is_named) = match why {
        NotDecided::NoSuchChange => {
            return Refused::new(
                Why::NoSuchTool,
                format!("no change of a tool {name:?} waits to be accepted or rejected"),
                "GET /v1/tool-changes lists those that do",
            );
        }
        NotDecided::AnotherDefinition {
            definition_hash,
            is_named,
        } => (definition_hash, *is_named),
    };
    let message = match is_named {
        true => format!("the definition of {name:?} changed since it was seen"),
        false => format!(
            "the definition of {name:?} was not shown to these credentials, or changed since it was"
        ),
    };
    Refused::new(
        Why::DefinitionChanged,
        message,
        "Nothing was accepted or rejected. Look at what it says now (GET /v1/tool-changes), and send the definition_hash of what you have seen",
    )
    .with("definition_hash", json!(definition_hash))
}
