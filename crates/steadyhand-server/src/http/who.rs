//! Who asks: as the routes see it, as it is told, and as it goes with a call.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::json;
use steadyhand::Outcome;
use steadyhand_mcp::serve::Who;
use steadyhand_mcp::serve::held_bytes;
use utoipa::IntoParams;

use super::calls::View;
use super::status::{self, Refused};
use super::{App, Peer, header_text, shapes};
use steadyhand_config::role::Right;
use steadyhand_runtime::access::{Identity, Refusal};
use steadyhand_runtime::admission::{self, CallerAccount, CallerPermit, McpShares, Way};

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
pub struct Asking(pub Arc<Identity>);

/// Whom the limits count a request for.
pub struct Account(pub CallerAccount);

impl<S: Sync> FromRequestParts<S> for Account {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Account, Infallible> {
        let Ok(Asking(identity)) = Asking::from_request_parts(parts, state).await;
        let peer = parts.extensions.get::<Peer>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(peer)| peer.ip());
        Ok(Account(CallerAccount::of(&identity, peer)))
    }
}

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
pub struct Caller(admission::Caller);

impl Deref for Caller {
    type Target = admission::Caller;

    fn deref(&self) -> &admission::Caller {
        &self.0
    }
}

impl Caller {
    /// Who presses a button of a page.
    pub fn of_page(app: &App, identity: Arc<Identity>, account: CallerAccount) -> Caller {
        let name = match &identity.name {
            Some(own) => format!("{own}/dashboard").into(),
            None => "dashboard".into(),
        };
        Caller(admission::Caller {
            name,
            traceparent: None,
            conversation: None,
            identity,
            memory: app.admission.memory.of_answer(account.id()),
            account,
            door: Arc::clone(&app.door),
            budget: app.admission.budget.load_full(),
        })
    }

    /// An outcome as it is answered, which counts as memory until it is sent. Where there is no room for it, its result is
    /// lost.
    pub fn answer(&self, outcome: Outcome, view: View) -> (Outcome, Bytes) {
        let text = status::text(&view.of(&outcome));
        match held_bytes(text, &self.memory) {
            Ok(text) => (outcome, text),
            Err(full) => {
                let outcome = outcome.without_result(&full.to_string());
                let text = status::text(&view.of(&outcome));
                (outcome, text)
            }
        }
    }
}

/// Someone at the MCP gateway.
pub(super) fn who(identity: &Arc<Identity>, account: &CallerAccount, app: &App) -> Who {
    let memory = app.admission.memory.of_answer(account.id());
    let permit = CallerPermit {
        memory: memory.clone(),
        identity: Arc::clone(identity),
        account: account.clone(),
        door: Arc::clone(&app.door),
        budget: app.admission.budget.load_full(),
        way: Way::Mcp,
    };
    Who {
        name: identity.name.clone(),
        account: Arc::clone(account.id()),
        is_operator: account.is_operator(),
        permit: Some(Arc::new(permit)),
        is_limited: !identity.tools.are_all(),
        may_decide: identity.may(Right::Operate),
        memory,
        shares: Some(McpShares::of(&app.admission, account)),
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
        let Ok(Account(account)) = Account::from_request_parts(parts, app).await;
        Ok(Caller(admission::Caller {
            name,
            traceparent,
            conversation,
            identity,
            memory: app.admission.memory.of_answer(account.id()),
            account,
            door: Arc::clone(&app.door),
            budget: app.admission.budget.load_full(),
        }))
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
