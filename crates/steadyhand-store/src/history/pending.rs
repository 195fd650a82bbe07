//! What waits to be written: calls that have ended, and those that run. Bounded, and quick to add to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steadyhand::{Effect, FailureCode};
use tokio::time::Instant;

use super::exchange::{self, Exchange};
use super::marks::Mark;
use super::record::{ApprovalWait, CallState, Try};

/// Calls that are followed while they run; of more, only the end is seen.
const OPEN_MAX: usize = 50_000;
/// Texts of all calls that wait, in bytes.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The same for those that are written at once.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Breakers that opened and are not written yet.
const TRIPS_MAX: usize = 4096;
/// Changes that are not written yet.
const MARKS_MAX: usize = 256;
/// A call that runs longer than this is written before it ends.
const SHORT: Duration = Duration::from_millis(100);
/// So long after its deadline a call whose end was not seen is given up.
const LOST_AFTER: Duration = Duration::from_secs(30);
/// The engine lets no call wait longer for an approval.
const APPROVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Calls that were given up and whose end may still come: it belongs into the row they have.
const GIVEN_UP_MAX: usize = 1000;
/// The deadline of a call that nobody has told.
const DEADLINE_UNKNOWN: Duration = Duration::from_secs(60 * 60);

/// Longer deadlines are taken for this one: a month.
const DEADLINE_MS_MAX: f64 = 30.0 * 86_400_000.0;

/// A call as it is written.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// When it came in, and a number: see [`row_at`].
    pub(super) row: i64,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) source: Option<Arc<str>>,
    /// Whether there is such a tool. Names of tools that do not exist are endless, so they are not counted by name.
    pub(super) is_known: bool,
    pub(super) caller: Option<String>,
    pub(super) state: CallState,
    pub(super) code: Option<FailureCode>,
    pub(super) effect: Option<Effect>,
    pub(super) took_us: Option<i64>,
    /// How much of that was the wait for an approval.
    pub(super) approval_us: Option<i64>,
    pub(super) waiting_for_approval: bool,
    pub(super) ended_ms: u64,
    pub(super) deadline_ms: Option<f64>,
    pub(super) attempts: u32,
    pub(super) fallback_used: bool,
    pub(super) replayed: bool,
    pub(super) replay_of: Option<String>,
    pub(super) message: Option<String>,
    /// [`CallDetails`](super::CallDetails) in JSON.
    pub(super) details: String,
}

impl Row {
    fn bytes(&self) -> usize {
        512 + self.details.len() + self.id.len() + self.message.as_ref().map_or(0, String::len)
    }
}

/// A call that runs.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) row: i64,
    /// Since when it is followed. The wall clock may jump, and must not end a call.
    pub(super) since: Instant,
    /// Since when its deadline counts: since its approval, if it needed one.
    pub(super) counts_since: Instant,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) source: Option<Arc<str>>,
    pub(super) caller: Option<String>,
    pub(super) traceparent: Option<String>,
    pub(super) replay_of: Option<String>,
    pub(super) deadline_ms: Option<f64>,
    pub(super) arguments: Option<Arc<Value>>,
    pub(super) tries: Vec<Try>,
    /// Attempts that waited for a place, and how many milliseconds.
    pub(super) waits: Vec<(u32, f64)>,
    /// What was done to it on purpose.
    pub(super) notes: Vec<String>,
    pub(super) fallback: Option<FallbackRun>,
    pub(super) approval: Option<ApprovalWait>,
    /// Whether it is in the file as it is now.
    pub(super) is_written: bool,
    /// Counts what has changed since it came in, as far as the file must know of it before the call ends.
    pub(super) version: u32,
}

impl Open {
    pub(super) fn new(row: i64, id: String, tool: String) -> Open {
        let now = Instant::now();
        Open {
            row,
            since: now,
            counts_since: now,
            id,
            tool,
            source: None,
            caller: None,
            traceparent: None,
            replay_of: None,
            deadline_ms: None,
            arguments: None,
            tries: Vec::new(),
            waits: Vec::new(),
            notes: Vec::new(),
            fallback: None,
            approval: None,
            is_written: false,
            version: 0,
        }
    }

    /// It waits for an approval: its tool was not started.
    pub(super) fn waits_for_approval(&self) -> bool {
        let wait = self.approval.as_ref();
        wait.is_some_and(|wait| wait.end_ms.is_none())
    }

    /// How long the call may take from where its deadline counts.
    fn patience(&self) -> Duration {
        match self.deadline_ms {
            _ if self.waits_for_approval() => APPROVAL_MAX,
            Some(ms) => Duration::from_secs_f64(ms.clamp(0.0, DEADLINE_MS_MAX) / 1e3),
            None => DEADLINE_UNKNOWN,
        }
    }
}

/// How a fallback was asked.
#[derive(Debug, Clone)]
pub(super) struct FallbackRun {
    pub(super) start_ms: f64,
    pub(super) end_ms: Option<f64>,
    pub(super) tool: Option<String>,
    pub(super) message: Option<String>,
}

/// A breaker opened.
#[derive(Debug, Clone)]
pub(super) struct Trip {
    pub(super) tool: String,
    pub(super) at_ms: u64,
}

/// What waits to be written.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) open: HashMap<u64, Open>,
    /// Those whose end was not seen in time, the oldest first.
    given_up: VecDeque<(u64, Open)>,
    ended: VecDeque<Row>,
    trips: Vec<Trip>,
    marks: Vec<Mark>,
    exchanges: exchange::Waiting,
    bytes: usize,
    /// Rows in the hands of the writer, and their bytes.
    taken: (usize, usize),
    /// Open calls that are not in the file yet.
    unwritten: usize,
    /// Rows added, and rows written or given up, since the start.
    pub(super) added: u64,
    pub(super) done: u64,
    /// Passes of the writer, begun and ended.
    pub(super) passes_begun: u64,
    pub(super) passes_ended: u64,
    /// Someone waits: write at once, and calls that have only begun, too.
    pub(super) is_urgent: bool,
    pub(super) is_stopped: bool,
    /// The file was opened, or that was tried.
    pub(super) is_opened: bool,
    /// Someone has read nonsense from the file.
    pub(super) is_suspect: bool,
}

/// What the writer takes at once.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) ended: Vec<Row>,
    pub(super) running: Vec<(u64, Open)>,
    pub(super) trips: Vec<Trip>,
    pub(super) marks: Vec<Mark>,
    pub(super) exchanges: exchange::Waiting,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_empty()
            && self.running.is_empty()
            && self.trips.is_empty()
            && self.marks.is_empty()
            && self.exchanges.is_empty()
    }
}

impl Pending {
    /// A call has begun.
    pub(super) fn open(&mut self, number: u64, open: Open) {
        if self.is_stopped || self.open.len() >= OPEN_MAX {
            return;
        }
        if self.open.insert(number, open).is_none() {
            self.unwritten += 1;
        }
    }

    /// The call has ended; what is known of its way, if its begin was seen.
    pub(super) fn close(&mut self, number: u64) -> Option<Open> {
        if let Some(place) = self.given_up.iter().position(|(of, _)| *of == number) {
            return self.given_up.remove(place).map(|(_, open)| open);
        }
        let open = self.open.remove(&number)?;
        if !open.is_written {
            self.unwritten -= 1;
        }
        Some(open)
    }

    /// Something happened to a call that the file must know of before the call ends.
    pub(super) fn change(&mut self, number: u64, change: impl FnOnce(&mut Open)) {
        let Some(open) = self.open.get_mut(&number) else {
            return;
        };
        change(open);
        open.version += 1;
        if std::mem::take(&mut open.is_written) {
            self.unwritten += 1;
        }
    }

    /// A row to write. False when there is no room for it.
    pub(super) fn push(&mut self, row: Row, queue_max: usize) -> bool {
        let bytes = row.bytes();
        let is_full = self.ended.len() + self.taken.0 >= queue_max
            || self.bytes + self.taken.1 + bytes > BYTES_MAX;
        if is_full || self.is_stopped {
            return false;
        }
        self.bytes += bytes;
        self.added += 1;
        self.ended.push_back(row);
        true
    }

    pub(super) fn trip(&mut self, trip: Trip) {
        if self.trips.len() < TRIPS_MAX {
            self.trips.push(trip);
        }
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        if self.marks.len() < MARKS_MAX {
            self.marks.push(mark);
        }
    }

    /// An exchange with a provider. False when there is no room for it.
    pub(super) fn exchange(&mut self, exchange: &Exchange) -> bool {
        !self.is_stopped && self.exchanges.push(exchange)
    }

    pub(super) fn has_work(&self) -> bool {
        !self.ended.is_empty()
            || !self.trips.is_empty()
            || !self.marks.is_empty()
            || !self.exchanges.is_empty()
            || self.unwritten > 0
    }

    /// Rows that wait, those in the writer's hands included.
    pub(super) fn queued(&self) -> usize {
        self.ended.len() + self.taken.0
    }

    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    /// What is to be written now: at most so many ended calls, and those that have been running for a while.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Batch {
        self.passes_begun += 1;
        let mut bytes = 0;
        let mut count = 0;
        for row in self.ended.iter().take(max) {
            if bytes > BATCH_BYTES_MAX {
                break;
            }
            bytes += row.bytes();
            count += 1;
        }
        let ended: Vec<Row> = self.ended.drain(..count).collect();
        self.bytes -= bytes;
        self.taken = (ended.len(), bytes);
        let old_enough = |open: &Open| self.is_urgent || open.since + SHORT <= now;
        let running = match self.unwritten {
            0 => Vec::new(),
            _ => {
                let fresh = self.open.iter().filter(|(_, open)| !open.is_written);
                let fresh = fresh.filter(|(_, open)| old_enough(open));
                fresh
                    .map(|(number, open)| (*number, open.clone()))
                    .take(max)
                    .collect()
            }
        };
        Batch {
            ended,
            running,
            trips: std::mem::take(&mut self.trips),
            marks: std::mem::take(&mut self.marks),
            exchanges: std::mem::take(&mut self.exchanges),
        }
    }

    /// The batch is written, or given up.
    pub(super) fn wrote(&mut self, batch: &Batch) {
        self.done += batch.ended.len() as u64;
        self.taken = (0, 0);
        self.passes_ended = self.passes_begun;
        for (number, written) in &batch.running {
            // What has changed meanwhile is written again.
            let open = self.open.get_mut(number);
            if let Some(open) = open.filter(|open| open.version == written.version) {
                open.is_written = true;
                self.unwritten -= 1;
            }
        }
    }

    /// The batch could not be written: it waits again, in its old place.
    pub(super) fn give_back(&mut self, batch: Batch) {
        self.bytes += self.taken.1;
        self.taken = (0, 0);
        for row in batch.ended.into_iter().rev() {
            self.ended.push_front(row);
        }
        self.exchanges.give_back(batch.exchanges);
        let later = std::mem::replace(&mut self.trips, batch.trips);
        later.into_iter().for_each(|trip| self.trip(trip));
        let later = std::mem::replace(&mut self.marks, batch.marks);
        later.into_iter().for_each(|mark| self.mark(mark));
    }

    /// Calls whose end should have been seen long ago, and was not: events were dropped. Should the end come after
    /// all, it is found: one call is one row.
    pub(super) fn lost(&mut self, now: Instant) -> Vec<Open> {
        let is_lost =
            |open: &Open| now.duration_since(open.counts_since) > open.patience() + LOST_AFTER;
        let lost: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| is_lost(open))
            .map(|(number, _)| *number)
            .collect();
        let mut all = Vec::new();
        for number in lost {
            let Some(open) = self.close(number) else {
                continue;
            };
            if self.given_up.len() >= GIVEN_UP_MAX {
                self.given_up.pop_front();
            }
            self.given_up.push_back((number, open.clone()));
            all.push(open);
        }
        all
    }
}

/// Bits of a row below its milliseconds.
const TIE_BITS: u32 = 20;

/// Rows are in the order their calls came in: the milliseconds, then a number to tell those of one apart.
pub(super) fn row_at(ms: u64, tie: u64) -> i64 {
    // Far enough: the year 2248.
    let ms = ms.min((1 << (63 - TIE_BITS)) - 1);
    (ms << TIE_BITS | tie & ((1 << TIE_BITS) - 1)) as i64
}

/// When the call of a row came in.
pub(super) fn ms_of(row: i64) -> u64 {
    row as u64 >> TIE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(since: Instant) -> Open {
        Open {
            since,
            counts_since: since,
            deadline_ms: Some(60_000.0),
            ..Open::new(1, "c-1".to_owned(), "t".to_owned())
        }
    }

    fn row(id: &str) -> Row {
        Row {
            id: id.to_owned(),
            ..super::super::recorder::running(&open(Instant::now()), 100)
        }
    }

    #[test]
    fn a_call_is_given_up_long_after_its_deadline_whatever_the_wall_clock_says() {
        let begun = Instant::now();
        let mut pending = Pending::default();
        pending.open(1, open(begun));
        assert!(pending.lost(begun + Duration::from_secs(89)).is_empty());
        assert_eq!(pending.lost(begun + Duration::from_secs(91)).len(), 1);
        assert!(pending.open.is_empty() && !pending.has_work());
        // Its end, should it come after all, belongs to the same row.
        assert_eq!(pending.close(1).map(|open| open.row), Some(1));
        assert!(pending.close(1).is_none());
    }

    #[test]
    fn t02_a_call_that_waits_for_an_approval_is_not_given_up_and_has_its_whole_time_after_it() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let wait = ApprovalWait {
            start_ms: 0.0,
            end_ms: None,
            approved_by: None,
        };
        let mut pending = Pending::default();
        pending.open(1, open(begun));
        pending.change(1, |open| open.approval = Some(wait));
        assert!(pending.lost(after(3600)).is_empty());
        pending.change(1, |open| {
            open.counts_since = after(3600);
            open.approval.as_mut().expect("it waited").end_ms = Some(3_600_000.0);
        });
        assert!(pending.lost(after(3600 + 89)).is_empty());
        assert_eq!(pending.lost(after(3600 + 91)).len(), 1);
    }

    #[test]
    fn what_changes_while_it_is_being_written_is_written_again() {
        let begun = Instant::now();
        let mut pending = Pending::default();
        pending.open(1, open(begun));
        let batch = pending.take(10, begun + SHORT);
        pending.change(1, |open| open.notes.push("more".to_owned()));
        pending.wrote(&batch);
        let again = pending.take(10, begun + SHORT);
        assert_eq!(again.running[0].1.notes, ["more"]);
        pending.wrote(&again);
        assert!(!pending.has_work());
        assert!(pending.take(10, begun + SHORT).is_empty());
        pending.change(1, |open| open.notes.clear());
        assert!(pending.has_work());
        assert!(pending.close(1).is_some() && !pending.has_work());
    }

    #[test]
    fn a_call_that_runs_for_a_while_is_taken_and_one_that_has_just_begun_is_not() {
        let begun = Instant::now();
        let mut pending = Pending::default();
        pending.open(1, open(begun));
        assert!(pending.take(10, begun).is_empty());
        assert_eq!(pending.take(10, begun + SHORT).running.len(), 1);
    }

    #[test]
    fn what_is_given_back_is_taken_again_in_its_order_and_counts_as_before() {
        let mut pending = Pending::default();
        for id in ["a", "b", "c", "d"] {
            assert!(pending.push(row(id), 4));
        }
        let bytes = pending.bytes;
        let now = Instant::now();
        let batch = pending.take(3, now);
        assert!(!pending.push(row("e"), 4), "what is taken still counts");
        pending.give_back(batch);
        assert_eq!((pending.queued(), pending.bytes), (4, bytes));
        assert!(!pending.push(row("e"), 4));
        let again = pending.take(1, now);
        assert_eq!(again.ended[0].id, "a");
        pending.wrote(&again);
        let rest = pending.take(10, now);
        let ids: Vec<&str> = rest.ended.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["b", "c", "d"]);
        pending.wrote(&rest);
        assert_eq!((pending.bytes, pending.done, pending.added), (0, 4, 4));
    }
}
