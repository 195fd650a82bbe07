//! Those who watch: each has a thread of its own and a queue with an end, and cannot delay or fail a call.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use crate::event::Event;
use crate::guard::attempt::panic_text;
use crate::trace::Spans;

/// What the events in one observer's queue may hold, in bytes: a few large arguments weigh more than thousands of events.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Someone who watches.
pub trait Observer: Send + Sync + 'static {
    /// Something happened. Runs on a thread of the observer's own: it may be slow, it may panic.
    fn observe(&self, event: &Event);

    /// Whether it is to be told of this at all. Asked on the path of the call: what comes out of a look at the event's
    /// kind, and nothing else.
    fn wants(&self, event: &Event) -> bool {
        let _ = event;
        true
    }
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// How an observer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObserverQueue {
    /// Events it may lag behind; the next ones are dropped, and counted. The last quarter is for ends of calls.
    pub events_max: usize,
    /// How long it may be left alone before it is told what has happened meanwhile, all at once: waking its thread costs
    /// a call more than telling it. With nothing to gather for, it is told at once.
    pub gather: Duration,
}

impl Default for ObserverQueue {
    /// Told at once, 4096 events at most.
    fn default() -> ObserverQueue {
        ObserverQueue {
            events_max: 4096,
            gather: Duration::ZERO,
        }
    }
}

/// What became of an observer.
#[derive(Debug, Clone)]
pub struct Watch {
    counts: Arc<Counts>,
    thread: thread::Thread,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    seen: AtomicU64,
    dropped: AtomicU64,
    /// What the events in its queue hold that are not light.
    bytes: AtomicUsize,
}

impl Watch {
    /// Events it never got, because it was too slow.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Whether it has seen everything that was sent to it so far. If not, it does so now: someone waits for it.
    pub fn is_up_to_date(&self) -> bool {
        let sent = self.counts.sent.load(Ordering::Acquire);
        let is_it = self.counts.seen.load(Ordering::Acquire) >= sent;
        if !is_it {
            self.thread.unpark();
        }
        is_it
    }
}

/// All observers of one executor.
#[derive(Default)]
pub(crate) struct Observers {
    count: AtomicUsize,
    /// Calls numbered so far.
    numbered: AtomicU64,
    spans: Spans,
    /// Whether someone makes spans of the events.
    records_spans: AtomicBool,
    watchers: ArcSwap<Vec<Watcher>>,
}

#[derive(Clone)]
struct Watcher {
    observer: Arc<dyn Observer>,
    queue: mpsc::Sender<Told>,
    counts: Arc<Counts>,
}

impl Observers {
    /// Nobody watches: the usual case on the path of a call, and one relaxed load.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// A number for a call, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.numbered.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The spans that tools are told of, while someone records them.
    pub(crate) fn spans(&self) -> Option<Spans> {
        self.records_spans
            .load(Ordering::Relaxed)
            .then_some(self.spans)
    }

    /// Always the same ones.
    pub(crate) fn record_spans(&self, yes: bool) -> Spans {
        self.records_spans.store(yes, Ordering::Relaxed);
        self.spans
    }

    pub(crate) fn add(
        &self,
        observer: impl Observer,
        queue: ObserverQueue,
    ) -> std::io::Result<Watch> {
        let ObserverQueue { events_max, gather } = queue;
        let (queue, inbox) = mpsc::channel::<Told>(events_max.max(1));
        let counts = Arc::new(Counts::default());
        let observer: Arc<dyn Observer> = Arc::new(observer);
        let listener = Listener {
            observer: Arc::clone(&observer),
            inbox,
            gather,
            counts: Arc::clone(&counts),
        };
        // A thread, not a task: an observer that blocks must not hold up a runtime's worker.
        let thread = thread::Builder::new()
            .name("steadyhand-observer".to_owned())
            .spawn(move || listener.listen())?;
        let watcher = Watcher {
            observer,
            queue,
            counts: Arc::clone(&counts),
        };
        self.watchers.rcu(|watchers| {
            let mut more = Vec::clone(watchers);
            more.push(watcher.clone());
            more
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Watch {
            counts,
            thread: thread.thread().clone(),
        })
    }

    pub(crate) fn tell(&self, event: Event) {
        let told = Told {
            bytes: event.bytes(),
            event: Arc::new(event),
        };
        for watcher in self.watchers.load().iter() {
            if watcher.observer.wants(&told.event) {
                watcher.tell(told.clone());
            }
        }
    }
}

/// An event on its way, and what it holds if it is not light.
#[derive(Clone)]
struct Told {
    event: Arc<Event>,
    bytes: usize,
}

impl Watcher {
    fn tell(&self, told: Told) {
        let (counts, bytes) = (&self.counts, told.bytes);
        counts.sent.fetch_add(1, Ordering::Release);
        let held = match bytes {
            0 => 0,
            _ => counts.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes,
        };
        let is_full = held > QUEUE_BYTES_MAX || !self.has_room_for(&told.event);
        if is_full || self.queue.try_send(told).is_err() {
            counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
            counts.sent.fetch_sub(1, Ordering::Release);
            counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last quarter of the queue is for ends: one who has missed the start of a call knows from its end what became
    /// of it, one who has missed the end does not.
    fn has_room_for(&self, event: &Event) -> bool {
        let is_end = matches!(event, Event::Finished { .. });
        is_end || 4 * self.queue.capacity() >= self.queue.max_capacity()
    }
}

/// The observer's side, on its own thread.
struct Listener {
    observer: Arc<dyn Observer>,
    inbox: mpsc::Receiver<Told>,
    gather: Duration,
    counts: Arc<Counts>,
}

impl Listener {
    fn listen(mut self) {
        while let Some(first) = self.inbox.blocking_recv() {
            let mut next = Some(first);
            while let Some(told) = next {
                self.hear(told);
                next = self.inbox.try_recv().ok().or_else(|| self.look_later());
            }
        }
    }

    /// What has come meanwhile. While nobody waits in `recv`, a sender has nobody to wake.
    fn look_later(&mut self) -> Option<Told> {
        if self.gather.is_zero() {
            return None;
        }
        thread::park_timeout(self.gather);
        self.inbox.try_recv().ok()
    }

    fn hear(&self, told: Told) {
        let Told { event, bytes } = told;
        let heard = catch_unwind(AssertUnwindSafe(|| self.observer.observe(&event)));
        if let Err(payload) = heard {
            tracing::warn!(panic = panic_text(payload), "an observer panicked");
        }
        drop(event);
        if bytes > 0 {
            self.counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.counts.seen.fetch_add(1, Ordering::Release);
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.count.load(Ordering::Relaxed))
    }
}
