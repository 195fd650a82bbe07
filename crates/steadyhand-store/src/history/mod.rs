//! The history of calls: an SQLite file, written off the path of calls by a bounded queue.
//!
//! Losing the file or filling the disk degrades history, says so ([`History::health`]), and never touches calls.

mod buckets;
mod callers;
mod candidates;
mod database;
mod details;
mod exchange;
mod filter;
mod fleet;
mod health;
pub mod histogram;
pub mod inspect;
mod keys;
mod maintenance;
mod marks;
mod meant;
#[cfg(test)]
mod one_row;
mod page;
mod pending;
mod reader;
mod record;
mod recorder;
mod schema;
pub mod schemas;
mod search;
mod shared;
mod stages;
mod trends;
mod words;
mod write;
mod writer;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use steadyhand::{ObserverQueue, ToolExecutor};

use reader::Reader;
use shared::Shared;
use writer::Writer;

pub use callers::{CallerTotals, Callers};
pub use exchange::{Exchange, ExchangeFailure, Finding, LISTED_MAX, Refusal};
pub use filter::{Filter, FilterError, StateWord};
pub use fleet::{Fleet, ToolHour};
pub use health::{Health, HealthState, HistoryError};
pub use keys::{ACCEPT_COMMAND, KeysUsage};
pub use keys::{Accepted, Clock, ClockReading, KeptKeys, KeysOptions};
pub use maintenance::is_alive;
pub use marks::{Mark, MarkKind};
pub use page::{Cursor, Page};
pub use record::{
    ApprovalWait, CallDetails, CallRecord, CallState, CallSummary, Stage, StageKind, Try,
};
pub use recorder::Recorder;
pub use recorder::state_of as state_of_outcome;
pub use trends::{Bucket, Counts, Spread, Trends, Window};

/// Events of calls that may wait for the recorder: about three a call, and thousands of calls may come at once.
const EVENTS_MAX: usize = 32 * 1024;
/// How long the recorder may be left alone: nothing is written sooner than the writer's own batches.
const GATHER: Duration = Duration::from_millis(10);
/// Calls of one page.
const PAGE_MAX: usize = 1000;
const EXPORT_PAGE: usize = 200;
/// How long a reader waits for calls that are about to be written.
const SETTLE: Duration = Duration::from_millis(10);
/// The same for one call that is asked for by name.
const SETTLE_ONE: Duration = Duration::from_millis(500);

/// How long a call that was approved waits for that to be written down.
const WRITTEN_DOWN_MAX: Duration = Duration::from_secs(1);

/// What a history is opened with.
#[derive(Debug, Clone)]
pub struct HistoryOptions {
    /// The database file. Its folder is made if it is not there.
    pub path: PathBuf,
    /// How long calls are kept.
    pub keep: Duration,
    /// How large the file may grow.
    pub max_bytes: u64,
    /// Calls that may wait to be written; the next ones are dropped, and counted.
    pub queue_max: usize,
    /// What is kept of one call's arguments, and of its result, in bytes of JSON.
    pub value_bytes_max: usize,
    /// How long one search may take before it says how far it got.
    pub search_max: Duration,
}

impl HistoryOptions {
    /// A week, 512 MiB.
    pub fn new(path: impl Into<PathBuf>) -> HistoryOptions {
        HistoryOptions {
            path: path.into(),
            keep: Duration::from_secs(7 * 24 * 60 * 60),
            max_bytes: 512 * 1024 * 1024,
            queue_max: 8192,
            value_bytes_max: 16 * 1024,
            search_max: Duration::from_millis(25),
        }
    }
}

/// The history of calls. Cheap to clone: clones are the same history. Its methods block for as long as a
/// database may: call them where that is no harm.
#[derive(Clone)]
pub struct History {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    reader: Reader,
}

/// The last one out lets the writer finish and end.
impl Drop for Inner {
    fn drop(&mut self) {
        // The last to close the file takes its log away, unless that is a reader.
        self.reader.close();
        self.shared.stop();
    }
}

impl History {
    /// Opens the file, or makes one. Never fails: a history that cannot write says so, and tries again.
    pub fn open(options: HistoryOptions) -> History {
        let shared = Arc::new(Shared::new(options));
        if let Err(error) = Writer::start(Arc::clone(&shared)) {
            shared.degrade(format!("there is no thread to write it: {error}"));
        }
        let reader = Reader::new(Arc::clone(&shared));
        History {
            inner: Arc::new(Inner { shared, reader }),
        }
    }

    /// What an executor is observed with. [`History::attach`] does it, and knows what the executor could not tell.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(Arc::clone(&self.inner.shared))
    }

    /// Writes down the calls of this executor from now on.
    pub fn attach(&self, executor: &ToolExecutor) -> std::io::Result<()> {
        let queue = ObserverQueue {
            events_max: EVENTS_MAX,
            gather: GATHER,
        };
        let watch = executor.observe_with_queue(self.recorder(), queue)?;
        self.inner.shared.watched_by(watch);
        Ok(())
    }

    /// How history itself fares. Never blocks.
    pub fn health(&self) -> Health {
        self.inner.shared.health()
    }

    /// A page of calls, the newest first, at most 1000. Its work is bounded: a search for something rare may stop
    /// early and say where.
    pub fn page(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, HistoryError> {
        self.catch_up(SETTLE);
        let limit = limit.clamp(1, PAGE_MAX);
        let within = self.inner.shared.options.search_max;
        let reader = &self.inner.reader;
        reader.read(|connection| search::page(connection, filter, from, limit, within))
    }

    /// Everything about one call: by its id, the newest where several share it, or by its key.
    pub fn call(&self, id: &str) -> Result<Option<CallRecord>, HistoryError> {
        self.call_of(id, None)
    }

    /// The same among the calls of one owner; those of others are as good as not there.
    pub fn call_of(
        &self,
        id: &str,
        owner: Option<&str>,
    ) -> Result<Option<CallRecord>, HistoryError> {
        match self.inner.reader.call(id, owner) {
            Ok(Some(found)) if found.call.state != CallState::Running => Ok(Some(found)),
            // It may have ended a moment ago.
            _ => {
                self.catch_up(SETTLE_ONE);
                self.inner.reader.call(id, owner)
            }
        }
    }

    /// The call that a person means: by its id or key, by the beginning of an id that no other call has, or the newest
    /// by the word `last`.
    pub fn find(
        &self,
        word: &str,
        owner: Option<&str>,
    ) -> Result<Option<CallRecord>, HistoryError> {
        match self.call_of(word, owner)? {
            Some(found) => Ok(Some(found)),
            None => self.inner.reader.meant(word, owner),
        }
    }

    /// Writes down an exchange with a provider. Never blocks; when history is behind, it is dropped and counted.
    pub fn note(&self, exchange: &Exchange) {
        let mut is_taken = false;
        let shared = &self.inner.shared;
        shared.add(|pending| is_taken = pending.exchange(exchange));
        if !is_taken {
            shared
                .dropped
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// A page of exchanges with providers, the newest first, at most 1000; those before `before`, a record's key.
    pub fn exchanges(
        &self,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Exchange>, HistoryError> {
        self.catch_up(SETTLE_ONE);
        let limit = limit.clamp(1, PAGE_MAX);
        let reader = &self.inner.reader;
        reader.read(|connection| exchange::page(connection, before, limit))
    }

    /// How a tool, or all of them, fared lately.
    pub fn trends(&self, tool: Option<&str>, window: Window) -> Result<Trends, HistoryError> {
        self.catch_up(SETTLE);
        self.inner.reader.trends(tool, window)
    }

    /// Who called a tool, or all of them, how often, and how that went.
    pub fn callers(&self, tool: Option<&str>, window: Window) -> Result<Callers, HistoryError> {
        self.catch_up(SETTLE);
        let now_ms = steadyhand::clock::wall_ms();
        let reader = &self.inner.reader;
        reader.read(|connection| callers::totals(connection, tool, window, now_ms))
    }

    /// How all tools fared in the last hour, side by side.
    pub fn fleet(&self) -> Result<Fleet, HistoryError> {
        self.catch_up(SETTLE);
        self.inner.reader.fleet()
    }

    /// Writes down that something changed, for the axes of charts.
    pub fn mark(&self, mark: Mark) {
        self.inner.shared.add(|pending| pending.mark(mark));
    }

    /// What changed since a moment, the oldest first; at most 100.
    pub fn marks(&self, since_ms: u64) -> Result<Vec<Mark>, HistoryError> {
        let reader = &self.inner.reader;
        reader.read(|connection| marks::read(connection, since_ms, None))
    }

    /// Writes every call that is meant, one JSON record a line, the newest first. Gives back how many.
    pub fn export(&self, filter: &Filter, to: &mut dyn Write) -> Result<u64, HistoryError> {
        self.catch_up(SETTLE_ONE);
        let within = self.inner.shared.options.search_max;
        let mut count = 0;
        let mut from = None;
        loop {
            let reader = &self.inner.reader;
            // A page at a time: a reader that holds on to the file for long lets its log grow.
            let (records, next) = reader.read(|connection| {
                let page = search::page(connection, filter, from, EXPORT_PAGE, within)?;
                let rows = page
                    .calls
                    .iter()
                    .filter_map(|call| reader::row_of(&call.key));
                let records = rows.map(|row| reader::record(connection, row));
                let records: Vec<_> = records.collect::<rusqlite::Result<_>>()?;
                Ok((records, page.next))
            })?;
            for record in records.into_iter().flatten() {
                let written = serde_json::to_writer(&mut *to, &record).map_err(io::Error::from);
                written
                    .and_then(|()| to.write_all(b"\n"))
                    .map_err(|error| HistoryError::Export(error.to_string()))?;
                count += 1;
            }
            if next.is_none() {
                return Ok(count);
            }
            from = next;
        }
    }

    /// Waits until everything that has happened so far is written, for at most so long. Whether it is.
    pub fn flush(&self, limit: Duration) -> bool {
        self.inner.shared.flush(limit)
    }

    /// The same where nobody may block: what has happened so far is written, or that took too long.
    pub fn written_down(&self) -> BoxFuture<'static, ()> {
        let history = self.clone();
        Box::pin(async move {
            let flushing = tokio::task::spawn_blocking(move || history.flush(WRITTEN_DOWN_MAX));
            if !flushing.await.unwrap_or(false) {
                tracing::warn!(
                    "an approval is not in the history yet: it cannot be written in time"
                );
            }
        })
    }

    /// Readers see what has just happened, unless the writer is busy or cannot write.
    fn catch_up(&self, limit: Duration) {
        let shared = &self.inner.shared;
        let is_opened = shared.pending().is_opened;
        if shared.reason().is_none() {
            shared.flush(if is_opened { limit } else { SETTLE_ONE });
        }
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "History({})", self.inner.shared.options.path.display())
    }
}
