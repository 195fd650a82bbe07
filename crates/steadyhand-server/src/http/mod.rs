//! REST: every route is one function in one of these files, and the document that describes them is made from it.

mod access;
mod batches;
mod calls;
mod config;
mod conversations;
mod events;
mod exchanges;
mod health;
mod history;
pub(crate) mod limits;
mod mcp;
mod metrics;
mod openapi;
mod running;
mod servers;
mod shapes;
pub(crate) mod status;
mod tools;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use steadyhand::{Call, Outcome};
use steadyhand_mcp::serve::Gateway;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::behind::Behind;
use crate::history::History;
use crate::live::Live;
use crate::proxy::{self, Proxy};
use crate::runtime::Runtime;
use crate::telemetry::{Figures, HistoryFigures, Otlp, ProcessFigures, ServerFigures};
pub(crate) use access::{Access, TOKEN_HEADER};
use limits::Bodies;
pub(crate) use limits::Limits;
pub(crate) use running::{Place, Running, RunningCall};
use status::{Refused, Why};

/// Who asks, in their own words.
const CALLER_HEADER: &str = "steadyhand-caller";
const CALLER_CHARS_MAX: usize = 128;
/// A W3C trace context has 55 characters today.
const TRACEPARENT_BYTES_MAX: usize = 128;

/// Everything the routes share.
pub(crate) struct App {
    pub(crate) runtime: Runtime,
    pub(crate) history: History,
    pub(crate) live: Live,
    pub(crate) figures: Arc<Figures>,
    pub(crate) otlp: Otlp,
    pub(crate) running: Arc<Running>,
    pub(crate) limits: Limits,
    pub(crate) access: ArcSwap<Access>,
    pub(crate) bodies: Bodies,
    /// We as an MCP server.
    pub(crate) gateway: Gateway,
    /// What stands before providers.
    pub(crate) proxy: Arc<Proxy>,
    /// Places for large conversations, which take a thread and much memory for a while.
    pub(crate) large_conversations: Arc<Semaphore>,
    /// Places for exports, which take a thread for as long as their reader likes.
    pub(crate) exports: Arc<Semaphore>,
    pub(crate) started: Instant,
    /// Tells this process from another that has the same address later.
    pub(crate) instance: String,
    /// Cancelled when the server begins to end: streams that would go on for ever end with it.
    pub(crate) closing: CancellationToken,
}

impl App {
    pub(crate) fn new(runtime: Runtime, history: History, limits: Limits, access: Access) -> App {
        let live = Live::new(runtime.manager().clone());
        let proxy = Arc::new(Proxy::new(runtime.state()));
        let figures = Arc::new(figures(&runtime, &history, &live, &proxy));
        let (executor, http) = (runtime.executor().clone(), runtime.http().clone());
        let otlp = Otlp::new(executor, Arc::clone(&figures), http);
        let running: Arc<Running> = Arc::default();
        let behind = Behind::of_server(runtime.clone(), Arc::clone(&running), limits);
        App {
            gateway: Gateway::new(Arc::new(behind)),
            proxy,
            runtime,
            history,
            live,
            figures,
            otlp,
            running,
            limits,
            access: ArcSwap::from_pointee(access),
            bodies: Bodies::default(),
            large_conversations: Arc::new(Semaphore::new(conversations::LARGE_AT_ONCE)),
            exports: Arc::new(Semaphore::new(history::EXPORTS_AT_ONCE)),
            started: Instant::now(),
            instance: uuid::Uuid::new_v4().to_string(),
            closing: CancellationToken::new(),
        }
    }

    /// Runs a call for a caller. Refused only when there is no room; whatever happens to the call itself is
    /// its outcome. A caller that goes away drops this, and with it the call.
    pub(crate) async fn execute(
        &self,
        mut call: Call,
        caller: &Caller,
    ) -> Result<Outcome, Refused> {
        let place = self.running.enter(&mut call, &caller.name, &self.limits)?;
        self.execute_in(place, call).await
    }

    /// Runs calls at once: as many outcomes, in their order.
    pub(crate) async fn execute_all(
        &self,
        mut calls: Vec<Call>,
        caller: &Caller,
    ) -> Result<Vec<Outcome>, Refused> {
        let places = self
            .running
            .enter_all(&mut calls, &caller.name, &self.limits)?;
        let all = places
            .into_iter()
            .zip(calls)
            .map(|(place, call)| self.execute_in(place, call));
        join_all(all).await.into_iter().collect()
    }

    async fn execute_in(&self, place: Place, call: Call) -> Result<Outcome, Refused> {
        let executor = self.runtime.executor();
        if call.idempotency_key.is_none() {
            let outcome = executor.execute(call).await;
            drop(place);
            return Ok(outcome);
        }
        // With a key it goes on by itself, so that whoever comes back with the same key learns its outcome;
        // it stays on the list until then.
        let executor = executor.clone();
        let task = tokio::spawn(async move {
            let outcome = executor.execute(call).await;
            drop(place);
            outcome
        });
        task.await.map_err(|error| {
            Refused::new(
                Why::Unexpected,
                format!("the call's task ended early: {error}"),
                "Ask again with the same idempotency key: it is not run twice",
            )
        })
    }

    /// How long a running call may take: its own deadline, or else its tool's.
    pub(crate) fn deadline_of(&self, call: &RunningCall) -> Duration {
        call.deadline.unwrap_or_else(|| {
            let policy = self.runtime.manager().policy(&call.tool);
            policy.map(|policy| policy.deadline).unwrap_or_default()
        })
    }
}

/// What the exporters of metrics ask the rest of the program for.
fn figures(runtime: &Runtime, history: &History, live: &Live, proxy: &Arc<Proxy>) -> Figures {
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
pub(crate) fn router(app: Arc<App>) -> Router {
    let (routes, _) = openapi::routes().split_for_parts();
    routes
        .route("/mcp", axum::routing::any(mcp::endpoint))
        .route("/proxy/{*rest}", axum::routing::any(proxy::endpoint))
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app)
}

/// One request from one connection, to its answer. Nothing escapes: not even a panic of ours.
pub(crate) async fn respond(
    app: Arc<App>,
    router: Router,
    peer: SocketAddr,
    request: Request<Body>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Err(refused) = may_enter(&app, &parts) {
        return refused.into_response();
    }
    parts.extensions.insert(Peer(peer));
    let answer = router.oneshot(Request::from_parts(parts, body));
    let mut response = match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => Refused::new(
            Why::Unexpected,
            "the request could not be handled",
            "This should not happen: please report it with the server's output",
        )
        .into_response(),
    };
    if app.closing.is_cancelled() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

fn may_enter(app: &App, request: &Parts) -> Result<(), Refused> {
    let access = app.access.load();
    access.check_address(request)?;
    // Those who look whether the server lives have no token.
    if request.uri.path().starts_with("/health/") {
        return Ok(());
    }
    // There the usual header holds the provider's key.
    match request.uri.path().starts_with(proxy::PREFIX) {
        true => access.check_proxy_token(&request.headers),
        false => access.check_token(&request.headers),
    }
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

#[derive(Clone, Copy)]
struct Peer(SocketAddr);

/// Who asks, and the trace the request is part of.
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) traceparent: Option<String>,
}

impl Caller {
    /// The call, as one of this caller's.
    pub(crate) fn of(&self, mut call: Call) -> Call {
        call.caller = Some(self.name.to_string());
        call.traceparent.clone_from(&self.traceparent);
        call
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Refused> {
        let name = match said_caller(&parts.headers) {
            Some(name) => name,
            None => match parts.extensions.get::<Peer>() {
                Some(Peer(peer)) => peer.ip().to_string().into(),
                None => "unknown".into(),
            },
        };
        let traceparent = said_traceparent(&parts.headers).map(str::to_owned);
        Ok(Caller { name, traceparent })
    }
}

/// Who asks, in their own words.
fn said_caller(headers: &HeaderMap) -> Option<Arc<str>> {
    let said = header_text(headers, CALLER_HEADER)?;
    let name: String = said.chars().take(CALLER_CHARS_MAX).collect();
    Some(name.into())
}

fn said_traceparent(headers: &HeaderMap) -> Option<&str> {
    header_text(headers, "traceparent").filter(|text| text.len() <= TRACEPARENT_BYTES_MAX)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then_some(text)
}

/// What stands behind the question mark; what does not fit is told in our shape.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asked<T>, Refused> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(rejection) => {
                let whole = rejection.body_text();
                let reason = whole
                    .rsplit_once("query string: ")
                    .map_or(&*whole, |it| it.1);
                Err(Refused::new(
                    Why::BadRequest,
                    format!("the query does not fit: {reason}"),
                    "GET /openapi.json says what this address takes",
                ))
            }
        }
    }
}

/// The name or id in the path.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Refused> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Named(name)),
            Err(rejection) => Err(Refused::new(
                Why::BadRequest,
                format!("the path cannot be read: {}", rejection.body_text()),
                "Write names in a path percent-encoded, as UTF-8",
            )),
        }
    }
}
