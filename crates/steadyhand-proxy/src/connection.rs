//! One connection to a provider: dialled, encrypted where the address says so, and watched.

use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use hyper::Uri;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use steadyhand::CooperativeStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::ServiceExt as _;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Opens connections. It follows no redirect and asks no proxy of the environment: a key goes where it was sent.
pub(super) struct Dialer {
    tcp: HttpConnector,
    tls: TlsConnector,
}

/// A connection, and what has to run for it.
pub(super) struct Dialled {
    pub(super) sender: SendRequest<Body>,
    pub(super) driver: http1::Connection<TokioIo<CooperativeStream<Box<dyn Stream>>>, Body>,
    pub(super) wire: Arc<Wire>,
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Dialer {
    pub(super) fn new() -> Dialer {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_LIMIT));
        tcp.set_keepalive(Some(KEEPALIVE));
        Dialer {
            tcp,
            tls: TlsConnector::from(Arc::new(tls())),
        }
    }

    /// Connects to the host of this address.
    pub(super) async fn dial(&self, uri: &Uri) -> Result<Dialled, Box<dyn Error + Send + Sync>> {
        let tcp = self.tcp.clone().oneshot(uri.clone()).await?;
        let wire = Arc::new(Wire::default());
        let watched = Watched {
            stream: tcp.into_inner(),
            wire: Arc::clone(&wire),
        };
        let stream: Box<dyn Stream> = match uri.scheme_str() {
            Some("https") => {
                let host = uri.host().unwrap_or_default();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let name = ServerName::try_from(host.to_owned())?;
                Box::new(self.tls.connect(name, watched).await?)
            }
            _ => Box::new(watched),
        };
        let (sender, driver) =
            http1::handshake(TokioIo::new(CooperativeStream::new(stream))).await?;
        Ok(Dialled {
            sender,
            driver,
            wire,
        })
    }
}

/// What has happened on a connection.
#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Nothing is asked on it now, and nothing was written since the last answer.
    is_at_rest: AtomicBool,
    /// Bytes written since it was last at rest.
    written: AtomicU64,
    closed_by_peer: AtomicBool,
    /// The last answer said that the connection will be closed.
    close_is_announced: AtomicBool,
}

impl Wire {
    /// The last exchange is over.
    pub(super) fn rest(&self) {
        self.written.store(0, Ordering::Relaxed);
        self.is_at_rest.store(true, Ordering::Release);
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(super) fn announce_close(&self) {
        self.close_is_announced.store(true, Ordering::Relaxed);
    }

    /// The other side closed it, and had not said that it would.
    pub(super) fn was_closed_unannounced(&self) -> bool {
        self.closed_by_peer.load(Ordering::Acquire)
            && !self.close_is_announced.load(Ordering::Relaxed)
    }
}

/// A TCP stream that notes what happens on it.
struct Watched {
    stream: TcpStream,
    wire: Arc<Wire>,
}

impl Watched {
    /// Asks the system itself. The runtime may not have heard yet that the other side has closed the connection; a
    /// request must not be written into that.
    #[cfg(unix)]
    fn read_now(&self, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let received = rustix::net::recv(&self.stream, buffer.initialize_unfilled(), flags);
        match received.map(|(_, length)| length) {
            Ok(length) => {
                buffer.advance(length);
                Poll::Ready(Ok(()))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    #[cfg(not(unix))]
    fn read_now(&self, _buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        self.wire.is_at_rest.store(false, Ordering::Release);
        if let Poll::Ready(Ok(length)) = written {
            self.wire
                .written
                .fetch_add(*length as u64, Ordering::AcqRel);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let mut read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() && self.wire.is_at_rest.load(Ordering::Acquire) {
            read = self.read_now(buffer);
        }
        let is_over = match &read {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
        };
        if is_over {
            self.wire.closed_by_peer.store(true, Ordering::Release);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
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
