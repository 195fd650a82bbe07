//! How many kept keys each caller has, and may have. Nobody's keys make room for another's: each may still keep a call
//! from running twice, so a caller that has its share is refused.

use std::collections::HashMap;
use std::fmt;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::Serialize;
use steadyhand::{KeyCaller, KeyStoreError, visible};

use super::table::totals;

/// Idempotency keys that are kept; with more, calls with a new key are refused until the oldest have gone.
const KEYS_MAX: u64 = 1_000_000;
/// Outcomes of calls with a key that are kept; of older ones only the key is.
const OUTCOMES_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// One caller may have one part in so many of the keys that the others leave.
const KEYS_PER_CALLER_PART: i64 = 2;
/// One part in so many of all keys is for operators.
const KEYS_OPERATOR_PART: i64 = 16;

/// Callers that a look at the file shows.
const CALLERS_SHOWN_MAX: i64 = 5;

/// The row of those who have no name: the application itself, and whoever took the keys of earlier versions.
pub(super) const NOBODY: i64 = 0;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyLimits {
    pub(super) keys_max: i64,
    pub(super) outcomes_bytes_max: i64,
}

impl Default for KeyLimits {
    fn default() -> KeyLimits {
        KeyLimits {
            keys_max: KEYS_MAX as i64,
            outcomes_bytes_max: OUTCOMES_BYTES_MAX as i64,
        }
    }
}

/// A caller that takes a key, on its way to the thread.
#[derive(Debug)]
pub(super) struct Taker {
    name: String,
    uses_reserve: bool,
}

impl Taker {
    pub(super) fn of(caller: KeyCaller<'_>) -> Taker {
        Taker {
            name: caller.name.to_owned(),
            uses_reserve: caller.uses_reserve,
        }
    }
}

/// The row of a caller that may take one more key; made with its first. The counts in it follow the keys by themselves,
/// through triggers.
pub(super) fn row_of_next_key(
    transaction: &Transaction<'_>,
    taker: Option<&Taker>,
    limits: KeyLimits,
) -> rusqlite::Result<Result<i64, KeyStoreError>> {
    let keys_max = limits.keys_max;
    let (kept, _) = totals(transaction)?;
    let Some(taker) = taker else {
        return Ok(match kept < keys_max {
            true => Ok(NOBODY),
            false => Err(all_taken(keys_max)),
        });
    };
    let row = transaction
        .prepare_cached("SELECT id, keys FROM callers WHERE name = ?1")?
        .query_row([&taker.name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .optional()?;
    let own = row.map_or(0, |(_, keys)| keys);
    let reserve = match taker.uses_reserve {
        true => 0,
        false => keys_max / KEYS_OPERATOR_PART,
    };
    let left_by_others = (keys_max - reserve - (kept - own)).max(0);
    // Rounded up: the last one that is left is somebody's, too.
    let share = (left_by_others + KEYS_PER_CALLER_PART - 1) / KEYS_PER_CALLER_PART;
    if own >= share {
        return Ok(Err(match own {
            0 => all_taken(keys_max - reserve),
            own => share_taken(&taker.name, own, keys_max),
        }));
    }
    match row {
        Some((id, _)) => Ok(Ok(id)),
        None => transaction
            .prepare_cached(
                "INSERT INTO callers (name, keys, outcome_bytes) VALUES (?1, 0, 0) RETURNING id",
            )?
            .query_row([&taker.name], |row| row.get(0))
            .map(Ok),
    }
}

fn all_taken(keys_max: i64) -> KeyStoreError {
    KeyStoreError(format!(
        "{keys_max} keys of the last 24 hours are kept, which is as many as may be; try again when the oldest of them \
         are forgotten, or call without a key"
    ))
}

fn share_taken(name: &str, own: i64, keys_max: i64) -> KeyStoreError {
    let name = name.trim_start_matches('@');
    KeyStoreError(format!(
        "{name} has {own} kept keys, which is its share: one caller may have half of what the others leave of \
         {keys_max}. Each is kept for 24 hours. Try again when the oldest of its keys are forgotten, use fewer new \
         keys, or call without a key"
    ))
}

/// Forgets outcomes that there is no room for, and keeps their keys: the oldest of the caller that has most, and so on.
/// At most so many at a time.
pub(super) fn make_room_for_outcomes(
    transaction: &Transaction<'_>,
    limits: KeyLimits,
    count_max: i64,
) -> rusqlite::Result<()> {
    for _ in 0..count_max {
        if totals(transaction)?.1 <= limits.outcomes_bytes_max {
            return Ok(());
        }
        let most: i64 = transaction
            .prepare_cached("SELECT id FROM callers ORDER BY outcome_bytes DESC LIMIT 1")?
            .query_row([], |row| row.get(0))?;
        let oldest = transaction
            .prepare_cached(
                "SELECT id, octet_length(outcome) FROM keys INDEXED BY keys_of_caller_with_outcome
                 WHERE caller = ?1 AND outcome IS NOT NULL ORDER BY id LIMIT 1",
            )?
            .query_row([most], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()?;
        let Some((id, bytes)) = oldest else {
            return Ok(());
        };
        transaction
            .prepare_cached("UPDATE keys SET outcome = NULL, outcome_check = NULL WHERE id = ?1")?
            .execute([id])?;
        transaction
            .prepare_cached("UPDATE totals SET outcome_bytes = outcome_bytes - ?1")?
            .execute([bytes])?;
    }
    Ok(())
}

/// How many keys are kept, and who has most of them.
#[derive(Debug, Clone, Serialize)]
pub struct KeysUsage {
    kept: i64,
    kept_max: i64,
    /// At most so many, the one that has most first.
    callers: Vec<KeysOfCaller>,
}

/// One caller, as limits count callers, and its keys.
#[derive(Debug, Clone, Serialize)]
struct KeysOfCaller {
    name: String,
    keys: i64,
}

impl KeysUsage {
    pub(super) fn read(connection: &Connection, limits: KeyLimits) -> rusqlite::Result<KeysUsage> {
        let mut list = connection.prepare(
            "SELECT name, keys FROM callers WHERE name IS NOT NULL ORDER BY keys DESC, name LIMIT ?1",
        )?;
        let rows = list.query_map([CALLERS_SHOWN_MAX], |row| {
            let name: String = row.get(0)?;
            Ok(KeysOfCaller {
                name: name.trim_start_matches('@').to_owned(),
                keys: row.get(1)?,
            })
        })?;
        Ok(KeysUsage {
            kept: totals(connection)?.0,
            kept_max: limits.keys_max,
            callers: rows.collect::<rusqlite::Result<_>>()?,
        })
    }
}

impl fmt::Display for KeysUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} keys are kept", self.kept, self.kept_max)?;
        for (number, caller) in self.callers.iter().enumerate() {
            let before = if number == 0 { "; most: " } else { ", " };
            write!(f, "{before}{} {}", visible::text(&caller.name), caller.keys)?;
        }
        Ok(())
    }
}

/// Keys and bytes of outcomes of each caller, as the keys themselves tell.
#[derive(Debug, Default)]
pub(super) struct CountedCallers(HashMap<i64, (i64, i64)>);

impl CountedCallers {
    pub(super) fn add(&mut self, caller: i64, outcome_bytes: i64) {
        let (keys, bytes) = self.0.entry(caller).or_default();
        *keys += 1;
        *bytes += outcome_bytes;
    }

    /// Puts the counts right that a damage has changed. What they say keeps no call from running twice, so nobody has to
    /// decide about it.
    pub(super) fn correct(mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        self.0.entry(NOBODY).or_default();
        let mut list = transaction.prepare("SELECT id, keys, outcome_bytes FROM callers")?;
        let rows = list.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        let kept: HashMap<i64, (i64, i64)> = rows.collect::<rusqlite::Result<_>>()?;
        drop(list);
        if kept == self.0 {
            return Ok(());
        }
        tracing::warn!(
            "how many idempotency keys each caller has was not right, and is counted anew"
        );
        for (id, (keys, bytes)) in &self.0 {
            transaction
                .prepare_cached(
                    "INSERT INTO callers (id, keys, outcome_bytes) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET keys = ?2, outcome_bytes = ?3",
                )?
                .execute(params![id, keys, bytes])?;
        }
        for id in kept.keys().filter(|id| !self.0.contains_key(id)) {
            transaction
                .prepare_cached("DELETE FROM callers WHERE id = ?1")?
                .execute([id])?;
        }
        transaction.commit()
    }
}
