//! One batch into the file: calls that ended, calls that run, and what they add to the trends.

use std::collections::HashMap;

use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Transaction, TransactionBehavior, params,
};

use super::buckets::Tallies;
use super::marks;
use super::pending::{Batch, Row};
use super::recorder;
use super::schema::{
    FLAG_FALLBACK, FLAG_REPLAYED, FLAG_WAITING, NO_TOOL, StoredId, code_number, effect_number,
    state_number,
};

/// Numbers of names that have been written, so that each is looked up once.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// SQLite's number for what other processes have changed: they may have dropped a name, and used its number again.
    version: i64,
    /// By source, then by name.
    tools: HashMap<String, HashMap<String, i64>>,
    callers: HashMap<String, i64>,
}

/// Names remembered at once.
const NAMES_MAX: usize = 10_000;

/// What is written, by whom and within which limit.
pub(super) struct Writing<'a> {
    pub(super) names: &'a mut Names,
    /// This process among those that write the file.
    pub(super) run: i64,
    pub(super) value_bytes_max: usize,
}

/// Calls put in by one statement: much of its cost is its own, not theirs.
const TOGETHER: usize = 32;

/// A statement that puts in a handful of rows, and the same for one.
struct Statement<'a> {
    some: CachedStatement<'a>,
    one: CachedStatement<'a>,
}

/// Where calls go.
struct Into<'a> {
    calls: Statement<'a>,
    details: Statement<'a>,
}

impl<'a> Statement<'a> {
    /// Of three parts: what comes before the values, those of one row, and what comes after.
    fn of(
        transaction: &'a Transaction<'_>,
        [before, values, after]: [&str; 3],
    ) -> rusqlite::Result<Statement<'a>> {
        let of_rows = |rows| {
            let values = vec![values; rows].join(", ");
            transaction.prepare_cached(&format!("{before} VALUES {values} {after}"))
        };
        Ok(Statement {
            some: of_rows(TOGETHER)?,
            one: of_rows(1)?,
        })
    }

    fn of_rows(&mut self, rows: usize) -> &mut CachedStatement<'a> {
        match rows {
            TOGETHER => &mut self.some,
            _ => &mut self.one,
        }
    }
}

/// Rows in handfuls, the last few one by one.
fn handfuls(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    let (some, rest) = rows.as_chunks::<TOGETHER>();
    some.iter()
        .map(<[Row; TOGETHER]>::as_slice)
        .chain(rest.chunks(1))
}

const CALLS: [&str; 3] = [
    "INSERT INTO calls (row, id, tool, asked, caller, state, code, effect, took_us, deadline_ms,
        attempts, flags, replay_of, message, run, approval_us)",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "ON CONFLICT (row) DO UPDATE SET tool = excluded.tool, asked = excluded.asked,
        state = excluded.state, code = excluded.code, effect = excluded.effect,
        took_us = excluded.took_us, deadline_ms = excluded.deadline_ms, attempts = excluded.attempts,
        flags = excluded.flags, message = excluded.message, approval_us = excluded.approval_us
     WHERE run = excluded.run AND id = excluded.id",
];
const DETAILS: [&str; 3] = ["INSERT OR REPLACE INTO details (row, json)", "(?, ?)", ""];

impl Writing<'_> {
    /// The whole batch, or nothing of it. How many calls could not be put in: another process has their place.
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        batch: &Batch,
    ) -> rusqlite::Result<u64> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = transaction
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if self.names.version != version {
            *self.names = Names {
                version,
                ..Names::default()
            };
        }
        let result = self.write_all(&transaction, batch);
        let left_out = match result {
            Ok(left_out) => left_out,
            Err(error) => {
                // They may not be in the file after all.
                *self.names = Names::default();
                return Err(error);
            }
        };
        match transaction.commit() {
            Ok(()) => Ok(left_out),
            Err(error) => {
                *self.names = Names::default();
                Err(error)
            }
        }
    }

    fn write_all(&mut self, transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<u64> {
        let mut left_out = 0;
        let mut tallies = Tallies::default();
        let mut into = Into {
            calls: Statement::of(transaction, CALLS)?,
            details: Statement::of(transaction, DETAILS)?,
        };
        let running = batch.running.iter();
        let running: Vec<Row> = running
            .map(|(_, open)| recorder::running(open, self.value_bytes_max))
            .collect();
        for rows in handfuls(&running) {
            self.put(transaction, &mut into, rows)?;
        }
        for rows in handfuls(&batch.ended) {
            let tools = self.put(transaction, &mut into, rows)?;
            for (row, tool) in rows.iter().zip(tools) {
                match tool {
                    Some(tool) => tallies.call((tool != NO_TOOL).then_some(tool), row),
                    None => left_out += 1,
                }
            }
        }
        for trip in &batch.trips {
            // The source is not told; it is that of the tool's last call.
            let tool = match latest_tool(transaction, &trip.tool)? {
                Some(tool) => tool,
                None => self.tool(transaction, &trip.tool, "")?,
            };
            tallies.trip(tool, trip.at_ms);
        }
        marks::write(transaction, &batch.marks)?;
        tallies.write(transaction)?;
        batch.exchanges.write(transaction)?;
        Ok(left_out)
    }

    /// A handful of calls. Gives back the numbers of their tools; none where the place of a call is taken.
    fn put(
        &mut self,
        transaction: &Transaction<'_>,
        into: &mut Into<'_>,
        rows: &[Row],
    ) -> rusqlite::Result<Vec<Option<i64>>> {
        let calls = into.calls.of_rows(rows.len());
        let mut tools = Vec::with_capacity(rows.len());
        for (row, first) in rows.iter().zip((1..).step_by(16)) {
            let source = row.source.as_deref().unwrap_or_default();
            let tool = match row.is_known {
                true => self.tool(transaction, &row.tool, source)?,
                false => NO_TOOL,
            };
            let caller = match &row.caller {
                Some(caller) => Some(self.caller(transaction, caller)?),
                None => None,
            };
            let flags = flag(row.fallback_used, FLAG_FALLBACK)
                | flag(row.replayed, FLAG_REPLAYED)
                | flag(row.waiting_for_approval, FLAG_WAITING);
            calls.raw_bind_parameter(first, row.row)?;
            calls.raw_bind_parameter(first + 1, StoredId::of(&row.id))?;
            calls.raw_bind_parameter(first + 2, tool)?;
            calls.raw_bind_parameter(first + 3, (!row.is_known).then_some(&row.tool))?;
            calls.raw_bind_parameter(first + 4, caller)?;
            calls.raw_bind_parameter(first + 5, state_number(row.state))?;
            calls.raw_bind_parameter(first + 6, row.code.map(code_number))?;
            calls.raw_bind_parameter(first + 7, row.effect.map(effect_number))?;
            calls.raw_bind_parameter(first + 8, row.took_us)?;
            calls.raw_bind_parameter(first + 9, row.deadline_ms)?;
            calls.raw_bind_parameter(first + 10, row.attempts)?;
            calls.raw_bind_parameter(first + 11, flags)?;
            calls.raw_bind_parameter(first + 12, &row.replay_of)?;
            calls.raw_bind_parameter(first + 13, &row.message)?;
            calls.raw_bind_parameter(first + 14, self.run)?;
            calls.raw_bind_parameter(first + 15, row.approval_us)?;
            tools.push(Some(tool));
        }
        if calls.raw_execute()? == rows.len() {
            put_details(&mut into.details, rows)?;
            return Ok(tools);
        }
        for (row, tool) in rows.iter().zip(&mut tools) {
            match self.is_ours(transaction, row)? {
                true => put_details(&mut into.details, std::slice::from_ref(row))?,
                false => *tool = None,
            }
        }
        Ok(tools)
    }

    /// Whether it is this call that has the place.
    fn is_ours(&self, transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<bool> {
        transaction
            .prepare_cached("SELECT 1 FROM calls WHERE row = ?1 AND run = ?2 AND id = ?3")?
            .exists(params![row.row, self.run, StoredId::of(&row.id)])
    }

    fn tool(
        &mut self,
        transaction: &Transaction<'_>,
        name: &str,
        source: &str,
    ) -> rusqlite::Result<i64> {
        let known = self.names.tools.get(source).and_then(|of| of.get(name));
        if let Some(number) = known {
            return Ok(*number);
        }
        // RETURNING gives nothing back where nothing is changed.
        let number = transaction
            .prepare_cached(
                "INSERT INTO tools (name, source) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET name = excluded.name RETURNING id",
            )?
            .query_row([name, source], |row| row.get(0))?;
        if self.names.tools.len() >= NAMES_MAX {
            self.names.tools.clear();
        }
        let of = self.names.tools.entry(source.to_owned()).or_default();
        remember(of, name.to_owned(), number);
        Ok(number)
    }

    fn caller(&mut self, transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<i64> {
        if let Some(number) = self.names.callers.get(name) {
            return Ok(*number);
        }
        let number = transaction
            .prepare_cached(
                "INSERT INTO callers (name) VALUES (?1)
                 ON CONFLICT DO UPDATE SET name = excluded.name RETURNING id",
            )?
            .query_row([name], |row| row.get(0))?;
        remember(&mut self.names.callers, name.to_owned(), number);
        Ok(number)
    }
}

fn put_details(details: &mut Statement<'_>, rows: &[Row]) -> rusqlite::Result<()> {
    let details = details.of_rows(rows.len());
    for (row, first) in rows.iter().zip((1..).step_by(2)) {
        details.raw_bind_parameter(first, row.row)?;
        details.raw_bind_parameter(first + 1, &row.details)?;
    }
    details.raw_execute().map(drop)
}

fn latest_tool(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<Option<i64>> {
    transaction
        .prepare_cached("SELECT max(id) FROM tools WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

fn remember(names: &mut HashMap<String, i64>, name: String, number: i64) {
    if names.len() >= NAMES_MAX {
        names.clear();
    }
    names.insert(name, number);
}

fn flag(is_set: bool, flag: i64) -> i64 {
    if is_set { flag } else { 0 }
}
