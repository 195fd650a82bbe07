//! Totals per caller: who calls how often, and how that goes. Counted from the calls themselves, the newest first, so a
//! very busy window is counted in part, and says so.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::histogram::Histogram;
use super::pending::{ms_of, row_at};
use super::reader::text;
use super::record::CallState;
use super::schema::{FLAG_FALLBACK, state_of};
use super::trends::{Counts, Window};

/// Calls that are looked at.
const CALLS_MAX: usize = 100_000;
/// Callers that are listed, those with the most calls first.
const CALLERS_MAX: usize = 100;

/// Totals per caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CallerList)]
pub struct Callers {
    /// The tool that was called; absent for all of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How far back.
    pub window: Window,
    /// The ones with the most calls first; at most 100.
    pub callers: Vec<CallerTotals>,
    /// Calls before this moment were not counted, in milliseconds since 1970: there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from_ms: Option<u64>,
}

/// How the calls of one caller went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallerTotals {
    /// Who asked; absent for calls that came without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub counts: Counts,
    /// When the last call came in, in milliseconds since 1970.
    pub last_ms: u64,
}

#[derive(Default)]
struct Sum {
    counts: Counts,
    times: Histogram,
    last_ms: u64,
}

pub(super) fn totals(
    connection: &Connection,
    tool: Option<&str>,
    window: Window,
    now_ms: u64,
) -> rusqlite::Result<Callers> {
    let since_ms = now_ms.saturating_sub(window.bucket_ms() * window.buckets());
    let mut find = connection.prepare_cached(
        "SELECT row, caller, state, took_us - coalesce(approval_us, 0), attempts, flags FROM
             (SELECT * FROM calls WHERE row >= ?1 ORDER BY row DESC LIMIT ?2)
         WHERE ?3 IS NULL OR tool IN (SELECT id FROM tools WHERE name = ?3)",
    )?;
    let mut sums: HashMap<Option<i64>, Sum> = HashMap::new();
    let first = row_at(since_ms, 0);
    let mut rows = find.query(params![first, CALLS_MAX as i64, tool])?;
    while let Some(row) = rows.next()? {
        let state = state_of(row.get(2)?);
        let sum = sums.entry(row.get(1)?).or_default();
        sum.last_ms = sum.last_ms.max(ms_of(row.get(0)?));
        sum.add(
            state,
            row.get::<_, Option<i64>>(3)?,
            row.get::<_, i64>(4)?,
            row.get::<_, i64>(5)?,
        );
    }
    drop(rows);
    let mut name_of = connection.prepare_cached("SELECT name FROM callers WHERE id = ?1")?;
    let mut callers = Vec::new();
    let ended = sums.into_iter().filter(|(_, sum)| sum.counts.calls > 0);
    for (id, sum) in ended {
        let caller = match id {
            Some(id) => name_of.query_row([id], |row| text(row, 0))?,
            None => None,
        };
        callers.push(sum.shown(caller));
    }
    callers.sort_by(|a, b| {
        let by_calls = b.counts.calls.cmp(&a.counts.calls);
        by_calls.then_with(|| a.caller.cmp(&b.caller))
    });
    callers.truncate(CALLERS_MAX);
    Ok(Callers {
        tool: tool.map(str::to_owned),
        window,
        callers,
        counted_from_ms: counted_from(connection, first)?,
    })
}

/// Where the counting stopped, if there were more calls than are looked at.
fn counted_from(connection: &Connection, first: i64) -> rusqlite::Result<Option<u64>> {
    let mut find = connection.prepare_cached(
        "SELECT row FROM calls WHERE row >= ?1 ORDER BY row DESC LIMIT 1 OFFSET ?2",
    )?;
    let mut rows = find.query(params![first, CALLS_MAX as i64])?;
    match rows.next()? {
        Some(row) => Ok(Some(ms_of(row.get(0)?))),
        None => Ok(None),
    }
}

impl Sum {
    fn add(&mut self, state: CallState, took_us: Option<i64>, attempts: i64, flags: i64) {
        let counts = &mut self.counts;
        if state == CallState::Running {
            return;
        }
        counts.calls += 1;
        match state {
            CallState::Error => counts.errors += 1,
            CallState::Timeout => counts.timeouts += 1,
            CallState::Rejected => counts.rejected += 1,
            CallState::Cancelled => counts.cancelled += 1,
            CallState::Running | CallState::Ok | CallState::Interrupted => {}
        }
        counts.retries += attempts.saturating_sub(1).max(0) as u64;
        counts.fallbacks += u64::from(flags & FLAG_FALLBACK != 0);
        let ran = matches!(state, CallState::Ok | CallState::Error | CallState::Timeout);
        counts.ran += u64::from(ran);
        if let (true, Some(micros)) = (ran, took_us) {
            self.times.add(micros.max(0) as u64);
        }
    }

    fn shown(self, caller: Option<String>) -> CallerTotals {
        CallerTotals {
            caller,
            counts: Counts {
                p50: self.times.percentile(0.50),
                p95: self.times.percentile(0.95),
                ..self.counts
            },
            last_ms: self.last_ms,
        }
    }
}
