//! Who asks: as the routes see it, as it is told, and as it goes with a call.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::json;
use steadyhand::{ByteBudget, Call, Category, KeyCaller, Outcome, Permit, ToolError};
use steadyhand_mcp::serve::Who;
use steadyhand_mcp::serve::held_bytes;
use tokio::time::Instant;
use utoipa::IntoParams;

use super::calls::View;
use super::status::{self, Refused, Why};
use super::{App, Peer, header_text, shapes};
use crate::access::{Budget, By, Door, Identity, Refusal, TooSoon, Unnamed};
use crate::admission::{CallerAccount, McpShares, budget_owner, may_start};
use steadyhand_config::role::Right;

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

impl<S: Sync> FromRequestParts<S> for CallerAccount {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<CallerAccount, Infallible> {
        let Ok(Asking(identity)) = Asking::from_request_parts(parts, state).await;
        let peer = parts.extensions.get::<Peer>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(peer)| peer.ip());
        Ok(CallerAccount::of(&identity, peer))
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
pub(crate) struct Caller {
    /// `@ci/nightly`: who it is, and what it says it is.
    pub(crate) name: Arc<str>,
    pub(crate) traceparent: Option<String>,
    conversation: Option<String>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) account: CallerAccount,
    /// What the answer to its request may take of memory.
    pub(crate) memory: ByteBudget,
    door: Arc<Door>,
    budget: Option<Arc<Budget>>,
}

impl Caller {
    /// The call, as one of this caller's.
    pub(crate) fn of(&self, mut call: Call) -> Call {
        call.caller = Some(self.name.to_string());
        call.traceparent.clone_from(&self.traceparent);
        call.conversation.clone_from(&self.conversation);
        if let (Some(name), Some(key)) = (&self.identity.name, &call.idempotency_key) {
            // Two who use the same key have nothing to do with each other.
            call.idempotency_key = Some(format!("{name}/{key}"));
        }
        call.permit(Arc::new(Limited {
            identity: Arc::clone(&self.identity),
            account: self.account.clone(),
            door: Arc::clone(&self.door),
            way: Way::Rest,
            budget: self.budget.clone(),
            memory: self.memory.clone(),
        }))
    }

    /// Who presses a button of a page.
    pub(crate) fn of_page(app: &App, identity: Arc<Identity>, account: CallerAccount) -> Caller {
        let name = match &identity.name {
            Some(own) => format!("{own}/dashboard").into(),
            None => "dashboard".into(),
        };
        Caller {
            name,
            traceparent: None,
            conversation: None,
            identity,
            memory: app.admission.memory.of_answer(account.id()),
            account,
            door: Arc::clone(&app.door),
            budget: app.admission.budget.load_full(),
        }
    }

    /// An outcome as it is answered, which counts as memory until it is sent. Where there is no room for it, its result is
    /// lost.
    pub(crate) fn answer(&self, outcome: Outcome, view: View) -> (Outcome, Bytes) {
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

    /// Whether so many calls may come now.
    pub(crate) fn take(&self, calls: usize) -> Result<(), Refused> {
        take(&self.identity, calls)
    }
}

/// Someone at the MCP gateway.
pub(super) fn who(identity: &Arc<Identity>, account: &CallerAccount, app: &App) -> Who {
    let memory = app.admission.memory.of_answer(account.id());
    let permit = Limited {
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
        let Ok(account) = CallerAccount::from_request_parts(parts, app).await;
        Ok(Caller {
            name,
            traceparent,
            conversation,
            identity,
            memory: app.admission.memory.of_answer(account.id()),
            account,
            door: Arc::clone(&app.door),
            budget: app.admission.budget.load_full(),
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

/// What goes with every call of someone: whom it counts for, what it may use, and what it is taken from.
struct Limited {
    identity: Arc<Identity>,
    account: CallerAccount,
    door: Arc<Door>,
    way: Way,
    budget: Option<Arc<Budget>>,
    /// What the answer may take of memory.
    memory: ByteBudget,
}

/// How a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Over REST: the rate was counted with the request.
    Rest,
    /// Over MCP: many calls may be in one request there, each of them is counted by itself.
    Mcp,
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

    fn owner(&self) -> Option<&str> {
        Some(self.account.id())
    }

    fn key_caller(&self) -> Option<KeyCaller<'_>> {
        Some(KeyCaller {
            name: budget_owner(self.account.id()),
            uses_reserve: self.account.is_operator(),
        })
    }

    fn admit(&self, asked: &steadyhand::Asked<'_>) -> Result<(), ToolError> {
        may_start(&self.memory)?;
        if let Some(budget) = &self.budget {
            let unnamed = match self.way {
                Way::Rest => Unnamed::IsNotCounted,
                Way::Mcp => Unnamed::IsOneConversation,
            };
            budget.take(asked, budget_owner(self.account.id()), unnamed)?;
        }
        if self.way == Way::Rest {
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
            role: steadyhand_config::role::Role::Caller,
            name: Some("@".into()),
            ..Identity::unlimited(By::Nothing)
        }
    }
}
