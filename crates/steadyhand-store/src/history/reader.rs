//! Reads the file: one call, its trends, and connections that are kept for the next reader.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};
use steadyhand::clock;
use steadyhand::wildcard::wild;

use super::buckets;
use super::database::{Database, Trouble};
use super::fleet::{self, Fleet};
use super::health::HistoryError;
use super::pending::ms_of;
use super::record::{CallDetails, CallRecord, CallSummary};
use super::schema::{
    FLAG_FALLBACK, FLAG_REPLAYED, FLAG_WAITING, KIND, NO_TOOL, StoredId, code_of, effect_of,
    read_id, state_of,
};
use super::shared::Shared;
use super::trends::{Trends, Window};
use steadyhand_config::role::owner_of;

/// Connections kept for the next reader.
const KEPT_MAX: usize = 2;

/// What a list shows of a call; in the order of [`summary`].
pub(super) const SUMMARY: &str = "SELECT c.row, c.id, c.asked, t.name, t.source, u.name, c.state, c.took_us, c.deadline_ms, c.attempts, \
     c.code, c.effect, c.message, c.flags, c.replay_of, c.approval_us \
     FROM calls c LEFT JOIN tools t ON t.id = c.tool LEFT JOIN callers u ON u.id = c.caller";

/// Reads the file, with connections of its own.
pub(super) struct Reader {
    shared: Arc<Shared>,
    kept: Mutex<Vec<(u64, Connection)>>,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader {
            shared,
            kept: Mutex::default(),
        }
    }

    /// Reads something. A connection whose file is another one by now is not used.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let number = self.shared.file_number.load(Ordering::Relaxed);
        let kept = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|(of, _)| *of == number);
            kept.pop()
        };
        let path = &self.shared.options.path;
        let connection = match kept {
            Some((_, connection)) => connection,
            None => self.open(path).map_err(|trouble| self.fault(trouble))?,
        };
        let result = read(&connection).map_err(|error| self.fault(Trouble::of(&error, path)))?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push((number, connection));
        }
        Ok(result)
    }

    /// Closes what is kept.
    pub(super) fn close(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear();
    }

    fn open(&self, path: &Path) -> Result<Connection, Trouble> {
        match self.shared.is_written_to(path) {
            true => Database::open_to_read(path, &KIND),
            false => Err(Trouble::Gone(format!(
                "{} was moved, deleted or replaced, and is opened again; ask again",
                path.display()
            ))),
        }
    }

    fn fault(&self, trouble: Trouble) -> HistoryError {
        if let Trouble::Broken(_) = trouble {
            self.shared.suspect();
        }
        // Why it cannot be written tells more than that it cannot be read.
        let reason = self.shared.reason();
        HistoryError::Unavailable(reason.unwrap_or_else(|| trouble.text().to_owned()))
    }

    /// With an owner, only a call of that one: those of others are as good as not there.
    pub(super) fn call(
        &self,
        id: &str,
        owner: Option<&str>,
    ) -> Result<Option<CallRecord>, HistoryError> {
        self.read(|connection| {
            let by_id = match owner {
                None => connection
                    .prepare_cached("SELECT max(row) FROM calls WHERE id = ?1")?
                    .query_row([StoredId::of(id)], |row| row.get::<_, Option<i64>>(0))?,
                Some(owner) => connection
                    .prepare_cached(
                        "SELECT max(c.row) FROM calls c JOIN callers u ON u.id = c.caller
                         WHERE c.id = ?1 AND (u.name = ?2 OR substr(u.name, 1, length(?3)) = ?3)",
                    )?
                    .query_row(
                        params![StoredId::of(id), owner, format!("{owner}/")],
                        |row| row.get::<_, Option<i64>>(0),
                    )?,
            };
            let Some(row) = by_id.or_else(|| row_of(id)) else {
                return Ok(None);
            };
            let found = record(connection, row)?;
            Ok(found.filter(|found| {
                let caller = found.call.caller.as_deref();
                owner.is_none_or(|owner| caller.is_some_and(|caller| owner_of(caller) == owner))
            }))
        })
    }

    pub(super) fn trends(
        &self,
        tool: Option<&str>,
        window: Window,
    ) -> Result<Trends, HistoryError> {
        self.read(|connection| buckets::trends(connection, tool, window, clock::wall_ms()))
    }

    pub(super) fn fleet(&self) -> Result<Fleet, HistoryError> {
        self.read(|connection| fleet::fleet(connection, clock::wall_ms()))
    }
}

/// The whole record of a row.
pub(super) fn record(connection: &Connection, row: i64) -> rusqlite::Result<Option<CallRecord>> {
    let mut find = connection.prepare_cached(&format!("{SUMMARY} WHERE c.row = ?1"))?;
    let Some(call) = find.query_row([row], summary).optional()? else {
        return Ok(None);
    };
    let details = details(connection, row)?;
    Ok(Some(CallRecord {
        call,
        details: details
            .and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_else(CallDetails::default),
    }))
}

/// What is kept of a row besides what a list shows, as it is in the file.
pub(super) fn details(connection: &Connection, row: i64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT json FROM details WHERE row = ?1")?
        .query_row([row], |row| text(row, 0))
        .optional()
        .map(Option::flatten)
}

/// A row of [`SUMMARY`].
pub(super) fn summary(row: &SqlRow<'_>) -> rusqlite::Result<CallSummary> {
    let number: i64 = row.get(0)?;
    let (asked, tool) = (text(row, 2)?, text(row, 3)?);
    let source = text(row, 4)?;
    let flags: i64 = row.get(13)?;
    Ok(CallSummary {
        key: key_of(number),
        id: read_id(row.get_ref(1)?),
        tool: asked.or(tool).unwrap_or_default(),
        source: source.filter(|source| !source.is_empty()),
        caller: text(row, 5)?,
        started_ms: ms_of(number),
        state: state_of(row.get(6)?),
        took_ms: row
            .get::<_, Option<i64>>(7)?
            .map(|micros| micros as f64 / 1e3),
        approval_ms: row
            .get::<_, Option<i64>>(15)?
            .map(|micros| micros as f64 / 1e3),
        waiting_for_approval: flags & FLAG_WAITING != 0,
        deadline_ms: row.get(8)?,
        attempts: row.get::<_, i64>(9)?.clamp(0, u32::MAX.into()) as u32,
        code: row.get::<_, Option<i64>>(10)?.and_then(code_of),
        effect: row.get::<_, Option<i64>>(11)?.map(effect_of),
        message: text(row, 12)?,
        fallback_used: flags & FLAG_FALLBACK != 0,
        replayed: flags & FLAG_REPLAYED != 0,
        replay_of: text(row, 14)?,
    })
}

/// A text of the file. A broken one costs its wrong bytes, not the page: SQLite does not look at them.
pub(super) fn text(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// The name of a record: no two have the same.
pub(super) fn key_of(row: i64) -> String {
    format!("k{row:x}")
}

pub(super) fn row_of(key: &str) -> Option<i64> {
    i64::from_str_radix(key.strip_prefix('k')?, 16)
        .ok()
        .filter(|row| *row >= 0)
}

/// Names in the file that a search compares with its patterns.
pub(super) const NAMES_MAX: usize = 20_000;

/// The tools whose name and source are meant: their numbers, the one for tools that do not exist included. None if
/// there are too many to look at.
pub(super) fn tools(
    connection: &Connection,
    is_meant: impl Fn(&str, &str) -> bool,
    with_unknown: bool,
) -> rusqlite::Result<Option<Vec<i64>>> {
    let mut list = connection.prepare_cached("SELECT id, name, source FROM tools LIMIT ?1")?;
    let mut rows = list.query([NAMES_MAX as i64 + 1])?;
    let mut found = Vec::new();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let (name, source) = (text(row, 1)?, text(row, 2)?);
        if is_meant(&name.unwrap_or_default(), &source.unwrap_or_default()) {
            found.push(row.get(0)?);
        }
    }
    if with_unknown {
        found.push(NO_TOOL);
    }
    Ok((count <= NAMES_MAX).then_some(found))
}

/// The callers a pattern means: their numbers. None if there are too many to look at.
pub(super) fn callers(
    connection: &Connection,
    pattern: &str,
) -> rusqlite::Result<Option<Vec<i64>>> {
    // What stands before the first star narrows it down: callers are named by whoever calls, and may be many.
    let (first, last) = match pattern.split_once('*') {
        Some((start, _)) => (start, format!("{start}{}", char::MAX)),
        None => (pattern, pattern.to_owned()),
    };
    let mut list = connection
        .prepare_cached("SELECT id, name FROM callers WHERE name BETWEEN ?1 AND ?2 LIMIT ?3")?;
    let mut rows = list.query(params![first, last, NAMES_MAX as i64 + 1])?;
    let mut found = Vec::new();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        if wild(pattern, &text(row, 1)?.unwrap_or_default()) {
            found.push(row.get(0)?);
        }
    }
    Ok((count <= NAMES_MAX).then_some(found))
}
