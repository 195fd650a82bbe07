//! Counts and times of one tool's calls (SPEC R08): fixed memory, no locks, cheap enough to be always on.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::clock;
use crate::cut;
use crate::failure::{Failure, FailureCode};
use crate::guard::breaker::{Breaker, BreakerState};
use crate::outcome::millis;

/// What is kept of the text of a breaker's last failure, and of the id of its call.
const LAST_MESSAGE_BYTES_MAX: usize = 400;
const LAST_ID_BYTES_MAX: usize = 256;

/// What is known about one tool's calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMetrics {
    /// Calls that were admitted and finished: successes, errors and time-outs.
    pub total_executions: u64,
    /// Of those, the ones the tool answered.
    pub success_count: u64,
    /// Of those, the ones that failed.
    pub error_count: u64,
    /// Of those, the ones that ran out of time.
    pub timeout_count: u64,
    /// Mean time of those, in milliseconds.
    pub avg_execution_time: f64,
    /// Errors and time-outs among those, 0 to 1.
    pub failure_rate: f64,
    /// Half of those were at least this fast, in milliseconds (within an eighth).
    pub p50: f64,
    /// 95 in 100 were.
    pub p95: f64,
    /// 99 in 100 were.
    pub p99: f64,
    /// Calls that run now.
    pub in_flight: u64,
    /// Calls that wait for a place now.
    pub queued: u64,
    /// Calls refused before the tool was started: breaker open, queue full or too slow.
    pub rejected: u64,
    /// Calls whose arguments did not fit.
    pub invalid: u64,
    /// Calls withdrawn by their caller.
    pub cancelled: u64,
    /// Calls answered with the outcome of another call of the same idempotency key.
    pub joined: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Failed calls that a fallback answered.
    pub fallbacks: u64,
    /// Failed calls by their code, those that were refused, invalid or withdrawn included.
    pub errors_by_code: BTreeMap<FailureCode, u64>,
    /// How the times are spread. Not in JSON, where the percentiles say it.
    #[serde(skip)]
    pub times: Times,
    /// The breaker; absent where a tool has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerView>,
}

/// How the times of calls are spread: what histograms of other systems are made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    /// All of them together.
    pub sum: Duration,
    /// Calls by the end of the time span they fall into, 64 ns to 18 minutes; only spans that have any.
    spans: Vec<(Duration, u64)>,
}

impl Times {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.spans.iter().map(|(_, calls)| calls).sum()
    }

    /// How many were shorter than this. Exact for powers of two of nanoseconds, which is where spans end;
    /// anywhere else the calls of the span it falls into are left out.
    pub fn shorter_than(&self, bound: Duration) -> u64 {
        let below = self.spans.iter().take_while(|(end, _)| *end <= bound);
        below.map(|(_, calls)| calls).sum()
    }

    /// Both together.
    pub fn and(&self, other: &Times) -> Times {
        let mut spans: BTreeMap<Duration, u64> = self.spans.iter().copied().collect();
        for (end, calls) in &other.spans {
            *spans.entry(*end).or_default() += calls;
        }
        Times {
            sum: self.sum + other.sum,
            spans: spans.into_iter().collect(),
        }
    }
}

/// A breaker as people see it (SPEC R04).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakerView {
    /// Failed calls in a row.
    pub failures: u64,
    /// When a call last failed, in milliseconds since 1970.
    pub last_failure: Option<u64>,
    /// Where it stands.
    pub state: BreakerState,
    /// How often it opened.
    pub trips: u64,
    /// What the tool said when it last failed; absent if it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastFailure>,
}

impl BreakerView {
    pub(crate) fn of(breaker: &Breaker, last_error: Option<LastFailure>) -> BreakerView {
        BreakerView {
            failures: breaker.failures(),
            last_failure: breaker.last_failure_ms(),
            state: breaker.state(),
            trips: breaker.trips(),
            last_error,
        }
    }
}

/// The last failure that a breaker counted: the reason why it is open, if it is. Refusals do not replace it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// The category.
    pub code: FailureCode,
    /// The tool's own words, secrets removed; the first of them.
    pub message: String,
    /// The call that failed.
    pub call_id: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

impl LastFailure {
    pub(crate) fn of(failure: &Failure, call_id: &str) -> LastFailure {
        LastFailure {
            code: failure.code,
            message: cut::text(&failure.message, LAST_MESSAGE_BYTES_MAX),
            call_id: cut::text(call_id, LAST_ID_BYTES_MAX),
            at_ms: clock::wall_ms(),
        }
    }
}

/// How an admitted call ended, for the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Success,
    Error,
    Timeout,
    CancelledRunning,
    CancelledWaiting,
    Rejected,
    Invalid,
    Joined,
}

const ENDINGS: usize = Ending::Joined as usize + 1;
const CODES: usize = FailureCode::ALL.len();

/// The counters of one tool, made when it is first called, one set per core.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    shards: OnceLock<Box<[Shard]>>,
}

/// Threads on different shards do not share a cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    entered: AtomicU64,
    endings: [AtomicU64; ENDINGS],
    retries: AtomicU64,
    fallbacks: AtomicU64,
    codes: [AtomicU64; CODES],
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Shard {
    fn new() -> Shard {
        Shard {
            entered: AtomicU64::new(0),
            endings: [const { AtomicU64::new(0) }; ENDINGS],
            retries: AtomicU64::new(0),
            fallbacks: AtomicU64::new(0),
            codes: [const { AtomicU64::new(0) }; CODES],
            nanos: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

impl Metrics {
    /// A call got its first place.
    pub(crate) fn entered(&self) {
        add(&self.shard().entered, 1);
    }

    pub(crate) fn retried(&self) {
        add(&self.shard().retries, 1);
    }

    pub(crate) fn fell_back(&self) {
        add(&self.shard().fallbacks, 1);
    }

    /// A call ended in a failure of this code.
    pub(crate) fn failed(&self, code: FailureCode) {
        add(&self.shard().codes[code as usize], 1);
    }

    /// A call ended; only executions have a time, which leaves out the wait for an approval.
    pub(crate) fn ended(&self, ending: Ending, took: Duration) {
        let shard = self.shard();
        if let Ending::Success | Ending::Error | Ending::Timeout = ending {
            let nanos = took.as_nanos() as u64;
            add(&shard.nanos, nanos);
            add(&shard.buckets[bucket(nanos)], 1);
        }
        add(&shard.endings[ending as usize], 1);
    }

    pub(crate) fn snapshot(&self, breaker: Option<BreakerView>, waiting: usize) -> ToolMetrics {
        let empty: &[Shard] = &[];
        let shards = self.shards.get().map_or(empty, |shards| shards);
        let sum = |read: &dyn Fn(&Shard) -> &AtomicU64| {
            shards
                .iter()
                .map(|shard| read(shard).load(Ordering::Relaxed))
                .sum::<u64>()
        };
        let ended = |ending: Ending| sum(&|shard| &shard.endings[ending as usize]);
        let [success_count, error_count, timeout_count] =
            [Ending::Success, Ending::Error, Ending::Timeout].map(ended);
        let cancelled_running = ended(Ending::CancelledRunning);
        let total_executions = success_count + error_count + timeout_count;
        // Read after the endings, so that what runs is never fewer than none.
        let entered = sum(&|shard| &shard.entered);
        let buckets: Vec<u64> = (0..BUCKETS)
            .map(|index| sum(&|shard| &shard.buckets[index]))
            .collect();
        let share = |part: u64| match total_executions {
            0 => 0.0,
            total => part as f64 / total as f64,
        };
        let nanos = sum(&|shard| &shard.nanos);
        let failed = |code: FailureCode| (code, sum(&|shard| &shard.codes[code as usize]));
        let errors_by_code = FailureCode::ALL.map(failed).into_iter();
        ToolMetrics {
            total_executions,
            success_count,
            error_count,
            timeout_count,
            avg_execution_time: share(nanos) / 1e6,
            failure_rate: share(error_count + timeout_count),
            p50: percentile(&buckets, 0.50),
            p95: percentile(&buckets, 0.95),
            p99: percentile(&buckets, 0.99),
            in_flight: entered.saturating_sub(total_executions + cancelled_running),
            queued: waiting as u64,
            rejected: ended(Ending::Rejected),
            invalid: ended(Ending::Invalid),
            cancelled: cancelled_running + ended(Ending::CancelledWaiting),
            joined: ended(Ending::Joined),
            retries: sum(&|shard| &shard.retries),
            fallbacks: sum(&|shard| &shard.fallbacks),
            errors_by_code: errors_by_code.filter(|(_, calls)| *calls > 0).collect(),
            times: Times {
                sum: Duration::from_nanos(nanos),
                spans: (0..BUCKETS)
                    .filter(|index| buckets[*index] > 0)
                    .map(|index| (bucket_end(index), buckets[index]))
                    .collect(),
            },
            breaker,
        }
    }

    fn shard(&self) -> &Shard {
        let shards = self.shards.get_or_init(|| {
            let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
            let count = cores.next_power_of_two().min(16);
            (0..count).map(|_| Shard::new()).collect()
        });
        &shards[thread_number() & (shards.len() - 1)]
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Numbers threads as they come, so that two busy ones land on two shards.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

// A log-linear histogram: eight buckets per doubling, so a percentile is off by an eighth at most;
// from 64 ns to 18 minutes, which no call may last.
const BUCKETS: usize = 256;
const UNIT_BITS: u32 = 6;

fn bucket(nanos: u64) -> usize {
    let units = nanos >> UNIT_BITS;
    if units < 8 {
        return units as usize;
    }
    let exponent = 63 - units.leading_zeros();
    let step = (units >> (exponent - 3)) & 7;
    let index = (exponent as usize - 2) * 8 + step as usize;
    index.min(BUCKETS - 1)
}

/// The upper end of a bucket.
fn bucket_end(index: usize) -> Duration {
    let units = match index {
        0..8 => index as u64 + 1,
        _ => (9 + (index as u64 & 7)) << (index / 8 - 1),
    };
    Duration::from_nanos(units << UNIT_BITS)
}

fn percentile(buckets: &[u64], share: f64) -> f64 {
    let count: u64 = buckets.iter().sum();
    if count == 0 {
        return 0.0;
    }
    let rank = (count as f64 * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    let found = buckets.iter().position(|in_bucket| {
        seen += in_bucket;
        seen >= rank
    });
    millis(bucket_end(found.unwrap_or(BUCKETS - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r08_a_time_lies_in_its_bucket_and_the_bucket_is_an_eighth_wide_at_most() {
        for nanos in (0..60u32).flat_map(|bits| [0, 1, 3, 7].map(|extra| (1u64 << bits) + extra)) {
            let index = bucket(nanos);
            let end = bucket_end(index).as_nanos() as u64;
            let start = match index {
                0 => 0,
                _ => bucket_end(index - 1).as_nanos() as u64,
            };
            if index == BUCKETS - 1 {
                continue;
            }
            assert!(start <= nanos && nanos < end, "{nanos} in {start}..{end}");
            assert!(index < 8 || (end - start) * 8 <= start, "{start}..{end}");
        }
    }
}
