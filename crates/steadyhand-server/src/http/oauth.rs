//! Where to get credentials (RFC 9728): what an MCP client asks that was let in nowhere.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::status::{self, Refused, Why};
use super::{App, shapes};

pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
pub(super) const WELL_KNOWN_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

/// Who issues tokens for this server
///
/// RFC 9728, for whoever has none yet. 404 where no issuer is configured.
#[utoipa::path(
    get,
    operation_id = "get_oauth_metadata",
    path = "/.well-known/oauth-protected-resource",
    tag = "access",
    responses(
        (status = 200, description = "The metadata", body = shapes::OauthMetadata),
        shapes::OpenNamedErrors,
    )
)]
pub(crate) async fn metadata(State(app): State<Arc<App>>) -> Result<Response, Refused> {
    match &app.access.load().jwt {
        Some(jwt) => Ok(status::answer(&jwt.metadata())),
        None => Err(Refused::new(
            Why::NoSuchRoute,
            "this server takes no tokens of an issuer",
            "Set issuer and audience under [server.jwt], or use a key: steadyhand keys create NAME",
        )),
    }
}

/// Who issues tokens for /mcp
///
/// The same, at the address that belongs to /mcp.
#[utoipa::path(
    get,
    operation_id = "get_oauth_metadata_of_mcp",
    path = "/.well-known/oauth-protected-resource/mcp",
    tag = "access",
    responses(
        (status = 200, description = "The metadata", body = shapes::OauthMetadata),
        shapes::OpenNamedErrors,
    )
)]
pub(crate) async fn metadata_of_mcp(State(app): State<Arc<App>>) -> Result<Response, Refused> {
    metadata(State(app)).await
}
