//! The client for requests over HTTP: pooled connections, nothing that could send a request twice.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::ServiceExt as _;

pub(super) use super::pool::Body;
use super::pool::{Connection, NotSent, Pool};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);

pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Sends requests to one server. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub(super) struct Client {
    connector: HttpsConnector<HttpConnector>,
    pool: Arc<Pool>,
}

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
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls().clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Client {
            connector,
            pool: Arc::default(),
        }
    }

    /// Sends it once, to where the address leads. Dropping the future aborts the exchange and its connection.
    /// `sent` is set as soon as the server can have seen it.
    pub(super) async fn send(
        &self,
        to: &Uri,
        mut request: Request<Full<Bytes>>,
        sent: &AtomicBool,
    ) -> Result<Response<Body>, NoAnswer> {
        loop {
            let (connection, is_new) = match self.pool.take() {
                Some(connection) => (connection, false),
                // Apart: connecting takes much room, and most requests need none of it.
                None => (Box::pin(self.open(to)).await?, true),
            };
            sent.store(true, Ordering::Release);
            let mut not_sent = match connection.send(request, &self.pool).await {
                Ok(response) => return Ok(response),
                Err(not_sent) => not_sent,
            };
            match not_sent.take_message() {
                // The connection was closed before any of the request was on it.
                Some(unsent) if !is_new => {
                    sent.store(false, Ordering::Release);
                    request = unsent;
                }
                _ => return Err(no_answer(not_sent)),
            }
        }
    }

    async fn open(&self, to: &Uri) -> Result<Connection, NoAnswer> {
        let stream = self.connector.clone().oneshot(to.clone()).await;
        let stream = stream.map_err(|error| NoAnswer {
            why: words(&*error),
            was_sent: false,
            is_unreachable: true,
        })?;
        let opened = Connection::open(stream).await;
        opened.map_err(|error| NoAnswer {
            why: words(&error),
            was_sent: false,
            is_unreachable: false,
        })
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

fn no_answer(error: NotSent) -> NoAnswer {
    let error = error.into_error();
    NoAnswer {
        why: words(&error),
        was_sent: !error.is_canceled(),
        is_unreachable: false,
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
