//! What happens to calls, for those who watch. Watching cannot delay or fail a call.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::failure::FailureCode;
use crate::guard::attempt::panic_text;
use crate::guard::breaker::BreakerState;
use crate::guard::retry::StopReason;
use crate::outcome::Outcome;
use crate::redact::Secrets;
use crate::trace::Spans;

/// Events one observer may lag behind; the next ones are dropped, and counted.
const QUEUE_MAX: usize = 4096;

/// Something happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A call came in.
    Started {
        /// The call's number in this process, since two may share an id; 0 for a call that came in
        /// before anyone watched. Not in JSON.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool it asks for.
        tool_name: String,
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// Who asks.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<String>,
        /// The caller's W3C trace context.
        #[serde(skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
        /// The earlier call it repeats.
        #[serde(skip_serializing_if = "Option::is_none")]
        replay_of: Option<String>,
        /// Where the tool comes from; absent if there is no such tool. Not in JSON.
        #[serde(skip)]
        source: Option<Arc<str>>,
        /// How long the whole call may take. Not in JSON.
        #[serde(skip)]
        deadline_ms: Option<f64>,
    },
    /// The tool was started for the call, after waiting for a place if it had to.
    AttemptStarted {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Counts from 1.
        attempt: u32,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// How much of it this attempt has waited for a place.
        #[serde(skip_serializing_if = "is_zero")]
        waited_ms: f64,
        /// The arguments the tool gets, secrets hidden. Not in JSON: the end has them.
        #[serde(skip)]
        args: Option<Arc<Value>>,
    },
    /// An attempt failed.
    AttemptFailed {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Counts from 1.
        attempt: u32,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// The category.
        code: FailureCode,
        /// The tool's own words, secrets removed.
        message: String,
        /// When it will be tried again.
        retry_in_ms: Option<f64>,
        /// Why it will not.
        stopped: Option<StopReason>,
    },
    /// A tool says how far it is.
    Progress {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// How much is done.
        done: f64,
        /// Of how much.
        total: Option<f64>,
        /// In words.
        message: String,
    },
    /// A fallback was asked, since the tool failed.
    FallbackStarted {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool that failed.
        tool_name: String,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// The tool that is asked instead, if it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// The fallback could not answer either.
    FallbackFailed {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// The call.
        call_id: String,
        /// The tool that failed.
        tool_name: String,
        /// Time since the call came in.
        elapsed_ms: f64,
        /// Why, secrets removed.
        message: String,
    },
    /// A breaker moved.
    BreakerChanged {
        /// The tool.
        tool_name: String,
        /// Before.
        from: BreakerState,
        /// After.
        to: BreakerState,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A call ended. Exactly one per call that started, dropped ones included.
    Finished {
        /// The call's number.
        #[serde(skip)]
        number: u64,
        /// When, in milliseconds since 1970.
        at_ms: u64,
        /// The arguments the tool got, secrets hidden; absent if it never got any.
        args: Option<Arc<Value>>,
        /// The arguments as they came, secrets hidden, where the tool never got any. Not in JSON.
        #[serde(skip)]
        sent: Option<Value>,
        /// Where the tool comes from; absent if there was no such tool. Not in JSON.
        #[serde(skip)]
        source: Option<Arc<str>>,
        /// What runs the tool: `http`, `command` …; absent if there was no such tool. Not in JSON.
        #[serde(skip)]
        kind: Option<&'static str>,
        /// The secrets among the arguments, for whoever writes the outcome down. Not in JSON.
        #[serde(skip)]
        secrets: Secrets,
        /// How it ended.
        outcome: Arc<Outcome>,
    },
}

fn is_zero(ms: &f64) -> bool {
    *ms == 0.0
}

/// Someone who watches.
pub trait Observer: Send + Sync + 'static {
    /// Something happened. Runs on a thread of the observer's own: it may be slow, it may panic.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// What became of an observer.
#[derive(Debug, Clone)]
pub struct Watch {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    seen: AtomicU64,
    dropped: AtomicU64,
}

impl Watch {
    /// Events it never got, because it was too slow.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Whether it has seen everything that was sent to it so far.
    pub fn is_up_to_date(&self) -> bool {
        let sent = self.counts.sent.load(Ordering::Acquire);
        self.counts.seen.load(Ordering::Acquire) >= sent
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
    queue: mpsc::Sender<Arc<Event>>,
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

    pub(crate) fn add(&self, observer: impl Observer) -> std::io::Result<Watch> {
        let (queue, mut inbox) = mpsc::channel::<Arc<Event>>(QUEUE_MAX);
        let counts = Arc::new(Counts::default());
        let seen = Arc::clone(&counts);
        // A thread, not a task: an observer that blocks must not hold up a runtime's worker.
        thread::Builder::new()
            .name("steadyhand-observer".to_owned())
            .spawn(move || {
                while let Some(event) = inbox.blocking_recv() {
                    let told = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
                    if let Err(payload) = told {
                        tracing::warn!(panic = panic_text(payload), "an observer panicked");
                    }
                    seen.seen.fetch_add(1, Ordering::Release);
                }
            })?;
        let watcher = Watcher {
            queue,
            counts: Arc::clone(&counts),
        };
        self.watchers.rcu(|watchers| {
            let mut more = Vec::clone(watchers);
            more.push(watcher.clone());
            more
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Watch { counts })
    }

    pub(crate) fn tell(&self, event: Event) {
        let event = Arc::new(event);
        for watcher in self.watchers.load().iter() {
            watcher.counts.sent.fetch_add(1, Ordering::Release);
            if watcher.queue.try_send(Arc::clone(&event)).is_err() {
                watcher.counts.sent.fetch_sub(1, Ordering::Release);
                watcher.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.count.load(Ordering::Relaxed))
    }
}
