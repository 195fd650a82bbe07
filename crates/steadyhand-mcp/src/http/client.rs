//! The client for requests over HTTP: pooled connections, nothing that could send a request twice.

use std::error::Error;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::{TokioExecutor, TokioTimer};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Shorter than servers commonly keep a silent connection (Node and uvicorn: 5 s): what is written into one that is
/// closing may have been read or not, and nobody could tell.
const IDLE_KEPT: Duration = Duration::from_secs(4);
const IDLE_MAX: usize = 256;
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Sends requests. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub(super) struct Client(Pool<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(super) struct NoAnswer {
    /// In words, the operating system's included.
    pub(super) why: String,
    /// Whether the server can have seen the request.
    pub(super) was_sent: bool,
    /// Nothing listens there, or nobody can tell where it is.
    pub(super) is_unreachable: bool,
}

impl Client {
    pub(super) fn new() -> Client {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_LIMIT));
        tcp.set_keepalive(Some(KEEPALIVE));
        let tls = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls().clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_KEPT)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(tls);
        Client(pool)
    }

    /// Sends it once. Dropping the future aborts the exchange and its connection.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, NoAnswer> {
        self.0
            .request(request)
            .await
            .map_err(|error| no_answer(&error))
    }
}

/// Loading the system's certificates takes a moment: once.
fn tls() -> &'static rustls::ClientConfig {
    static TLS: OnceLock<rustls::ClientConfig> = OnceLock::new();
    TLS.get_or_init(|| {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let builder = || {
            rustls::ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .expect("the versions of the provider")
        };
        use rustls_platform_verifier::BuilderVerifierExt as _;
        match builder().with_platform_verifier() {
            Ok(config) => config.with_no_client_auth(),
            Err(error) => {
                // A machine without certificates (a bare container) can still speak plain HTTP.
                tracing::warn!(%error, "no certificates on this system: https will fail; install ca-certificates or set SSL_CERT_FILE");
                builder()
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth()
            }
        }
    })
}

fn no_answer(error: &legacy::Error) -> NoAnswer {
    let cancelled = error
        .source()
        .and_then(|source| source.downcast_ref::<hyper::Error>())
        .is_some_and(hyper::Error::is_canceled);
    NoAnswer {
        why: words(error),
        was_sent: !(error.is_connect() || cancelled),
        is_unreachable: error.is_connect(),
    }
}

/// The innermost cause says most: "Connection refused (os error 111)".
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let io = innermost.downcast_ref::<io::Error>();
    let inner = io.and_then(io::Error::get_ref);
    match inner {
        Some(inner) => inner.to_string(),
        None => innermost.to_string(),
    }
}

/// Whether anything listens there: a connection that is closed at once. An error says why not.
pub(super) async fn probe(uri: &Uri) -> Result<(), String> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let usual = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let port = uri.port_u16().unwrap_or(usual);
    let connecting = tokio::net::TcpStream::connect((host, port));
    match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no connection within {CONNECT_LIMIT:?}")),
    }
}
