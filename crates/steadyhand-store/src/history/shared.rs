//! What the recorder, the writer and the readers of one history share.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadyhand::{Watch, clock};
use tokio::time::Instant;

use super::HistoryOptions;
use super::database::Identity;
use super::health::{Health, HealthState};
use super::pending::{Pending, Row};

/// How often is looked whether the observer has caught up, while someone waits for it.
const POLL: Duration = Duration::from_millis(1);

pub(super) struct Shared {
    pub(super) options: HistoryOptions,
    pending: Mutex<Pending>,
    /// The writer waits for this.
    work: Condvar,
    /// Those who wait for the writer wait for this.
    progress: Condvar,
    pub(super) written: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Counts the files there have been: readers of an old one open the new one.
    pub(super) file_number: AtomicU64,
    /// Which file is being written; none before the first, and where that cannot be known.
    file: Mutex<Option<Identity>>,
    standing: Mutex<Standing>,
    watches: Mutex<Vec<Watch>>,
}

struct Standing {
    reason: Option<String>,
    since_ms: u64,
    notice: Option<String>,
}

impl Shared {
    pub(super) fn new(options: HistoryOptions) -> Shared {
        Shared {
            options,
            pending: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            file_number: AtomicU64::new(0),
            file: Mutex::default(),
            standing: Mutex::new(Standing {
                reason: None,
                since_ms: clock::wall_ms(),
                notice: None,
            }),
            watches: Mutex::default(),
        }
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        // Each change leaves it whole; a panic elsewhere must not end history.
        lock(&self.pending)
    }

    /// Adds something, and wakes the writer if it slept.
    pub(super) fn add(&self, change: impl FnOnce(&mut Pending)) {
        let mut pending = self.pending();
        let had_work = pending.has_work();
        change(&mut pending);
        if !had_work {
            self.work.notify_one();
        }
    }

    /// A call to write down, or to drop when there is no room.
    pub(super) fn push(&self, row: Row) {
        let mut pending = self.pending();
        let had_work = pending.has_work();
        if !pending.push(row, self.options.queue_max) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !had_work || pending.ended() == super::writer::BATCH_MAX {
            self.work.notify_one();
        }
    }

    pub(super) fn watched_by(&self, watch: Watch) {
        lock(&self.watches).push(watch);
    }

    /// Sleeps until there is something to do, for at most `idle`; then a moment longer, for more to come together.
    pub(super) fn wait_for_work(
        &self,
        idle: Duration,
        gather: Duration,
    ) -> MutexGuard<'_, Pending> {
        let calls =
            |pending: &Pending| pending.is_urgent || pending.is_stopped || pending.is_suspect;
        let nothing = |pending: &mut Pending| !pending.has_work() && !calls(pending);
        let pending = self.pending();
        let (pending, _) = self
            .work
            .wait_timeout_while(pending, idle, nothing)
            .unwrap_or_else(PoisonError::into_inner);
        let few =
            |pending: &mut Pending| pending.ended() < super::writer::BATCH_MAX && !calls(pending);
        let (pending, _) = self
            .work
            .wait_timeout_while(pending, gather, few)
            .unwrap_or_else(PoisonError::into_inner);
        pending
    }

    /// Sleeps for so long, or until history is stopped or someone wants it to try at once.
    pub(super) fn rest(&self, duration: Duration) {
        let pending = self.pending();
        let _ = self
            .work
            .wait_timeout_while(pending, duration, |pending| !pending.is_stopped)
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// The file is open to be written.
    pub(super) fn opened(&self, file: Option<Identity>) {
        *lock(&self.file) = file;
        self.file_number.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the file of this name is the one that is written; if not, it will be soon. A reader that opened another
    /// one would share the log of the first with it, and ruin both.
    pub(super) fn is_written_to(&self, path: &Path) -> bool {
        let written = *lock(&self.file);
        let is_it = written.is_none() || Identity::of(path) == written;
        if !is_it {
            self.look_again();
        }
        is_it
    }

    pub(super) fn tell_progress(&self) {
        self.progress.notify_all();
    }

    /// The writer looks at the file again: someone has read nonsense from it.
    pub(super) fn suspect(&self) {
        self.pending().is_suspect = true;
        self.work.notify_one();
    }

    /// The writer looks whether the file is still there: someone has found another in its place.
    fn look_again(&self) {
        self.pending().is_urgent = true;
        self.work.notify_one();
    }

    pub(super) fn stop(&self) {
        self.pending().is_stopped = true;
        self.work.notify_one();
    }

    /// Waits until what has happened so far is written. Whether it is.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let left = || until.saturating_duration_since(Instant::now());
        let mut pending = self.pending();
        while !pending.is_opened || !self.has_heard_all() {
            if left().is_zero() {
                return false;
            }
            let waited = self.progress.wait_timeout(pending, POLL.min(left()));
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !pending.has_work() && pending.queued() == 0 {
            return true;
        }
        let (rows, pass) = (pending.added, pending.passes_begun + 1);
        loop {
            if pending.done >= rows && pending.passes_ended >= pass {
                return true;
            }
            if left().is_zero() {
                return false;
            }
            pending.is_urgent = true;
            self.work.notify_one();
            let waited = self.progress.wait_timeout(pending, left());
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn has_heard_all(&self) -> bool {
        lock(&self.watches).iter().all(Watch::is_up_to_date)
    }

    /// History cannot write, for this reason.
    pub(super) fn degrade(&self, reason: String) {
        let mut standing = lock(&self.standing);
        if standing.reason.is_none() {
            standing.since_ms = clock::wall_ms();
        }
        standing.reason = Some(reason);
    }

    /// History writes again. Whether it had not.
    pub(super) fn recover(&self) -> bool {
        let mut standing = lock(&self.standing);
        let was_degraded = standing.reason.take().is_some();
        if was_degraded {
            standing.since_ms = clock::wall_ms();
        }
        was_degraded
    }

    pub(super) fn notice(&self, notice: String) {
        lock(&self.standing).notice = Some(notice);
    }

    pub(super) fn reason(&self) -> Option<String> {
        lock(&self.standing).reason.clone()
    }

    /// Calls that are not written, events that never came included.
    pub(super) fn dropped(&self) -> u64 {
        let unheard: u64 = lock(&self.watches).iter().map(Watch::dropped).sum();
        self.dropped.load(Ordering::Relaxed) + unheard
    }

    pub(super) fn health(&self) -> Health {
        let queued = self.pending().queued() as u64;
        let dropped = self.dropped();
        let standing = lock(&self.standing);
        Health {
            state: match standing.reason {
                Some(_) => HealthState::Degraded,
                None => HealthState::Ok,
            },
            reason: standing.reason.clone(),
            since_ms: standing.since_ms,
            notice: standing.notice.clone(),
            path: self.options.path.display().to_string(),
            bytes: self.bytes.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            dropped,
            queued,
            queue_max: self.options.queue_max as u64,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
