//! The buckets of trends in the file: filled as calls are written, read as a window, dropped when they are old.

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use super::histogram::Histogram;
use super::marks;
use super::pending::Row;
use super::record::CallState;
use super::trends::{Bucket, Counts, Trends, Window};

/// All tools together. SQLite numbers the others from 1.
pub(super) const ALL_TOOLS: i64 = 0;

/// A week, and a bit: the longest window there is.
const MARKS_KEPT_MS: u64 = 8 * 86_400_000;

/// What was counted of one tool in one span of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    times: Histogram,
}

/// What a batch adds to the buckets, by tool (none for those that do not exist) and minute: every bucket is some minutes.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    by_minute: HashMap<(Option<i64>, u64), Tally>,
}

impl Window {
    const ALL: [Window; 3] = [Window::Hour, Window::Day, Window::Week];

    pub(super) fn bucket_ms(self) -> u64 {
        match self {
            Window::Hour => 60_000,
            Window::Day => 15 * 60_000,
            Window::Week => 2 * 60 * 60_000,
        }
    }

    /// Buckets of one window.
    pub(super) fn buckets(self) -> u64 {
        match self {
            Window::Hour => 60,
            Window::Day => 96,
            Window::Week => 84,
        }
    }

    /// Where the bucket of a moment begins.
    pub(super) fn bucket_of(self, ms: u64) -> u64 {
        ms - ms % self.bucket_ms()
    }
}

impl Tallies {
    /// A call has ended. `tool` is its number, if there is such a tool.
    pub(super) fn call(&mut self, tool: Option<i64>, row: &Row) {
        // Nobody knows how it ended; should its end come after all, it is counted then.
        if row.state == CallState::Interrupted {
            return;
        }
        let tally = self.at(tool, row.ended_ms);
        let counts = &mut tally.counts;
        counts.calls += 1;
        // Another call of the same key was counted for it.
        if row.replayed {
            return;
        }
        match row.state {
            CallState::Error => counts.errors += 1,
            CallState::Timeout => counts.timeouts += 1,
            CallState::Rejected => counts.rejected += 1,
            CallState::Cancelled => counts.cancelled += 1,
            CallState::Running | CallState::Ok | CallState::Interrupted => {}
        }
        counts.retries += u64::from(row.attempts.saturating_sub(1));
        counts.fallbacks += u64::from(row.fallback_used);
        let ran = matches!(
            row.state,
            CallState::Ok | CallState::Error | CallState::Timeout
        );
        if let (true, Some(micros)) = (ran, row.took_us) {
            // How long a person takes says nothing about the tool.
            let running = micros - row.approval_us.unwrap_or(0);
            tally.times.add(running.max(0) as u64);
        }
    }

    /// A breaker has opened.
    pub(super) fn trip(&mut self, tool: i64, at_ms: u64) {
        self.at(Some(tool), at_ms).counts.trips += 1;
    }

    fn at(&mut self, tool: Option<i64>, at_ms: u64) -> &mut Tally {
        let minute = Window::Hour.bucket_of(at_ms);
        self.by_minute.entry((tool, minute)).or_default()
    }

    /// The buckets of every width, of each tool and of all.
    fn buckets(&self) -> HashMap<(i64, Window, u64), Tally> {
        let mut buckets: HashMap<_, Tally> = HashMap::new();
        for ((tool, minute), tally) in &self.by_minute {
            for window in Window::ALL {
                let start = window.bucket_of(*minute);
                for tool in [Some(ALL_TOOLS), *tool].into_iter().flatten() {
                    buckets
                        .entry((tool, window, start))
                        .or_default()
                        .merge(tally);
                }
            }
        }
        buckets
    }

    /// Adds them to what is in the file.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut find = connection.prepare_cached(
            "SELECT calls, errors, timeouts, rejected, cancelled, retries, fallbacks, trips, times
             FROM buckets WHERE width = ?1 AND tool = ?2 AND start = ?3",
        )?;
        let mut put = connection.prepare_cached(
            "INSERT OR REPLACE INTO buckets (width, tool, start,
                calls, errors, timeouts, rejected, cancelled, retries, fallbacks, trips, times)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        for ((tool, window, start), tally) in self.buckets() {
            let (width, start) = (window.bucket_ms() as i64, start as i64);
            let before = find.query_row([width, tool, start], |row| read(row, 0));
            let before = before.optional()?;
            let mut sum = before.unwrap_or_default();
            sum.merge(&tally);
            let counts = &sum.counts;
            put.execute(params![
                width,
                tool,
                start,
                counts.calls as i64,
                counts.errors as i64,
                counts.timeouts as i64,
                counts.rejected as i64,
                counts.cancelled as i64,
                counts.retries as i64,
                counts.fallbacks as i64,
                counts.trips as i64,
                sum.times.to_bytes(),
            ])?;
        }
        Ok(())
    }
}

impl Tally {
    pub(super) fn merge(&mut self, other: &Tally) {
        let (mine, more) = (&mut self.counts, &other.counts);
        for (mine, more) in [
            (&mut mine.calls, more.calls),
            (&mut mine.errors, more.errors),
            (&mut mine.timeouts, more.timeouts),
            (&mut mine.rejected, more.rejected),
            (&mut mine.cancelled, more.cancelled),
            (&mut mine.retries, more.retries),
            (&mut mine.fallbacks, more.fallbacks),
            (&mut mine.trips, more.trips),
        ] {
            *mine = mine.saturating_add(more);
        }
        self.times.merge(&other.times);
    }

    pub(super) fn shown(self) -> Counts {
        Counts {
            ran: self.times.count(),
            p50: self.times.percentile(0.50),
            p95: self.times.percentile(0.95),
            ..self.counts
        }
    }
}

/// What is broken counts as nothing: it must not keep calls from being written.
pub(super) fn read(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Tally> {
    let count = |column: usize| {
        row.get_ref(from + column).map(|value| match value {
            ValueRef::Integer(count) => count.max(0) as u64,
            _ => 0,
        })
    };
    let times = match row.get_ref(from + 8)? {
        ValueRef::Blob(bytes) => Histogram::from_bytes(bytes),
        _ => Histogram::default(),
    };
    Ok(Tally {
        counts: Counts {
            calls: count(0)?,
            errors: count(1)?,
            timeouts: count(2)?,
            rejected: count(3)?,
            cancelled: count(4)?,
            retries: count(5)?,
            fallbacks: count(6)?,
            trips: count(7)?,
            ran: 0,
            p50: None,
            p95: None,
        },
        times,
    })
}

/// The buckets of a window that ends now, and the sum of the window before it.
pub(super) fn trends(
    connection: &Connection,
    tool: Option<&str>,
    window: Window,
    now_ms: u64,
) -> rusqlite::Result<Trends> {
    let width = window.bucket_ms();
    let last = window.bucket_of(now_ms);
    let first = last.saturating_sub((window.buckets() - 1) * width);
    let before = first.saturating_sub(window.buckets() * width);
    let mut find = connection.prepare_cached(
        "SELECT start, calls, errors, timeouts, rejected, cancelled, retries, fallbacks, trips, times
         FROM buckets WHERE width = ?1 AND tool = ?2 AND start BETWEEN ?3 AND ?4",
    )?;
    let mut by_start: HashMap<u64, Tally> = HashMap::new();
    let (mut total, mut previous) = (Tally::default(), Tally::default());
    for id in numbers_of(connection, tool)? {
        let mut found = find.query([width as i64, id, before as i64, last as i64])?;
        while let Some(row) = found.next()? {
            let (start, tally) = (row.get::<_, i64>(0)? as u64, read(row, 1)?);
            if start < first {
                previous.merge(&tally);
                continue;
            }
            total.merge(&tally);
            by_start.entry(start).or_default().merge(&tally);
        }
    }
    let starts = (0..window.buckets()).map(|index| first + index * width);
    let buckets = starts
        .map(|start_ms| Bucket {
            start_ms,
            counts: by_start.remove(&start_ms).unwrap_or_default().shown(),
        })
        .collect();
    Ok(Trends {
        tool: tool.map(str::to_owned),
        window,
        bucket_ms: width,
        times: total.times.spread(),
        marks: marks::read(connection, first, tool)?,
        total: total.shown(),
        previous: previous.shown(),
        buckets,
    })
}

/// A tool has a number for each source it came from.
fn numbers_of(connection: &Connection, tool: Option<&str>) -> rusqlite::Result<Vec<i64>> {
    let Some(tool) = tool else {
        return Ok(vec![ALL_TOOLS]);
    };
    let mut find = connection.prepare_cached("SELECT id FROM tools WHERE name = ?1")?;
    let found = find.query_map([tool], |row| row.get(0))?;
    found.collect()
}

/// Drops buckets that no window shows any more.
pub(super) fn forget_old(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    let mut list = connection.prepare_cached("SELECT id FROM tools")?;
    let tools = list.query_map([], |row| row.get(0))?;
    let mut tools: Vec<i64> = tools.collect::<rusqlite::Result<_>>()?;
    tools.push(ALL_TOOLS);
    marks::forget_old(connection, now_ms.saturating_sub(MARKS_KEPT_MS))?;
    let mut forget = connection
        .prepare_cached("DELETE FROM buckets WHERE width = ?1 AND tool = ?2 AND start < ?3")?;
    for window in Window::ALL {
        // This window and the one before it, and one bucket for clocks that differ.
        let kept = (2 * window.buckets() + 1) * window.bucket_ms();
        let oldest = now_ms.saturating_sub(kept);
        for tool in &tools {
            forget.execute(params![window.bucket_ms() as i64, tool, oldest as i64])?;
        }
    }
    Ok(())
}
