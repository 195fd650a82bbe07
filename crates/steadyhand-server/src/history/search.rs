//! Finds the calls a filter means, the newest first: ranges of an index are merged, what no index knows is looked at,
//! and the work of one search is bounded.

use std::collections::{BinaryHeap, VecDeque};

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use steadyhand::wildcard::wild;

use super::filter::Filter;
use super::page::{Cursor, Page};
use super::pending::{ms_of, row_at};
use super::reader::{self, SUMMARY};
use super::record::{CallDetails, CallSummary};
use super::write::{SLOW_US, state_number};

/// The work of one search, in entries of an index; what else is looked at costs as much as so many of them.
const WORK_MAX: usize = 150_000;
const SUMMARY_COST: usize = 8;
const DETAILS_COST: usize = 20;
const DETAILS_BYTES_PER_COST: usize = 256;
/// More ranges than this are not merged: the calls are gone through one by one.
const RANGES_MAX: usize = 4000;
/// Entries read of one range at once.
const CHUNK: usize = 64;

/// A page of what the filter means.
pub(super) fn page(
    connection: &Connection,
    filter: &Filter,
    from: Option<Cursor>,
    limit: usize,
) -> rusqlite::Result<Page> {
    let mut search = Search::new(connection, filter, from)?;
    let mut calls = Vec::new();
    while calls.len() < limit {
        match search.next()? {
            Some(found) => calls.push(found),
            None => break,
        }
    }
    let next = search.next_place(calls.len() == limit)?;
    let stopped_early = calls.len() < limit && next.is_some();
    Ok(Page {
        calls,
        next,
        searched_to_ms: next.filter(|_| stopped_early).map(|place| ms_of(place.0)),
    })
}

/// One search: where it is, and how much work is left.
pub(super) struct Search<'a> {
    connection: &'a Connection,
    filter: &'a Filter,
    needles: Vec<Needle>,
    candidates: Candidates,
    /// Rows at or after this are done with.
    before: i64,
    /// No row before this is meant.
    since: i64,
    work_left: usize,
    slower_us: Option<i64>,
}

/// Where rows come from that may be meant.
enum Candidates {
    /// Every row.
    All(VecDeque<i64>),
    /// Rows of some ranges of an index, merged.
    Ranges(Ranges),
}

impl<'a> Search<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        filter: &'a Filter,
        from: Option<Cursor>,
    ) -> rusqlite::Result<Search<'a>> {
        let until = filter.until_ms.map_or(i64::MAX, |ms| row_at(ms, 0));
        let before = from.map_or(until, |place| place.0.min(until));
        Ok(Search {
            connection,
            filter,
            needles: filter.text.iter().map(|text| Needle::new(text)).collect(),
            candidates: candidates(connection, filter)?,
            before,
            since: filter.since_ms.map_or(0, |ms| row_at(ms, 0)),
            work_left: WORK_MAX,
            slower_us: filter.slower_ms.map(|ms| (ms * 1e3) as i64),
        })
    }

    /// The next call that is meant; none when there is no more, or the work is used up.
    pub(super) fn next(&mut self) -> rusqlite::Result<Option<CallSummary>> {
        while self.work_left > 0 {
            let Some(row) = self.next_row()? else {
                return Ok(None);
            };
            self.before = row;
            self.spend(SUMMARY_COST);
            let mut find = self
                .connection
                .prepare_cached(&format!("{SUMMARY} WHERE c.row = ?1"))?;
            let found = find.query_row([row], reader::summary).optional()?;
            // It may have been forgotten since.
            let Some(found) = found.filter(|call| self.means(call)) else {
                continue;
            };
            if self.holds_texts(row, &found)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Where the next search begins, if there may be more.
    fn next_place(&mut self, page_is_full: bool) -> rusqlite::Result<Option<Cursor>> {
        if self.work_left == 0 {
            return Ok((self.before > self.since).then_some(Cursor(self.before)));
        }
        if !page_is_full {
            return Ok(None);
        }
        let place = Cursor(self.before);
        let more = self.next()?;
        Ok((more.is_some() || self.work_left == 0).then_some(place))
    }

    fn next_row(&mut self) -> rusqlite::Result<Option<i64>> {
        let (connection, before, since) = (self.connection, self.before, self.since);
        match &mut self.candidates {
            Candidates::All(chunk) => {
                if chunk.is_empty() {
                    let mut list = connection.prepare_cached(
                        "SELECT row FROM calls WHERE row < ?1 AND row >= ?2 ORDER BY row DESC LIMIT ?3",
                    )?;
                    let rows =
                        list.query_map(params![before, since, CHUNK as i64], |row| row.get(0))?;
                    *chunk = rows.collect::<rusqlite::Result<_>>()?;
                }
                Ok(chunk.pop_front())
            }
            Candidates::Ranges(ranges) => {
                let scope = Scope {
                    connection,
                    since,
                    slower_us: self.slower_us,
                };
                let (row, work) = ranges.next(&scope, before, self.work_left)?;
                if row.is_none() {
                    self.before = ranges.reached().unwrap_or(0);
                }
                self.spend(work);
                Ok(row)
            }
        }
    }

    fn spend(&mut self, work: usize) {
        self.work_left = self.work_left.saturating_sub(work);
    }

    /// Everything but the texts.
    fn means(&self, call: &CallSummary) -> bool {
        let filter = self.filter;
        let fits = |pattern: &Option<String>, value: &Option<String>| {
            let value = value.as_deref().unwrap_or_default();
            pattern
                .as_deref()
                .is_none_or(|pattern| wild(pattern, value))
        };
        let is_slower = |than: f64| call.took_ms.is_some_and(|took| took > than);
        (filter.tool.is_empty() || filter.tool.iter().any(|tool| wild(tool, &call.tool)))
            && filter.means_state(call.state, call.fallback_used)
            && (filter.error.is_empty()
                || call.code.is_some_and(|code| filter.error.contains(&code)))
            && fits(&filter.server, &call.source)
            && fits(&filter.caller, &call.caller)
            && filter.slower_ms.is_none_or(is_slower)
    }

    fn holds_texts(&mut self, row: i64, call: &CallSummary) -> rusqlite::Result<bool> {
        let elsewhere = |needle: &Needle| {
            needle.is_in(&call.id)
                || needle.is_in(&call.tool)
                || call
                    .message
                    .as_deref()
                    .is_some_and(|message| needle.is_in(message))
        };
        let missing: Vec<&Needle> = self.needles.iter().filter(|one| !elsewhere(one)).collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let json = reader::details(self.connection, row)?.unwrap_or_default();
        let folded = json.to_lowercase();
        // A quick look first: the text may still be of ours, a name of a field.
        let may_hold = missing
            .iter()
            .all(|needle| folded.contains(&needle.escaped));
        let holds = may_hold && {
            let details: CallDetails = serde_json::from_str(&json).unwrap_or_default();
            missing.iter().all(|needle| needle.is_in_details(&details))
        };
        self.spend(DETAILS_COST + json.len() / DETAILS_BYTES_PER_COST);
        Ok(holds)
    }
}

/// A text that is looked for, whatever its case.
struct Needle {
    text: String,
    /// As it would stand in JSON.
    escaped: String,
}

impl Needle {
    fn new(text: &str) -> Needle {
        let text = text.to_lowercase();
        let escaped = Value::String(text.clone()).to_string();
        let escaped = escaped[1..escaped.len() - 1].to_owned();
        Needle { text, escaped }
    }

    fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.text)
    }

    fn is_in_details(&self, details: &CallDetails) -> bool {
        let in_value =
            |value: &Option<Value>| value.as_ref().is_some_and(|value| self.is_in_value(value));
        in_value(&details.arguments)
            || in_value(&details.result)
            || details
                .result_text
                .as_deref()
                .is_some_and(|text| self.is_in(text))
            || details
                .error
                .as_ref()
                .is_some_and(|error| self.is_in(&error.message))
            || details
                .tries
                .iter()
                .any(|one| one.message.as_deref().is_some_and(|text| self.is_in(text)))
    }

    fn is_in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_in(text),
            Value::Array(items) => items.iter().any(|item| self.is_in_value(item)),
            Value::Object(fields) => fields
                .iter()
                .any(|(name, field)| self.is_in(name) || self.is_in_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.is_in(&value.to_string()),
        }
    }
}

/// The index that leaves the fewest rows to look at.
fn candidates(connection: &Connection, filter: &Filter) -> rusqlite::Result<Candidates> {
    let states = filter.states();
    let by_name = !filter.tool.is_empty() || filter.server.is_some();
    if let (Some(pattern), false) = (&filter.caller, by_name) {
        let mut list = connection.prepare_cached("SELECT id, name FROM callers")?;
        let mut rows = list.query([])?;
        let mut ranges = Vec::new();
        while let Some(row) = rows.next()? {
            if wild(pattern, row.get_ref(1)?.as_str()?) {
                ranges.push(Range::new(Index::Caller(row.get(0)?)));
            }
        }
        return Ok(merged(ranges));
    }
    let by_state = states.len() < super::record::CallState::ALL.len();
    if !by_name && !by_state && filter.slower_ms.is_none() {
        return Ok(Candidates::All(VecDeque::new()));
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
    let is_slow = filter
        .slower_ms
        .is_some_and(|ms| ms * 1e3 >= SLOW_US as f64);
    let ranges = tools.into_iter().flat_map(|tool| {
        let range = move |state| {
            let state = state_number(state);
            Range::new(match is_slow {
                true => Index::Slow(tool, state),
                false => Index::Tool(tool, state),
            })
        };
        states.clone().into_iter().map(range)
    });
    Ok(merged(ranges.collect()))
}

fn merged(ranges: Vec<Range>) -> Candidates {
    match ranges.len() > RANGES_MAX {
        true => Candidates::All(VecDeque::new()),
        false => Candidates::Ranges(Ranges {
            // One chunk of each must be within the work of one search, or it would get nowhere.
            chunk: (WORK_MAX / 2 / ranges.len().max(1)).clamp(8, CHUNK),
            ranges,
            heads: BinaryHeap::new(),
            is_begun: false,
        }),
    }
}

/// Ranges of an index, each in order; together they are, too.
struct Ranges {
    ranges: Vec<Range>,
    /// Where each range stands that is not at its end; the newest first.
    heads: BinaryHeap<Head>,
    /// Entries read of one range at once: fewer, if there are many ranges.
    chunk: usize,
    is_begun: bool,
}

/// Where a range stands. Of the same row, one that is known comes before those that are yet to be read.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    /// All rows before this one are yet to be read.
    Unread,
    /// This row is its next.
    Known,
}

type Head = (i64, Stand, usize);

struct Range {
    index: Index,
    /// Rows read ahead; those that are too fast are left out.
    ahead: VecDeque<i64>,
    /// Where to read on; none at the end.
    from: Option<i64>,
}

#[derive(Clone, Copy)]
enum Index {
    Tool(i64, i64),
    Slow(i64, i64),
    Caller(i64),
}

/// What is the same for all ranges of a search.
struct Scope<'a> {
    connection: &'a Connection,
    since: i64,
    slower_us: Option<i64>,
}

impl Ranges {
    /// The next row of all ranges, if there is one and the work suffices; and the work it took.
    fn next(
        &mut self,
        scope: &Scope<'_>,
        before: i64,
        work_max: usize,
    ) -> rusqlite::Result<(Option<i64>, usize)> {
        if !self.is_begun {
            self.is_begun = true;
            for (number, range) in self.ranges.iter_mut().enumerate() {
                range.from = Some(before);
                self.heads.push((before, Stand::Unread, number));
            }
        }
        let mut work = 0;
        while work < work_max {
            let Some((row, stand, number)) = self.heads.pop() else {
                break;
            };
            let range = &mut self.ranges[number];
            if stand == Stand::Unread {
                work += range.read(scope, self.chunk)?;
            }
            match (range.ahead.pop_front(), range.from) {
                (Some(next), _) => self.heads.push((next, Stand::Known, number)),
                (None, Some(from)) => self.heads.push((from, Stand::Unread, number)),
                (None, None) => {}
            }
            if stand == Stand::Known {
                return Ok((Some(row), work));
            }
        }
        Ok((None, work))
    }

    /// Everything from here on is done with; none when all is.
    fn reached(&self) -> Option<i64> {
        self.heads.peek().map(|(row, stand, _)| match stand {
            Stand::Unread => *row,
            Stand::Known => row + 1,
        })
    }
}

impl Range {
    fn new(index: Index) -> Range {
        Range {
            index,
            ahead: VecDeque::new(),
            from: None,
        }
    }

    /// Reads one chunk ahead. How many entries that were.
    fn read(&mut self, scope: &Scope<'_>, chunk: usize) -> rusqlite::Result<usize> {
        let Some(before) = self.from else {
            return Ok(0);
        };
        let sql = match self.index {
            Index::Tool(..) => {
                "SELECT row, took_us FROM calls INDEXED BY calls_by_tool
                 WHERE tool = ?1 AND state = ?2 AND row < ?3 AND row >= ?4 ORDER BY row DESC LIMIT ?5"
            }
            Index::Slow(..) => {
                "SELECT row, took_us FROM calls INDEXED BY calls_slow
                 WHERE tool = ?1 AND state = ?2 AND row < ?3 AND row >= ?4 AND took_us >= 100000
                 ORDER BY row DESC LIMIT ?5"
            }
            Index::Caller(..) => {
                "SELECT row, NULL FROM calls INDEXED BY calls_by_caller
                 WHERE caller = ?1 AND ?2 = 0 AND row < ?3 AND row >= ?4 ORDER BY row DESC LIMIT ?5"
            }
        };
        let (first, second) = match self.index {
            Index::Tool(tool, state) | Index::Slow(tool, state) => (tool, state),
            Index::Caller(caller) => (caller, 0),
        };
        let mut list = scope.connection.prepare_cached(sql)?;
        let mut rows = list.query([first, second, before, scope.since, chunk as i64])?;
        let mut count = 0;
        while let Some(entry) = rows.next()? {
            count += 1;
            let (row, took_us): (i64, Option<i64>) = (entry.get(0)?, entry.get(1)?);
            self.from = Some(row);
            let is_too_fast = match (self.index, scope.slower_us) {
                (Index::Caller(_), _) | (_, None) => false,
                (_, Some(slower)) => took_us.is_none_or(|took| took < slower),
            };
            if !is_too_fast {
                self.ahead.push_back(row);
            }
        }
        if count < chunk {
            self.from = None;
        }
        Ok(count + 1)
    }
}
