//! The connections to providers: pooled, and nothing is sent twice.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::trouble::Trouble;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Shorter than servers commonly keep a silent connection, so that we seldom write into a closing one.
const IDLE_KEPT: Duration = Duration::from_secs(15);
const IDLE_MAX: usize = 256;
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Sends requests. It follows no redirect and asks no proxy of the environment: a key goes where it was sent.
#[derive(Default)]
pub(super) struct Client(OnceLock<Pool<HttpsConnector<HttpConnector>, Body>>);

impl Client {
    /// Sends it once. Dropping the future, or the body of the answer, ends the exchange and its connection.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, Trouble> {
        let pool = self.0.get_or_init(pool);
        let sent = pool.request(request).await;
        sent.map_err(|error| Trouble::of_sending(&error))
    }
}

fn pool() -> Pool<HttpsConnector<HttpConnector>, Body> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_LIMIT));
    tcp.set_keepalive(Some(KEEPALIVE));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls())
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    Pool::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_KEPT)
        .pool_max_idle_per_host(IDLE_MAX)
        .build(https)
}

fn tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || {
        rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the versions of the provider")
    };
    match builder().with_platform_verifier() {
        Ok(config) => config.with_no_client_auth(),
        Err(error) => {
            // A machine without certificates can still reach a model on its own network.
            tracing::warn!(%error, "no certificates on this system: providers on https cannot be reached; install ca-certificates or set SSL_CERT_FILE");
            builder()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth()
        }
    }
}
