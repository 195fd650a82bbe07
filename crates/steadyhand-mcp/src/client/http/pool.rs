//! Connections to one server that wait for their next request. Nobody drives a connection but who waits for its
//! answer: no task stands between a call and the socket.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use steadyhand::CooperativeStream;
use tokio::runtime::{self, Handle};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep};

use super::client::Stream;

/// Shorter than servers commonly keep a silent connection (Node and uvicorn: 5 s): what is written into one that is
/// closing may have been read or not, and nobody could tell.
const IDLE_KEPT: Duration = Duration::from_secs(4);
const IDLE_MAX: usize = 256;

/// The connections that wait, the one used last at the end.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    waiting: Vec<Waiting>,
    /// Whether a task looks after those nobody needs.
    is_swept: bool,
}

struct Waiting {
    since: Instant,
    /// Where it is driven: the threads of another runtime would have to be woken for each other.
    on: runtime::Id,
    connection: Connection,
}

/// A connection, and our end of it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
}

type Driver = Pin<Box<http1::Connection<Turns, Full<Bytes>>>>;
/// A server that sends without a pause keeps nobody else on this thread waiting, whatever it sends.
type Turns = TokioIo<CooperativeStream<TokioIo<Stream>>>;
pub(super) type NotSent = TrySendError<Request<Full<Bytes>>>;

impl Pool {
    /// One that is still open, as far as anyone can tell.
    pub(super) fn take(&self) -> Option<Connection> {
        let here = Handle::current().id();
        loop {
            let mut idle = self.idle();
            let last = idle.waiting.iter().rposition(|it| it.on == here)?;
            let mut found = idle.waiting.remove(last);
            drop(idle);
            if found.since.elapsed() < IDLE_KEPT && found.connection.rests() {
                return Some(found.connection);
            }
        }
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        let mut idle = self.idle();
        if idle.waiting.len() >= IDLE_MAX {
            return;
        }
        idle.waiting.push(Waiting {
            since: Instant::now(),
            on: Handle::current().id(),
            connection,
        });
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock()
    }
}

/// Closes connections that nobody has needed for a while, until none is left.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE_KEPT).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut idle = pool.idle();
        let fresh = |waiting: &Waiting| waiting.since.elapsed() < IDLE_KEPT;
        let old = idle.waiting.iter().position(fresh);
        let old = old.unwrap_or(idle.waiting.len());
        let closed: Vec<_> = idle.waiting.drain(..old).collect();
        idle.is_swept = !idle.waiting.is_empty();
        let goes_on = idle.is_swept;
        drop(idle);
        drop(closed);
        if !goes_on {
            return;
        }
    }
}

impl Connection {
    pub(super) async fn open(stream: Stream) -> hyper::Result<Connection> {
        let stream = TokioIo::new(CooperativeStream::new(TokioIo::new(stream)));
        let (sender, driver) = http1::handshake(stream).await?;
        let driver = Box::pin(driver);
        Ok(Connection { sender, driver })
    }

    /// Whether it is open and nothing is under way on it. Nobody is woken when that changes.
    fn rests(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        self.driver.as_mut().poll(&mut nobody).is_pending() && self.sender.is_ready()
    }

    /// Sends a request; the connection goes back when the answer has been read. Dropping the future, or the answer
    /// before its end, closes it.
    pub(super) async fn send(
        mut self,
        request: Request<Full<Bytes>>,
        pool: &Arc<Pool>,
    ) -> Result<Response<Body>, NotSent> {
        // Without a budget of tokio's: it would be woken for the rest, and we wake nobody here.
        let answering = unconstrained(self.sender.try_send_request(request));
        let mut answering = std::pin::pin!(answering);
        let mut driver = Some(self.driver);
        let answered = poll_fn(|context| driven(&mut driver, answering.as_mut(), context)).await;
        let kept = driver.map(|driver| Connection {
            sender: self.sender,
            driver,
        });
        answered.map(|response| {
            response.map(|inner| {
                let mut body = Body {
                    inner,
                    on: kept.map(|connection| (connection, Arc::clone(pool))),
                };
                body.give_back();
                body
            })
        })
    }
}

/// Polls what comes of a connection. Only driving it can bring that about, so it wakes nobody by itself.
fn driven<F: Future + ?Sized>(
    driver: &mut Option<Driver>,
    coming: Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<F::Output> {
    if let Some(open) = driver
        && open.as_mut().poll(context).is_ready()
    {
        *driver = None;
    }
    match driver {
        Some(_) => coming.poll(&mut Context::from_waker(Waker::noop())),
        // It has ended: what is left of it comes without.
        None => coming.poll(context),
    }
}

/// The body of an answer, and the connection it comes on for as long as it comes.
pub(super) struct Body {
    inner: Incoming,
    on: Option<(Connection, Arc<Pool>)>,
}

impl Body {
    /// The connection can be used again as soon as it rests: mostly, the answer is there in one piece.
    fn give_back(&mut self) {
        if let Some((connection, pool)) = self
            .on
            .take_if(|(connection, _)| connection.sender.is_ready())
        {
            pool.put(connection);
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let body = &mut *self;
        if let Some((connection, _)) = &mut body.on
            && connection.driver.as_mut().poll(context).is_ready()
        {
            body.on = None;
        }
        let frame = Pin::new(&mut body.inner).poll_frame(context);
        if frame.is_ready() {
            body.give_back();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
