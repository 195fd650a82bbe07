//! The history of calls: an SQLite file, written off the path of calls by a bounded queue.
//!
//! Losing the file or filling the disk degrades history, says so ([`History::health`]), and never touches calls.

mod filter;
mod health;
mod page;
mod record;
mod trends;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steadyhand::{Event, Observer, ToolExecutor};

pub use filter::{Filter, FilterError, StateWord};
pub use health::{Health, HealthState, HistoryError};
pub use page::{Cursor, Page};
pub use record::{CallDetails, CallRecord, CallState, CallSummary, Stage, StageKind, Try};
pub use trends::{Bucket, Counts, Trends, Window};

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
        }
    }
}

/// The history of calls. Cheap to clone: clones are the same history. Its methods block for as long as a
/// database may: call them where that is no harm.
#[derive(Clone)]
pub struct History {
    options: Arc<HistoryOptions>,
}

/// Writes down what an executor does.
pub struct Recorder {
    _history: History,
}

impl History {
    /// Opens the file, or makes one. Never fails: a history that cannot write says so, and tries again.
    pub fn open(options: HistoryOptions) -> History {
        History {
            options: Arc::new(options),
        }
    }

    /// What an executor is observed with; [`History::attach`] does it.
    pub fn recorder(&self) -> Recorder {
        Recorder {
            _history: self.clone(),
        }
    }

    /// Writes down the calls of this executor from now on.
    pub fn attach(&self, executor: &ToolExecutor) -> std::io::Result<()> {
        executor.observe(self.recorder()).map(drop)
    }

    /// How history itself fares.
    pub fn health(&self) -> Health {
        Health {
            state: HealthState::Degraded,
            reason: None,
            since_ms: 0,
            notice: None,
            path: self.options.path.display().to_string(),
            bytes: 0,
            written: 0,
            dropped: 0,
            queued: 0,
            queue_max: self.options.queue_max as u64,
        }
    }

    /// A page of calls, the newest first, at most 1000. Bounded work: a search for something rare may stop early and
    /// say where.
    pub fn page(
        &self,
        _filter: &Filter,
        _from: Option<Cursor>,
        _limit: usize,
    ) -> Result<Page, HistoryError> {
        Err(self.unavailable())
    }

    /// Everything about one call: by its key, or by its id, the newest where several share it.
    pub fn call(&self, _id: &str) -> Result<Option<CallRecord>, HistoryError> {
        Err(self.unavailable())
    }

    /// How a tool, or all of them, fared lately.
    pub fn trends(&self, _tool: Option<&str>, _window: Window) -> Result<Trends, HistoryError> {
        Err(self.unavailable())
    }

    /// Writes every call that is meant, one JSON record a line, the newest first. Gives back how many.
    pub fn export(&self, _filter: &Filter, _to: &mut dyn Write) -> Result<u64, HistoryError> {
        Err(self.unavailable())
    }

    /// Waits until everything that has happened so far is written, for at most so long. Whether it is.
    pub fn flush(&self, _limit: Duration) -> bool {
        false
    }

    fn unavailable(&self) -> HistoryError {
        HistoryError::Unavailable(format!("{} is not open", self.options.path.display()))
    }
}

impl Observer for Recorder {
    fn observe(&self, _event: &Event) {}
}
