//! What happened to one subject lately: counts in a few slices of time, so that what is old falls out slice by slice.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use steadyhand_store::history::histogram::Histogram;

const SLICES: u32 = 12;

/// Calls of one subject within the window of one rule.
#[derive(Debug)]
pub(super) struct Series {
    began: Instant,
    slice: Duration,
    slices: VecDeque<(u64, Slice)>,
    with_times: bool,
}

#[derive(Debug, Default)]
struct Slice {
    count: u64,
    marked: u64,
    sum_us: u64,
    times: Option<Histogram>,
}

/// The window in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) count: u64,
    /// Those that failed, or were whatever else the rule counts.
    pub(super) marked: u64,
    pub(super) average_ms: f64,
    pub(super) p95_ms: f64,
}

impl Series {
    pub(super) fn new(window: Duration, now: Instant, with_times: bool) -> Series {
        Series {
            began: now,
            slice: (window / SLICES).max(Duration::from_millis(1)),
            slices: VecDeque::new(),
            with_times,
        }
    }

    pub(super) fn add(&mut self, now: Instant, is_marked: bool, took: Duration) {
        self.forget(now);
        let number = self.number(now);
        if self.slices.back().is_none_or(|(last, _)| *last < number) {
            self.slices.push_back((number, Slice::default()));
        }
        let Some((_, slice)) = self.slices.back_mut() else {
            return;
        };
        slice.count += 1;
        slice.marked += u64::from(is_marked);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        slice.sum_us = slice.sum_us.saturating_add(micros);
        if self.with_times {
            slice.times.get_or_insert_default().add(micros);
        }
    }

    pub(super) fn sums(&mut self, now: Instant) -> Sums {
        self.forget(now);
        let mut sums = Sums::default();
        let (mut micros, mut times) = (0u64, Histogram::default());
        for (_, slice) in &self.slices {
            sums.count += slice.count;
            sums.marked += slice.marked;
            micros = micros.saturating_add(slice.sum_us);
            if let Some(of_slice) = &slice.times {
                times.merge(of_slice);
            }
        }
        if sums.count > 0 {
            sums.average_ms = micros as f64 / sums.count as f64 / 1e3;
        }
        sums.p95_ms = times.percentile(0.95).unwrap_or(0.0);
        sums
    }

    fn forget(&mut self, now: Instant) {
        let oldest = self.number(now).saturating_sub(u64::from(SLICES) - 1);
        while self
            .slices
            .front()
            .is_some_and(|(number, _)| *number < oldest)
        {
            self.slices.pop_front();
        }
    }

    fn number(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.began);
        (since.as_nanos() / self.slice.as_nanos()) as u64
    }
}
