//! Which right an address wants: one table for all of them. What is not in it is for nobody.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::mcp;
use super::proxied;
use super::status::{Refused, Why};
use super::who::Asking;
use steadyhand_config::role::Right;
use steadyhand_runtime::access::{By, Identity};

/// Every address but those that everybody may ask: whether the server lives.
pub const TABLE: [(&str, &str, Right); 49] = [
    ("POST", "/v1/calls", Right::Call),
    ("GET", "/v1/calls", Right::Know),
    ("GET", "/v1/calls/{id}", Right::Know),
    ("DELETE", "/v1/calls/{id}", Right::Call),
    ("POST", "/v1/calls/{id}/replay", Right::Call),
    ("GET", "/v1/calls.ndjson", Right::Know),
    ("POST", "/v1/batches", Right::Call),
    ("POST", "/v1/turns", Right::Call),
    ("GET", "/v1/tools", Right::Know),
    ("GET", "/v1/tools/{name}", Right::Know),
    ("POST", "/v1/tools/{name}/breaker/reset", Right::Operate),
    ("POST", "/v1/tools/{name}/breaker/trial", Right::Operate),
    ("POST", "/v1/tools/{name}/disable", Right::Administer),
    ("POST", "/v1/tools/{name}/enable", Right::Administer),
    ("GET", "/v1/overview", Right::View),
    ("GET", "/v1/conversations", Right::View),
    ("GET", "/v1/conversations/{id}", Right::View),
    ("GET", "/v1/tool-changes", Right::View),
    ("POST", "/v1/tool-changes/{name}/accept", Right::Operate),
    ("POST", "/v1/tool-changes/{name}/reject", Right::Operate),
    ("POST", "/v1/validate", Right::Know),
    ("POST", "/v1/repair", Right::Know),
    ("POST", "/v1/error-response", Right::Know),
    ("GET", "/v1/metrics", Right::View),
    ("GET", "/v1/metrics/{tool}", Right::View),
    ("GET", "/metrics", Right::View),
    ("GET", "/v1/trends", Right::View),
    ("GET", "/v1/callers", Right::View),
    ("GET", "/v1/exchanges", Right::View),
    ("GET", "/v1/events", Right::View),
    ("GET", "/v1/servers", Right::View),
    ("GET", "/v1/servers/{name}/logs", Right::View),
    ("POST", "/v1/servers/{name}/restart", Right::Operate),
    ("GET", "/v1/config", Right::View),
    ("POST", "/v1/config/reload", Right::Administer),
    ("GET", "/v1/alerts", Right::View),
    ("POST", "/v1/alerts/{id}/ack", Right::Operate),
    ("POST", "/v1/alerts/{id}/silence", Right::Operate),
    ("GET", "/v1/approvals", Right::Know),
    ("POST", "/v1/approvals/{id}", Right::Operate),
    ("GET", "/v1/keys", Right::Administer),
    ("POST", "/v1/keys", Right::Administer),
    ("DELETE", "/v1/keys/{id}", Right::Administer),
    ("GET", "/v1/refusals", Right::Administer),
    ("GET", "/v1/audit", Right::Administer),
    ("GET", "/v1/whoami", Right::Know),
    ("POST", "/mcp", Right::Call),
    ("GET", "/mcp", Right::Call),
    ("DELETE", "/mcp", Right::Call),
];

/// What needs no right: `/openapi.json` says only what everybody can read in the documentation.
const FREE: [&str; 5] = [
    "/health/live",
    "/health/ready",
    "/openapi.json",
    super::oauth::WELL_KNOWN,
    super::oauth::WELL_KNOWN_MCP,
];

/// What only commands on this machine ask, which may read the state folder.
const LOCAL: [(&str, &str); 1] = [("POST", "/v1/approvals")];

/// What an operator may change without credentials where a server asks nobody for any. Everything else that changes
/// something is a decision, and takes some all the same: a program that the server started could make it otherwise.
///
/// These get around nothing. A breaker closes also when its server starts again, which a server can bring about by ending;
/// calls can be ended by whoever may call; the configuration is read again whenever its file changes; and a first key is
/// refused by its route. Each is written down, so their number is bounded ([`steadyhand_runtime::access::Door::unidentified`]).
const OPEN_CHANGES: [(&str, &str); 5] = [
    ("POST", "/v1/tools/{name}/breaker/reset"),
    ("POST", "/v1/tools/{name}/breaker/trial"),
    ("POST", "/v1/servers/{name}/restart"),
    ("POST", "/v1/config/reload"),
    ("POST", "/v1/keys"),
];

/// What somebody is told who may decide nothing before they show who they are.
pub fn undecided() -> Refused {
    Refused::new(
        Why::NoToken,
        "this decision takes a credential, also where the server asks for none otherwise: any program on this machine could make it",
        "The commands (steadyhand approve, tools accept, alerts silence, keys create) show it by themselves, and steadyhand approvals prints a link that logs a browser in. Over HTTP send Authorization: Bearer … with the token of the server's file in the state folder, a token set under [server], or a key. Nothing was changed",
    )
}

/// Lets a request pass that was found an address, if whoever asks may.
pub(super) async fn check(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map(MatchedPath::as_str).unwrap_or_default();
    let identity = request.extensions().get::<Asking>();
    let identity = identity.map(|Asking(identity)| &**identity);
    match may_pass(request.method(), path, identity) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

/// Whether somebody may ask this of an address.
pub(super) fn may_pass(
    method: &Method,
    path: &str,
    identity: Option<&Identity>,
) -> Result<(), Refused> {
    if FREE.contains(&path) {
        return Ok(());
    }
    let right = right_of(method, path);
    if LOCAL.contains(&(method.as_str(), path)) {
        let is_local = identity.is_some_and(|identity| identity.by == By::Local);
        return match is_local {
            true => Ok(()),
            false => Err(Refused::new(
                Why::NotAllowed,
                "only commands on the server's own machine ask this",
                "Call a tool that needs approval: POST /v1/calls waits for it",
            )),
        };
    }
    // An address that takes any method says itself which it does not take.
    if path == mcp::PATH && right.is_none() {
        return Ok(());
    }
    let (Some(right), Some(identity)) = (right, identity) else {
        return Err(Refused::new(
            Why::NotAllowed,
            format!("nobody may {method} {path}"),
            "This should not happen: please report it",
        ));
    };
    if identity.may(right) {
        return match is_decision(method, path, right) && !identity.may_decide() {
            true => Err(undecided()),
            false => Ok(()),
        };
    }
    let who = identity.name.as_deref().unwrap_or("this caller");
    Err(Refused::new(
        Why::NotAllowed,
        format!(
            "{} is let in as {}, which may not {} here",
            who.trim_start_matches('@'),
            identity.role.word(),
            right.word()
        ),
        format!("Ask with a key of another role: {}", right.roles()),
    ))
}

/// Whether a request changes what only a person may, whoever else is let in.
fn is_decision(method: &Method, path: &str, right: Right) -> bool {
    let is_change = !matches!(*method, Method::GET | Method::HEAD);
    let is_of_operators = matches!(right, Right::Operate | Right::Administer);
    is_change && is_of_operators && !OPEN_CHANGES.contains(&(method.as_str(), path))
}

pub(super) fn right_of(method: &Method, path: &str) -> Option<Right> {
    // Providers have addresses and methods of their own; all of them cost somebody money.
    if path.starts_with(proxied::PREFIX) {
        return Some(Right::Call);
    }
    // A HEAD is a GET without its answer.
    let method = match method.as_str() {
        "HEAD" => "GET",
        method => method,
    };
    let mut rows = TABLE.iter();
    let row = rows.find(|(of, at, _)| *at == path && *of == method);
    row.map(|(_, _, right)| *right)
}
