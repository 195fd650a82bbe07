//! Rows that may be meant by a filter, the newest first: every row, or those of some ranges of an index, merged.

use std::collections::{BinaryHeap, VecDeque};

use rusqlite::Connection;
use steadyhand::wildcard::wild;

use super::filter::Filter;
use super::pending::row_at;
use super::reader;
use super::record::CallState;
use super::schema::{SLOW_US, code_number, state_number};

/// More ranges than this are not merged: the calls are gone through one by one.
const RANGES_MAX: usize = 4000;
/// Entries read of one range at once; fewer, if there are many ranges.
const CHUNK_MAX: usize = 64;
const CHUNK_MIN: usize = 8;
/// Entries read of all ranges before the first of them can be told from the others.
const FIRST_READ_MAX: usize = 20_000;

/// Rows that may be meant, in order.
pub(super) struct Candidates<'a> {
    connection: &'a Connection,
    conditions: Conditions,
    ranges: Vec<Range>,
    /// Where each range stands that is not at its end; the newest first.
    heads: BinaryHeap<Head>,
    chunk: usize,
    /// Rows from here on are not asked for.
    before: i64,
}

/// What an index can tell of a row.
struct Conditions {
    since: i64,
    slower_us: Option<i64>,
    codes: Vec<i64>,
}

/// Where a range stands, by its row. Of the same row, one that is known comes before those that are yet to be read.
type Head = (i64, Stand, usize);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    /// All rows before this one are yet to be read.
    Unread,
    /// This row is its next.
    Known,
}

struct Range {
    index: Index,
    /// Rows read ahead that fit the conditions.
    ahead: VecDeque<i64>,
    /// Where to read on; none at the end.
    from: Option<i64>,
}

#[derive(Clone, Copy)]
enum Index {
    /// Every row.
    All,
    /// A tool, a state.
    Tool(i64, i64),
    /// The same, of the slow ones.
    Slow(i64, i64),
    Caller(i64),
}

impl<'a> Candidates<'a> {
    /// Those before a row, by the index that leaves the fewest to look at.
    pub(super) fn of(
        connection: &'a Connection,
        filter: &Filter,
        before: i64,
    ) -> rusqlite::Result<Candidates<'a>> {
        let mut indexes = indexes(connection, filter)?;
        if indexes.len() > RANGES_MAX {
            indexes = vec![Index::All];
        }
        let range = |index| Range {
            index,
            ahead: VecDeque::new(),
            from: Some(before),
        };
        let unread = |number| (before, Stand::Unread, number);
        Ok(Candidates {
            connection,
            conditions: Conditions {
                since: filter.since_ms.map_or(0, |ms| row_at(ms, 0)),
                slower_us: filter.slower_ms.map(|ms| (ms * 1e3) as i64),
                codes: filter.error.iter().map(|code| code_number(*code)).collect(),
            },
            chunk: (FIRST_READ_MAX / indexes.len().max(1)).clamp(CHUNK_MIN, CHUNK_MAX),
            heads: (0..indexes.len()).map(unread).collect(),
            ranges: indexes.into_iter().map(range).collect(),
            before,
        })
    }

    /// The next row; none at the end, or when it is late and there was some progress: [`place`](Self::place) tells.
    pub(super) fn next(&mut self, is_late: impl Fn() -> bool) -> rusqlite::Result<Option<i64>> {
        loop {
            let has_moved = self.place().is_some_and(|place| place < self.before);
            if has_moved && is_late() {
                return Ok(None);
            }
            let Some((row, stand, number)) = self.heads.pop() else {
                return Ok(None);
            };
            let range = &mut self.ranges[number];
            if stand == Stand::Unread {
                range.read(self.connection, &self.conditions, self.chunk)?;
            }
            match (range.ahead.pop_front(), range.from) {
                (Some(next), _) => self.heads.push((next, Stand::Known, number)),
                (None, Some(from)) => self.heads.push((from, Stand::Unread, number)),
                (None, None) => {}
            }
            if stand == Stand::Known {
                return Ok(Some(row));
            }
        }
    }

    /// Everything from here on is done with; none when all is.
    pub(super) fn place(&self) -> Option<i64> {
        self.heads.peek().map(|(row, stand, _)| match stand {
            Stand::Unread => *row,
            Stand::Known => row + 1,
        })
    }
}

impl Range {
    /// Reads one chunk ahead.
    fn read(
        &mut self,
        connection: &Connection,
        conditions: &Conditions,
        chunk: usize,
    ) -> rusqlite::Result<()> {
        let Some(before) = self.from else {
            return Ok(());
        };
        // Each has the same parameters, whether it needs them or not.
        let (sql, first, second) = match self.index {
            Index::All => (
                "SELECT row, took_us, code FROM calls
                 WHERE ?1 = 0 AND ?2 = 0 AND row < ?3 AND row >= ?4 ORDER BY row DESC LIMIT ?5",
                0,
                0,
            ),
            Index::Tool(tool, state) => (
                "SELECT row, took_us, code FROM calls INDEXED BY calls_by_tool
                 WHERE tool = ?1 AND state = ?2 AND row < ?3 AND row >= ?4
                 ORDER BY row DESC LIMIT ?5",
                tool,
                state,
            ),
            Index::Slow(tool, state) => (
                "SELECT row, took_us, code FROM calls INDEXED BY calls_slow
                 WHERE tool = ?1 AND state = ?2 AND row < ?3 AND row >= ?4 AND took_us >= 100000
                 ORDER BY row DESC LIMIT ?5",
                tool,
                state,
            ),
            Index::Caller(caller) => (
                "SELECT row, NULL, NULL FROM calls INDEXED BY calls_by_caller
                 WHERE caller = ?1 AND ?2 = 0 AND row < ?3 AND row >= ?4
                 ORDER BY row DESC LIMIT ?5",
                caller,
                0,
            ),
        };
        let mut list = connection.prepare_cached(sql)?;
        let mut rows = list.query([first, second, before, conditions.since, chunk as i64])?;
        let mut count = 0;
        while let Some(entry) = rows.next()? {
            count += 1;
            let row = entry.get(0)?;
            self.from = Some(row);
            let may_be_meant = match self.index {
                Index::Caller(_) => true,
                _ => conditions.fit(entry.get(1)?, entry.get(2)?),
            };
            if may_be_meant {
                self.ahead.push_back(row);
            }
        }
        if count < chunk {
            self.from = None;
        }
        Ok(())
    }
}

impl Conditions {
    fn fit(&self, took_us: Option<i64>, code: Option<i64>) -> bool {
        let is_slow = |than: i64| took_us.is_some_and(|took| took >= than);
        self.slower_us.is_none_or(is_slow)
            && (self.codes.is_empty() || code.is_some_and(|code| self.codes.contains(&code)))
    }
}

/// The ranges that leave the fewest rows to look at.
fn indexes(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<Index>> {
    let all = || vec![Index::All];
    let by_name = !filter.tool.is_empty() || filter.server.is_some();
    // Those of an owner are named `@owner` and `@owner/…`: which of them are meant is looked at later.
    let of_owner = filter.owner.as_ref().map(|owner| format!("{owner}*"));
    if let (Some(pattern), false) = (filter.caller.as_ref().or(of_owner.as_ref()), by_name) {
        let callers = reader::callers(connection, pattern)?;
        return Ok(callers.map_or_else(all, |callers| {
            callers.into_iter().map(Index::Caller).collect()
        }));
    }
    let states = filter.states();
    let by_state = states.len() < CallState::ALL.len();
    if !by_name && !by_state && filter.slower_ms.is_none() {
        return Ok(all());
    }
    let is_meant = |name: &str, source: &str| {
        (filter.tool.is_empty() || filter.tool.iter().any(|tool| wild(tool, name)))
            && filter
                .server
                .as_deref()
                .is_none_or(|server| wild(server, source))
    };
    // A tool that does not exist comes from nowhere.
    let tools = reader::tools(connection, is_meant, filter.server.is_none())?;
    let Some(tools) = tools else {
        return Ok(all());
    };
    let is_slow = filter
        .slower_ms
        .is_some_and(|ms| ms * 1e3 >= SLOW_US as f64);
    let index = |tool, state| match is_slow {
        true => Index::Slow(tool, state),
        false => Index::Tool(tool, state),
    };
    let pairs = tools.iter().flat_map(|tool| {
        states
            .iter()
            .map(|state| index(*tool, state_number(*state)))
    });
    Ok(pairs.collect())
}
