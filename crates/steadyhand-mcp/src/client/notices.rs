//! What a server says that concerns nobody in particular, for whoever wants to hear it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use steadyhand::{ByteBudget, ReservedBytes};
use tokio::sync::Notify;

use crate::wire::Members;
use crate::wire::meta::META_SUBSCRIPTION;

/// So many, and so many bytes, may wait for those who hear them late; then the oldest are dropped, and counted.
const QUEUED_MAX: usize = 256;
const QUEUED_BYTES_MAX: usize = 1024 * 1024;
/// One that is longer is not told to anybody.
pub(crate) const NOTICE_BYTES_MAX: usize = 128 * 1024;

/// Something a server said, about no request in particular: `notifications/resources/updated`, a message of its log.
/// What it says about its lists is not among them: those are read anew, and [`Server::changes`](crate::Server::changes)
/// tells.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Which server.
    pub server: Arc<str>,
    /// What happened.
    pub method: Arc<str>,
    /// In detail, as the server wrote it.
    pub params: Option<Arc<RawValue>>,
}

/// Where they go out: one queue for all listeners, each at its own place in it.
pub(crate) struct Notices {
    server: Arc<str>,
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    arrived: Notify,
}

struct State {
    /// The number of the first that waits, from 0.
    first: u64,
    waiting: VecDeque<Notice>,
    held: ReservedBytes,
    /// The next notice of each listener, by the listener's number.
    listeners: Vec<(u64, u64)>,
    last_listener: u64,
    is_closed: bool,
}

/// One who listens. Dropped, it listens no more.
pub struct NoticeReceiver {
    queue: Arc<Queue>,
    number: u64,
}

/// Why there is no notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoNotice {
    /// So many were dropped, because they were not read in time; the next one is there.
    Missed(u64),
    /// The server is gone.
    Closed,
}

impl Notices {
    pub(crate) fn of(server: &str, memory: &ByteBudget) -> Notices {
        Notices {
            server: server.into(),
            queue: Arc::new(Queue {
                state: Mutex::new(State {
                    first: 0,
                    waiting: VecDeque::new(),
                    held: memory.nothing(),
                    listeners: Vec::new(),
                    last_listener: 0,
                    is_closed: false,
                }),
                arrived: Notify::new(),
            }),
        }
    }

    /// Never waits.
    pub(crate) fn tell(&self, method: &str, params: Option<&RawValue>) {
        let bytes = method.len() + params.map_or(0, |params| params.get().len());
        if bytes > NOTICE_BYTES_MAX {
            tracing::debug!(
                server = &*self.server,
                bytes,
                "a notification that is too long is not told"
            );
            return;
        }
        let mut state = self.queue.state();
        if state.listeners.is_empty() {
            return;
        }
        state.add(Notice {
            server: Arc::clone(&self.server),
            method: method.into(),
            params: params.map(|params| without_our_mark(params).into()),
        });
        drop(state);
        self.queue.arrived.notify_waiters();
    }

    pub(crate) fn subscribe(&self) -> NoticeReceiver {
        let mut state = self.queue.state();
        state.last_listener += 1;
        let (number, next) = (state.last_listener, state.next());
        state.listeners.push((number, next));
        NoticeReceiver {
            queue: Arc::clone(&self.queue),
            number,
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.queue.state().is_closed = true;
        self.queue.arrived.notify_waiters();
    }
}

impl NoticeReceiver {
    /// The next one, if it is there.
    pub fn try_recv(&mut self) -> Option<Result<Notice, NoNotice>> {
        self.queue.state().take(self.number)
    }

    /// The next one. May be dropped and asked again.
    pub async fn recv(&mut self) -> Result<Notice, NoNotice> {
        loop {
            let arrived = self.queue.arrived.notified();
            tokio::pin!(arrived);
            // From here on nothing is missed.
            arrived.as_mut().enable();
            if let Some(next) = self.queue.state().take(self.number) {
                return next;
            }
            arrived.await;
        }
    }
}

impl Drop for NoticeReceiver {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.listeners.retain(|(number, _)| *number != self.number);
        state.forget_read();
    }
}

impl fmt::Debug for NoticeReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoticeReceiver({})", self.number)
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// Makes room by dropping the oldest. Where there is none even so, it counts as dropped itself.
    fn add(&mut self, notice: Notice) {
        let bytes = notice.bytes();
        while self.waiting.len() >= QUEUED_MAX || self.held.bytes() + bytes > QUEUED_BYTES_MAX {
            self.drop_oldest();
        }
        while self.held.grow(bytes).is_err() {
            if self.waiting.is_empty() {
                self.first += 1;
                return;
            }
            self.drop_oldest();
        }
        self.waiting.push_back(notice);
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.waiting.pop_front() {
            self.held
                .shrink_to(self.held.bytes().saturating_sub(oldest.bytes()));
            self.first += 1;
        }
    }

    fn take(&mut self, listener: u64) -> Option<Result<Notice, NoNotice>> {
        let first = self.first;
        let place = self
            .listeners
            .iter_mut()
            .find(|(number, _)| *number == listener);
        let (_, next) = place?;
        if *next < first {
            let missed = first - std::mem::replace(next, first);
            return Some(Err(NoNotice::Missed(missed)));
        }
        let notice = self.waiting.get((*next - first) as usize).cloned();
        if let Some(notice) = notice {
            *next += 1;
            self.forget_read();
            return Some(Ok(notice));
        }
        self.is_closed.then_some(Err(NoNotice::Closed))
    }

    /// What all have heard is not kept.
    fn forget_read(&mut self) {
        let heard = self.listeners.iter().map(|(_, next)| *next).min();
        let heard = heard.unwrap_or_else(|| self.next());
        while self.first < heard && !self.waiting.is_empty() {
            self.drop_oldest();
        }
    }
}

impl Notice {
    fn bytes(&self) -> usize {
        let params = self.params.as_ref().map_or(0, |params| params.get().len());
        self.method.len() + params
    }
}

/// Which of our requests it answers concerns nobody else.
fn without_our_mark(params: &RawValue) -> Box<RawValue> {
    let is_marked = params.get().contains(META_SUBSCRIPTION);
    let stripped = || {
        let members = Members::of(params)?;
        let meta = Members::of(members.get("_meta")?)?.without(META_SUBSCRIPTION);
        Some(match meta.0.is_empty() {
            true => members.without("_meta").to_raw(),
            false => {
                let meta = meta.to_raw();
                members.with("_meta", &meta).to_raw()
            }
        })
    };
    is_marked
        .then(stripped)
        .flatten()
        .unwrap_or_else(|| params.to_owned())
}
