//! What happens now, for those who look: `GET /v1/events`. One bounded ring of events for everyone; each
//! reader only remembers how far it has read, so that none of them costs memory or holds up another.

mod calls;
mod event;
mod pulse;
mod ring;
mod sse;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use steadyhand::{BreakerState, Event, Observer, ObserverQueue, ToolExecutor, ToolManager, Watch};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use event::{
    AlertChanged, ApprovalChanged, AttemptFailed, BreakerChanged, BreakerNow, CallFinished,
    CallProgress, CallStarted, ConfigChanged, ExchangeTold, FallbackStarted, LiveEvent,
    ServerChanged, Skipped, Snapshot, SnapshotReason, ToolsChanged,
};
pub use pulse::{Ended, LastError, Second, ToolPulse};
pub use sse::{Asked, CannotWatch, open, sse};

use calls::Calls;
use pulse::Pulse;
pub use pulse::RECENT_MAX;
use ring::{Batch, Filter, Place, Ring};

/// People do not see a fiftieth of a second, and a thread that is woken for every event costs more than all it does.
const QUEUE: ObserverQueue = ObserverQueue {
    events_max: 16 * 1024,
    gather: Duration::from_millis(20),
};
/// Readers at the same time, if nothing else is said.
const READERS_MAX: usize = 256;
/// Running calls and open breakers that a snapshot lists.
const LISTED_MAX: usize = 200;

/// The events of one process. Cheap to clone: clones are the same.
#[derive(Clone)]
pub struct Live {
    inner: Arc<Inner>,
}

struct Inner {
    /// Tells the ids of this process from those of another that had the same address.
    run: String,
    manager: ToolManager,
    state: Mutex<State>,
    /// The number of the newest event: what readers wait for.
    newest: watch::Sender<u64>,
    readers: AtomicUsize,
    readers_max: AtomicUsize,
    closing: CancellationToken,
    watch: OnceLock<Watch>,
    /// Told of what is no call, too.
    also: OnceLock<Also>,
}

type Also = Box<dyn Fn(&LiveEvent) + Send + Sync>;

struct State {
    ring: Ring,
    calls: Calls,
    pulse: Pulse,
    /// Events the engine has dropped, as far as readers were told.
    dropped: u64,
}

impl Live {
    /// Nobody watches the engine yet: see [`Live::follow`].
    pub fn new(manager: ToolManager) -> Live {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Live {
            inner: Arc::new(Inner {
                run: random[..6].to_owned(),
                manager,
                state: Mutex::new(State {
                    ring: Ring::default(),
                    calls: Calls::default(),
                    pulse: Pulse::default(),
                    dropped: 0,
                }),
                newest: watch::Sender::new(0),
                readers: AtomicUsize::new(0),
                readers_max: AtomicUsize::new(READERS_MAX),
                closing: CancellationToken::new(),
                watch: OnceLock::new(),
                also: OnceLock::new(),
            }),
        }
    }

    /// From here on, what happens to the calls of this executor is told.
    pub fn follow(&self, executor: &ToolExecutor) -> std::io::Result<()> {
        let watching = Watching(Arc::downgrade(&self.inner));
        let watch = executor.observe_with_queue(watching, QUEUE)?;
        let _ = self.inner.watch.set(watch);
        Ok(())
    }

    /// Tells of something that is no call: a new configuration, a server, the tools.
    pub fn publish(&self, event: LiveEvent) {
        if let Some(also) = self.inner.also.get() {
            also(&event);
        }
        let newest = self.state().ring.push(event.bounded()).number;
        self.inner.newest.send_replace(newest);
    }

    /// From here on, this is called with what is no call. Once: a second one is not heard.
    pub fn also_tell(&self, listener: impl Fn(&LiveEvent) + Send + Sync + 'static) {
        let _ = self.inner.also.set(Box::new(listener));
    }

    /// What ended since a moment, by tool; at most the last minute.
    pub fn pulse(&self, since_ms: u64) -> HashMap<String, ToolPulse> {
        self.state().pulse.since(since_ms)
    }

    /// The number of the newest event: changes when something happened.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.inner.newest.subscribe()
    }

    /// Cancelled when the server is about to end.
    pub fn closing(&self) -> CancellationToken {
        self.inner.closing.clone()
    }

    /// So many may read from here on.
    pub fn set_readers_max(&self, readers: usize) {
        self.inner.readers_max.store(readers, Ordering::Relaxed);
    }

    /// How many read now.
    pub fn readers(&self) -> usize {
        self.inner.readers.load(Ordering::Relaxed)
    }

    /// Events of the engine that were dropped before anyone could read them.
    pub fn dropped(&self) -> u64 {
        self.inner.watch.get().map_or(0, Watch::dropped)
    }

    /// Ends all streams, those to come included: the server is about to end.
    pub fn close(&self) {
        self.inner.closing.cancel();
    }

    /// Runs on the observer's own thread.
    fn observe(&self, event: &Event) {
        let dropped = self.dropped();
        let mut state = self.state();
        let State {
            ring,
            calls,
            pulse,
            dropped: told,
        } = &mut *state;
        let before = (ring.newest(), calls.held_count());
        if dropped > *told {
            let count = dropped - *told;
            ring.push(LiveEvent::Skipped(Skipped { count }));
            *told = dropped;
        }
        pulse.observe(event);
        calls.observe(event, ring, Instant::now());
        let newest = ring.newest();
        let after = (newest, calls.held_count());
        drop(state);
        // Progress that is held back for the first time wakes readers too: one of them will tell it.
        if after > before {
            self.inner.newest.send_replace(newest);
        }
    }

    /// What a reader at this place has not seen yet.
    fn read(&self, after: u64, filter: &Filter) -> Batch {
        self.state().ring.after(after, filter)
    }

    /// Where a reader that has this id goes on; `None` if there is no such place any more.
    fn place(&self, id: &str) -> Option<u64> {
        let place = Place::parse(id)?;
        let state = self.state();
        (place.run == self.inner.run && state.ring.reaches_back_to(place.number))
            .then_some(place.number)
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.inner.run)
    }

    /// What is to be known now, and the number of the last event it includes.
    fn snapshot(&self, reason: SnapshotReason) -> (Snapshot, u64) {
        // Read before the calls: a breaker that moves now is told of by an event that comes after.
        let breakers = self.breakers_not_closed();
        let state = self.state();
        let (running, running_count) = state.calls.running(LISTED_MAX);
        let snapshot = Snapshot {
            reason,
            running,
            running_count,
            breakers,
        };
        (snapshot, state.ring.newest())
    }

    fn breakers_not_closed(&self) -> Vec<BreakerNow> {
        let tools = self.inner.manager.list();
        tools
            .iter()
            .filter_map(|tool| {
                let state = self.inner.manager.breaker(tool.name())?.state;
                (state != BreakerState::Closed).then(|| BreakerNow {
                    tool: tool.name().to_owned(),
                    state,
                })
            })
            .take(LISTED_MAX)
            .collect()
    }

    /// When progress that was held back is to be told, if there is any.
    fn next_due(&self) -> Option<Instant> {
        self.state().calls.next_due()
    }

    /// Tells progress that was held back long enough.
    fn tell_held(&self, now: Instant) {
        let mut state = self.state();
        let State { ring, calls, .. } = &mut *state;
        calls.tell_held(ring, now);
        let newest = ring.newest();
        drop(state);
        self.inner.newest.send_replace(newest);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in between leaves at most one event untold.
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears of calls. The engine must not keep alive what keeps the engine's tools alive.
struct Watching(Weak<Inner>);

impl Observer for Watching {
    fn observe(&self, event: &Event) {
        if let Some(inner) = self.0.upgrade() {
            Live { inner }.observe(event);
        }
    }

    fn wants(&self, event: &Event) -> bool {
        !matches!(
            event,
            Event::AttemptStarted { .. } | Event::AttemptDescribed { .. }
        )
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Live({} readers)", self.readers())
    }
}
