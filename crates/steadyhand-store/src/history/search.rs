//! Finds the calls a filter means, the newest first: ranges of an index are merged, what no index knows is looked at,
//! and the time of one search is bounded.

use std::time::Duration;

use rusqlite::{CachedStatement, Connection, OptionalExtension};
use serde_json::Value;
use steadyhand::wildcard::wild;
use tokio::time::Instant;

use super::candidates::Candidates;
use super::filter::Filter;
use super::page::{Cursor, Page};
use super::pending::{ms_of, row_at};
use super::reader::{self, SUMMARY};
use super::record::{CallDetails, CallRecord, CallSummary};

/// A page of what the filter means. A search that has found too little goes on for so long, then says where it stopped.
pub(super) fn page(
    connection: &Connection,
    filter: &Filter,
    from: Option<Cursor>,
    limit: usize,
    within: Duration,
) -> rusqlite::Result<Page> {
    let mut search = Search::new(connection, filter, from, Instant::now() + within)?;
    let mut calls = Vec::new();
    while calls.len() < limit {
        match search.next()? {
            Some(found) => calls.push(found),
            None => break,
        }
    }
    let is_full = calls.len() == limit;
    let next = match is_full {
        true => search.more_after_this()?,
        false => search.place(),
    };
    Ok(Page {
        calls,
        next,
        searched_to_ms: next.filter(|_| !is_full).map(|place| ms_of(place.0)),
    })
}

/// One search, and where it is.
struct Search<'a> {
    connection: &'a Connection,
    summary: CachedStatement<'a>,
    filter: &'a Filter,
    needles: Vec<Needle>,
    candidates: Candidates<'a>,
    /// From when on it is.
    late: Instant,
    is_out_of_time: bool,
}

impl<'a> Search<'a> {
    fn new(
        connection: &'a Connection,
        filter: &'a Filter,
        from: Option<Cursor>,
        late: Instant,
    ) -> rusqlite::Result<Search<'a>> {
        let until = filter.until_ms.map_or(i64::MAX, |ms| row_at(ms, 0));
        let before = from.map_or(until, |place| place.0.min(until));
        Ok(Search {
            connection,
            summary: connection.prepare_cached(&format!("{SUMMARY} WHERE c.row = ?1"))?,
            filter,
            needles: filter.text.iter().map(|text| Needle::new(text)).collect(),
            candidates: Candidates::of(connection, filter, before)?,
            late,
            is_out_of_time: false,
        })
    }

    /// The next call that is meant; none when there is no more, or the time is up.
    fn next(&mut self) -> rusqlite::Result<Option<CallSummary>> {
        loop {
            let late = self.late;
            let is_late = || Instant::now() >= late;
            let Some(row) = self.candidates.next(is_late)? else {
                self.is_out_of_time = self.candidates.place().is_some();
                return Ok(None);
            };
            let found = self.summary.query_row([row], reader::summary).optional()?;
            // It may have been forgotten since.
            let Some(found) = found.filter(|call| means(self.filter, call)) else {
                continue;
            };
            if self.holds_texts(row, &found)? {
                return Ok(Some(found));
            }
        }
    }

    /// Where the next search begins; none at the end.
    fn place(&self) -> Option<Cursor> {
        self.candidates.place().map(Cursor)
    }

    /// The same, once the page is full: only if there is one more call, or nobody knows.
    fn more_after_this(&mut self) -> rusqlite::Result<Option<Cursor>> {
        let place = self.place();
        let more = self.next()?;
        Ok(place.filter(|_| more.is_some() || self.is_out_of_time))
    }

    fn holds_texts(&self, row: i64, call: &CallSummary) -> rusqlite::Result<bool> {
        let message = call.message.as_deref().unwrap_or_default();
        let elsewhere = |needle: &Needle| {
            needle.is_in(&call.id) || needle.is_in(&call.tool) || needle.is_in(message)
        };
        let missing: Vec<&Needle> = self.needles.iter().filter(|one| !elsewhere(one)).collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let json = reader::details(self.connection, row)?.unwrap_or_default();
        let folded = json.to_lowercase();
        // A quick look first: the text may still be of ours, a name of a field.
        if !missing
            .iter()
            .all(|needle| folded.contains(&needle.escaped))
        {
            return Ok(false);
        }
        let details: CallDetails = serde_json::from_str(&json).unwrap_or_default();
        Ok(missing.iter().all(|needle| needle.is_in_details(&details)))
    }
}

/// Everything but the texts.
impl Filter {
    /// Whether a call is meant, as far as a list shows it: texts are looked for by [`Filter::has_texts`].
    pub fn means(&self, call: &CallSummary) -> bool {
        self.since_ms.is_none_or(|since| call.started_ms >= since)
            && self.until_ms.is_none_or(|until| call.started_ms < until)
            && means(self, call)
    }

    /// Whether every text that is asked for occurs in the call.
    pub fn has_texts(&self, record: &CallRecord) -> bool {
        let call = &record.call;
        let message = call.message.as_deref().unwrap_or_default();
        let mut needles = self.text.iter().map(|text| Needle::new(text));
        needles.all(|needle| {
            needle.is_in(&call.id)
                || needle.is_in(&call.tool)
                || needle.is_in(message)
                || needle.is_in_details(&record.details)
        })
    }
}

fn means(filter: &Filter, call: &CallSummary) -> bool {
    let fits = |pattern: &Option<String>, value: &Option<String>| match (pattern, value) {
        (None, _) => true,
        (Some(pattern), Some(value)) => wild(pattern, value),
        (Some(_), None) => false,
    };
    let is_slower = |than: f64| call.took_ms.is_some_and(|took| took > than);
    (filter.tool.is_empty() || filter.tool.iter().any(|tool| wild(tool, &call.tool)))
        && filter.means_state(call.state, call.fallback_used)
        && (filter.error.is_empty() || call.code.is_some_and(|code| filter.error.contains(&code)))
        && fits(&filter.server, &call.source)
        && fits(&filter.caller, &call.caller)
        && filter.is_by_owner(call.caller.as_deref())
        && filter.slower_ms.is_none_or(is_slower)
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
        let in_text = |text: Option<&String>| text.is_some_and(|text| self.is_in(text));
        let in_value = |value: Option<&Value>| value.is_some_and(|value| self.is_in_value(value));
        in_value(details.arguments.as_ref())
            || in_value(details.result.as_ref())
            || in_text(details.result_text.as_ref())
            || in_text(details.error.as_ref().map(|error| &error.message))
            || details
                .tries
                .iter()
                .any(|one| in_text(one.message.as_ref()))
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
