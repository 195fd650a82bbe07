//! What operators do is written down before it happens and after; and the log of it, to read.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::status::{self, Refused, Why};
use super::{App, Asked, Asking, Peer, rights, shapes};
use crate::views;
use steadyhand_config::role::Right;
use steadyhand_runtime::access::{By, Identity, TooSoon};
use steadyhand_runtime::audit::{AuditActor, AuditEvent, AuditOrigin};

/// Records of one answer.
const RECORDS_MAX: usize = 1000;
const RECORDS: usize = 100;

/// Which records
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// How many, at most 1000
    #[param(minimum = 1, maximum = 1000, required = false, nullable = false)]
    limit: Option<usize>,
    /// Only records before this one: `next` of the page before
    #[param(required = false, nullable = false)]
    before: Option<u64>,
    /// Only what is not older, in milliseconds since 1970
    #[param(required = false, nullable = false)]
    since_ms: Option<u64>,
}

/// Who decided and changed what
///
/// The audit log of this node, the newest record first. `steadyhand audit verify` checks that it is whole.
#[utoipa::path(
    get,
    operation_id = "list_audit_records",
    path = "/v1/audit",
    tag = "access",
    params(AuditQuery),
    responses(
        (status = 200, description = "The records", body = shapes::AuditList),
        shapes::Errors,
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Asked(query): Asked<AuditQuery>,
) -> Result<Response, Refused> {
    let limit = query.limit.unwrap_or(RECORDS);
    if !(1..=RECORDS_MAX).contains(&limit) {
        return Err(wrong(format!(
            "limit is {limit}, and must be 1 to {RECORDS_MAX}"
        )));
    }
    for (name, number) in [("before", query.before), ("since_ms", query.since_ms)] {
        if let Some(number) = number.filter(|number| i64::try_from(*number).is_err()) {
            return Err(wrong(format!("{name} is {number}, which is too large")));
        }
    }
    let view = page(&app, query.before, query.since_ms.unwrap_or(0), limit).await?;
    Ok(status::answer(&view))
}

fn wrong(message: String) -> Refused {
    let help = "GET /openapi.json says what this address takes";
    Refused::new(Why::BadRequest, message, help)
}

/// A page of records as it is answered.
pub async fn page(
    app: &App,
    before: Option<u64>,
    since_ms: u64,
    limit: usize,
) -> Result<Value, Refused> {
    let Some(options) = app.audit.options().cloned() else {
        return Ok(json!({"enabled": false, "count": 0, "records": [], "unwritten": 0}));
    };
    app.audit.flush().await;
    let reading = move || options.latest(before, since_ms, limit);
    let read = tokio::task::spawn_blocking(reading).await;
    let read = read.map_err(|error| error.to_string());
    let records = read.and_then(|records| records.map_err(|error| error.to_string()));
    let records = records.map_err(|why| {
        Refused::new(
            Why::NoAudit,
            format!("the audit log cannot be read: {why}"),
            "Check the state folder and its permissions",
        )
    })?;
    let next = records.last().map(|record| record.n);
    let mut view = json!({
        "enabled": true,
        "count": records.len(),
        "records": records,
        "unwritten": app.audit.unwritten(),
    });
    if let (Some(next), true) = (next, records.len() == limit) {
        view["next"] = json!(next);
    }
    if let Some(reason) = app.audit.trouble() {
        view["problem"] = json!(reason);
    }
    Ok(view)
}

/// Says what a request did, where its address does not.
#[derive(Clone)]
pub struct WhatChanged {
    pub subject: String,
    pub after: Value,
}

/// Writes down what an operator or an administrator asks for, before it is done.
pub(super) async fn write_down(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map(MatchedPath::as_str).unwrap_or_default();
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let right = rights::right_of(request.method(), path);
    let is_meant = matches!(right, Some(Right::Operate | Right::Administer));
    if !is_change || !is_meant {
        return next.run(request).await;
    }
    let action = match action_of(request.method(), path) {
        Some(action) => action.to_owned(),
        None => format!("{} {path}", request.method()),
    };
    recorded(&app, request, next, "rest", action).await
}

/// The names of actions, for REST and for the buttons of the dashboard.
fn action_of(method: &Method, path: &str) -> Option<&'static str> {
    let path = path.strip_prefix("/v1").unwrap_or(path);
    Some(match (method.as_str(), path) {
        ("POST", "/tools/{name}/breaker/reset" | "/tools/{name}/reset") => "breaker.reset",
        ("POST", "/tools/{name}/breaker/trial" | "/tools/{name}/trial") => "breaker.trial",
        ("POST", "/tools/{name}/disable") => "tool.disable",
        ("POST", "/tools/{name}/enable") => "tool.enable",
        ("POST", "/tool-changes/{name}/accept" | "/tools/{name}/accept") => "pin.accept",
        ("POST", "/tool-changes/{name}/reject" | "/tools/{name}/reject") => "pin.reject",
        ("POST", "/servers/{name}/restart") => "server.restart",
        ("POST", "/config/reload") => "config.reload",
        ("POST", "/alerts/{id}/ack") => "alert.acknowledge",
        ("POST", "/alerts/{id}/silence") => "alert.silence",
        ("POST", "/approvals/{id}") => "approval.decide",
        ("POST", "/keys") => "key.create",
        ("DELETE", "/keys/{id}") => "key.revoke",
        _ => return None,
    })
}

/// The same for a button of the dashboard.
pub async fn write_down_button(app: &App, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map(MatchedPath::as_str).unwrap_or_default();
    match action_of(request.method(), path) {
        Some(action) => recorded(app, request, next, "dashboard", action.to_owned()).await,
        None => next.run(request).await,
    }
}

async fn recorded(app: &App, request: Request, next: Next, way: &str, action: String) -> Response {
    let subject = subject_of(&request);
    let identity = request.extensions().get::<Asking>();
    let who = identity.map(|Asking(identity)| actor(app, identity));
    // Commands on this machine come over REST, too.
    let is_local = identity.is_some_and(|Asking(identity)| identity.by == By::Local);
    let is_nobody = identity.is_none_or(|Asking(identity)| identity.by == By::Nothing);
    if is_nobody && let Err(too_soon) = app.door.may_change_unidentified() {
        return too_many_changes(&too_soon).into_response();
    }
    let way = if is_local && way == "rest" {
        "command"
    } else {
        way
    };
    let event = AuditEvent {
        action: action.clone(),
        subject: subject.clone(),
        who: who.unwrap_or_default(),
        from: AuditOrigin {
            way: way.to_owned(),
            address: request
                .extensions()
                .get::<Peer>()
                .map(|peer| peer.address()),
        },
        ..AuditEvent::default()
    };
    let name = subject.as_deref().unwrap_or_default();
    let before = state_of(app, &action, name).await;
    let asked = event.clone().changed(before.clone(), None);
    if let Err(why) = app.audit.before(asked.result("asked")).await {
        return Refused::new(
            Why::NoAudit,
            format!("nothing was done, because it could not be written into the audit log: {why}"),
            "See to the state folder; [audit] required = false lets operators act without the log",
        )
        .into_response();
    }
    let mut response = next.run(request).await;
    let status = response.status();
    let result = match status.as_u16() {
        200..=299 if way == "dashboard" => "asked again".to_owned(),
        200..=399 => "done".to_owned(),
        code => format!("refused ({code})"),
    };
    let changed = response.extensions_mut().remove::<WhatChanged>();
    let (subject, after) = match changed {
        Some(changed) => (Some(changed.subject), Some(changed.after)),
        None => (subject.clone(), state_of(app, &action, name).await),
    };
    let done = AuditEvent { subject, ..event };
    app.audit.note(done.changed(before, after).result(&result));
    response
}

fn too_many_changes(too_soon: &TooSoon) -> Refused {
    let refused = Refused::new(
        Why::TooFast,
        "too many changes came without credentials: their records would push others out of the audit log. Nothing was changed",
        "Show a credential (steadyhand tools reset, mcp restart and config reload do it by themselves), or wait for as long as retry-after says",
    );
    match too_soon {
        TooSoon::Wait(wait) => refused.after(*wait),
        TooSoon::Never => refused,
    }
}

/// Who asks, with the id of its key.
pub fn actor(app: &App, identity: &Identity) -> AuditActor {
    let key = match (identity.by, identity.name.as_deref()) {
        (By::Key, Some(name)) => app.door.keys.id_in_use(name.trim_start_matches('@')),
        _ => None,
    };
    AuditActor::of(identity, key)
}

/// The name in the path.
fn subject_of(request: &Request) -> Option<String> {
    let template = request.extensions().get::<MatchedPath>()?.as_str();
    let parts = template.split('/').zip(request.uri().path().split('/'));
    let mut named = parts.filter(|(part, _)| part.starts_with('{'));
    let (_, name) = named.next()?;
    Some(percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// The state of what an action changes, as far as it is known; without secrets.
async fn state_of(app: &App, action: &str, subject: &str) -> Option<Value> {
    let kind = action.split('.').next().unwrap_or_default();
    match kind {
        "breaker" => {
            let breaker = app.runtime.manager().breaker(subject)?;
            serde_json::to_value(breaker).ok()
        }
        "tool" => Some(json!({"switched_off": app.runtime.is_switched_off(subject)})),
        "pin" => {
            let changes = app.pins.changes();
            let change = changes.iter().find(|change| change.tool == subject);
            let change = serde_json::to_value(change?).ok()?;
            Some(change)
        }
        "approval" => {
            let approvals = app.desk.list();
            let one = approvals.iter().find(|approval| approval.id == subject)?;
            Some(json!({
                "state": one.state.word(),
                "tool": one.tool,
                "arguments_hash": one.arguments_hash,
                "call_id": one.call_id,
                "caller": one.caller,
                "decided_by": one.decided_by,
                "reason": one.reason,
            }))
        }
        "server" => {
            let state = app.runtime.server(subject)?.state();
            Some(json!({"phase": state.phase.word(), "tries": state.tries, "starts": state.starts}))
        }
        "alert" => {
            let alert = app.alerts.find(subject)?;
            Some(json!({
                "state": alert.state,
                "subject": alert.subject,
                "rule": alert.rule,
                "acknowledged_by": alert.acknowledged_by,
                "silenced_until_ms": alert.silenced_until_ms,
            }))
        }
        "config" => Some(json!({"generation": app.runtime.generation().number})),
        "key" => {
            let door = Arc::clone(&app.door);
            let subject = subject.to_owned();
            let reading = tokio::task::spawn_blocking(move || {
                let keys = door.keys.list().ok()?;
                let is_it = |key: &&steadyhand_runtime::access::Key| {
                    key.id == subject || key.name == subject
                };
                let key = keys.iter().find(is_it)?;
                Some(views::keys::one(key, steadyhand::clock::wall_ms()))
            });
            reading.await.ok().flatten()
        }
        _ => None,
    }
}
