//! Alerts: listed, acknowledged, silenced (SPEC R12).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::status::{self, Refused, Why};
use super::{App, Asked, Caller, Named, shapes};
use crate::alerts::Alert;

const HOUR_MS: u64 = 60 * 60 * 1000;
const SILENCE_MS_MAX: u64 = 30 * 24 * HOUR_MS;

/// Alerts, now and earlier
///
/// Those that are so, then those that are over and why; the rules, and how telling others went.
#[utoipa::path(
    get,
    operation_id = "list_alerts",
    path = "/v1/alerts",
    tag = "alerts",
    responses((status = 200, description = "The alerts", body = shapes::AlertList), shapes::Errors)
)]
pub async fn list(State(app): State<Arc<App>>) -> Response {
    status::answer(&app.alerts.view())
}

/// Say that somebody knows
///
/// The alert stays on the list, with who acknowledged it.
#[utoipa::path(
    post,
    operation_id = "acknowledge_alert",
    path = "/v1/alerts/{id}/ack",
    tag = "alerts",
    params(("id" = String, Path, description = "The alert")),
    responses(
        (status = 200, description = "The alert as it is now", body = Alert),
        shapes::NamedErrors,
    )
)]
pub async fn acknowledge(
    State(app): State<Arc<App>>,
    Named(id): Named,
    caller: Caller,
) -> Result<Response, Refused> {
    match app.alerts.acknowledge(&id, &caller.name) {
        Some(alert) => Ok(status::answer(&alert)),
        None => Err(no_such_alert(&id)),
    }
}

/// For how long.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SilenceAsked {
    /// In milliseconds; an hour if not said
    #[param(minimum = 1, maximum = 2_592_000_000u64)]
    for_ms: Option<u64>,
}

/// Tell nobody for a while
///
/// Neither of this one nor of another of the same kind about the same tool or server. It stays on the list.
#[utoipa::path(
    post,
    operation_id = "silence_alert",
    path = "/v1/alerts/{id}/silence",
    tag = "alerts",
    params(("id" = String, Path, description = "The alert"), SilenceAsked),
    responses(
        (status = 200, description = "The alert as it is now", body = Alert),
        shapes::NamedErrors,
    )
)]
pub async fn silence(
    State(app): State<Arc<App>>,
    Named(id): Named,
    Asked(asked): Asked<SilenceAsked>,
) -> Result<Response, Refused> {
    let ms = asked.for_ms.unwrap_or(HOUR_MS);
    if !(1..=SILENCE_MS_MAX).contains(&ms) {
        return Err(Refused::new(
            Why::BadRequest,
            format!("for_ms is {ms}"),
            format!("Give 1 to {SILENCE_MS_MAX}"),
        ));
    }
    match app.alerts.silence(&id, Duration::from_millis(ms)) {
        Some(alert) => Ok(status::answer(&alert)),
        None => Err(no_such_alert(&id)),
    }
}

pub fn no_such_alert(id: &str) -> Refused {
    Refused::new(
        Why::NoSuchAlert,
        format!("there is no alert {id:?}, or it is over"),
        "GET /v1/alerts lists them",
    )
}
