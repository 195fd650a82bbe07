//! All tools side by side over the last hour: one pass over the buckets, for lists of tools.

use std::collections::HashMap;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::buckets::{ALL_TOOLS, Tally, read};
use super::reader::text;
use super::trends::{Counts, Window};

/// Tools that are looked at.
const TOOLS_MAX: usize = 2000;
const RECENT_MINUTES: u64 = 5;

/// All tools side by side over the last hour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Fleet {
    /// All tools together, the last five minutes.
    pub recent: Counts,
    /// Each tool that was called.
    pub tools: HashMap<String, ToolHour>,
}

/// How one tool fared in the last hour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct ToolHour {
    /// The hour.
    pub total: Counts,
    /// The hour before it.
    pub previous: Counts,
    /// The last five minutes.
    pub recent: Counts,
    /// Calls by minute, the oldest first.
    pub calls: Vec<u64>,
}

#[derive(Default)]
struct Sum {
    total: Tally,
    previous: Tally,
    recent: Tally,
    calls: Vec<u64>,
}

pub(super) fn fleet(connection: &Connection, now_ms: u64) -> rusqlite::Result<Fleet> {
    let window = Window::Hour;
    let (width, buckets) = (window.bucket_ms(), window.buckets());
    let last = window.bucket_of(now_ms);
    let first = last.saturating_sub((buckets - 1) * width);
    let before = first.saturating_sub(buckets * width);
    let recently = last.saturating_sub(RECENT_MINUTES * width);
    let mut find = connection.prepare_cached(
        "SELECT start, calls, errors, timeouts, rejected, cancelled, retries, fallbacks, trips, times
         FROM buckets WHERE width = ?1 AND tool = ?2 AND start BETWEEN ?3 AND ?4",
    )?;
    let mut fleet = Fleet::default();
    let mut sums: HashMap<String, Sum> = HashMap::new();
    let mut recent = Tally::default();
    let mut rows = find.query([width as i64, ALL_TOOLS, recently as i64, last as i64])?;
    while let Some(row) = rows.next()? {
        recent.merge(&read(row, 1)?);
    }
    drop(rows);
    fleet.recent = recent.shown();
    // A tool that moved to another source has several numbers.
    let mut list = connection.prepare_cached("SELECT id, name FROM tools LIMIT ?1")?;
    let mut tools = list.query([TOOLS_MAX as i64])?;
    while let Some(tool) = tools.next()? {
        let id: i64 = tool.get(0)?;
        let mut rows = find.query([width as i64, id, before as i64, last as i64])?;
        while let Some(row) = rows.next()? {
            let (start, tally) = (row.get::<_, i64>(0)? as u64, read(row, 1)?);
            let sum = sums.entry(text(tool, 1)?.unwrap_or_default()).or_default();
            sum.calls.resize(buckets as usize, 0);
            if start < first {
                sum.previous.merge(&tally);
                continue;
            }
            if start >= recently {
                sum.recent.merge(&tally);
            }
            if let Some(calls) = sum.calls.get_mut(((start - first) / width) as usize) {
                *calls += tally.counts.calls;
            }
            sum.total.merge(&tally);
        }
    }
    let hours = sums.into_iter().map(|(name, sum)| {
        let hour = ToolHour {
            total: sum.total.shown(),
            previous: sum.previous.shown(),
            recent: sum.recent.shown(),
            calls: sum.calls,
        };
        (name, hour)
    });
    fleet.tools = hours.collect();
    Ok(fleet)
}
