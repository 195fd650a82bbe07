//! Limits how many attempts of one tool run at the same time, and how many may wait (SPEC D18).

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// How many at once, and how many more in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitPolicy {
    /// Attempts that run at the same time.
    pub concurrent: usize,
    /// Attempts that wait for a place; one more is refused.
    pub queue: usize,
}

impl Default for LimitPolicy {
    fn default() -> LimitPolicy {
        LimitPolicy {
            concurrent: 256,
            queue: 1024,
        }
    }
}

/// The places of one tool. A place is held for an attempt, not while backing off.
#[derive(Debug)]
pub struct Limit {
    places: Semaphore,
    waiting: AtomicUsize,
    policy: LimitPolicy,
}

/// A place for one attempt; leaving is dropping it.
pub type Place<'a> = SemaphorePermit<'a>;

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

impl Limit {
    /// All places free.
    pub fn new(policy: LimitPolicy) -> Limit {
        Limit {
            places: Semaphore::new(policy.concurrent.clamp(1, Semaphore::MAX_PERMITS)),
            waiting: AtomicUsize::new(0),
            policy,
        }
    }

    /// A place if one is free at once.
    pub fn try_enter(&self) -> Option<Place<'_>> {
        self.places.try_acquire().ok()
    }

    /// A place, after waiting in the queue if need be. Dropping the future leaves the queue.
    pub async fn enter(&self) -> Result<Place<'_>, Refused> {
        if let Some(place) = self.try_enter() {
            return Ok(place);
        }
        let _turn = self.queue_up()?;
        // The semaphore lives as long as self and is never closed.
        self.places.acquire().await.map_err(|_| Refused)
    }

    /// How many hold a place now.
    pub fn running(&self) -> usize {
        self.policy.concurrent.max(1) - self.places.available_permits()
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn queue_up(&self) -> Result<Turn<'_>, Refused> {
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < self.policy.queue).then_some(waiting + 1)
            })
            .map(|_| Turn(&self.waiting))
            .map_err(|_| Refused)
    }
}

/// A turn in the queue; leaving it, by getting a place or by giving up, is dropping it.
struct Turn<'a>(&'a AtomicUsize);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
