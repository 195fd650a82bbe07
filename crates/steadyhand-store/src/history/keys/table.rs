//! The tables of the file of keys: what a key leads to, and the one row that says which file this is.

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, ffi, params};
use sha2::{Digest, Sha256};
use steadyhand::{KeyStoreError, Taken};

use super::super::database::Kind;
use super::clock::ClockReading;
use super::shares::{self, CountedCallers, KeyLimits, Taker};

/// How long a key is known, in time that was really observed.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// How many old keys are forgotten in one step.
const FORGET_MAX: i64 = 2000;
/// The same while a call waits that there is no room for.
const FORGET_FOR_ROOM_MAX: i64 = 50;
/// Bytes of a digest that is kept to notice damage.
const CHECK_BYTES: usize = 16;

pub(crate) const KIND: Kind = Kind {
    name: "the state folder",
    application: 0x5348_4b31,
    migrations: &[
        "
    CREATE TABLE keys (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        call BLOB NOT NULL,
        at_ms INTEGER NOT NULL,
        outcome TEXT
    ) STRICT;
    CREATE INDEX keys_with_outcome ON keys (id) WHERE outcome IS NOT NULL;
    CREATE TABLE totals (keys INTEGER NOT NULL, outcome_bytes INTEGER NOT NULL) STRICT;
    INSERT INTO totals VALUES (0, 0);
    ",
        "
    CREATE INDEX keys_by_time ON keys (at_ms);
    UPDATE totals SET keys = (SELECT count(*) FROM keys),
        outcome_bytes = (SELECT ifnull(sum(octet_length(outcome)), 0) FROM keys);
    ",
        // Which file this is, time as it was observed, and digests that tell damage. Keys from before are known for
        // another day: nobody observed how old they are.
        "
    ALTER TABLE keys ADD COLUMN observed_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE keys ADD COLUMN owner BLOB;
    ALTER TABLE keys ADD COLUMN row_check BLOB;
    ALTER TABLE keys ADD COLUMN outcome_check BLOB;
    DROP INDEX keys_by_time;
    CREATE INDEX keys_by_observed_time ON keys (observed_ms);
    CREATE TABLE store (
        id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        takes INTEGER NOT NULL,
        observed_ms INTEGER NOT NULL,
        boot TEXT NOT NULL,
        up_ms INTEGER NOT NULL,
        row_check BLOB NOT NULL
    ) STRICT;
    ",
        // Whose each key is. Who took those from before is not known: they are nobody's, and hold. Triggers count, so
        // that the counts are right whichever statement takes a key or forgets one.
        "
    CREATE TABLE callers (
        id INTEGER PRIMARY KEY,
        name TEXT UNIQUE,
        keys INTEGER NOT NULL,
        outcome_bytes INTEGER NOT NULL
    ) STRICT;
    INSERT INTO callers SELECT 0, NULL, keys, outcome_bytes FROM totals;
    CREATE INDEX callers_by_outcome_bytes ON callers (outcome_bytes);
    ALTER TABLE keys ADD COLUMN caller INTEGER NOT NULL DEFAULT 0;
    DROP INDEX keys_with_outcome;
    CREATE INDEX keys_of_caller_with_outcome ON keys (caller, id) WHERE outcome IS NOT NULL;
    CREATE TRIGGER key_taken AFTER INSERT ON keys BEGIN
        UPDATE callers SET keys = keys + 1,
            outcome_bytes = outcome_bytes + ifnull(octet_length(NEW.outcome), 0)
            WHERE id = NEW.caller;
    END;
    CREATE TRIGGER key_settled AFTER UPDATE OF outcome ON keys BEGIN
        UPDATE callers SET outcome_bytes = outcome_bytes + ifnull(octet_length(NEW.outcome), 0)
            - ifnull(octet_length(OLD.outcome), 0)
            WHERE id = NEW.caller;
    END;
    CREATE TRIGGER key_forgotten AFTER DELETE ON keys BEGIN
        UPDATE callers SET keys = keys - 1,
            outcome_bytes = outcome_bytes - ifnull(octet_length(OLD.outcome), 0)
            WHERE id = OLD.caller;
        DELETE FROM callers WHERE id = OLD.caller AND id <> 0 AND keys <= 0;
    END;
    ",
    ],
};

/// The first version that says which file it is, and has a marker beside it.
pub(super) const MARKED_VERSION: usize = 3;

/// Which file this is, how many keys were ever taken, and how much time was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) id: String,
    pub(super) generation: u64,
    pub(super) takes: u64,
    /// Milliseconds that have really passed since the file was made: what a clock jumped over is not in it.
    pub(super) observed_ms: u64,
    /// The run of the machine it was last counted in, and how long that had been up.
    pub(super) boot: String,
    pub(super) up_ms: u64,
}

impl Store {
    /// The row, if there is one yet.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Store>> {
        let row = connection
            .prepare_cached(
                "SELECT id, generation, takes, observed_ms, boot, up_ms, row_check FROM store",
            )?
            .query_row([], |row| {
                let store = Store {
                    id: row.get(0)?,
                    generation: row.get::<_, i64>(1)? as u64,
                    takes: row.get::<_, i64>(2)? as u64,
                    observed_ms: row.get::<_, i64>(3)? as u64,
                    boot: row.get(4)?,
                    up_ms: row.get::<_, i64>(5)? as u64,
                };
                Ok((store, row.get::<_, Vec<u8>>(6)?))
            })
            .optional()?;
        match row {
            None => Ok(None),
            Some((store, check)) if check == store.check() => Ok(Some(store)),
            Some(_) => Err(damaged("the row that says which file this is")),
        }
    }

    /// The row as it is now, in place of the one before.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached("DELETE FROM store")?
            .execute([])?;
        connection
            .prepare_cached("INSERT INTO store VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute(params![
                self.id,
                self.generation as i64,
                self.takes as i64,
                self.observed_ms as i64,
                self.boot,
                self.up_ms as i64,
                self.check()
            ])
            .map(drop)
    }

    /// Counts the time since it was last counted. Only a clock that never jumps is asked; of the time between two runs
    /// of the machine nobody knows how long it was, so none of it counts.
    pub(super) fn observe(&mut self, now: &ClockReading) {
        if self.boot == now.boot {
            self.observed_ms += now.up_ms.saturating_sub(self.up_ms);
            self.up_ms = self.up_ms.max(now.up_ms);
        } else {
            self.boot.clone_from(&now.boot);
            self.up_ms = now.up_ms;
        }
    }

    fn knows(&self, observed_ms: i64) -> bool {
        (observed_ms as u64).saturating_add(KEPT_MS) > self.observed_ms
    }

    fn check(&self) -> Vec<u8> {
        let numbers = [self.generation, self.takes, self.observed_ms, self.up_ms];
        let mut hash = Sha256::new();
        for text in [&self.id, &self.boot] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        for number in numbers {
            hash.update(number.to_le_bytes());
        }
        hash.finalize()[..CHECK_BYTES].to_vec()
    }
}

fn row_check(key: &[u8], call: &[u8], observed_ms: i64) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(call);
    hash.update(observed_ms.to_le_bytes());
    hash.finalize()[..CHECK_BYTES].to_vec()
}

fn outcome_check(outcome: &str) -> Vec<u8> {
    Sha256::digest(outcome)[..CHECK_BYTES].to_vec()
}

/// Damage that SQLite does not see, told as SQLite tells what it sees.
fn damaged(what: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        ffi::Error {
            code: ErrorCode::DatabaseCorrupt,
            extended_code: ffi::SQLITE_CORRUPT,
        },
        Some(format!("{what} is damaged")),
    )
}

/// What is known of a key.
struct Known {
    call: Vec<u8>,
    outcome: Option<String>,
    observed_ms: i64,
    row_check: Option<Vec<u8>>,
    outcome_check: Option<Vec<u8>>,
}

/// A key that is to be taken.
pub(super) struct Take<'a> {
    pub(super) key: &'a [u8; 32],
    /// A digest of the call that is about to run.
    pub(super) call: &'a [u8; 32],
    /// Whose share it is in.
    pub(super) taker: Option<&'a Taker>,
    /// The process whose mark it is.
    pub(super) owner: &'a [u8],
    pub(super) wall_ms: u64,
}

/// Takes a key for a call that is about to run.
pub(super) fn take(
    transaction: &Transaction<'_>,
    store: &mut Store,
    limits: KeyLimits,
    take: &Take<'_>,
) -> rusqlite::Result<Result<Taken, KeyStoreError>> {
    let (key, call) = (take.key, take.call);
    let known = transaction
        .prepare_cached(
            "SELECT call, outcome, observed_ms, row_check, outcome_check FROM keys WHERE key = ?1",
        )?
        .query_row([key], |row| {
            Ok(Known {
                call: row.get(0)?,
                outcome: text_of(row.get_ref(1)?.as_bytes_or_null()?),
                observed_ms: row.get(2)?,
                row_check: row.get(3)?,
                outcome_check: row.get(4)?,
            })
        })
        .optional()?;
    if let Some(known) = known {
        if known.row_check != Some(row_check(key, &known.call, known.observed_ms)) {
            return Err(damaged("the row of a key"));
        }
        if store.knows(known.observed_ms) {
            return Ok(Ok(known.answer(call)));
        }
        remove(transaction, key)?;
    }
    let mut row = shares::row_of_next_key(transaction, take.taker, limits)?;
    if row.is_err() && forget_old_keys(transaction, store, FORGET_FOR_ROOM_MAX)? {
        row = shares::row_of_next_key(transaction, take.taker, limits)?;
    }
    let caller = match row {
        Ok(caller) => caller,
        Err(refused) => return Ok(Err(refused)),
    };
    let observed_ms = store.observed_ms as i64;
    transaction
        .prepare_cached(
            "INSERT INTO keys (key, call, at_ms, observed_ms, owner, row_check, caller)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            key,
            call,
            take.wall_ms as i64,
            observed_ms,
            take.owner,
            row_check(key, call, observed_ms),
            caller
        ])?;
    count(transaction, 1, 0)?;
    store.takes += 1;
    Ok(Ok(Taken::New))
}

/// A text that is none any more was damaged, and is as good as not there.
fn text_of(bytes: Option<&[u8]>) -> Option<String> {
    String::from_utf8(bytes?.to_vec()).ok()
}

impl Known {
    fn answer(self, call: &[u8; 32]) -> Taken {
        if self.call != call {
            return Taken::Conflict;
        }
        match self.outcome {
            // A damaged outcome is none: what ran is known, what came of it is not.
            Some(outcome)
                if self
                    .outcome_check
                    .is_none_or(|check| check == outcome_check(&outcome)) =>
            {
                Taken::Finished(outcome)
            }
            _ => Taken::Unfinished,
        }
    }
}

/// The call of a key has ended so.
pub(super) fn settle(
    transaction: &Transaction<'_>,
    limits: KeyLimits,
    key: &[u8; 32],
    outcome: &str,
) -> rusqlite::Result<()> {
    let changed = transaction
        .prepare_cached(
            "UPDATE keys SET outcome = ?2, outcome_check = ?3 WHERE key = ?1 AND outcome IS NULL",
        )?
        .execute(params![key, outcome, outcome_check(outcome)])?;
    count(transaction, 0, (changed * outcome.len()) as i64)?;
    shares::make_room_for_outcomes(transaction, limits, FORGET_MAX)
}

/// The call of a key never reached its tool. Only whoever took the key gives it back: another process may have it now.
pub(super) fn release(
    transaction: &Transaction<'_>,
    owner: &[u8],
    key: &[u8; 32],
) -> rusqlite::Result<()> {
    let gone = transaction
        .prepare_cached("DELETE FROM keys WHERE key = ?1 AND outcome IS NULL AND owner = ?2")?
        .execute(params![key, owner])?;
    count(transaction, -(gone as i64), 0)
}

fn remove(transaction: &Transaction<'_>, key: &[u8; 32]) -> rusqlite::Result<()> {
    let bytes: i64 = transaction
        .prepare_cached(
            "DELETE FROM keys WHERE key = ?1 RETURNING ifnull(octet_length(outcome), 0)",
        )?
        .query_row([key], |row| row.get(0))?;
    count(transaction, -1, -bytes)
}

/// Forgets keys too old to matter, and outcomes there is no room for: a bounded step at a time.
pub(super) fn forget_old(
    transaction: &Transaction<'_>,
    store: &Store,
    limits: KeyLimits,
) -> rusqlite::Result<()> {
    forget_old_keys(transaction, store, FORGET_MAX)?;
    shares::make_room_for_outcomes(transaction, limits, FORGET_MAX)
}

/// Forgets keys too old to matter, at most so many. Whether there was one.
fn forget_old_keys(
    transaction: &Transaction<'_>,
    store: &Store,
    count_max: i64,
) -> rusqlite::Result<bool> {
    // A row whose time is damaged may look old: it is checked before it goes.
    let mut list = transaction.prepare_cached(
        "SELECT id, ifnull(octet_length(outcome), 0), key, call, observed_ms, row_check
         FROM keys INDEXED BY keys_by_observed_time
         WHERE observed_ms <= ?1 ORDER BY observed_ms LIMIT ?2",
    )?;
    let oldest = store.observed_ms as i64 - KEPT_MS as i64;
    let rows = list.query_map([oldest, count_max], |row| {
        let check = row_check(
            &row.get::<_, Vec<u8>>(2)?,
            &row.get::<_, Vec<u8>>(3)?,
            row.get(4)?,
        );
        let is_whole = row.get::<_, Option<Vec<u8>>>(5)? == Some(check);
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, is_whole))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let is_any = !rows.is_empty();
    for (id, bytes, is_whole) in rows {
        if !is_whole {
            return Err(damaged("the row of a key"));
        }
        transaction
            .prepare_cached("DELETE FROM keys WHERE id = ?1")?
            .execute([id])?;
        count(transaction, -1, -bytes)?;
    }
    Ok(is_any)
}

/// Looks through everything: pages, indexes, rows and totals. What SQLite takes for whole may still not be what was
/// written: a changed byte inside a row is no fault to it.
pub(super) fn check_contents(connection: &Connection) -> rusqlite::Result<CountedCallers> {
    let said: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if said != "ok" {
        return Err(damaged(&format!("its structure ({said})")));
    }
    let mut list = connection.prepare(
        "SELECT key, call, observed_ms, row_check, caller, ifnull(octet_length(outcome), 0) FROM keys",
    )?;
    let mut rows = list.query([])?;
    let mut keys = 0;
    let mut callers = CountedCallers::default();
    while let Some(row) = rows.next()? {
        keys += 1;
        callers.add(row.get(4)?, row.get(5)?);
        let check = row_check(
            &row.get::<_, Vec<u8>>(0)?,
            &row.get::<_, Vec<u8>>(1)?,
            row.get(2)?,
        );
        if row.get::<_, Option<Vec<u8>>>(3)? != Some(check) {
            return Err(damaged("the row of a key"));
        }
    }
    match totals(connection)?.0 == keys {
        true => Ok(callers),
        false => Err(damaged("the count of its keys")),
    }
}

/// Gives rows of an earlier version their digests.
pub(super) fn fill_checks(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut list = transaction
        .prepare("SELECT id, key, call, observed_ms FROM keys WHERE row_check IS NULL")?;
    let mut rows = list.query([])?;
    while let Some(row) = rows.next()? {
        let check = row_check(
            &row.get::<_, Vec<u8>>(1)?,
            &row.get::<_, Vec<u8>>(2)?,
            row.get(3)?,
        );
        transaction
            .prepare_cached("UPDATE keys SET row_check = ?2 WHERE id = ?1")?
            .execute(params![row.get::<_, i64>(0)?, check])?;
    }
    Ok(())
}

/// The latest time that any row was taken at.
pub(super) fn observed_max(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT ifnull(max(observed_ms), 0) FROM keys", [], |row| {
        row.get::<_, i64>(0).map(|at| at as u64)
    })
}

pub(super) fn totals(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    connection
        .prepare_cached("SELECT keys, outcome_bytes FROM totals")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn count(transaction: &Transaction<'_>, keys: i64, outcome_bytes: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE totals SET keys = keys + ?1, outcome_bytes = outcome_bytes + ?2")?
        .execute([keys, outcome_bytes])
        .map(drop)
}
