//! One connection: its requests one after the other, with an end to every wait.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::http::{self, App, Came};
use steadyhand_runtime::admission::{ConnectionActivity, OpenConnection};

/// A connection that is only told that there is no room.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(2);
/// How long a connection that is to make room may take to begin a request after all.
const EVICTION_GRACE: Duration = Duration::from_millis(250);
const HEADERS_MAX: usize = 100;
/// What is held of a request's head, and of a body on its way, for each connection.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// A client that still sends when it is answered is heard out for this long: one that is cut off would not see the
/// answer.
const HEARD_OUT_FOR: Duration = Duration::from_secs(2);
const HEARD_OUT_BYTES: usize = 64 * 1024 * 1024;

/// What connections are served with.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) ending: CancellationToken,
}

impl Service {
    /// Answers requests until the client is done, too slow, or the server ends; or until this connection is to make
    /// room for another while nobody uses it.
    pub(super) async fn serve(self, stream: TcpStream, peer: SocketAddr, open: OpenConnection) {
        let patience = self.app.limits.patience;
        let came = Came::OnItsOwn(Arc::clone(&open.activity));
        self.answer(stream, peer, patience, came).await;
        drop(open);
    }

    /// Says that there are too many connections, and closes this one. Operators are served all the same.
    pub(super) async fn refuse(self, stream: TcpStream, peer: SocketAddr) {
        let came = Came::BeyondTheLimit;
        self.answer(stream, peer, REFUSAL_PATIENCE, came).await;
    }

    async fn answer(self, stream: TcpStream, peer: SocketAddr, patience: Duration, came: Came) {
        let Service {
            app,
            router,
            acceptor,
            ending,
        } = self;
        prepare(&stream, patience);
        let activity = came.activity().cloned();
        let owed = Owed::default();
        let owes = owed.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (app, router, came) = (Arc::clone(&app), router.clone(), came.clone());
            let request = request.map(|body| Body::new(owes.body(body)));
            async move {
                let is_last = came.activity().is_none();
                let mut response = http::respond(app, router, peer, came, request).await;
                if is_last {
                    let close = axum::http::HeaderValue::from_static("close");
                    let headers = response.headers_mut();
                    headers.insert(axum::http::header::CONNECTION, close);
                }
                Ok::<Response, Infallible>(response)
            }
        });
        let limits = Conditions {
            patience,
            owed,
            activity,
            ending,
        };
        let Some(acceptor) = acceptor else {
            return talk(stream, service, limits).await;
        };
        // Whoever does not greet in time is not waited for, and neither is one that is to make room.
        let greeted = timeout(patience, acceptor.accept(stream));
        let greeted = tokio::select! {
            greeted = greeted => greeted,
            () = limits.evicted() => return,
        };
        match greeted {
            Ok(Ok(stream)) => talk(stream, service, limits).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "a connection that is no TLS"),
            Err(_) => tracing::debug!(%peer, "a connection that did not greet in time"),
        }
    }
}

/// How long a connection is talked on.
struct Conditions {
    patience: Duration,
    owed: Owed,
    /// None where it is only told that there is no room.
    activity: Option<Arc<ConnectionActivity>>,
    ending: CancellationToken,
}

impl Conditions {
    /// Waits until the connection is to make room for another.
    async fn evicted(&self) {
        match &self.activity {
            Some(activity) => activity.evicted.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// Whether a client has announced more of its request than it has sent: it is heard out before the connection ends.
#[derive(Clone, Default)]
struct Owed(Arc<AtomicBool>);

impl Owed {
    fn body(&self, body: Incoming) -> Coming {
        self.0.store(!body.is_end_stream(), Ordering::Relaxed);
        Coming {
            inner: body,
            owed: self.clone(),
        }
    }

    fn is_something(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The body of a request on its way.
struct Coming {
    inner: Incoming,
    owed: Owed,
}

impl hyper::body::Body for Coming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() || self.inner.is_end_stream() {
            self.owed.0.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

fn prepare(stream: &TcpStream, patience: Duration) {
    // Small answers are sent at once.
    let _ = stream.set_nodelay(true);
    notice_when_the_peer_is_gone(stream, patience);
}

async fn talk<T, S>(stream: T, service: S, conditions: Conditions)
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: hyper::service::HttpService<Incoming, ResBody = Body, Error = Infallible>,
{
    let io = Patient::new(stream, &conditions);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also the time a connection may lie idle.
        .header_read_timeout(conditions.patience)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        // What has arrived is read first: a request is answered even if it came at the last moment.
        biased;
        ended = &mut connection => ended,
        () = conditions.ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = conditions.evicted() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = &mut connection => ended,
                () = until_unused(&conditions) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Waits a moment, and for the end of a request that came in it: one that has only begun to come is not waited for.
async fn until_unused(conditions: &Conditions) {
    loop {
        sleep(EVICTION_GRACE).await;
        if !conditions
            .activity
            .as_ref()
            .is_some_and(|it| it.is_in_use())
        {
            return;
        }
    }
}

/// A machine that went away without a word is found out by asking, and one that acknowledges nothing is given up.
#[cfg(unix)]
fn notice_when_the_peer_is_gone(stream: &TcpStream, patience: Duration) {
    use rustix::net::sockopt;
    let second = Duration::from_secs(1);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, (patience / 2).max(second));
    let _ = sockopt::set_tcp_keepintvl(stream, (patience / 6).max(second));
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    // Where bytes of ours are on their way nobody is asked: without this they would be sent again for a quarter of
    // an hour.
    #[cfg(target_os = "linux")]
    {
        let milliseconds = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        let _ = sockopt::set_tcp_user_timeout(stream, milliseconds);
    }
}

#[cfg(not(unix))]
fn notice_when_the_peer_is_gone(_: &TcpStream, _: Duration) {}

/// A stream whose other side must take what is written within some time, a piece at a time.
struct Patient<T> {
    inner: T,
    patience: Duration,
    /// Runs while the other side takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether the other side has said that more will come.
    owed: Owed,
    activity: Option<Arc<ConnectionActivity>>,
    /// Our side is closed; theirs may still send.
    closing: Option<Closing>,
}

struct Closing {
    until: Pin<Box<Sleep>>,
    heard: usize,
}

impl Closing {
    fn begin() -> Closing {
        Closing {
            until: Box::pin(sleep(HEARD_OUT_FOR)),
            heard: 0,
        }
    }
}

impl<T> Patient<T> {
    fn new(inner: T, conditions: &Conditions) -> Patient<T> {
        Patient {
            inner,
            patience: conditions.patience,
            owed: conditions.owed.clone(),
            activity: conditions.activity.clone(),
            stalled: None,
            closing: None,
        }
    }

    fn bounded<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                stalled.as_mut().reset(Instant::now() + patience);
                let why = "the client does not take its answer";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }
}

impl<T: AsyncRead + Unpin> Patient<T> {
    /// Reads on while there is something to read, or to come: what is left in a socket when it is closed would take the answer
    /// away from its client.
    fn hear_out(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut piece = [0; 8 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut piece);
            let read = Pin::new(&mut self.inner).poll_read(context, &mut buffer);
            let bytes = buffer.filled().len();
            match (read, &mut self.closing) {
                // Nothing was on its way when we closed.
                (Poll::Pending, None) if !self.owed.is_something() => return Poll::Ready(()),
                (Poll::Pending, closing) => {
                    let closing = closing.get_or_insert_with(Closing::begin);
                    return closing.until.as_mut().poll(context);
                }
                (Poll::Ready(Err(_)), _) => return Poll::Ready(()),
                (Poll::Ready(Ok(())), _) if bytes == 0 => return Poll::Ready(()),
                (Poll::Ready(Ok(())), closing) => {
                    let closing = closing.get_or_insert_with(Closing::begin);
                    closing.heard += bytes;
                    if closing.heard > HEARD_OUT_BYTES {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.bounded(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if let (Poll::Ready(Ok(())), Some(activity)) = (&flushed, &self.activity) {
            activity.sent();
        }
        self.bounded(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            if let Some(activity) = &self.activity {
                activity.closes();
            }
            let shut = Pin::new(&mut self.inner).poll_shutdown(context);
            ready!(self.bounded(context, shut))?;
        }
        self.hear_out(context).map(Ok)
    }
}
