//! How often someone may call: a bucket that refills evenly.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use steadyhand_config::units::Rate;

/// So many calls in a span of time.
#[derive(Debug)]
pub struct Pace {
    pub rate: Rate,
    /// When the bucket would be full again: one number says how much is left.
    full_at: Mutex<Option<Instant>>,
}

/// Calls that come too soon.
#[derive(Debug, PartialEq, Eq)]
pub enum TooSoon {
    /// They may come after this.
    Wait(Duration),
    /// So many at once may never come.
    Never,
}

impl Pace {
    pub fn new(rate: Rate) -> Pace {
        Pace {
            rate,
            full_at: Mutex::new(None),
        }
    }

    /// All of them, or none.
    pub fn take(&self, calls: usize, now: Instant) -> Result<(), TooSoon> {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        if calls > self.rate.count {
            return Err(TooSoon::Never);
        }
        let gap = self.rate.per / self.rate.count;
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = full_at.map_or(now, |at| at.max(now)) + gap * calls;
        let wait = next.saturating_duration_since(now + self.rate.per);
        if !wait.is_zero() {
            return Err(TooSoon::Wait(wait));
        }
        *full_at = Some(next);
        Ok(())
    }
}
