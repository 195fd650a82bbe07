//! Asks the index: a few connections that read, each query interrupted when nobody waits for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, InterruptHandle, TransactionBehavior, params};
use tokio::sync::Semaphore;

use super::index::{Trouble, connect, trouble};
use super::words::{Words, unspaced};

/// Queries of one collection that run at once; more of them wait.
const QUERIES_MAX: usize = 4;
/// How much more a word in the title and in the headings counts than one in the text.
const BM25: &str = "bm25(passage, 4.0, 2.0, 1.0)";

/// What a query found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    /// Passages that match, those included that are not among the hits.
    pub(super) total: u64,
    pub(super) has_all_words: bool,
    pub(super) files: u64,
    pub(super) skipped: Vec<(String, u64)>,
}

/// One passage.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) root: usize,
    pub(super) relative: String,
    pub(super) title: String,
    pub(super) heading: String,
    pub(super) line: u64,
    pub(super) text: String,
    /// Higher is better.
    pub(super) score: f64,
}

/// The connections that read one index.
pub(super) struct Readers {
    path: PathBuf,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<(u64, Connection)>>>,
    /// Changes when the index was made anew: older connections are not used again.
    generation: Arc<AtomicU64>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, generation: Arc<AtomicU64>) -> Readers {
        Readers {
            path,
            places: Arc::new(Semaphore::new(QUERIES_MAX)),
            idle: Arc::default(),
            generation,
        }
    }

    /// The best passages for these words. Dropping the future stops the work.
    pub(super) async fn search(&self, words: &Words, limit: usize) -> Result<Found, Trouble> {
        let gone = || Trouble::Failed("the search is shutting down".to_owned());
        let place = Arc::clone(&self.places).acquire_owned();
        let place = place.await.map_err(|_| gone())?;
        let running = Arc::new(Running::default());
        let _stops = StopsWhenDropped(Arc::clone(&running));
        let generation = self.generation.load(Ordering::Acquire);
        let (path, idle, words) = (self.path.clone(), Arc::clone(&self.idle), words.clone());
        let job = tokio::task::spawn_blocking(move || {
            // Held by the thread: one that nobody waits for is still busy.
            let _place = place;
            let mut connection = take(&idle, generation, &path)?;
            running.begin(&connection)?;
            let found = select(&mut connection, &words, limit);
            running.end();
            let found = found.map_err(|error| trouble(&error, &path))?;
            lock(&idle).push((generation, connection));
            Ok(found)
        });
        job.await.map_err(|_| gone())?
    }
}

fn take(
    idle: &Mutex<Vec<(u64, Connection)>>,
    generation: u64,
    path: &Path,
) -> Result<Connection, Trouble> {
    let mut idle = lock(idle);
    idle.retain(|(made_for, _)| *made_for == generation);
    if let Some((_, connection)) = idle.pop() {
        return Ok(connection);
    }
    drop(idle);
    connect(path)
}

fn select(connection: &mut Connection, words: &Words, limit: usize) -> rusqlite::Result<Found> {
    // One transaction: the numbers belong to the passages.
    let snapshot = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
    let count = |query: &str| {
        snapshot
            .prepare_cached("SELECT count(*) FROM passage WHERE passage MATCH ?1")?
            .query_row([query], |row| row.get::<_, i64>(0))
    };
    let mut query = words.all();
    let mut total = count(&query)?;
    let has_all_words = total > 0;
    if (total as usize) < limit {
        // Passages with all of the words are among these, and score best.
        query = words.any();
        total = count(&query)?;
    }
    let sql = format!(
        "WITH best AS (
             SELECT rowid AS id, {BM25} AS cost FROM passage WHERE passage MATCH ?1
             ORDER BY cost, rowid LIMIT ?2
         )
         SELECT file.root, file.path, passage.title, passage.heading, passage.line, passage.text, best.cost
         FROM best JOIN passage ON passage.rowid = best.id JOIN file ON file.id = passage.file
         ORDER BY best.cost, best.id"
    );
    let mut statement = snapshot.prepare_cached(&sql)?;
    let hits = statement.query_map(params![query, limit as i64], |row| {
        let text = |column| row.get(column).map(|text: String| unspaced(&text));
        Ok(Hit {
            root: row.get::<_, i64>(0)? as usize,
            relative: row.get(1)?,
            title: text(2)?,
            heading: text(3)?,
            line: row.get::<_, i64>(4)? as u64,
            text: text(5)?,
            score: -row.get::<_, f64>(6)?,
        })
    })?;
    let hits = hits.collect::<rusqlite::Result<_>>()?;
    let mut counts = snapshot
        .prepare_cached("SELECT coalesce(skipped, ''), count(*) FROM file GROUP BY 1 ORDER BY 1")?;
    let counts = counts.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    let (read, skipped): (Vec<_>, Vec<_>) = counts
        .collect::<rusqlite::Result<Vec<(String, u64)>>>()?
        .into_iter()
        .partition(|(reason, _)| reason.is_empty());
    Ok(Found {
        hits,
        total: total as u64,
        has_all_words,
        files: read.first().map_or(0, |(_, files)| *files),
        skipped,
    })
}

/// A query that runs on a thread, as seen by the future that waits for it.
#[derive(Default)]
struct Running {
    given_up: AtomicBool,
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl Running {
    fn begin(&self, connection: &Connection) -> Result<(), Trouble> {
        *lock(&self.interrupt) = Some(connection.get_interrupt_handle());
        match self.given_up.load(Ordering::SeqCst) {
            true => Err(Trouble::Stopped),
            false => Ok(()),
        }
    }

    /// From here on the connection may be another query's.
    fn end(&self) {
        *lock(&self.interrupt) = None;
    }
}

struct StopsWhenDropped(Arc<Running>);

impl Drop for StopsWhenDropped {
    fn drop(&mut self) {
        self.0.given_up.store(true, Ordering::SeqCst);
        if let Some(query) = &*lock(&self.0.interrupt) {
            query.interrupt();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
