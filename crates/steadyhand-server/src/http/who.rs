//! Who asks: as the routes see it, as it is told, and as it goes with a call.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::json;
use steadyhand::{Call, Category, Permit, ToolError};
use steadyhand_mcp::serve::Who;
use tokio::time::Instant;
use utoipa::IntoParams;

use super::status::{self, Refused, Why};
use super::{App, Peer, header_text, shapes};
use crate::access::{Budget, By, Door, Identity, Refusal, Right, TooSoon};

/// Who asks, in their own words.
const CALLER_HEADER: &str = "steadyhand-caller";
const CALLER_CHARS_MAX: usize = 128;
/// The conversation that calls belong to.
const CONVERSATION_HEADER: &str = "steadyhand-conversation";
/// A W3C trace context has 55 characters today.
const TRACEPARENT_BYTES_MAX: usize = 128;

/// What a request may say of itself, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "for the document")]
pub(crate) struct CallerHeaders {
    /// Who asks, in your own words: shown in the history
    #[param(rename = "steadyhand-caller", required = false, nullable = false)]
    caller: Option<String>,
    /// The conversation that the calls belong to
    #[param(rename = "steadyhand-conversation", required = false, nullable = false)]
    conversation: Option<String>,
    /// The W3C trace context that the calls are part of
    #[param(rename = "traceparent", required = false, nullable = false)]
    traceparent: Option<String>,
}

/// Who asks. Put there before a route is looked for.
#[derive(Clone)]
pub(crate) struct Asking(pub(crate) Arc<Identity>);

impl<S: Sync> FromRequestParts<S> for Asking {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asking, Infallible> {
        let asking = parts.extensions.get::<Asking>().cloned();
        // Nobody gets here without: if someone did, they would be nobody.
        Ok(asking.unwrap_or_else(|| Asking(Arc::new(Identity::nobody()))))
    }
}

/// Who calls, and the trace the request is part of.
#[derive(Clone)]
pub(crate) struct Caller {
    /// `@ci/nightly`: who it is, and what it says it is.
    pub(crate) name: Arc<str>,
    pub(crate) traceparent: Option<String>,
    conversation: Option<String>,
    pub(crate) identity: Arc<Identity>,
    door: Arc<Door>,
    budget: Option<Arc<Budget>>,
}

impl Caller {
    /// The call, as one of this caller's.
    pub(crate) fn of(&self, mut call: Call) -> Call {
        call.caller = Some(self.name.to_string());
        call.traceparent.clone_from(&self.traceparent);
        call.conversation.clone_from(&self.conversation);
        let budget = self.budget.clone();
        mark(call, &self.identity, &self.door, budget)
    }

    /// Who presses a button of a page.
    pub(crate) fn of_page(app: &App, identity: Arc<Identity>) -> Caller {
        let name = match &identity.name {
            Some(own) => format!("{own}/dashboard").into(),
            None => "dashboard".into(),
        };
        Caller {
            name,
            traceparent: None,
            conversation: None,
            identity,
            door: Arc::clone(&app.door),
            budget: app.budget.load_full(),
        }
    }

    /// Whether so many calls may come now.
    pub(crate) fn take(&self, calls: usize) -> Result<(), Refused> {
        take(&self.identity, calls)
    }
}

/// What goes with every call of someone: what it may use, and a key of its own.
fn mark(
    mut call: Call,
    identity: &Arc<Identity>,
    door: &Arc<Door>,
    budget: Option<Arc<Budget>>,
) -> Call {
    if let (Some(name), Some(key)) = (&identity.name, &call.idempotency_key) {
        // Two who use the same key have nothing to do with each other.
        call.idempotency_key = Some(format!("{name}/{key}"));
    }
    if identity.tools.are_all() && budget.is_none() {
        return call;
    }
    call.permit(Arc::new(Limited {
        identity: Arc::clone(identity),
        door: Arc::clone(door),
        counts: false,
        budget,
    }))
}

/// Someone at the MCP gateway; none where nobody has a name.
pub(super) fn who(identity: &Arc<Identity>, app: &App) -> Option<Who> {
    let budget = app.budget.load_full();
    let name = identity.name.clone();
    if name.is_none() && budget.is_none() {
        return None;
    }
    let is_limited = !identity.tools.are_all();
    let is_held = is_limited || identity.pace.is_some() || budget.is_some();
    let permit = is_held.then(|| -> Arc<dyn Permit> {
        Arc::new(Limited {
            identity: Arc::clone(identity),
            door: Arc::clone(&app.door),
            budget,
            // Many calls may be in one request there: each of them is counted by itself.
            counts: true,
        })
    });
    Some(Who {
        name,
        permit,
        is_limited,
        may_decide: identity.may(Right::Operate),
    })
}

/// Whether so many calls of someone may come now.
pub(crate) fn take(identity: &Identity, calls: usize) -> Result<(), Refused> {
    let Some(pace) = &identity.pace else {
        return Ok(());
    };
    let who = identity.name.as_deref().unwrap_or_default();
    let who = who.trim_start_matches('@');
    let rate = pace.rate;
    match pace.take(calls, Instant::now()) {
        Ok(()) => Ok(()),
        Err(TooSoon::Wait(wait)) => Err(Refused::new(
            Why::TooFast,
            format!("{who} may make {rate} calls, and has made them; nothing was run"),
            "Wait for as long as retry-after says",
        )
        .after(wait)),
        Err(TooSoon::Never) => Err(Refused::new(
            Why::TooFast,
            format!("{who} may make {rate} calls, and these are {calls} at once; nothing was run"),
            "Send fewer at once",
        )
        .after(rate.per)),
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Caller, Refused> {
        let Ok(Asking(identity)) = Asking::from_request_parts(parts, app).await;
        let said = said_caller(&parts.headers);
        let name = match (&identity.name, said) {
            (Some(own), None) => Arc::clone(own),
            (Some(own), Some(said)) => format!("{own}/{said}").into(),
            (None, Some(said)) => said,
            (None, None) => match parts.extensions.get::<Peer>() {
                Some(Peer(peer)) => peer.ip().to_string().into(),
                None => "unknown".into(),
            },
        };
        let traceparent = said_traceparent(&parts.headers).map(str::to_owned);
        let conversation = header_text(&parts.headers, CONVERSATION_HEADER);
        let conversation = conversation.map(|name| name.chars().take(CALLER_CHARS_MAX).collect());
        Ok(Caller {
            name,
            traceparent,
            conversation,
            identity,
            door: Arc::clone(&app.door),
            budget: app.budget.load_full(),
        })
    }
}

/// Who asks, in their own words. Nobody gives themselves a name that looks like one we give.
pub(super) fn said_caller(headers: &HeaderMap) -> Option<Arc<str>> {
    let said = header_text(headers, CALLER_HEADER)?.trim_start_matches('@');
    let name: String = said.chars().take(CALLER_CHARS_MAX).collect();
    (!name.is_empty()).then(|| name.into())
}

pub(super) fn said_traceparent(headers: &HeaderMap) -> Option<&str> {
    header_text(headers, "traceparent").filter(|text| text.len() <= TRACEPARENT_BYTES_MAX)
}

/// The tools of someone who may not use all of them.
struct Limited {
    identity: Arc<Identity>,
    door: Arc<Door>,
    /// Whether its calls are counted here.
    counts: bool,
    budget: Option<Arc<Budget>>,
}

impl Permit for Limited {
    fn allows(&self, tool: &str) -> bool {
        self.identity.tools.include(tool)
    }

    fn refusal(&self, tool: &str) -> String {
        let name = self.identity.name.as_deref();
        let name = name.map(|name| name.trim_start_matches('@'));
        let reason = format!("{} may not use '{tool}'", name.unwrap_or("this caller"));
        self.door.audit.record(Refusal {
            who: name.map(str::to_owned),
            asked: "call".to_owned(),
            tool: Some(tool.to_owned()),
            code: "tool_not_allowed".to_owned(),
            reason: reason.clone(),
            ..Refusal::default()
        });
        reason
    }

    fn admit(&self, asked: &steadyhand::Asked<'_>) -> Result<(), ToolError> {
        if let Some(budget) = &self.budget {
            budget.take(asked)?;
        }
        if !self.counts {
            return Ok(());
        }
        take(&self.identity, 1).map_err(|refused| {
            let wait = refused.wait();
            ToolError::of(Category::Overloaded, refused.in_words()).retry_after(wait)
        })
    }
}

/// Who I am here
///
/// The name and the role that these credentials stand for, and what they are limited to.
#[utoipa::path(
    get,
    operation_id = "get_caller",
    path = "/v1/whoami",
    tag = "access",
    responses((status = 200, description = "Who asks", body = shapes::Whoami), shapes::Errors)
)]
pub(crate) async fn whoami(Asking(identity): Asking) -> Response {
    status::answer(&identity.view())
}

/// What was refused lately, and to whom
///
/// The last 1000, the newest first; more of them are in a file of the state folder.
#[utoipa::path(
    get,
    operation_id = "list_refusals",
    path = "/v1/refusals",
    tag = "access",
    responses(
        (status = 200, description = "The newest first", body = shapes::RefusalList),
        shapes::Errors,
    )
)]
pub(crate) async fn refusals(State(app): State<Arc<App>>) -> Response {
    let audit = &app.door.audit;
    let refusals = audit.latest();
    status::answer(&json!({
        "count": refusals.len(),
        "refusals": refusals,
        "unwritten": audit.unwritten(),
    }))
}

/// Writes down that a request was refused for who asked it.
pub(super) fn record(app: &App, parts: &Asked, refused: &Refused) {
    if !refused.why().is_about_who_asks() {
        return;
    }
    app.door.audit.record(Refusal {
        peer: Some(parts.peer.to_string()),
        who: parts
            .who
            .as_deref()
            .map(|name| name.trim_start_matches('@').to_owned()),
        // Without the query: some write secrets into it.
        asked: format!("{} {}", parts.method, parts.uri.path()),
        code: refused.why().code().to_owned(),
        reason: refused.message().to_owned(),
        ..Refusal::default()
    });
}

/// What is written down of a request.
pub(super) struct Asked {
    pub(super) peer: std::net::IpAddr,
    pub(super) who: Option<Arc<str>>,
    pub(super) method: Method,
    pub(super) uri: Uri,
}

impl Identity {
    /// One that may do nothing but know.
    fn nobody() -> Identity {
        Identity {
            role: crate::access::Role::Caller,
            name: Some("@".into()),
            ..Identity::unlimited(By::Nothing)
        }
    }
}
