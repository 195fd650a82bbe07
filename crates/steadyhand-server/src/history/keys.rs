//! Idempotency keys over a restart: a file beside the history, and the one thread that writes it.
//!
//! A key is on the disk before its call may run. Where that cannot be, the call is refused: never fire twice.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};
use steadyhand::{KeyStore, KeyStoreError, Taken, clock};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::database::{Database, Kind, Trouble};

/// Requests that wait for the thread; the next ones are refused.
const QUEUE_MAX: usize = 1024;
/// Requests in one transaction: they share the wait for the disk.
const BATCH_MAX: usize = 256;
/// How long a key is known.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// Keys known at once; with more, calls with a new key are refused until the oldest have gone.
const KEYS_MAX: i64 = 1_000_000;
/// Outcomes kept, in bytes; of older ones only the key is.
const OUTCOMES_BYTES_MAX: i64 = 256 * 1024 * 1024;
/// What the log beside the file may take.
const LOG_BYTES: u64 = 4 * 1024 * 1024;
/// How often old keys are forgotten, and how many in one step.
const TIDY: Duration = Duration::from_secs(10);
const FORGET_MAX: i64 = 2000;

pub(super) const KIND: Kind = Kind {
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
    ],
};

/// Idempotency keys in a file. Give it to an executor with
/// [`with_key_store`](steadyhand::ToolExecutor::with_key_store).
pub struct KeptKeys {
    path: PathBuf,
    requests: SyncSender<Request>,
}

struct Request {
    key: [u8; 32],
    what: What,
    answer: oneshot::Sender<Result<Answer, KeyStoreError>>,
}

enum What {
    Take([u8; 32]),
    Settle(String),
    Release,
}

enum Answer {
    Taken(Taken),
    Done,
}

impl KeptKeys {
    /// Opens the file, or makes one, when the first key comes. Never fails: without the file, calls with a key
    /// are refused, and say why.
    pub fn open(path: impl Into<PathBuf>) -> KeptKeys {
        let path = path.into();
        let (requests, inbox) = sync_channel(QUEUE_MAX);
        let mut keeper = Keeper {
            path: path.clone(),
            database: None,
            tidied: Instant::now(),
        };
        let started = std::thread::Builder::new()
            .name("steadyhand-keys".to_owned())
            .spawn(move || keeper.work(&inbox));
        if let Err(error) = started {
            // Nobody answers then, and every call with a key is refused.
            tracing::error!(%error, "there is no thread to keep idempotency keys");
        }
        KeptKeys { path, requests }
    }

    async fn ask(&self, key: &str, what: What) -> Result<Answer, KeyStoreError> {
        let (answer, answered) = oneshot::channel();
        let request = Request {
            // A key may be of any length, and is nobody's business.
            key: Sha256::digest(key.as_bytes()).into(),
            what,
            answer,
        };
        let refused = |why: &str| KeyStoreError(format!("{}: {why}", self.path.display()));
        self.requests
            .try_send(request)
            .map_err(|_| refused("too many calls with a key wait for the disk; try again"))?;
        match answered.await {
            Ok(answer) => answer,
            Err(_) => Err(refused("the thread that keeps idempotency keys has ended")),
        }
    }
}

impl KeyStore for KeptKeys {
    fn take<'a>(
        &'a self,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        Box::pin(async move {
            match self.ask(key, What::Take(*call)).await? {
                Answer::Taken(taken) => Ok(taken),
                Answer::Done => Ok(Taken::Unfinished),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        key: &'a str,
        outcome: String,
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        Box::pin(async move { self.ask(key, What::Settle(outcome)).await.map(drop) })
    }

    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        Box::pin(async move { self.ask(key, What::Release).await.map(drop) })
    }
}

impl fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptKeys({})", self.path.display())
    }
}

/// The thread's own.
struct Keeper {
    path: PathBuf,
    database: Option<Database>,
    tidied: Instant,
}

impl Keeper {
    fn work(&mut self, inbox: &Receiver<Request>) {
        while let Ok(first) = inbox.recv() {
            let mut batch = vec![first];
            batch.extend(inbox.try_iter().take(BATCH_MAX - 1));
            match self.serve(&batch) {
                Ok(answers) => {
                    for (request, answer) in batch.into_iter().zip(answers) {
                        // Whoever asked may be gone.
                        let _ = request.answer.send(answer);
                    }
                }
                Err(trouble) => self.refuse(batch, &trouble),
            }
            self.tidy_up();
        }
    }

    /// All of them in one transaction: they are on the disk when this returns, or none of them is.
    fn serve(&mut self, batch: &[Request]) -> Result<Vec<Result<Answer, KeyStoreError>>, Trouble> {
        let path = self.path.clone();
        let sql = |error: rusqlite::Error| Trouble::of(&error, &path);
        let connection = &mut self.open()?.connection;
        // A mark must survive the machine, an outcome only the process: without it the answer is "it may have run".
        let takes = batch.iter().any(|one| matches!(one.what, What::Take(_)));
        let level = if takes { "FULL" } else { "NORMAL" };
        connection
            .pragma_update(None, "synchronous", level)
            .map_err(sql)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        let now_ms = clock::wall_ms();
        let answers = batch
            .iter()
            .map(|one| answer(&transaction, one, now_ms, &path));
        let answers: Vec<_> = answers.collect::<rusqlite::Result<_>>().map_err(sql)?;
        transaction.commit().map_err(sql)?;
        Ok(answers)
    }

    fn open(&mut self) -> Result<&mut Database, Trouble> {
        let is_in_place = |file: &Database| file.is_in_place(&self.path);
        if !self.database.as_ref().is_some_and(is_in_place) {
            if let Some(old) = self.database.take() {
                old.leave(&self.path);
            }
            self.database = Some(open(&self.path)?);
        }
        self.database
            .as_mut()
            .ok_or_else(|| Trouble::Failed("it is not open".to_owned()))
    }

    fn refuse(&mut self, batch: Vec<Request>, trouble: &Trouble) {
        if !matches!(trouble, Trouble::Locked(_)) {
            self.database = None;
        }
        let text = match trouble {
            // Not set aside as a history would be: the keys in it are promises.
            Trouble::Broken(reason) => format!(
                "{reason}. It holds the keys of calls that have run; move it away to go on without them"
            ),
            other => other.text().to_owned(),
        };
        for request in batch {
            let _ = request.answer.send(Err(KeyStoreError(text.clone())));
        }
    }

    /// Forgets what is old, a bounded step at a time.
    fn tidy_up(&mut self) {
        if self.tidied.elapsed() < TIDY {
            return;
        }
        self.tidied = Instant::now();
        let path = self.path.clone();
        if let Some(database) = &mut self.database
            && let Err(error) = forget_old(database, clock::wall_ms())
        {
            let reason = Trouble::of(&error, &path);
            tracing::warn!(
                reason = reason.text(),
                "old idempotency keys are not forgotten"
            );
        }
    }
}

fn open(path: &Path) -> Result<Database, Trouble> {
    let mut database = Database::open(path, &KIND, LOG_BYTES)?;
    forget_old(&mut database, clock::wall_ms()).map_err(|error| Trouble::of(&error, path))?;
    Ok(database)
}

fn answer(
    transaction: &Transaction<'_>,
    request: &Request,
    now_ms: u64,
    path: &Path,
) -> rusqlite::Result<Result<Answer, KeyStoreError>> {
    match &request.what {
        What::Take(call) => take(transaction, &request.key, call, now_ms, path),
        What::Settle(outcome) => {
            let changed = transaction
                .prepare_cached("UPDATE keys SET outcome = ?2 WHERE key = ?1 AND outcome IS NULL")?
                .execute(params![request.key, outcome])?;
            count(transaction, 0, (changed * outcome.len()) as i64)?;
            Ok(Ok(Answer::Done))
        }
        What::Release => {
            let gone = transaction
                .prepare_cached("DELETE FROM keys WHERE key = ?1 AND outcome IS NULL")?
                .execute([request.key])?;
            count(transaction, -(gone as i64), 0)?;
            Ok(Ok(Answer::Done))
        }
    }
}

fn take(
    transaction: &Transaction<'_>,
    key: &[u8; 32],
    call: &[u8; 32],
    now_ms: u64,
    path: &Path,
) -> rusqlite::Result<Result<Answer, KeyStoreError>> {
    let known: Option<(Vec<u8>, Option<String>, i64)> = transaction
        .prepare_cached("SELECT call, outcome, at_ms FROM keys WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let is_known = |at_ms: i64| (at_ms as u64).saturating_add(KEPT_MS) > now_ms;
    let taken = match known {
        Some((other, _, at_ms)) if other != call && is_known(at_ms) => Taken::Conflict,
        Some((_, Some(outcome), at_ms)) if is_known(at_ms) => Taken::Finished(outcome),
        Some((_, None, at_ms)) if is_known(at_ms) => Taken::Unfinished,
        forgotten => {
            if forgotten.is_some() {
                remove(transaction, key)?;
            }
            if totals(transaction)?.0 >= KEYS_MAX {
                let why = format!(
                    "{}: {KEYS_MAX} keys of the last day are kept; there is room when the oldest have gone",
                    path.display()
                );
                return Ok(Err(KeyStoreError(why)));
            }
            transaction
                .prepare_cached("INSERT INTO keys (key, call, at_ms) VALUES (?1, ?2, ?3)")?
                .execute(params![key, call, now_ms as i64])?;
            count(transaction, 1, 0)?;
            Taken::New
        }
    };
    Ok(Ok(Answer::Taken(taken)))
}

fn remove(transaction: &Transaction<'_>, key: &[u8; 32]) -> rusqlite::Result<()> {
    let bytes: i64 = transaction
        .prepare_cached(
            "DELETE FROM keys WHERE key = ?1 RETURNING ifnull(octet_length(outcome), 0)",
        )?
        .query_row([key], |row| row.get(0))?;
    count(transaction, -1, -bytes)
}

/// Keys too old to matter, and outcomes there is no room for.
fn forget_old(database: &mut Database, now_ms: u64) -> rusqlite::Result<()> {
    let connection = &mut database.connection;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let oldest = now_ms.saturating_sub(KEPT_MS) as i64;
    let old = "SELECT id, ifnull(octet_length(outcome), 0) FROM keys INDEXED BY keys_by_time
               WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2";
    for (id, bytes) in listed(&transaction, old, [oldest, FORGET_MAX])? {
        transaction
            .prepare_cached("DELETE FROM keys WHERE id = ?1")?
            .execute([id])?;
        count(&transaction, -1, -bytes)?;
    }
    let (_, mut bytes_kept) = totals(&transaction)?;
    if bytes_kept > OUTCOMES_BYTES_MAX {
        let oldest = "SELECT id, octet_length(outcome) FROM keys INDEXED BY keys_with_outcome
                      WHERE outcome IS NOT NULL AND id > ?1 ORDER BY id LIMIT ?2";
        for (id, bytes) in listed(&transaction, oldest, [0, FORGET_MAX])? {
            if bytes_kept <= OUTCOMES_BYTES_MAX {
                break;
            }
            transaction
                .prepare_cached("UPDATE keys SET outcome = NULL WHERE id = ?1")?
                .execute([id])?;
            count(&transaction, 0, -bytes)?;
            bytes_kept -= bytes;
        }
    }
    transaction.commit()
}

fn listed(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: [i64; 2],
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut list = transaction.prepare_cached(sql)?;
    let rows = list.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn totals(transaction: &Transaction<'_>) -> rusqlite::Result<(i64, i64)> {
    transaction
        .prepare_cached("SELECT keys, outcome_bytes FROM totals")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn count(transaction: &Transaction<'_>, keys: i64, outcome_bytes: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE totals SET keys = keys + ?1, outcome_bytes = outcome_bytes + ?2")?
        .execute([keys, outcome_bytes])
        .map(drop)
}
