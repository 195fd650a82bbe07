//! What is to be known at a glance.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::{App, shapes, status};
use crate::overview::{self, Overview};

/// The state of everything at a glance
///
/// What is broken, how tools fare, what runs: what the dashboard's first page shows.
#[utoipa::path(
    get,
    operation_id = "get_overview",
    path = "/v1/overview",
    tag = "metrics",
    responses(
        (status = 200, description = "At a glance", body = Overview),
        shapes::Errors,
    )
)]
pub(crate) async fn overview(State(app): State<Arc<App>>) -> Response {
    status::answer(&overview::look(&app).await)
}
