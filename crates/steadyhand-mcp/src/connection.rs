//! One connection to one server: requests out, answers in, routed by id. Nothing here waits without an end.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::record::Record;
use crate::requests::RequestPolicy;
use crate::wire::{Incoming, Line, Lines, Outgoing, RpcError};
use crate::writer::{Haste, NotTaken, Writer};

/// The longest line a server may send: a result may hold pictures.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;

/// A connection that is up, or was. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    next_id: AtomicU64,
    waiting: Mutex<HashMap<u64, Arc<Slot>, RandomState>>,
    writer: Writer,
    record: Arc<Record>,
    requests: RequestPolicy,
    tools_changed: Notify,
    /// Someone gave up waiting for an answer, and nothing had been heard meanwhile.
    doubted: Notify,
    is_doubted: AtomicBool,
    started: Instant,
    /// Milliseconds from the start to when the server was last heard.
    heard: AtomicU64,
    closed: CancellationToken,
    why_closed: OnceLock<String>,
}

/// What a request was answered with.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result, raw.
    Result(Box<RawValue>),
    /// The server's error.
    Error(RpcError),
    /// It was so many bytes long that it was thrown away.
    TooLarge(usize),
    /// The connection ended first.
    Lost(Lost),
}

/// The connection ended before the answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Why.
    pub(crate) reason: String,
    /// Whether the server can have seen the request.
    pub(crate) was_sent: bool,
}

/// How far a server is with a request.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Progress {
    #[serde(default)]
    pub(crate) progress: f64,
    #[serde(default)]
    pub(crate) total: Option<f64>,
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// What a waiting request hears next.
#[derive(Debug)]
pub(crate) enum Heard {
    /// How far it is.
    Progress(Progress),
    /// The end.
    Answer(Answer),
}

/// Where an answer is put, and who waits for it.
struct Slot {
    state: Mutex<SlotState>,
    sent: Arc<AtomicBool>,
}

#[derive(Default)]
struct SlotState {
    answer: Option<Answer>,
    /// The last one: who is slow to read misses those between.
    progress: Option<Progress>,
    waker: Option<Waker>,
}

impl Connection {
    /// A connection over a server's stdin. Whoever opens it drives [`Connection::read`] and [`Connection::write`].
    pub(crate) fn over(
        stdin: pipe::Sender,
        record: Arc<Record>,
        requests: RequestPolicy,
    ) -> Connection {
        Connection {
            shared: Arc::new(Shared {
                next_id: AtomicU64::new(1),
                waiting: Mutex::default(),
                writer: Writer::new(stdin),
                record,
                requests,
                tools_changed: Notify::new(),
                doubted: Notify::new(),
                is_doubted: AtomicBool::new(false),
                started: Instant::now(),
                heard: AtomicU64::new(0),
                closed: CancellationToken::new(),
                why_closed: OnceLock::new(),
            }),
        }
    }

    /// Sends a request. `params` gets the request's id, for the progress token.
    pub(crate) fn request<P: Serialize>(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> P,
    ) -> Reply {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot {
            state: Mutex::default(),
            sent: Arc::new(AtomicBool::new(false)),
        });
        let haste = {
            let mut waiting = self.shared.waiting();
            waiting.insert(id, Arc::clone(&slot));
            match waiting.len() {
                1 => Haste::Direct,
                _ => Haste::Together,
            }
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
        if self.shared.closed.is_cancelled() {
            self.shared.answer_all_lost();
        } else if let Err(not_taken) = self.shared.writer.send(line, Some(sent), haste) {
            let reason = match not_taken {
                NotTaken::Full => "it does not read what is sent to it".to_owned(),
                NotTaken::Closed => self.why_closed(),
            };
            self.shared.answer_lost(id, &reason);
        }
        reply
    }

    /// Tells the server something. A server that does not read misses it.
    pub(crate) fn notify<P: Serialize>(&self, method: &str, params: Option<&P>) {
        let line = Outgoing::notification(method, params).line();
        let _ = self.shared.writer.send(line, None, Haste::Direct);
    }

    /// Reads what the server sends until it ends or the connection is closed.
    pub(crate) async fn read(&self, mut stdout: pipe::Receiver) {
        let shared = &*self.shared;
        let mut lines = Lines::new(LINE_BYTES_MAX);
        loop {
            let buffer = lines.buffer();
            buffer.reserve(READ_BYTES);
            match stdout.read_buf(buffer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            shared.hear();
            while let Some(line) = lines.next_line() {
                shared.take_line(line);
            }
        }
        while let Some(line) = lines.last_line() {
            shared.take_line(line);
        }
    }

    /// Writes what is to be sent until the connection is closed; an error says why it cannot.
    pub(crate) async fn write(&self) -> std::io::Result<()> {
        self.shared.writer.run().await
    }

    /// Ends it: everyone who waits is answered, at once.
    pub(crate) fn close(&self, reason: &str) {
        let _ = self.shared.why_closed.set(reason.to_owned());
        // First: nothing goes out any more when those who wait are told what was sent.
        self.shared.writer.close();
        self.shared.closed.cancel();
        self.shared.answer_all_lost();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    pub(crate) fn why_closed(&self) -> String {
        let why = self.shared.why_closed.get();
        why.cloned()
            .unwrap_or_else(|| "the connection ended".to_owned())
    }

    /// Requests that wait for their answers.
    pub(crate) fn in_flight(&self) -> usize {
        self.shared.waiting().len()
    }

    /// The server said that its tools have changed.
    pub(crate) async fn tools_changed(&self) {
        self.shared.tools_changed.notified().await;
    }

    /// Someone doubts that the server is alive.
    pub(crate) async fn doubted(&self) {
        self.shared.doubted.notified().await;
    }

    /// Whether calls should wait until it is known that the server is alive.
    pub(crate) fn is_doubted(&self) -> bool {
        self.shared.is_doubted.load(Ordering::Acquire)
    }

    pub(crate) fn trust(&self) {
        self.shared.is_doubted.store(false, Ordering::Release);
    }

    /// Whether the server has been heard since then.
    pub(crate) fn heard_since(&self, since: Instant) -> bool {
        let heard = self.shared.heard.load(Ordering::Relaxed);
        heard >= self.shared.ms(since)
    }
}

impl Shared {
    fn ms(&self, at: Instant) -> u64 {
        // Rounded up, so that "since" means after.
        at.saturating_duration_since(self.started).as_millis() as u64 + 1
    }

    fn hear(&self) {
        self.heard.store(self.ms(Instant::now()), Ordering::Relaxed);
    }

    fn take_line(&self, line: Line<'_>) {
        match line {
            Line::Message(message) => self.take(message),
            Line::Batch(messages) => messages.into_iter().for_each(|m| self.take(m)),
            Line::Salvaged { noise, message } => {
                self.record.noise(noise, noise.len());
                self.take(message);
            }
            Line::Noise(bytes) => self.record.noise(bytes, bytes.len()),
            Line::TooLong {
                start,
                bytes,
                answers,
            } => match answers.and_then(|id| self.waiting().remove(&id)) {
                Some(slot) => slot.answer(Answer::TooLarge(bytes)),
                None => self.record.noise(start, bytes),
            },
        }
    }

    fn take(&self, message: Incoming<'_>) {
        match message {
            Incoming::Response { id, result } => {
                let slot = id.and_then(|id| self.waiting().remove(&id));
                match slot {
                    Some(slot) => slot.answer(match result {
                        Ok(result) => Answer::Result(result.to_owned()),
                        Err(error) => Answer::Error(error),
                    }),
                    // Too late, twice, or for a request we never sent: nobody waits for it.
                    None => tracing::debug!(?id, "an answer nobody waits for"),
                }
            }
            Incoming::Request { id, method, params } => {
                let answer = self.requests.answer(method, params);
                let line = Outgoing::<Value>::response(id, answer.as_ref()).line();
                let _ = self.writer.send(line, None, Haste::Together);
            }
            Incoming::Notification { method, params } => self.notified(method, params),
        }
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/progress" => {
                #[derive(Deserialize)]
                struct Token {
                    #[serde(rename = "progressToken")]
                    token: Value,
                }
                let text = params.map_or("null", RawValue::get);
                let Ok(Token { token }) = serde_json::from_str(text) else {
                    return;
                };
                let id = token.as_u64().or_else(|| token.as_str()?.parse().ok());
                let slot = id.and_then(|id| self.waiting().get(&id).cloned());
                if let (Some(slot), Ok(progress)) = (slot, serde_json::from_str(text)) {
                    slot.progress(progress);
                }
            }
            // One permit is kept however many come: a storm is one reason to look again.
            "notifications/tools/list_changed" => self.tools_changed.notify_one(),
            _ => tracing::debug!(method, "a notification"),
        }
    }

    fn answer_lost(&self, id: u64, reason: &str) {
        if let Some(slot) = self.waiting().remove(&id) {
            slot.lost(reason);
        }
    }

    fn answer_all_lost(&self) {
        let all: Vec<_> = self.waiting().drain().collect();
        let reason = self
            .why_closed
            .get()
            .map_or("the connection ended", |why| why);
        for (_, slot) in all {
            slot.lost(reason);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Arc<Slot>, RandomState>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn lost(&self, reason: &str) {
        self.answer(Answer::Lost(Lost {
            reason: reason.to_owned(),
            was_sent: self.sent.load(Ordering::Acquire),
        }));
    }

    fn answer(&self, answer: Answer) {
        let mut state = self.lock();
        state.answer = Some(answer);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn progress(&self, progress: Progress) {
        let mut state = self.lock();
        state.progress = Some(progress);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        Hearing(self)
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

struct Hearing<'a>(&'a mut Reply);

impl Future for Hearing<'_> {
    type Output = Heard;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Heard> {
        let reply = &mut *self.0;
        let mut state = reply.slot.lock();
        if let Some(progress) = state.progress.take() {
            return Poll::Ready(Heard::Progress(progress));
        }
        if let Some(answer) = state.answer.take() {
            reply.is_over = true;
            return Poll::Ready(Heard::Answer(answer));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_over || self.connection.is_closed() {
            return;
        }
        let shared = &self.connection.shared;
        if shared.waiting().remove(&self.id).is_none() {
            return;
        }
        if !shared.writer.withdraw(&self.slot.sent) {
            let cancelled = Cancelled {
                request_id: self.id,
                reason: "the caller no longer waits for it",
            };
            self.connection
                .notify("notifications/cancelled", Some(&cancelled));
        }
        if !self.connection.heard_since(self.since) {
            shared.is_doubted.store(true, Ordering::Release);
            shared.doubted.notify_one();
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
