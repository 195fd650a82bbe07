//! Keeps the file within its age and its size, and tells the calls of processes that are gone. A bounded step at a time.

use rusqlite::{Connection, TransactionBehavior, params};
use steadyhand::Effect;

use super::exchange;
use super::pending::row_at;
use super::record::CallState;
use super::schema::{FLAG_WAITING, effect_number, state_number};

/// A process that has not been heard of for so long is gone.
const SILENT_MS: u64 = 60_000;
/// Pages given back to the disk in one step.
const PAGES_MAX: i64 = 512;
/// Tools without calls are looked for when there are more than this, and this many are dropped at once.
const TOOLS_MAX: i64 = 1000;
/// Calls that are to come in so much later than now were written by a wrong clock.
const AHEAD_MS: u64 = 24 * 60 * 60 * 1000;

const CUT_OFF: &str = "the process ended before the call did; it may have run";
/// An approval is in the file before its tool is started.
const NOT_APPROVED: &str =
    "the process ended while the call waited for an approval; it was not run";

/// How long and how much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) keep_ms: u64,
    pub(super) bytes_max: u64,
}

impl Limits {
    /// What the log beside the file may take.
    pub(super) fn log_bytes(&self) -> u64 {
        (self.bytes_max / 16).clamp(128 * 1024, 8 * 1024 * 1024)
    }

    /// What is left for the file. The log is cut back only now and then.
    fn file_bytes(&self) -> u64 {
        self.bytes_max.saturating_sub(2 * self.log_bytes())
    }
}

/// What forgetting has led to.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    /// There may be more to forget.
    pub(super) is_more: bool,
    /// Names went with the last calls that had them.
    pub(super) names: bool,
}

/// Forgets at most `rows_max` calls, if they are too old or the file is too large.
pub(super) fn forget(
    connection: &mut Connection,
    limits: Limits,
    now_ms: u64,
    rows_max: usize,
) -> rusqlite::Result<Forgotten> {
    let bytes_max = limits.file_bytes() as i64;
    let rows = match Size::of(connection)?.used() > bytes_max {
        true => too_many(connection, now_ms, rows_max)?,
        false => too_old(connection, now_ms.saturating_sub(limits.keep_ms), rows_max)?,
    };
    let mut forgotten = Forgotten::default();
    if let Some((first, last)) = rows {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let callers = callers_of(&transaction, first, last)?;
        let gone = transaction
            .prepare_cached("DELETE FROM calls WHERE row BETWEEN ?1 AND ?2")?
            .execute([first, last])?;
        transaction
            .prepare_cached("DELETE FROM details WHERE row BETWEEN ?1 AND ?2")?
            .execute([first, last])?;
        for caller in callers {
            forgotten.names |= forget_caller(&transaction, caller)?;
        }
        transaction.commit()?;
        forgotten.is_more = gone >= rows_max;
    }
    let size = Size::of(connection)?;
    if size.pages * size.page_bytes > bytes_max && size.free > 0 {
        give_back(connection)?;
    }
    Ok(forgotten)
}

/// Exchanges with providers that are too old, too many, or take room that calls need.
pub(super) fn forget_exchanges(
    connection: &Connection,
    limits: Limits,
    now_ms: u64,
) -> rusqlite::Result<()> {
    let is_full = Size::of(connection)?.used() > limits.file_bytes() as i64;
    exchange::forget(connection, now_ms.saturating_sub(limits.keep_ms), is_full)
}

/// The oldest calls that came in before a moment: the first and the last row.
fn too_old(
    connection: &Connection,
    before_ms: u64,
    rows_max: usize,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let last: Option<i64> = connection
        .prepare_cached(
            "SELECT max(row) FROM (SELECT row FROM calls WHERE row < ?1 ORDER BY row LIMIT ?2)",
        )?
        .query_row([row_at(before_ms, 0), rows_max as i64], |row| row.get(0))?;
    Ok(last.map(|last| (0, last)))
}

/// Calls there is no room for: the first and the last row. Of all there are it is at most half: a look at the size
/// later shows whether more must go, and the newest stay.
fn too_many(
    connection: &Connection,
    now_ms: u64,
    rows_max: usize,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let there: i64 = connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM calls LIMIT ?1)")?
        .query_row([2 * rows_max as i64], |row| row.get(0))?;
    let count = (there / 2).max(1);
    // First those of a clock that was wrong: they would stay for ever, and what happens now would make room for them.
    let ahead: Option<i64> = connection
        .prepare_cached(
            "SELECT min(row) FROM (SELECT row FROM calls WHERE row >= ?1 ORDER BY row DESC LIMIT ?2)",
        )?
        .query_row([row_at(now_ms + AHEAD_MS, 0), count], |row| row.get(0))?;
    if let Some(first) = ahead {
        return Ok(Some((first, i64::MAX)));
    }
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(row) FROM (SELECT row FROM calls ORDER BY row LIMIT ?1)")?
        .query_row([count], |row| row.get(0))?;
    Ok(last.map(|last| (0, last)))
}

fn callers_of(connection: &Connection, first: i64, last: i64) -> rusqlite::Result<Vec<i64>> {
    let mut list = connection.prepare_cached(
        "SELECT DISTINCT caller FROM calls NOT INDEXED
         WHERE row BETWEEN ?1 AND ?2 AND caller IS NOT NULL",
    )?;
    let callers = list.query_map([first, last], |row| row.get(0))?;
    callers.collect()
}

/// A caller that no call has any more. Whether it is one.
fn forget_caller(connection: &Connection, caller: i64) -> rusqlite::Result<bool> {
    let gone = connection
        .prepare_cached(
            "DELETE FROM callers WHERE id = ?1 AND NOT EXISTS
                (SELECT 1 FROM calls WHERE caller = ?1)",
        )?
        .execute([caller])?;
    Ok(gone > 0)
}

/// Pages nobody uses go back to the disk.
fn give_back(connection: &Connection) -> rusqlite::Result<()> {
    let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES_MAX})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

struct Size {
    pages: i64,
    free: i64,
    page_bytes: i64,
}

impl Size {
    fn of(connection: &Connection) -> rusqlite::Result<Size> {
        let ask = |sql: &str| {
            connection
                .prepare_cached(sql)?
                .query_row([], |row| row.get::<_, i64>(0))
        };
        Ok(Size {
            pages: ask("PRAGMA page_count")?,
            free: ask("PRAGMA freelist_count")?,
            page_bytes: ask("PRAGMA page_size")?,
        })
    }

    fn used(&self) -> i64 {
        (self.pages - self.free) * self.page_bytes
    }
}

/// This process is there.
pub(super) fn sign_of_life(connection: &Connection, run: i64, now_ms: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO runs (id, pid, seen_ms) VALUES (?1, ?2, ?3)")?
        .execute(params![run, std::process::id(), now_ms as i64])?;
    Ok(())
}

/// Calls that ran in processes that are gone: nobody will ever tell their end. How many.
pub(super) fn tell_interrupted(
    connection: &mut Connection,
    run: i64,
    now_ms: u64,
) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let others: Vec<(i64, u32, i64)> = {
        let mut list =
            transaction.prepare_cached("SELECT id, pid, seen_ms FROM runs WHERE id <> ?1")?;
        let rows = list.query_map([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let is_gone = |pid: u32, seen_ms: i64| {
        (seen_ms as u64).saturating_add(SILENT_MS) < now_ms || !is_alive(pid)
    };
    let mut told = 0;
    for (id, pid, seen_ms) in others {
        if !is_gone(pid, seen_ms) {
            continue;
        }
        for (waited, effect, message) in [
            (FLAG_WAITING, Effect::None, NOT_APPROVED),
            (0, Effect::Unknown, CUT_OFF),
        ] {
            told += transaction
                .prepare_cached(
                    "UPDATE calls SET state = ?1, effect = ?2, message = ?3, flags = flags & ~?5
                     WHERE state = 0 AND run = ?4 AND flags & ?5 = ?6",
                )?
                .execute(params![
                    state_number(CallState::Interrupted),
                    effect_number(effect),
                    message,
                    id,
                    FLAG_WAITING,
                    waited
                ])?;
        }
        transaction
            .prepare_cached("DELETE FROM runs WHERE id = ?1")?
            .execute([id])?;
    }
    transaction.commit()?;
    Ok(told)
}

/// Tools that neither a call nor a trend has any more. Whether some were dropped.
pub(super) fn forget_tools(connection: &Connection) -> rusqlite::Result<bool> {
    let there =
        connection.query_row("SELECT count(*) FROM tools", [], |row| row.get::<_, i64>(0))?;
    if there <= TOOLS_MAX {
        return Ok(false);
    }
    let dropped = connection.execute(
        "DELETE FROM tools WHERE id IN (SELECT id FROM tools WHERE NOT EXISTS
            (SELECT 1 FROM calls WHERE tool = tools.id) AND NOT EXISTS
            (SELECT 1 FROM buckets WHERE width = 7200000 AND tool = tools.id) LIMIT ?1)",
        [TOOLS_MAX],
    )?;
    Ok(dropped > 0)
}

/// Whether a process of this number runs, other than this one: a container gives every first process the same.
#[cfg(unix)]
pub fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid.filter(|pid| pid.as_raw_nonzero().get() as u32 != std::process::id())
    else {
        return false;
    };
    match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    }
}

/// Only time tells.
#[cfg(not(unix))]
pub fn is_alive(pid: u32) -> bool {
    pid != std::process::id()
}
