//! The provider proxy: a client changes its base URL, and its conversations are mended on the way to the provider.
//!
//! ```text
//! endpoint.rs   /proxy/{provider}/…: one request, one answer          site.rs      whose address, which paths are chats
//! look.rs       the conversation is mended, or keeps its bytes        splice.rs    what was not mended keeps its bytes
//! ask.rs        sent once, within the time there is                   client.rs    sent again where it was not processed
//! pool.rs       connections that are safe to use again                connection.rs  one connection, dialled and watched
//! passing.rs    a stream on its way, with an end to every wait        tap.rs       its calls are checked on the side
//! aws_events.rs Amazon's binary messages                             sigv4.rs     Amazon's signatures, made anew
//! cut.rs        what was given is sent before a connection is cut     sanitize.rs  a whole answer, mended where that is safe
//! trouble.rs    no answer, told in the provider's own shape           report.rs    counted, logged, kept in history, told live
//! execute/      tools registered here are offered, run and answered inside
//! study.rs      a refusal: which place, which rule                    cases.rs     rules that are not known here, as files
//! ```
//!
//! Keys pass through and are in no log, no record and no file.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

mod ask;
mod aws_events;
mod cases;
mod client;
mod coding;
mod connection;
mod cut;
mod endpoint;
mod execute;
mod figures;
pub mod folder;
mod headers;
mod keep;
mod keys;
mod look;
mod passing;
mod pool;
mod report;
mod sanitize;
mod shape;
mod sigv4;
mod site;
pub mod splice;
pub mod study;
mod tap;
mod trouble;
mod upstream;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Request, State};
use axum::routing::any;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use cases::Cases;
use client::Client;
use execute::Hidden;
use figures::Counts;
use keep::Kept;
use steadyhand_config::proxy::ProxySettings;
use steadyhand_server::http::proxied::PREFIX;
use steadyhand_server::http::{App, Caller, ProviderProxy};
use steadyhand_server::telemetry::ProxyFigures;
use upstream::Upstreams;

/// What the exchanges of one process share.
pub struct Proxy {
    upstreams: ArcSwap<Upstreams>,
    client: Client,
    counts: Counts,
    cases: Cases,
    kept: Kept,
    hidden: Hidden,
    /// Cancelled when exchanges must come to their end.
    ending: CancellationToken,
}

impl Proxy {
    /// With the providers' public addresses; what it keeps is below this folder.
    pub fn new(state: &Path) -> Proxy {
        Proxy {
            upstreams: ArcSwap::from_pointee(Upstreams::of(&Ok(BTreeMap::new()))),
            client: Client::default(),
            counts: Counts::default(),
            cases: Cases::new(state),
            kept: Kept::new(state),
            hidden: Hidden::default(),
            ending: CancellationToken::new(),
        }
    }
}

/// What an exchange needs: the server it came to, and what all exchanges share.
#[derive(Clone)]
struct ProxyState {
    server: Arc<App>,
    proxy: Arc<Proxy>,
}

impl ProviderProxy for Proxy {
    fn routes(self: Arc<Self>) -> Router<Arc<App>> {
        let endpoint = move |State(server): State<Arc<App>>, caller: Caller, request: Request| {
            let proxy = Arc::clone(&self);
            endpoint::endpoint(ProxyState { server, proxy }, caller, request)
        };
        Router::new().route(&format!("{PREFIX}{{*rest}}"), any(endpoint))
    }

    fn apply(&self, settings: &Result<BTreeMap<String, ProxySettings>, String>) {
        if let Err(problem) = settings {
            tracing::error!("the proxy forwards nothing: {problem}");
        }
        self.upstreams.store(Arc::new(Upstreams::of(settings)));
    }

    fn figures(&self) -> Option<ProxyFigures> {
        self.counts.figures()
    }

    fn until_none(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.counts.until_none())
    }

    fn end(&self) {
        self.ending.cancel();
    }
}
