//! REST: every route is one function in one of these files, and the document that describes them is made from it.

mod access;
pub mod alerts;
pub mod approvals;
pub mod audit;
mod batches;
pub mod body_faults;
pub mod browser_login;
pub mod calls;
pub mod config;
mod conversations;
mod events;
pub mod exchanges;
mod health;
pub mod history;
mod kept_body;
mod keys;
pub mod limits;
mod mcp;
mod metrics;
mod oauth;
mod openapi;
mod overview;
pub mod pins;
pub mod proxied;
mod query;
pub mod rights;
pub mod said;
pub mod server_parts;
pub mod servers;
pub mod shapes;
pub mod status;
pub mod tools;
mod who;

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::join_all;
use steadyhand::{Call, Outcome, ReservedBytes};
use steadyhand_mcp::serve::Gateway;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::alerts::Alerts;
use crate::behind::Behind;
use crate::live::{ApprovalChanged, Live, LiveEvent};
use crate::overview::changes;
use crate::telemetry::{Figures, HistoryFigures, Otlp, ProcessFigures, ServerFigures};
pub use access::{Access, TOKEN_HEADER};
use browser_login::Sessions;
use kept_body::until_answered;
pub use query::Asked;
pub use server_parts::{Pages, ProviderProxy, ServerParts};
use status::{Refused, Why};
use steadyhand_runtime::access::login_code::LoginCodes;
use steadyhand_runtime::access::{Door, Identity};
use steadyhand_runtime::admission::{
    Admission, CallerAccount, ConnectionActivity, EVENT_READERS_MAX, Limits, Place, RunningCall,
    json_length,
};
use steadyhand_runtime::approvals::{ApprovalState, Desk};
use steadyhand_runtime::audit::{AuditEvent, AuditLog};
use steadyhand_runtime::pins::Pins;
use steadyhand_runtime::runtime::Runtime;
use steadyhand_store::history::History;
pub use who::{Account, Asking, Caller};

/// Everything the routes share.
pub struct App {
    pub runtime: Runtime,
    pub history: History,
    pub live: Live,
    pub figures: Arc<Figures>,
    pub otlp: Otlp,
    /// Who may have how much of what callers share.
    pub admission: Arc<Admission>,
    pub limits: Limits,
    pub access: ArcSwap<Access>,
    pub door: Arc<Door>,
    pub alerts: Alerts,
    pub desk: Desk,
    /// Who decided and changed what.
    pub audit: AuditLog,
    pub pins: Pins,
    /// Pages for people, if there are any.
    pub pages: Option<Pages>,
    /// Who is logged in to them.
    pub sessions: Sessions,
    /// Links that logged a browser in.
    pub login_codes: LoginCodes,
    /// Where it listens, to be told to people.
    pub address: SocketAddr,
    /// Where the state is kept, once it is known.
    pub state: OnceLock<PathBuf>,
    /// We as an MCP server.
    pub gateway: Gateway,
    /// What stands before providers.
    pub proxy: Arc<dyn ProviderProxy>,
    pub started: Instant,
    /// Tells this process from another that has the same address later.
    pub instance: String,
    /// Cancelled when the server begins to end: streams that would go on for ever end with it.
    pub closing: CancellationToken,
}

impl App {
    pub fn new(
        runtime: Runtime,
        history: History,
        limits: Limits,
        access: Access,
        parts: ServerParts,
    ) -> App {
        let ServerParts {
            door,
            desk,
            pins,
            proxy,
            pages,
        } = parts;
        let audit = door.log.clone();
        let live = Live::new(runtime.manager().clone());
        live.set_readers_max(EVENT_READERS_MAX);
        let figures = Arc::new(figures(&runtime, &history, &live, &proxy));
        let (executor, http) = (runtime.executor().clone(), runtime.http().clone());
        let alerts = Alerts::new(http.clone(), live.clone());
        let otlp = Otlp::new(executor, Arc::clone(&figures), http);
        let admission = Arc::new(Admission::new(limits));
        let spans = otlp.server_spans();
        let behind = Behind::of_server(runtime.clone(), Arc::clone(&admission), spans);
        changes::remember(&live, &history);
        App {
            gateway: Gateway::new(Arc::new(behind)),
            proxy,
            runtime,
            history,
            live,
            figures,
            otlp,
            admission,
            limits,
            address: access.address(),
            access: ArcSwap::from_pointee(access),
            door,
            alerts,
            desk,
            audit,
            pins,
            pages: Some(pages),
            sessions: Sessions::default(),
            login_codes: LoginCodes::default(),
            state: OnceLock::new(),
            started: Instant::now(),
            instance: uuid::Uuid::new_v4().to_string(),
            closing: CancellationToken::new(),
        }
    }

    /// Runs a call for a caller. Refused only when there is no room; whatever happens to the call itself is
    /// its outcome. A caller that goes away drops this, and with it the call.
    pub async fn execute(&self, mut call: Call, caller: &Caller) -> Result<Outcome, Refused> {
        let place = self.admission.admit(&mut call, caller)?;
        let held = self.hold_arguments(&call)?;
        self.execute_in((place, held), call).await
    }

    /// Runs a call that no request brought, listed like any other.
    pub async fn execute_own(&self, mut call: Call, name: &Arc<str>) -> Result<Outcome, Refused> {
        call.caller = Some(name.to_string());
        let running = &self.admission.running;
        let place = running.enter(&mut call, name, &self.limits)?;
        self.execute_in((place, None), call).await
    }

    /// Runs calls at once: as many outcomes, in their order. `copies` is how often their results will be in memory; those
    /// for which there is no room are lost.
    pub async fn execute_all(
        &self,
        calls: Vec<Call>,
        caller: &Caller,
        copies: usize,
    ) -> Result<HeldOutcomes, Refused> {
        let hold = |outcome: Outcome| {
            let bytes = json_length(&outcome.structured());
            match caller.memory.reserve(copies * bytes) {
                Ok(held) => (outcome, Some(held)),
                Err(full) => (outcome.without_result(&full.to_string()), None),
            }
        };
        let all = self.execute_each(calls, caller, hold).await?;
        let (outcomes, held) = all.into_iter().unzip();
        Ok(HeldOutcomes {
            outcomes,
            _held: held,
        })
    }

    /// Runs calls at once, and makes something of each outcome as soon as it is there.
    pub async fn execute_each<T>(
        &self,
        mut calls: Vec<Call>,
        caller: &Caller,
        make: impl Fn(Outcome) -> T,
    ) -> Result<Vec<T>, Refused> {
        let places = self.admission.admit_all(&mut calls, caller)?;
        // For all of them before the first begins: there is room, or nothing is run.
        let held = calls.iter().map(|call| self.hold_arguments(call));
        let held: Vec<_> = held.collect::<Result<_, _>>()?;
        let make = &make;
        let all = places.into_iter().zip(held).zip(calls);
        let all =
            all.map(|(kept, call)| async move { self.execute_in(kept, call).await.map(make) });
        join_all(all).await.into_iter().collect()
    }

    /// A call without a key ends with its request, whose body is accounted for.
    fn hold_arguments(&self, call: &Call) -> Result<Option<ReservedBytes>, Refused> {
        match call.idempotency_key {
            Some(_) => Ok(self.admission.hold_arguments(call)?),
            None => Ok(None),
        }
    }

    async fn execute_in(
        &self,
        kept: (Place, Option<ReservedBytes>),
        call: Call,
    ) -> Result<Outcome, Refused> {
        let executor = self.runtime.executor();
        if call.idempotency_key.is_none() {
            let outcome = executor.execute(call).await;
            drop(kept);
            return Ok(outcome);
        }
        // With a key it goes on by itself, so that whoever comes back with the same key learns its outcome;
        // it stays on the list until then, and its arguments stay in memory.
        let executor = executor.clone();
        let task = tokio::spawn(async move {
            let outcome = executor.execute(call).await;
            drop(kept);
            outcome
        });
        task.await.map_err(|_| {
            Refused::new(
                Why::Unexpected,
                "the call ended early through a fault of the server; it may have run",
                "Ask again with the same idempotency key: it is not run twice",
            )
        })
    }

    /// Those who watch are told of calls that wait for a yes, and a yes is written down before its tool is started.
    pub fn tell_of_approvals(&self) {
        let live = self.live.clone();
        let (history, audit) = (self.history.clone(), self.audit.clone());
        self.desk.before_start(move || {
            let (history, audit) = (history.clone(), audit.clone());
            Box::pin(async move {
                tokio::join!(history.written_down(), audit.flush());
            })
        });
        let audit = self.audit.clone();
        self.desk.tell(move |approval| {
            if approval.state != ApprovalState::Waiting {
                audit.note(AuditEvent::of_approval(approval));
            }
            live.publish(LiveEvent::ApprovalChanged(ApprovalChanged {
                id: approval.id.clone(),
                state: approval.state.word().to_owned(),
                tool: approval.tool.clone(),
                call_id: approval.call_id.clone(),
                at_ms: steadyhand::clock::wall_ms(),
            }));
        });
    }

    /// How long a running call may take: its own deadline, or else its tool's.
    pub fn deadline_of(&self, call: &RunningCall) -> Duration {
        call.deadline.unwrap_or_else(|| {
            let policy = self.runtime.manager().policy(&call.tool);
            policy.map(|policy| policy.deadline).unwrap_or_default()
        })
    }
}

/// Outcomes, with the memory that is reserved for them.
pub struct HeldOutcomes {
    pub outcomes: Vec<Outcome>,
    _held: Vec<Option<ReservedBytes>>,
}

/// What the exporters of metrics ask the rest of the program for.
fn figures(
    runtime: &Runtime,
    history: &History,
    live: &Live,
    proxy: &Arc<dyn ProviderProxy>,
) -> Figures {
    let (asked, history, live) = (runtime.clone(), history.clone(), live.clone());
    let proxy = Arc::clone(proxy);
    Figures::new(runtime.manager().clone(), move || {
        let health = history.health();
        ProcessFigures {
            generation: asked.generation().number,
            history: Some(HistoryFigures {
                queued: health.queued,
                dropped: health.dropped,
            }),
            event_readers: live.readers() as u64,
            events_dropped: live.dropped(),
            servers: asked.servers().iter().map(server_figures).collect(),
            proxy: proxy.figures(),
        }
    })
}

fn server_figures(state: &steadyhand_mcp::ServerState) -> ServerFigures {
    ServerFigures {
        name: state.name.clone(),
        state: state.phase.word().to_owned(),
        starts: state.starts,
    }
}

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    let (routes, _) = openapi::routes().split_for_parts();
    let routes = routes
        .merge(Arc::clone(&app.proxy).routes())
        .route_layer(axum::middleware::from_fn_with_state(
            Arc::clone(&app),
            audit::write_down,
        ))
        .route_layer(axum::middleware::from_fn(rights::check));
    let routes = match &app.pages {
        Some(pages) => routes.merge((pages.routes)(&app)),
        None => routes,
    };
    routes
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app)
}

/// The connection that a request comes on.
#[derive(Clone)]
pub enum Came {
    /// One of those that may be open.
    OnItsOwn(Arc<ConnectionActivity>),
    /// One beyond them: operators are served there, and nobody else.
    BeyondTheLimit,
}

impl Came {
    /// What happens on it; nothing that matters on one beyond the limit.
    pub fn activity(&self) -> Option<&Arc<ConnectionActivity>> {
        match self {
            Came::OnItsOwn(activity) => Some(activity),
            Came::BeyondTheLimit => None,
        }
    }
}

/// One request from one connection, to its answer, with what browsers must know of it.
pub async fn respond(
    app: Arc<App>,
    router: Router,
    peer: SocketAddr,
    came: Came,
    request: Request<Body>,
) -> Response {
    let activity = came.activity().map(|activity| {
        activity.request_begins();
        Answering(Arc::clone(activity))
    });
    let response = respond_to(app, router, peer, &came, request).await;
    match activity {
        Some(activity) => until_answered(response, activity),
        None => response,
    }
}

/// An answer on its way. Its connection is told when all of it was handed over.
struct Answering(Arc<ConnectionActivity>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answer_ends();
    }
}

async fn respond_to(
    app: Arc<App>,
    router: Router,
    peer: SocketAddr,
    came: &Came,
    request: Request<Body>,
) -> Response {
    let is_proxied = request.uri().path().starts_with(proxied::PREFIX);
    let mut response = answer(app, router, peer, came, request).await;
    match is_proxied {
        true => proxied::fence(response.headers_mut()),
        // Nobody takes an answer for something else than it says it is.
        false => {
            let nosniff = HeaderValue::from_static("nosniff");
            let headers = response.headers_mut();
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        }
    }
    response
}

/// Nothing escapes: not even a panic of ours.
async fn answer(
    app: Arc<App>,
    router: Router,
    peer: SocketAddr,
    came: &Came,
    request: Request<Body>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let wants_problem = status::asks_for_problem(&parts.headers);
    let mut asked = who::Asked {
        peer: peer.ip(),
        who: None,
        method: parts.method.clone(),
        uri: parts.uri.clone(),
    };
    let entered = may_enter(&app, &parts, peer.ip()).await;
    if let Ok(Some(identity)) = &entered {
        asked.who.clone_from(&identity.name);
    }
    let identity = match has_room(&app, came, peer, &parts, entered).await {
        Ok(identity) => identity,
        Err(refused) => {
            let mut response = refused.into_response();
            finish_refusal(&app, &asked, wants_problem, &mut response);
            return response;
        }
    };
    let answer = async {
        match identity {
            Some(identity) if parts.uri.path() == mcp::PATH => {
                let account = CallerAccount::of(&identity, peer.ip());
                let request = Request::from_parts(parts, body);
                mcp::endpoint(&app, &identity, &account, request).await
            }
            identity => {
                parts.extensions.insert(Peer(peer));
                if let Some(identity) = identity {
                    parts.extensions.insert(Asking(identity));
                }
                let routed = router.oneshot(Request::from_parts(parts, body)).await;
                routed.unwrap_or_else(|never| match never {})
            }
        }
    };
    let answered = AssertUnwindSafe(answer).catch_unwind().await;
    let mut response = match answered {
        Ok(response) => response,
        Err(_) => Refused::new(
            Why::Unexpected,
            "the request could not be handled",
            "This should not happen: please report it with the server's output",
        )
        .into_response(),
    };
    finish_refusal(&app, &asked, wants_problem, &mut response);
    if app.closing.is_cancelled() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// A refusal is recorded if it says something about who asks, and is written in the shape that was asked for.
fn finish_refusal(app: &App, asked: &who::Asked, wants_problem: bool, response: &mut Response) {
    let Some(status::WasRefused(refused)) = response.extensions_mut().remove() else {
        return;
    };
    if refused.why().is_about_who_asks() {
        who::record(app, asked, &refused);
    }
    // A page for people that refuses is left as it is when it leads somewhere else.
    if wants_problem && response.status() == refused.status() {
        refused.rewrite_as_problem(response, asked.uri.path());
    }
}

/// Who asks; none where nobody is asked who they are.
async fn may_enter(
    app: &App,
    request: &Parts,
    from: IpAddr,
) -> Result<Option<Arc<Identity>>, Refused> {
    let access = app.access.load_full();
    access.check_address(request)?;
    let path = request.uri.path();
    if is_open_to_all(path) {
        return Ok(None);
    }
    if path.starts_with(proxied::PREFIX) {
        if proxied::are_to_be_run(&request.headers) {
            return Err(Refused::new(
                Why::Foreign,
                "what a provider answers is no part of a page of this server",
                "Ask for it from a program, or with fetch",
            ));
        }
        let identified = access.identify_forwarded(&request.headers, from);
        return identified.await.map(Some);
    }
    // Browsers have no header to show: the pages know who asks by a login of their own.
    if app.pages.is_some_and(|pages| (pages.owns)(path)) {
        return Ok(None);
    }
    match request.method {
        // Links of a page lead here, too.
        Method::GET | Method::HEAD if app.pages.is_some() => {
            let identified = browser_login::identify(app, &request.headers, from);
            identified.await.map(Some)
        }
        _ => access.identify(&request.headers, from).await.map(Some),
    }
}

/// Whether there is room for a request, of who asks: each caller has its share.
async fn has_room(
    app: &App,
    came: &Came,
    peer: SocketAddr,
    request: &Parts,
    entered: Result<Option<Arc<Identity>>, Refused>,
) -> Result<Option<Arc<Identity>>, Refused> {
    let activity = match came {
        Came::OnItsOwn(activity) => activity,
        Came::BeyondTheLimit => {
            let shown = match &entered {
                Ok(Some(identity)) => Some(Arc::clone(identity)),
                // The pages ask later who it is.
                Ok(None) => {
                    let identified = browser_login::identify(app, &request.headers, peer.ip());
                    identified.await.ok()
                }
                Err(_) => None,
            };
            let is_operator =
                shown.is_some_and(|it| CallerAccount::of(&it, peer.ip()).is_operator());
            return match is_operator {
                true => entered,
                false => Err(too_many_connections(app.limits.connections)),
            };
        }
    };
    let identity = entered?;
    if is_open_to_all(request.uri.path()) {
        return Ok(identity);
    }
    let account = match &identity {
        Some(identity) => CallerAccount::of(identity, peer.ip()),
        None => CallerAccount::of_address(peer.ip()),
    };
    let slot = app.admission.requests.take(&account).map_err(|full| {
        Refused::new(
            Why::Busy,
            full.to_string(),
            "Try again in a moment, or raise limits = { connections = … } under [server]",
        )
    })?;
    activity.hold(slot);
    Ok(identity)
}

fn too_many_connections(connections: usize) -> Refused {
    Refused::new(
        Why::Busy,
        format!("{connections} connections are open, which is as many as may"),
        "Try again in a moment, or raise limits = { connections = … } under [server]",
    )
}

/// Those who look whether the server lives, or where to get credentials, have none.
fn is_open_to_all(path: &str) -> bool {
    path.starts_with("/health/") || path.starts_with(oauth::WELL_KNOWN)
}

async fn no_such_route(method: Method, uri: Uri) -> Refused {
    Refused::new(
        Why::NoSuchRoute,
        format!("there is nothing at {method} {}", uri.path()),
        "GET /openapi.json lists what there is",
    )
}

async fn no_such_method(method: Method, uri: Uri) -> Refused {
    Refused::new(
        Why::NoSuchMethod,
        format!("{} does not take {method}", uri.path()),
        "The allow header of this answer says what it takes; GET /openapi.json says what it means",
    )
}

/// Where a request comes from.
#[derive(Clone, Copy)]
pub struct Peer(pub SocketAddr);

impl Peer {
    pub fn address(self) -> String {
        self.0.ip().to_string()
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then_some(text)
}

/// The name or id in the path.
pub struct Named(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Refused> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Named(name)),
            Err(_) => Err(Refused::new(
                Why::BadRequest,
                "the name in the path cannot be read",
                "Write names in a path percent-encoded, as UTF-8",
            )),
        }
    }
}
