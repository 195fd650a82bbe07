//! Counts and times of calls, by tool (SPEC R08).

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::status::{self, Refused};
use super::tools::no_such_tool;
use super::{App, Named, shapes};
use crate::{telemetry, views};

/// The counters of all tools
///
/// Of calls since the server started.
#[utoipa::path(
    get,
    operation_id = "list_metrics",
    path = "/v1/metrics",
    tag = "metrics",
    responses(
        (status = 200, description = "The counters", body = shapes::MetricsList),
        shapes::Errors,
    )
)]
pub(crate) async fn all(State(app): State<Arc<App>>) -> Response {
    status::answer(&views::metrics::all(&app.runtime))
}

/// The counters of one tool
///
/// Of calls since the server started.
#[utoipa::path(
    get,
    operation_id = "get_tool_metrics",
    path = "/v1/metrics/{tool}",
    tag = "metrics",
    params(("tool" = String, Path, description = "The tool")),
    responses(
        (status = 200, description = "The counters", body = shapes::Metrics),
        shapes::NamedErrors,
    )
)]
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    Named(tool): Named,
) -> Result<Response, Refused> {
    match views::metrics::one(&app.runtime, &tool) {
        Some(view) => Ok(status::answer(&view)),
        None => Err(no_such_tool(&app, &tool)),
    }
}

/// The same for Prometheus
///
/// In its own text format, or as OpenMetrics where the accept header prefers that.
#[utoipa::path(
    get,
    operation_id = "get_prometheus_metrics",
    path = "/metrics",
    tag = "metrics",
    responses(
        (status = 200, description = "The figures", body = String, content_type = "text/plain"),
        shapes::Errors,
    )
)]
pub(crate) async fn prometheus(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    telemetry::prometheus::metrics(State(Arc::clone(&app.figures)), headers).await
}
