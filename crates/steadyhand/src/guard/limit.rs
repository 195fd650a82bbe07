//! Limits how many attempts of one tool run at the same time, and how many may wait (SPEC D18).

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;

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
///
/// Who runs and who waits is one word, so that a call with a free place pays two exchanges and no
/// lock. Those who wait do so, in order, on a semaphore of places handed on to them.
#[derive(Debug)]
// On a cache line of its own: what lies beside it is read by every call and never written.
#[repr(align(128))]
pub struct Limit {
    word: AtomicU64,
    handed_on: Semaphore,
    /// Taken only when somebody waits: a place is handed on, or a turn given up, in one piece.
    queueing: Mutex<()>,
    running_max: u32,
    waiting_max: u32,
}

/// A place for one attempt; leaving is dropping it.
#[derive(Debug)]
pub struct Place<'a>(&'a Limit);

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// How many run, places already handed on included, and how many wait. If any wait, all places are taken.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    running: u32,
    waiting: u32,
}

impl Limit {
    /// All places free.
    pub fn new(policy: LimitPolicy) -> Limit {
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Limit {
            word: AtomicU64::new(0),
            handed_on: Semaphore::new(0),
            queueing: Mutex::new(()),
            running_max: narrow(policy.concurrent).max(1),
            waiting_max: narrow(policy.queue),
        }
    }

    /// A place if one is free at once.
    pub fn try_enter(&self) -> Option<Place<'_>> {
        self.change(|crowd| {
            let running = crowd.running + 1;
            (crowd.running < self.running_max).then_some(Crowd { running, ..crowd })
        })
        .map(|_| Place(self))
    }

    /// A place, after waiting in the queue if need be. Dropping the future leaves the queue.
    pub async fn enter(&self) -> Result<Place<'_>, Refused> {
        let before = self.change(|crowd| {
            if crowd.running < self.running_max {
                let running = crowd.running + 1;
                return Some(Crowd { running, ..crowd });
            }
            let waiting = crowd.waiting + 1;
            (crowd.waiting < self.waiting_max).then_some(Crowd { waiting, ..crowd })
        });
        match before {
            None => return Err(Refused),
            Some(crowd) if crowd.running < self.running_max => return Ok(Place(self)),
            Some(_) => {}
        }
        let turn = Turn(self);
        // The semaphore lives as long as self and is never closed.
        let place = self.handed_on.acquire().await.map_err(|_| Refused)?;
        place.forget();
        std::mem::forget(turn);
        Ok(Place(self))
    }

    /// How many hold a place now.
    pub fn running(&self) -> usize {
        Crowd::from(self.word.load(Ordering::Acquire)).running as usize
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        Crowd::from(self.word.load(Ordering::Acquire)).waiting as usize
    }

    fn leave(&self) {
        let free = |crowd: Crowd| {
            let running = crowd.running - 1;
            (crowd.waiting == 0).then_some(Crowd { running, ..crowd })
        };
        if self.change(free).is_none() {
            self.leave_to_the_next(&self.queueing());
        }
    }

    /// Hands the place on to whoever waits, or frees it if nobody does any more.
    fn leave_to_the_next(&self, _queueing: &MutexGuard<'_, ()>) {
        let before = self.change(|crowd| match crowd.waiting {
            0 => Some(Crowd {
                running: crowd.running - 1,
                ..crowd
            }),
            waiting => Some(Crowd {
                waiting: waiting - 1,
                ..crowd
            }),
        });
        if before.is_some_and(|crowd| crowd.waiting > 0) {
            self.handed_on.add_permits(1);
        }
    }

    /// Someone stopped waiting. Those who wait and the places handed on to them are always as many
    /// as there are turns, so there is either one fewer to wait for, or a place nobody will take.
    fn give_up(&self) {
        let queueing = self.queueing();
        loop {
            let fewer = |crowd: Crowd| {
                let waiting = crowd.waiting.checked_sub(1)?;
                Some(Crowd { waiting, ..crowd })
            };
            if self.change(fewer).is_some() {
                return;
            }
            if let Ok(place) = self.handed_on.try_acquire() {
                place.forget();
                return self.leave_to_the_next(&queueing);
            }
            // A newcomer took that place and still counts as waiting: look again.
            std::hint::spin_loop();
        }
    }

    fn queueing(&self) -> MutexGuard<'_, ()> {
        self.queueing.lock()
    }

    /// Moves on from what is, unless `step` refuses; gives back what was.
    fn change(&self, step: impl Fn(Crowd) -> Option<Crowd>) -> Option<Crowd> {
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                step(Crowd::from(word)).map(u64::from)
            })
            .ok()
            .map(Crowd::from)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A turn in the queue that has not come yet.
struct Turn<'a>(&'a Limit);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl From<u64> for Crowd {
    fn from(word: u64) -> Crowd {
        Crowd {
            running: (word >> 32) as u32,
            waiting: word as u32,
        }
    }
}

impl From<Crowd> for u64 {
    fn from(crowd: Crowd) -> u64 {
        (u64::from(crowd.running) << 32) | u64::from(crowd.waiting)
    }
}
