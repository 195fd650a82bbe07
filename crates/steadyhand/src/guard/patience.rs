//! How long an attempt may take, where signs of life move its limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::after;

/// How long an attempt may take: its time limit, renewed by signs of life.
pub(crate) struct Patience {
    start: Instant,
    until: Instant,
    timeout: Duration,
    latest: Instant,
    /// Nanoseconds from the start to where the limit was moved; 0 if it was not.
    moved: AtomicU64,
}

impl Patience {
    pub(crate) fn new(until: Instant) -> Patience {
        Patience {
            start: until,
            until,
            timeout: Duration::ZERO,
            latest: until,
            moved: AtomicU64::new(0),
        }
    }

    /// Of an attempt that begins now: it may take until then, and after a sign of life so long again, though never
    /// longer than the latest.
    pub(crate) fn of_attempt(
        now: Instant,
        until: Instant,
        timeout: Duration,
        latest: Instant,
    ) -> Patience {
        Patience {
            start: now,
            until,
            timeout,
            latest,
            moved: AtomicU64::new(0),
        }
    }

    pub(crate) fn renew(&self) {
        let until = after(Instant::now(), self.timeout).min(self.latest);
        let moved = until.saturating_duration_since(self.start).as_nanos();
        self.moved.fetch_max(moved as u64, Ordering::Relaxed);
    }

    /// When the attempt is cut off, as things stand now.
    pub(crate) fn until(&self) -> Instant {
        let moved = Duration::from_nanos(self.moved.load(Ordering::Relaxed));
        (self.start + moved).max(self.until)
    }
}
