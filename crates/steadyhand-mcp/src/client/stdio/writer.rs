//! What goes to a server: a queue with an end, emptied by a task of its own. Nobody who sends ever waits.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use steadyhand::{ByteBudget, ReservedBytes};

use crate::client::record::Record;

/// What may wait to be written.
const QUEUED_BYTES_MAX: usize = 64 * 1024 * 1024;
const QUEUED_MAX: usize = 16 * 1024;
/// The part of it that answers to a server's own questions may take up: calls have the rest.
const REPLIES_SHARE: usize = 4;
/// So much is handed to the system at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// A server that takes no byte for so long, while some are waiting, is not reading at all.
const STALL_LIMIT: Duration = Duration::from_secs(15);

/// The way to a server's stdin.
pub(crate) struct Writer {
    queue: Mutex<Queue>,
    wake: Notify,
    closed: CancellationToken,
    /// Told of every message, for those who want to see everything.
    record: Arc<Record>,
}

struct Queue {
    /// Written to only under this lock: so that nothing goes out any more once it is closed, and what is said
    /// to be unsent stays so. None when closed, which the server sees as the end of its stdin.
    pipe: Option<Arc<pipe::Sender>>,
    messages: VecDeque<Message>,
    bytes: usize,
    /// The memory of that.
    held: ReservedBytes,
    /// The task has messages in its hands: others must queue behind them.
    busy: bool,
}

struct Message {
    line: Vec<u8>,
    /// Bytes of it that are gone already.
    written: usize,
    /// Told when the last byte is gone.
    sent: Option<Arc<AtomicBool>>,
}

/// Why something was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// Too much waits already.
    Full,
    /// The way is closed.
    Closed,
}

/// Whether a message is written at once by whoever sends it, or together with others by the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Haste {
    /// Nothing else is under way: one step less.
    Direct,
    /// Others are: one write for all of them.
    Together,
}

impl Writer {
    pub(crate) fn new(pipe: pipe::Sender, record: Arc<Record>, memory: &ByteBudget) -> Writer {
        Writer {
            record,
            queue: Mutex::new(Queue {
                pipe: Some(Arc::new(pipe)),
                messages: VecDeque::new(),
                bytes: 0,
                held: memory.nothing(),
                busy: false,
            }),
            wake: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Hands over one line. Never waits.
    pub(crate) fn send(
        &self,
        line: Vec<u8>,
        sent: Option<Arc<AtomicBool>>,
        haste: Haste,
    ) -> Result<(), NotTaken> {
        self.record.passes("sent", &line);
        let mut message = Message {
            line,
            written: 0,
            sent,
        };
        let mut queue = self.lock();
        let Some(pipe) = &queue.pipe else {
            return Err(NotTaken::Closed);
        };
        let is_free = queue.messages.is_empty() && !queue.busy;
        if is_free && haste == Haste::Direct {
            if let Ok(count) = pipe.try_write(&message.line) {
                message.written = count;
            }
            if message.written == message.line.len() {
                message.done();
                return Ok(());
            }
        }
        let is_full = queue.messages.len() >= QUEUED_MAX || queue.bytes > QUEUED_BYTES_MAX;
        // One that is begun must be ended.
        let has_room = queue.held.grow(message.line.len()).is_ok() || is_free;
        if is_full || !has_room {
            return Err(NotTaken::Full);
        }
        queue.bytes += message.line.len();
        queue.messages.push_back(message);
        drop(queue);
        self.wake.notify_one();
        Ok(())
    }

    /// Whether answers to the server's own questions may wait, too.
    pub(crate) fn has_room_for_replies(&self) -> bool {
        let queue = self.lock();
        queue.messages.len() < QUEUED_MAX / REPLIES_SHARE
            && queue.bytes < QUEUED_BYTES_MAX / REPLIES_SHARE
    }

    /// Takes back a message of which nothing was written yet.
    pub(crate) fn withdraw(&self, sent: &Arc<AtomicBool>) -> bool {
        let mut queue = self.lock();
        let is_it = |message: &Message| {
            message.written == 0
                && message
                    .sent
                    .as_ref()
                    .is_some_and(|mine| Arc::ptr_eq(mine, sent))
        };
        let Some(place) = queue.messages.iter().position(is_it) else {
            return false;
        };
        let withdrawn = queue.messages.remove(place);
        queue.bytes -= withdrawn.map_or(0, |message| message.line.len());
        queue.settle();
        true
    }

    /// Whether the other side has read everything it was sent: one that ended before it did, ended of something else.
    pub(crate) fn was_read(&self) -> bool {
        let queue = self.lock();
        let unread = queue
            .pipe
            .as_ref()
            .map(|pipe| rustix::io::ioctl_fionread(&**pipe));
        queue.messages.is_empty() && !matches!(unread, Some(Ok(1..)))
    }

    /// Takes no more, and forgets what was not written.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.pipe = None;
        queue.messages.clear();
        queue.bytes = 0;
        queue.settle();
        drop(queue);
        self.closed.cancel();
        self.wake.notify_one();
    }

    /// Writes what is queued until the way is closed. An error says why it cannot go on.
    pub(crate) async fn run(&self) -> Result<(), io::Error> {
        loop {
            let chunk = {
                let mut queue = self.lock();
                if queue.pipe.is_none() {
                    return Ok(());
                }
                queue.take_chunk()
            };
            match chunk.is_empty() {
                true => self.wake.notified().await,
                false => self.write(chunk).await?,
            }
        }
    }

    async fn write(&self, mut messages: Vec<Message>) -> io::Result<()> {
        let joined: Vec<u8>;
        let bytes: &[u8] = match &messages[..] {
            [only] => &only.line[only.written..],
            several => {
                let lines = several
                    .iter()
                    .map(|message| &message.line[message.written..]);
                joined = lines.collect::<Vec<_>>().concat();
                &joined
            }
        };
        let mut left = bytes;
        let mut marked = 0;
        let mut end_of_marked = 0;
        while !left.is_empty() {
            let pipe = {
                let queue = self.lock();
                let Some(pipe) = &queue.pipe else {
                    return Ok(());
                };
                match pipe.try_write(left) {
                    Ok(count) => left = &left[count..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                let gone = bytes.len() - left.len();
                while let Some(message) = messages.get(marked)
                    && end_of_marked + message.line.len() - message.written <= gone
                {
                    end_of_marked += message.line.len() - message.written;
                    message.done();
                    marked += 1;
                }
                Arc::clone(pipe)
            };
            if !left.is_empty() {
                tokio::select! {
                    writable = timeout(STALL_LIMIT, pipe.writable()) => {
                        writable.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                    }
                    () = self.closed.cancelled() => return Ok(()),
                }
            }
        }
        messages.clear();
        self.lock().busy = false;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Queue {
    /// Gives back the memory of what is not in the queue any more.
    fn settle(&mut self) {
        self.held.shrink_to(self.bytes);
    }

    fn take_chunk(&mut self) -> Vec<Message> {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while bytes < CHUNK_BYTES
            && let Some(message) = self.messages.pop_front()
        {
            bytes += message.line.len();
            chunk.push(message);
        }
        self.bytes -= bytes;
        self.settle();
        self.busy = !chunk.is_empty();
        chunk
    }
}

impl Message {
    fn done(&self) {
        if let Some(sent) = &self.sent {
            sent.store(true, Ordering::Release);
        }
    }
}
