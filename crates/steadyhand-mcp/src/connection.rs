//! One connection to one server: requests out, answers in, routed by id. Nothing here waits without an end.

use std::future::{Future, poll_fn};
use std::sync::Arc;

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use crate::lists::Changed;
use crate::mux::{Desk, Mux, Outlet};
use crate::slot::{Answer, Heard, Slot, Whose};
use crate::wire::{Line, Lines, Outgoing};
use crate::writer::{Haste, NotTaken, Writer};

/// The longest line a server may send: a result may hold pictures.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;

/// A connection that is up, or was. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    mux: Arc<Mux>,
    writer: Arc<Writer>,
}

impl Outlet for Writer {
    fn say(&self, line: Vec<u8>) {
        let _ = self.send(line, None, Haste::Together);
    }
}

impl Connection {
    /// A connection over a server's stdin. Whoever opens it drives [`Connection::read`] and [`Connection::write`].
    pub(crate) fn over(stdin: pipe::Sender, desk: Arc<Desk>) -> Connection {
        Connection {
            mux: Arc::new(Mux::new(desk)),
            writer: Arc::new(Writer::new(stdin)),
        }
    }

    /// Sends a request. `params` gets the request's id, for the progress token.
    pub(crate) fn request<P: Serialize>(
        &self,
        method: &str,
        whose: Whose,
        params: impl FnOnce(u64) -> P,
    ) -> Reply {
        let (id, slot, in_flight) = self.mux.open(whose);
        let haste = match in_flight {
            1 => Haste::Direct,
            _ => Haste::Together,
        };
        let reply = Reply {
            id,
            slot,
            connection: self.clone(),
            since: Instant::now(),
            is_over: false,
        };
        let params = params(id);
        let line = Outgoing::request(id, method, &params).line();
        let sent = Arc::clone(&reply.slot.sent);
        // Closed meanwhile, or before: whoever closes it answers those who wait.
        if self.is_closed() {
            self.mux.answer_all_lost();
        } else if let Err(not_taken) = self.writer.send(line, Some(sent), haste) {
            let reason = match not_taken {
                NotTaken::Full => "it does not read what is sent to it".to_owned(),
                NotTaken::Closed => self.why_closed(),
            };
            self.mux.answer_lost(id, &reason);
        }
        reply
    }

    /// Tells the server something. A server that does not read misses it.
    pub(crate) fn notify<P: Serialize>(&self, method: &str, params: Option<&P>) {
        let line = Outgoing::notification(method, params).line();
        let _ = self.writer.send(line, None, Haste::Direct);
    }

    /// Reads what the server sends until it ends or the connection is closed.
    pub(crate) async fn read(&self, mut stdout: pipe::Receiver) {
        let mut lines = Lines::new(LINE_BYTES_MAX);
        let outlet: Arc<dyn Outlet> = Arc::clone(&self.writer) as _;
        loop {
            let buffer = lines.buffer();
            buffer.reserve(READ_BYTES);
            match stdout.read_buf(buffer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            self.mux.hear();
            while let Some(line) = lines.next_line() {
                self.take_line(line, &outlet);
            }
        }
        while let Some(line) = lines.last_line() {
            self.take_line(line, &outlet);
        }
    }

    fn take_line(&self, line: Line<'_>, outlet: &Arc<dyn Outlet>) {
        let mux = &self.mux;
        let record = &mux.desk.record;
        match line {
            Line::Message(message) => mux.take(message, None, outlet),
            Line::Batch(messages) => {
                for message in messages {
                    mux.take(message, None, outlet);
                }
            }
            Line::Salvaged { noise, message } => {
                record.noise(noise, noise.len());
                mux.take(message, None, outlet);
            }
            Line::Noise(bytes) => record.noise(bytes, bytes.len()),
            Line::TooLong {
                start,
                bytes,
                answers,
            } => {
                if !answers.is_some_and(|id| mux.too_large(id, bytes)) {
                    record.noise(start, bytes);
                }
            }
        }
    }

    /// Writes what is to be sent until the connection is closed; an error says why it cannot.
    pub(crate) async fn write(&self) -> std::io::Result<()> {
        self.writer.run().await
    }

    /// Ends it: everyone who waits is answered, at once.
    pub(crate) fn close(&self, reason: &str) {
        // First: nothing goes out any more when those who wait are told what was sent.
        self.writer.close();
        self.mux.close(reason);
        self.mux.answer_all_lost();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.mux.closed.is_cancelled()
    }

    pub(crate) fn why_closed(&self) -> String {
        self.mux.why_closed()
    }

    /// Requests that wait for their answers.
    pub(crate) fn in_flight(&self) -> usize {
        self.mux.in_flight()
    }

    /// Lists are to be read anew.
    pub(crate) fn tell_changed(&self, what: Changed) {
        self.mux.tell_changed(what);
    }

    /// The server said that its lists have changed; which.
    pub(crate) async fn changed(&self) -> Changed {
        self.mux.changed().await
    }

    /// Someone doubts that the server is alive.
    pub(crate) async fn doubted(&self) {
        self.mux.doubted().await;
    }

    /// Whether calls should wait until it is known that the server is alive.
    pub(crate) fn is_doubted(&self) -> bool {
        self.mux.is_doubted()
    }

    pub(crate) fn trust(&self) {
        self.mux.trust();
    }

    /// Whether the server has been heard since then.
    pub(crate) fn heard_since(&self, since: Instant) -> bool {
        self.mux.heard_since(since)
    }
}

/// An answer that is on its way. Dropping it cancels the request.
pub(crate) struct Reply {
    id: u64,
    slot: Arc<Slot>,
    connection: Connection,
    since: Instant,
    is_over: bool,
}

impl Reply {
    /// The next thing that is heard of it.
    pub(crate) fn heard(&mut self) -> impl Future<Output = Heard> + '_ {
        poll_fn(|cx| {
            let heard = self.slot.poll(cx);
            heard.map(|heard| {
                self.is_over = matches!(heard, Heard::Answer(_));
                heard
            })
        })
    }

    /// The server wants to know something from someone first.
    pub(crate) fn is_asked(&self) -> bool {
        self.slot.is_asked()
    }

    /// The answer; how far it is does not matter.
    pub(crate) async fn answer(mut self) -> Answer {
        loop {
            if let Heard::Answer(answer) = self.heard().await {
                return answer;
            }
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_over || self.connection.is_closed() {
            return;
        }
        let Connection { mux, writer } = &self.connection;
        if !mux.give_up(self.id) {
            return;
        }
        if !writer.withdraw(&self.slot.sent) {
            let cancelled = Cancelled {
                request_id: self.id,
                reason: "the caller no longer waits for it",
            };
            self.connection
                .notify("notifications/cancelled", Some(&cancelled));
        }
        if !mux.heard_since(self.since) {
            mux.doubt();
        }
    }
}

/// What was thrown away, in words.
pub(crate) fn too_large(bytes: usize) -> String {
    format!(
        "an answer of {bytes} bytes, which is too large; at most {LINE_BYTES_MAX} bytes are read"
    )
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    request_id: u64,
    reason: &'static str,
}
