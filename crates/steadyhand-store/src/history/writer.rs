//! The thread that writes: batches into the file, and what to do when the file fails. Calls never notice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadyhand::clock;
use tokio::time::Instant;

use super::buckets;
use super::database::{self, Database, Trouble, beside};
use super::maintenance::{self, Limits};
use super::pending::Batch;
use super::recorder;
use super::schema::KIND;
use super::shared::Shared;
use super::write::{Names, Writing};

/// Calls in one transaction.
pub(super) const BATCH_MAX: usize = 1024;
/// How long calls gather before they are written.
const GATHER: Duration = Duration::from_millis(100);
/// With nothing to do it wakes this often, to forget what is old.
const IDLE: Duration = Duration::from_secs(30);
/// How often is looked for calls to forget.
const LOOK: Duration = Duration::from_secs(1);
/// How often this process says that it is there, while calls run.
const SIGN: Duration = Duration::from_secs(10);
/// How often names, buckets and lost calls are seen to.
const TIDY: Duration = Duration::from_secs(60);
/// Old calls forgotten in one step, at least.
const FORGET_MIN: usize = 2000;
/// The waits between two tries of a file that fails.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The same trouble is told once in so long.
const TELL: Duration = Duration::from_secs(60);

pub(super) struct Writer {
    shared: Arc<Shared>,
    database: Option<Database>,
    names: Names,
    run: i64,
    /// What could not be written yet.
    batch: Option<Batch>,
    /// How many calls are taken at once: fewer, while the disk is full.
    batch_max: usize,
    wait: Duration,
    /// When trouble was last told, and which. It may come and go many times a minute.
    told: Option<(Instant, std::mem::Discriminant<Trouble>)>,
    /// Whether people know of the trouble there is now.
    is_told: bool,
    signed: Instant,
    checked: Option<Instant>,
    tidied: Instant,
    /// Rows written since old ones were last forgotten.
    since_forgetting: usize,
    forgot: Instant,
}

impl Writer {
    /// Starts the thread. It ends when history is stopped and everything is written, or cannot be.
    pub(super) fn start(shared: Arc<Shared>) -> std::io::Result<()> {
        let now = Instant::now();
        let mut writer = Writer {
            shared,
            database: None,
            names: Names::default(),
            run: (uuid::Uuid::new_v4().as_u128() as u64 >> 2) as i64,
            batch: None,
            batch_max: BATCH_MAX,
            wait: WAIT_MIN,
            told: None,
            is_told: false,
            signed: now,
            checked: None,
            tidied: now,
            since_forgetting: 0,
            forgot: now,
        };
        std::thread::Builder::new()
            .name("steadyhand-history".to_owned())
            .spawn(move || writer.work())
            .map(drop)
    }

    fn work(&mut self) {
        // The file is opened before the first call: what is wrong with it is known at once.
        self.attempt(Writer::ready);
        self.shared.pending().is_opened = true;
        self.shared.tell_progress();
        loop {
            let is_stopped = self.take();
            let written = self.attempt(Writer::write);
            self.shared.tell_progress();
            if is_stopped && (!written || !self.shared.pending().has_work()) {
                return self.leave();
            }
            if !written {
                self.shared.rest(self.wait);
                self.wait = (self.wait * 2).min(WAIT_MAX);
            }
        }
    }

    /// Takes what is to be written next, unless there is something left from before. Whether history is stopped.
    fn take(&mut self) -> bool {
        if self.batch.is_some() {
            return self.shared.pending().is_stopped;
        }
        let mut pending = self.shared.wait_for_work(IDLE, GATHER);
        let batch = pending.take(self.batch_max, Instant::now());
        pending.is_urgent = pending.is_urgent && pending.ended() > 0;
        self.batch = Some(batch);
        pending.is_stopped
    }

    /// Does something with the file, and deals with what goes wrong. Whether it went well.
    fn attempt(&mut self, work: impl FnOnce(&mut Writer) -> Result<(), Trouble>) -> bool {
        let result = work(self);
        if let Err(trouble) = result {
            self.fail(trouble);
            return false;
        }
        self.wait = WAIT_MIN;
        if self.shared.recover() && std::mem::take(&mut self.is_told) {
            let dropped = self.shared.dropped();
            tracing::info!(dropped, "the history of calls is written again");
        }
        true
    }

    fn ready(&mut self) -> Result<(), Trouble> {
        let path = self.path();
        if let Some(old) = self.database.take_if(|file| !file.is_in_place(&path)) {
            self.lose(old);
        }
        if self.database.is_some() {
            return Ok(());
        }
        let log_bytes = self.limits().log_bytes();
        let mut database = match Database::open(&path, &KIND, log_bytes) {
            Err(Trouble::Broken(reason)) => {
                self.set_aside(&reason)?;
                Database::open(&path, &KIND, log_bytes)?
            }
            other => other?,
        };
        let sql = |error: rusqlite::Error| Trouble::of(&error, &path);
        let now_ms = clock::wall_ms();
        maintenance::sign_of_life(&database.connection, self.run, now_ms).map_err(sql)?;
        maintenance::tell_interrupted(&mut database.connection, self.run, now_ms).map_err(sql)?;
        self.signed = Instant::now();
        self.shared.opened(database.identity());
        self.database = Some(database);
        self.measure();
        Ok(())
    }

    fn write(&mut self) -> Result<(), Trouble> {
        self.ready()?;
        self.look_closer()?;
        let path = self.path();
        let sql = |error: rusqlite::Error| Trouble::of(&error, &path);
        let Some(database) = &mut self.database else {
            return Ok(());
        };
        if let Some(batch) = self.batch.take_if(|batch| batch.is_empty()) {
            self.shared.pending().wrote(&batch);
        }
        if let Some(batch) = &self.batch {
            // First of all: whoever finds calls that run must know whose they are.
            if !batch.running.is_empty() && self.signed.elapsed() >= SIGN {
                let now_ms = clock::wall_ms();
                maintenance::sign_of_life(&database.connection, self.run, now_ms).map_err(sql)?;
                self.signed = Instant::now();
            }
            let mut writing = Writing {
                names: &mut self.names,
                run: self.run,
                value_bytes_max: self.shared.options.value_bytes_max,
            };
            let left_out = writing
                .write(&mut database.connection, batch)
                .map_err(sql)?;
            let count = batch.ended.len() as u64 - left_out;
            self.shared.written.fetch_add(count, Ordering::Relaxed);
            self.shared.dropped.fetch_add(left_out, Ordering::Relaxed);
            self.since_forgetting += batch.ended.len();
            self.shared.pending().wrote(batch);
            self.batch = None;
            self.batch_max = (2 * self.batch_max).min(BATCH_MAX);
            self.measure();
        }
        self.tidy_up().map_err(sql)
    }

    /// Someone has read nonsense: is it the file's?
    fn look_closer(&mut self) -> Result<(), Trouble> {
        let path = self.path();
        if !std::mem::take(&mut self.shared.pending().is_suspect) {
            return Ok(());
        }
        // All of it is read, which takes its time.
        let was_checked = self.checked.is_some_and(|when| when.elapsed() < TIDY);
        match &self.database {
            Some(database) if !was_checked => {
                self.checked = Some(Instant::now());
                database.check(&path)
            }
            _ => Ok(()),
        }
    }

    /// What is due besides calls. Each step is bounded; what is left is done at the next.
    fn tidy_up(&mut self) -> rusqlite::Result<()> {
        let limits = self.limits();
        let Some(database) = &mut self.database else {
            return Ok(());
        };
        let connection = &mut database.connection;
        let now_ms = clock::wall_ms();
        // With nothing running, nothing is written.
        let runs_some = !self.shared.pending().open.is_empty();
        if runs_some && self.signed.elapsed() >= SIGN {
            maintenance::sign_of_life(connection, self.run, now_ms)?;
            self.signed = Instant::now();
        }
        // Many calls can come between two looks.
        let is_too_large = self.shared.bytes.load(Ordering::Relaxed) > limits.bytes_max;
        if is_too_large || self.forgot.elapsed() >= LOOK {
            let rows_max = FORGET_MIN.max(2 * self.since_forgetting);
            let forgotten = maintenance::forget(connection, limits, now_ms, rows_max)?;
            self.since_forgetting = if forgotten.is_more { rows_max } else { 0 };
            self.forgot = Instant::now();
            if forgotten.names {
                self.names = Names::default();
            }
        }
        if self.tidied.elapsed() >= TIDY {
            self.tidied = Instant::now();
            maintenance::forget_exchanges(connection, limits, now_ms)?;
            maintenance::tell_interrupted(connection, self.run, now_ms)?;
            buckets::forget_old(connection, now_ms)?;
            if maintenance::forget_tools(connection)? {
                self.names = Names::default();
            }
            self.give_up_lost(now_ms);
        }
        Ok(())
    }

    /// Calls whose end was not seen get one.
    fn give_up_lost(&self, now_ms: u64) {
        let lost = self.shared.pending().lost(Instant::now());
        for open in lost {
            let limit = self.shared.options.value_bytes_max;
            self.shared.push(recorder::lost(&open, now_ms, limit));
        }
    }

    fn fail(&mut self, trouble: Trouble) {
        if let Trouble::Gone(_) = trouble
            && let Some(old) = self.database.take()
        {
            self.lose(old);
        }
        if let Trouble::Broken(reason) = &trouble {
            // The next try opens a new one.
            if let Err(trouble) = self.set_aside(reason) {
                return self.degrade(trouble);
            }
        }
        if let Trouble::Failed(_) | Trouble::Foreign(_) = trouble {
            // Perhaps the connection is what failed.
            self.database = None;
        }
        if let Trouble::Refused(_) = trouble {
            self.give_up_batch();
        }
        // There may be room for fewer.
        if let Trouble::Full(_) = trouble
            && let Some(batch) = self.batch.take()
        {
            self.batch_max = (self.batch_max / 4).max(1);
            self.shared.pending().give_back(batch);
        }
        self.degrade(trouble);
    }

    fn give_up_batch(&mut self) {
        if let Some(batch) = self.batch.take() {
            let count = batch.ended.len() as u64;
            self.shared.dropped.fetch_add(count, Ordering::Relaxed);
            self.shared.pending().wrote(&batch);
        }
    }

    /// Says so, once: not for every try.
    fn degrade(&mut self, trouble: Trouble) {
        let kind = std::mem::discriminant(&trouble);
        let was_told = self
            .told
            .is_some_and(|(when, what)| what == kind && when.elapsed() < TELL);
        if !was_told {
            self.told = Some((Instant::now(), kind));
            self.is_told = true;
            let reason = trouble.text();
            tracing::warn!(
                reason,
                "the history of calls cannot be written; calls go on"
            );
        }
        self.shared.degrade(trouble.text().to_owned());
    }

    fn set_aside(&mut self, reason: &str) -> Result<(), Trouble> {
        let path = self.path();
        self.database = None;
        let aside = database::set_aside(&path, clock::wall_ms()).map_err(|error| {
            Trouble::Failed(format!(
                "{reason}; it cannot be set aside either: {error}. Move it away by hand"
            ))
        })?;
        let aside = aside.display();
        tracing::warn!(reason, %aside, "the history of calls is set aside, and a new one begun");
        self.begin_anew(&format!("it was broken; what was left of it is {aside}"));
        Ok(())
    }

    /// The file is not where it was.
    fn lose(&mut self, old: Database) {
        old.leave(&self.path());
        self.begin_anew("it was deleted or moved, and a new one begun");
    }

    fn begin_anew(&mut self, why: &str) {
        self.database = None;
        self.names = Names::default();
        self.checked = None;
        let path = self.path();
        tracing::info!(path = %path.display(), why, "the history of calls begins anew");
        self.shared.notice(format!("{}: {why}", path.display()));
    }

    fn measure(&self) {
        let path = self.path();
        let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        let bytes = size(path.clone()) + size(beside(&path, "-wal"));
        self.shared.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The end: this process leaves no trace but its calls.
    fn leave(&mut self) {
        let path = self.path();
        if let Some(database) = self.database.take() {
            let left = database.connection.execute(
                "DELETE FROM runs WHERE id = ?1 AND NOT EXISTS
                    (SELECT 1 FROM calls WHERE state = 0 AND run = ?1)",
                [self.run],
            );
            if let Err(error) = left {
                tracing::debug!(reason = Trouble::of(&error, &path).text(), "history ends");
            }
        }
        self.give_up_batch();
        self.shared.tell_progress();
    }

    fn limits(&self) -> Limits {
        Limits {
            keep_ms: self.shared.options.keep.as_millis() as u64,
            bytes_max: self.shared.options.max_bytes,
        }
    }

    fn path(&self) -> PathBuf {
        self.shared.options.path.clone()
    }
}
