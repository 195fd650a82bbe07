//! A session of a client of the older protocols over HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use steadyhand::ByteBudget;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::inquiry::Inquiry;
use super::news::{Mailbox, Versions};
use super::operation;
use super::stream::Stream;

/// Streams that one session may have, those that are over included; then the oldest that is over goes.
const STREAMS_MAX: usize = 64;

/// One session.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    /// Who opened it, where that is known: it is nobody else's.
    pub(super) owner: Option<Arc<str>>,
    /// Whose share of all sessions it is in.
    pub(super) account: Arc<str>,
    pub(super) client: Arc<Client>,
    pub(super) mailbox: Arc<Mailbox>,
    /// Where what its streams keep is counted.
    kept_memory: ByteBudget,
    /// Cancelled when it ends.
    pub(super) ended: CancellationToken,
    /// Requests that are being worked on, by the client's id.
    running: Mutex<HashMap<String, Arc<Inquiry>>>,
    streams: Mutex<Vec<Arc<Stream>>>,
    last_stream: AtomicU64,
    /// What it was told of the lists.
    told: Mutex<Versions>,
    /// Counts streams of news: only the last one is served.
    listeners: AtomicU64,
    listener_changed: Notify,
    /// Requests and streams that are open.
    busy: AtomicUsize,
    /// When it was last used, in milliseconds of the sessions' clock.
    pub(super) used_ms: AtomicU64,
    began: Instant,
}

impl Session {
    pub(super) fn new(
        id: Arc<str>,
        owner: Option<Arc<str>>,
        account: Arc<str>,
        client: Client,
        told: Versions,
        (told_memory, kept_memory): (ByteBudget, ByteBudget),
    ) -> Session {
        let (client, mailbox) = (Arc::new(client), Arc::new(Mailbox::new(told_memory)));
        mailbox.belong_to(&client);
        Session {
            id,
            owner,
            account,
            client,
            mailbox,
            kept_memory,
            ended: CancellationToken::new(),
            running: Mutex::default(),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            told: Mutex::new(told),
            listeners: AtomicU64::new(0),
            listener_changed: Notify::new(),
            busy: AtomicUsize::new(0),
            used_ms: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// A request begins.
    pub(super) fn begin(self: &Arc<Self>, id: &RawValue, inquiry: &Arc<Inquiry>) -> Running {
        let id = id.get().to_owned();
        self.running.lock().insert(id.clone(), Arc::clone(inquiry));
        // One that was ended a moment ago has not seen it.
        if self.ended.is_cancelled() {
            inquiry.cancel();
        }
        Running {
            _busy: self.busy(),
            id,
            inquiry: Arc::clone(inquiry),
        }
    }

    /// The client no longer wants to know.
    pub(super) fn cancel(&self, id: &RawValue) {
        let inquiry = self.running.lock().remove(id.get());
        if let Some(inquiry) = inquiry {
            inquiry.cancel();
        }
    }

    /// It is over: what runs for it is cancelled.
    pub(super) fn end(&self) {
        operation::session_ended(self.client.era.version(), false, self.began.elapsed());
        self.ended.cancel();
        let running = std::mem::take(&mut *self.running.lock());
        running.values().for_each(|inquiry| inquiry.cancel());
    }

    /// A stream for a request's answer.
    pub(super) fn open_stream(&self, request: &RawValue) -> Arc<Stream> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::clone(&self.client);
        let stream = Stream::new(number, request, client, &self.kept_memory);
        let mut streams = self.streams.lock();
        if streams.len() >= STREAMS_MAX
            && let Some(over) = streams.iter().position(|stream| stream.is_over())
        {
            streams.remove(over);
        }
        // One that is not kept cannot be resumed; it works all the same.
        if streams.len() < STREAMS_MAX && stream.can_be_kept() {
            streams.push(Arc::clone(&stream));
        }
        stream
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        let streams = self.streams.lock();
        streams.iter().find(|it| it.number == number).cloned()
    }

    pub(super) fn told(&self) -> Versions {
        *self.told.lock()
    }

    pub(super) fn set_told(&self, told: Versions) {
        *self.told.lock() = told;
    }

    /// A stream of news begins, and takes the place of the one before.
    pub(super) fn listen(self: &Arc<Self>) -> Listener {
        let number = self.listeners.fetch_add(1, Ordering::AcqRel) + 1;
        self.listener_changed.notify_waiters();
        Listener {
            _busy: self.busy(),
            session: Arc::clone(self),
            number,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }
}

/// The session is in use as long as this lives.
struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A request that is being worked on.
pub(super) struct Running {
    _busy: Busy,
    id: String,
    inquiry: Arc<Inquiry>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self._busy.0.running.lock();
        // Another request may have come with the same id.
        if running
            .get(&self.id)
            .is_some_and(|own| Arc::ptr_eq(own, &self.inquiry))
        {
            running.remove(&self.id);
        }
    }
}

/// A stream of news.
pub(super) struct Listener {
    _busy: Busy,
    pub(super) session: Arc<Session>,
    number: u64,
}

impl Listener {
    /// Waits until another one has taken its place.
    pub(super) async fn replaced(&self) {
        loop {
            let changed = self.session.listener_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.session.listeners.load(Ordering::Acquire) != self.number {
                return;
            }
            changed.await;
        }
    }
}
