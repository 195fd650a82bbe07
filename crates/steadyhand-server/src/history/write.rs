//! One batch into the file: calls that ended, calls that run, and what they add to the trends.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::buckets::Tallies;
use super::pending::{Batch, Row};
use super::recorder;
use super::schema::{
    FLAG_FALLBACK, FLAG_REPLAYED, NO_TOOL, StoredId, code_number, effect_number, state_number,
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
        for (_, open) in &batch.running {
            let row = recorder::running(open, self.value_bytes_max);
            self.put(transaction, &row)?;
        }
        for row in &batch.ended {
            let tool = self.put(transaction, row)?;
            let Some(tool) = tool else {
                left_out += 1;
                continue;
            };
            tallies.call((tool != NO_TOOL).then_some(tool), row);
        }
        for trip in &batch.trips {
            // The source is not told; it is that of the tool's last call.
            let tool = match latest_tool(transaction, &trip.tool)? {
                Some(tool) => tool,
                None => self.tool(transaction, &trip.tool, "")?,
            };
            tallies.trip(tool, trip.at_ms);
        }
        tallies.write(transaction)?;
        Ok(left_out)
    }

    /// One call. Gives back the number of its tool; none if its place is taken.
    fn put(&mut self, transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<Option<i64>> {
        let source = row.source.as_deref().unwrap_or_default();
        let tool = match row.is_known {
            true => self.tool(transaction, &row.tool, source)?,
            false => NO_TOOL,
        };
        let caller = match &row.caller {
            Some(caller) => Some(self.caller(transaction, caller)?),
            None => None,
        };
        let mut put = transaction.prepare_cached(
            "INSERT INTO calls (row, id, tool, asked, caller, state, code, effect, took_us, deadline_ms,
                attempts, flags, replay_of, message, run)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (row) DO UPDATE SET tool = excluded.tool, asked = excluded.asked,
                state = excluded.state, code = excluded.code, effect = excluded.effect,
                took_us = excluded.took_us, deadline_ms = excluded.deadline_ms, attempts = excluded.attempts,
                flags = excluded.flags, message = excluded.message
             WHERE run = excluded.run AND id = excluded.id",
        )?;
        let flags = flag(row.fallback_used, FLAG_FALLBACK) | flag(row.replayed, FLAG_REPLAYED);
        let changed = put.execute(params![
            row.row,
            StoredId::of(&row.id),
            tool,
            (!row.is_known).then_some(&row.tool),
            caller,
            state_number(row.state),
            row.code.map(code_number),
            row.effect.map(effect_number),
            row.took_us,
            row.deadline_ms,
            row.attempts,
            flags,
            row.replay_of,
            row.message,
            self.run,
        ])?;
        if changed == 0 {
            return Ok(None);
        }
        transaction
            .prepare_cached("INSERT OR REPLACE INTO details (row, json) VALUES (?1, ?2)")?
            .execute(params![row.row, row.details])?;
        Ok(Some(tool))
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
