//! What a server is put together from; other crates add the proxy to providers, and pages for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use futures_util::future::BoxFuture;

use super::App;
use crate::telemetry::ProxyFigures;
use steadyhand_config::proxy::ProxySettings;
use steadyhand_runtime::access::Door;
use steadyhand_runtime::approvals::Desk;
use steadyhand_runtime::pins::Pins;

/// The proxy to providers.
pub trait ProviderProxy: Send + Sync {
    /// Its routes, below [`PREFIX`](super::proxied::PREFIX).
    fn routes(self: Arc<Self>) -> Router<Arc<App>>;

    /// Takes over what the configuration says; exchanges that are under way go on as they began.
    fn apply(&self, settings: &Result<BTreeMap<String, ProxySettings>, String>);

    /// What has passed it, if anything has.
    fn figures(&self) -> Option<ProxyFigures>;

    /// Waits until no exchange is under way.
    fn until_none(&self) -> BoxFuture<'_, ()>;

    /// Ends the exchanges that are under way; their clients are told.
    fn end(&self);
}

/// Pages for people. Browsers log in to them.
#[derive(Clone, Copy)]
pub struct Pages {
    /// Whether a path is one of theirs.
    pub owns: fn(&str) -> bool,
    /// Their routes, which ask themselves who comes.
    pub routes: fn(&Arc<App>) -> Router<Arc<App>>,
}

/// All that a server is put together from, besides its runtime and its history.
pub struct ServerParts {
    pub door: Arc<Door>,
    pub desk: Desk,
    pub pins: Pins,
    pub proxy: Arc<dyn ProviderProxy>,
    pub pages: Pages,
}
