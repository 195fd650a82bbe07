//! What happens now, as a stream (SSE).

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::kept_body::until_answered;
use super::status::{Refused, Why};
use super::{Account, App, Asked, shapes};
use crate::live::{self, CannotWatch};

/// Live events
///
/// Calls as they begin and end, breakers, servers, the configuration. A stream that resumes where it broke off: send
/// the last id as Last-Event-ID.
#[utoipa::path(
    get,
    operation_id = "stream_events",
    path = "/v1/events",
    tag = "events",
    params(
        live::Asked,
        ("last-event-id" = Option<String>, Header, description = "The id of the last event that is known: the stream goes on after it"),
    ),
    responses(
        (status = 200, description = "Server-sent events", body = String, content_type = "text/event-stream"),
        shapes::Errors,
    )
)]
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<live::Asked>,
    Account(account): Account,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let slot = app.admission.event_readers.take(&account).map_err(|full| {
        Refused::new(
            Why::Busy,
            full.to_string(),
            "Close one of them, then try again",
        )
    })?;
    let response = live::open(&app.live, &asked, &headers).map_err(|cannot| {
        let why = match cannot {
            CannotWatch::BadFilter(_) => Why::BadRequest,
            CannotWatch::TooManyReaders => Why::Busy,
            CannotWatch::Closing => Why::ShuttingDown,
        };
        Refused::new(why, cannot.to_string(), cannot.help())
    })?;
    Ok(until_answered(response, slot))
}
