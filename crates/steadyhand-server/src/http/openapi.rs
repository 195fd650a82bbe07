//! All routes in one list, and the OpenAPI 3.1 document that is made from them.

use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use utoipa::OpenApi;
use utoipa::openapi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{
    App, alerts, approvals, audit, batches, calls, config, conversations, events, exchanges,
    health, history, is_open_to_all, keys, metrics, oauth, overview, pins, said, servers, shapes,
    tools, who,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Steadyhand",
        description = "Runs the tools of AI applications: a call goes in, exactly one outcome comes out. Every outcome, failures included, is status 200; any other status says why there is none."
    ),
    servers((url = "/", description = "The server that gave out this document")),
    // On loopback no credentials are needed, until a token or a key is set.
    security((), ("bearer" = [])),
    components(schemas(
        shapes::ApiError,
        shapes::ProblemDetails,
        calls::View,
        conversations::ErrorPart,
        conversations::Part,
        conversations::HostName,
        conversations::ProviderName,
        tools::FormatName,
    )),
    tags(
        (name = "calls", description = "Run tools, and look at past and running calls"),
        (name = "tools", description = "What can be run"),
        (name = "conversations", description = "Messages as providers want them"),
        (name = "servers", description = "MCP servers"),
        (name = "metrics", description = "Counts and times of calls"),
        (name = "events", description = "What happens now, as a stream"),
        (name = "alerts", description = "What somebody should know"),
        (name = "approvals", description = "Calls that wait for a person"),
        (name = "access", description = "Keys, roles, and what was refused"),
        (name = "configuration", description = "The settings in force"),
        (name = "health", description = "For whoever watches over the process"),
        (name = "description", description = "This document"),
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
        .routes(routes!(history::callers))
        .routes(routes!(batches::run))
        .routes(routes!(tools::list))
        .routes(routes!(tools::one))
        .routes(routes!(tools::reset_breaker))
        .routes(routes!(tools::allow_trial))
        .routes(routes!(tools::disable))
        .routes(routes!(tools::enable))
        .routes(routes!(overview::overview))
        .routes(routes!(pins::list))
        .routes(routes!(pins::accept))
        .routes(routes!(pins::reject))
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
        .routes(routes!(approvals::list, approvals::ask))
        .routes(routes!(approvals::decide))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(oauth::metadata))
        .routes(routes!(oauth::metadata_of_mcp))
        .routes(routes!(who::whoami))
        .routes(routes!(who::refusals))
        .routes(routes!(audit::list))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(document))
}

/// The document: what the routes say of themselves, and what goes for all of them.
pub(super) fn described() -> openapi::OpenApi {
    let mut document = routes().into_openapi();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", bearer());
    for (name, response) in shapes::error_responses() {
        components
            .responses
            .insert(name.to_owned(), response.into());
    }
    for (path, item) in &mut document.paths.paths {
        if is_open_to_all(path)
            && let Some(operation) = &mut item.get
        {
            operation.security = Some(Vec::new());
        }
    }
    document
}

fn bearer() -> SecurityScheme {
    let words = "A key (`steadyhand keys create NAME`), the `token` under `[server]`, or a JWT of the issuer under \
        `[server.jwt]`. On loopback none is needed until one of them is set.";
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    SecurityScheme::Http(scheme.description(Some(words)).build())
}

/// This document
///
/// OpenAPI 3.1, for generators of clients.
#[utoipa::path(
    get,
    operation_id = "get_openapi_document",
    path = "/openapi.json",
    tag = "description",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value), shapes::Errors)
)]
async fn document() -> Response {
    // Made when someone asks: most servers are never asked, and start sooner for it.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let text = DOCUMENT.get_or_init(|| described().to_json().unwrap_or_default().into());
    let mut response = Response::new(Body::from(text.clone()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
