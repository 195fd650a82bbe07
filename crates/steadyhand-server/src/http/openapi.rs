//! All routes in one list, and the OpenAPI 3.1 document that is made from them.

use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{
    App, alerts, approvals, batches, calls, config, conversations, events, exchanges, health,
    history, keys, metrics, overview, pins, said, servers, shapes, tools, who,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Steadyhand",
        description = "Runs the tools of AI applications: a call goes in, exactly one outcome comes out."
    ),
    components(schemas(shapes::Refusal)),
    tags(
        (name = "calls", description = "Running tools"),
        (name = "tools", description = "What can be run"),
        (name = "conversations", description = "Messages as providers want them"),
    )
)]
struct Description;

/// Every route there is.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(calls::run, history::list))
        .routes(routes!(history::one, calls::cancel))
        .routes(routes!(history::replay))
        .routes(routes!(history::export))
        .routes(routes!(history::trends))
        .routes(routes!(batches::run))
        .routes(routes!(tools::list))
        .routes(routes!(tools::one))
        .routes(routes!(tools::reset_breaker))
        .routes(routes!(tools::allow_trial))
        .routes(routes!(overview::overview))
        .routes(routes!(pins::list))
        .routes(routes!(pins::accept))
        .routes(routes!(metrics::all))
        .routes(routes!(metrics::one))
        .routes(routes!(metrics::prometheus))
        .routes(routes!(said::list))
        .routes(routes!(said::one))
        .routes(routes!(conversations::validate))
        .routes(routes!(conversations::repair))
        .routes(routes!(conversations::turn))
        .routes(routes!(conversations::error_response))
        .routes(routes!(exchanges::list))
        .routes(routes!(config::show))
        .routes(routes!(config::reload))
        .routes(routes!(events::stream))
        .routes(routes!(servers::list))
        .routes(routes!(servers::restart))
        .routes(routes!(servers::logs))
        .routes(routes!(alerts::list))
        .routes(routes!(alerts::acknowledge))
        .routes(routes!(alerts::silence))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::decide))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(who::whoami))
        .routes(routes!(who::refusals))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(document))
}

/// This document
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "description",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value), shapes::Refusals)
)]
async fn document() -> Response {
    // Made when someone asks: most servers are never asked, and start sooner for it.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let text =
        DOCUMENT.get_or_init(|| routes().into_openapi().to_json().unwrap_or_default().into());
    let mut response = Response::new(Body::from(text.clone()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
