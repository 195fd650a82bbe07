//! How many idempotency keys each caller has used lately: a file full of one caller's keys would refuse everybody's.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// New keys of one caller within a day, while [`KEYS_MAX`](super::table::KEYS_MAX) are kept of all.
const KEYS_PER_CALLER_MAX: usize = 750_000;
/// Keys are counted by the hour. Those of an hour that is so long ago are forgotten in the file, too.
const HOUR: Duration = Duration::from_secs(60 * 60);
const HOURS_KEPT: u64 = 25;

/// What callers have used since this process began. What they had used before counts for all of them together.
pub(super) struct KeyShares {
    max: usize,
    began: Instant,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    by_caller: HashMap<Arc<str>, HourlyCounts>,
    /// The hour in which callers that have used nothing lately were forgotten last.
    tidied: u64,
}

#[derive(Default)]
struct HourlyCounts {
    hours: VecDeque<(u64, usize)>,
    total: usize,
}

impl KeyShares {
    pub(super) fn new() -> KeyShares {
        KeyShares::with_max(KEYS_PER_CALLER_MAX)
    }

    fn with_max(max: usize) -> KeyShares {
        KeyShares {
            max,
            began: Instant::now(),
            used: Mutex::default(),
        }
    }

    /// Why this caller may use no new key now. Those that it has used stay good.
    pub(super) fn refusal(&self, caller: &str) -> Option<String> {
        let hour = self.hour();
        let mut used = self.used();
        let own = used.by_caller.get_mut(caller)?;
        own.forget_before(hour);
        (own.total >= self.max).then(|| {
            format!(
                "{} has used {} new keys within a day, which is as many as one caller may; repeat calls with keys that were used, or wait until the oldest are forgotten",
                caller.trim_start_matches('@'),
                self.max
            )
        })
    }

    /// A new key of this caller is in the file.
    pub(super) fn count(&self, caller: &str) {
        let hour = self.hour();
        let mut used = self.used();
        if used.tidied != hour {
            used.tidied = hour;
            used.by_caller.retain(|_, own| {
                own.forget_before(hour);
                own.total > 0
            });
        }
        let own = match used.by_caller.get_mut(caller) {
            Some(own) => own,
            None => used.by_caller.entry(caller.into()).or_default(),
        };
        own.total += 1;
        match own.hours.back_mut() {
            Some((last, count)) if *last == hour => *count += 1,
            _ => own.hours.push_back((hour, 1)),
        }
    }

    fn hour(&self) -> u64 {
        self.began.elapsed().as_secs() / HOUR.as_secs()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HourlyCounts {
    fn forget_before(&mut self, hour: u64) {
        while let Some((first, count)) = self.hours.front()
            && first + HOURS_KEPT <= hour
        {
            self.total -= count;
            self.hours.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s02_keys_of_one_caller_leave_room_for_those_of_others() {
        let shares = KeyShares::with_max(100);
        for _ in 0..60 {
            shares.count("@greedy");
        }
        tokio::time::advance(2 * HOUR).await;
        for _ in 0..40 {
            assert_eq!(shares.refusal("@greedy"), None);
            shares.count("@greedy");
        }
        let refusal = shares.refusal("@greedy").expect("its share is used up");
        assert!(
            refusal.starts_with("greedy has used 100 new keys"),
            "{refusal}"
        );
        assert_eq!(shares.refusal("@other"), None);
        // A day later the first of them are forgotten.
        tokio::time::advance(23 * HOUR).await;
        assert_eq!(shares.refusal("@greedy"), None);
        tokio::time::advance(3 * HOUR).await;
        shares.count("@other");
        let used = shares.used();
        assert_eq!(used.by_caller.len(), 1, "whoever has nothing is forgotten");
    }
}
