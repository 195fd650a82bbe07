//! API keys: made, listed, revoked.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;
use steadyhand::clock;
use utoipa::ToSchema;

use super::audit::WhatChanged;
use super::limits::{Sent, Wanted};
use super::status::{self, Refused, Why};
use super::{App, Asking, Named, shapes};
use crate::views;
use steadyhand_config::role::Role;
use steadyhand_config::units::Rate;
use steadyhand_runtime::access::{By, CannotKeep, NewKey, Tools};

/// A key to be made
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyRequest, example = json!({"name": "ci", "role": "caller", "allow": ["weather*"], "rate": "60/min"}))]
pub(crate) struct KeyWanted {
    /// Letters, digits, - _ . and spaces
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// What it lets its owner do
    role: Role,
    /// The tools it may use, by name or pattern; all if not said
    #[serde(default)]
    #[schema(required = false)]
    allow: Vec<String>,
    /// Tools it may not use, whatever is allowed
    #[serde(default)]
    #[schema(required = false)]
    deny: Vec<String>,
    /// How many calls in which time: 10/s, 60/min, 500/hour
    rate: Option<String>,
    /// When it is of no more use, from now on
    #[schema(minimum = 1)]
    expires_in_ms: Option<u64>,
}

impl Wanted for KeyWanted {
    const SHAPE: &'static str = "an object: {name, role}";
    const EXAMPLE: &'static str = r#"{"name": "ci", "role": "caller", "allow": ["weather*"]}"#;
}

/// The keys there are
///
/// The newest first, revoked ones too. What it takes to use one is not among it.
#[utoipa::path(
    get,
    operation_id = "list_keys",
    path = "/v1/keys",
    tag = "access",
    responses((status = 200, description = "The keys", body = shapes::KeyList), shapes::Errors)
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response, Refused> {
    let view = on_the_disk(&app, |app| {
        let keys = app.door.keys.list()?;
        Ok(views::keys::list(&keys, clock::wall_ms()))
    });
    Ok(status::answer(&view.await?))
}

/// Make a key
///
/// The answer has the key itself, this once: only its digest is kept.
#[utoipa::path(
    post,
    operation_id = "create_key",
    path = "/v1/keys",
    tag = "access",
    request_body = KeyWanted,
    responses((status = 200, description = "The key", body = shapes::CreatedKey), shapes::BodyErrors)
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Asking(identity): Asking,
    sent: Sent<KeyWanted>,
) -> Result<Response, Refused> {
    if identity.by == By::Nothing {
        // With the first key the server asks everybody for one: that is for whoever runs it to decide.
        return Err(Refused::new(
            Why::NotAllowed,
            "this server asks for no credentials, and would ask everybody once there is a key",
            "Make the first key with a command: steadyhand keys create NAME",
        ));
    }
    let wanted = sent.value;
    let wrong = |message| Refused::new(Why::BadRequest, message, "Send what the example shows");
    let rate = wanted.rate.map(|rate| rate.parse::<Rate>());
    let rate = rate.transpose().map_err(wrong)?;
    let now_ms = clock::wall_ms();
    let expires_ms = wanted.expires_in_ms.map(|ms| now_ms.saturating_add(ms));
    let view = on_the_disk(&app, move |app| {
        let new = NewKey {
            name: wanted.name.clone(),
            role: wanted.role,
            tools: Tools {
                allow: wanted.allow.clone(),
                deny: wanted.deny.clone(),
            },
            rate,
            expires_ms,
        };
        let (key, secret) = app.door.keys.create(new)?;
        let mut view = views::keys::one(&key, now_ms);
        let changed = WhatChanged {
            subject: key.name,
            after: view.clone(),
        };
        view["key"] = json!(secret.expose_secret());
        Ok((view, changed))
    });
    let (view, changed) = view.await?;
    let mut response = status::answer(&view);
    response.extensions_mut().insert(changed);
    Ok(response)
}

/// Revoke a key
///
/// From the next request on it lets nobody in.
#[utoipa::path(
    delete,
    operation_id = "revoke_key",
    path = "/v1/keys/{id}",
    tag = "access",
    params(("id" = String, Path, description = "The key's id, or its name")),
    responses(
        (status = 200, description = "The key, revoked", body = shapes::Key),
        shapes::NamedErrors,
    )
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Named(id): Named,
) -> Result<Response, Refused> {
    let view = on_the_disk(&app, move |app| {
        let key = app.door.keys.revoke(&id)?;
        Ok(views::keys::one(&key, clock::wall_ms()))
    });
    Ok(status::answer(&view.await?))
}

/// Files are read where waiting is no harm, and nobody waits for ever.
async fn on_the_disk<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<T, CannotKeep> + Send + 'static,
) -> Result<T, Refused> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let app = Arc::clone(app);
    let working = tokio::task::spawn_blocking(move || work(&app));
    let unavailable = |reason: String| {
        Refused::new(
            Why::NoKeys,
            format!("the keys cannot be read or written: {reason}"),
            "See to the file and ask again",
        )
    };
    match tokio::time::timeout(PATIENCE, working).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(CannotKeep::Wrong(message)))) => Err(Refused::new(
            Why::BadRequest,
            message,
            "GET /v1/keys lists what there is",
        )),
        Ok(Ok(Err(error @ CannotKeep::NoSuchKey(_)))) => Err(Refused::new(
            Why::NoSuchKey,
            error.to_string(),
            "GET /v1/keys lists what there is",
        )),
        Ok(Ok(Err(CannotKeep::File(reason)))) => Err(unavailable(reason)),
        Ok(Err(error)) => Err(unavailable(error.to_string())),
        Err(_) => Err(unavailable("another process holds them".to_owned())),
    }
}
