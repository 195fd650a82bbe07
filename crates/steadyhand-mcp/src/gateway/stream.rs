//! What is sent on one stream of a session, kept for a while: whoever was cut off goes on where it was.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use steadyhand::{ByteBudget, ReservedBytes};
use tokio::sync::Notify;

use super::events::frame;
use super::message::Message;

/// So much is kept of one stream; who is further behind misses what came before.
const KEPT_MAX: usize = 256;
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// What all sessions together keep of their streams; beyond it a stream keeps only what was sent last.
const KEPT_BYTES_OF_ALL_MAX: usize = 64 * 1024 * 1024;

/// The stream of one request's answer.
pub(super) struct Stream {
    pub(super) number: u64,
    kept: Mutex<Kept>,
    changed: Notify,
}

struct Kept {
    /// The number of the first that is kept, from 1.
    first: u64,
    frames: VecDeque<Bytes>,
    bytes: usize,
    held: ReservedBytes,
    is_over: bool,
    /// Counts readers: only the last one is served.
    readers: u64,
}

impl Kept {
    /// Whether there is memory for what is kept now.
    fn has_memory(&mut self) -> bool {
        self.held.shrink_to(self.bytes);
        let missing = self.bytes - self.held.bytes();
        self.bytes <= KEPT_BYTES_MAX && self.held.grow(missing).is_ok()
    }
}

/// The memory for what sessions keep of their streams.
fn memory() -> &'static ByteBudget {
    static MEMORY: LazyLock<ByteBudget> = LazyLock::new(|| {
        let name = "what is kept for MCP sessions";
        ByteBudget::process().part(name, KEPT_BYTES_OF_ALL_MAX)
    });
    &MEMORY
}

/// Reads a stream at its own pace.
pub(super) struct Reader {
    stream: Arc<Stream>,
    number: u64,
    /// The last that was read.
    reached: u64,
}

impl Stream {
    pub(super) fn new(number: u64) -> Arc<Stream> {
        Arc::new(Stream {
            number,
            kept: Mutex::new(Kept {
                first: 1,
                frames: VecDeque::new(),
                bytes: 0,
                held: memory().nothing(),
                is_over: false,
                readers: 0,
            }),
            changed: Notify::new(),
        })
    }

    pub(super) fn push(&self, message: &Message) {
        {
            let mut kept = self.kept();
            let place = kept.first + kept.frames.len() as u64;
            let id = format!("{}-{place}", self.number);
            let frame = frame(Some(&id), message);
            kept.bytes += frame.len();
            kept.frames.push_back(frame);
            while kept.frames.len() > KEPT_MAX || (!kept.has_memory() && kept.frames.len() > 1) {
                let gone = kept.frames.pop_front();
                kept.bytes -= gone.map_or(0, |frame| frame.len());
                kept.first += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// There will be nothing more.
    pub(super) fn end(&self) {
        self.kept().is_over = true;
        self.changed.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.kept().is_over
    }

    /// Reads what came after a place. Whoever read before is cut off: a client has one connection for a stream.
    pub(super) fn read_after(self: &Arc<Self>, place: u64) -> Reader {
        let number = {
            let mut kept = self.kept();
            kept.readers += 1;
            kept.readers
        };
        self.changed.notify_waiters();
        Reader {
            stream: Arc::clone(self),
            number,
            reached: place,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// The next piece; none when there is no more, or another reader has come.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let changed = self.stream.changed.notified();
            tokio::pin!(changed);
            // From here on nothing is missed.
            changed.as_mut().enable();
            {
                let kept = self.stream.kept();
                if kept.readers != self.number {
                    return None;
                }
                // Who is too far behind has missed something, and goes on with what there is: the answer comes last.
                self.reached = self.reached.max(kept.first - 1);
                let place = (self.reached + 1 - kept.first) as usize;
                if let Some(frame) = kept.frames.get(place) {
                    self.reached += 1;
                    return Some(frame.clone());
                }
                if kept.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }
}
