//! The thread that writes the file of keys and its marker.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Transaction, TransactionBehavior};
use steadyhand::{KeyStoreError, Taken};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::super::database::{Database, Trouble};
use super::ACCEPT_COMMAND;
use super::clock::{Clock, ClockReading};
use super::marker::{Marker, Markers, Said};
use super::opening::{self, Opened, in_words};
use super::shares::{KeyLimits, Taker};
use super::table::{self, Store, Take};

/// Requests in one transaction: they share the wait for the disk.
const BATCH_MAX: usize = 256;
/// How often old keys are forgotten, the log is carried over into the file, and a file in trouble is looked at again.
const TIDY: Duration = Duration::from_secs(10);

type Answer = Result<Taken, KeyStoreError>;

pub(super) enum Message {
    Request(Request),
    /// Looks at the file, if there is one.
    Check,
    /// Closes it.
    Close(SyncSender<()>),
}

pub(super) struct Request {
    pub(super) key: [u8; 32],
    pub(super) what: What,
    pub(super) answer: oneshot::Sender<Answer>,
    /// Its place in the queue, given back when the request is done.
    pub(super) _place: OwnedSemaphorePermit,
}

pub(super) enum What {
    Take {
        /// A digest of the call that is about to run.
        call: [u8; 32],
        /// Whose share the key is in.
        taker: Option<Taker>,
    },
    Settle(String),
    Release,
}

/// The thread's own.
pub(super) struct Keeper {
    path: PathBuf,
    markers: Markers,
    clock: Clock,
    limits: KeyLimits,
    /// Whose marks are ours to give back.
    owner: Vec<u8>,
    opened: Option<Opened>,
    tidied: Instant,
    /// What is told to those who ask how keys fare.
    trouble: Arc<Mutex<Option<String>>>,
}

impl Keeper {
    pub(super) fn new(
        path: &Path,
        markers: Markers,
        clock: Clock,
        limits: KeyLimits,
        trouble: Arc<Mutex<Option<String>>>,
    ) -> Keeper {
        Keeper {
            path: path.to_owned(),
            markers,
            clock,
            limits,
            owner: uuid::Uuid::new_v4().to_string().into_bytes(),
            opened: None,
            tidied: Instant::now(),
            trouble,
        }
    }

    /// Until the last one who could ask is gone.
    pub(super) fn work(&mut self, inbox: &Receiver<Message>) {
        while let Some(first) = self.next(inbox) {
            let mut next = first;
            let mut batch = Vec::new();
            while let Some(message) = next.take() {
                match message {
                    Message::Request(request) => {
                        batch.push(request);
                        if batch.len() < BATCH_MAX {
                            next = inbox.try_recv().ok();
                        }
                    }
                    Message::Check => {
                        self.answer(std::mem::take(&mut batch));
                        self.check();
                    }
                    Message::Close(done) => {
                        self.answer(std::mem::take(&mut batch));
                        self.close();
                        // Whoever asked may have given up.
                        let _ = done.send(());
                    }
                }
            }
            self.answer(batch);
            self.tidy_up();
        }
        self.close();
    }

    /// The next message; none in it when it is time to look after the file. `None` is the end.
    fn next(&self, inbox: &Receiver<Message>) -> Option<Option<Message>> {
        if self.opened.is_none() && self.told().is_none() {
            return inbox.recv().ok().map(Some);
        }
        match inbox.recv_timeout(TIDY) {
            Ok(message) => Some(Some(message)),
            Err(RecvTimeoutError::Timeout) => Some(None),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    fn answer(&mut self, batch: Vec<Request>) {
        if batch.is_empty() {
            return;
        }
        let answers = match self.serve(&batch) {
            Ok(answers) => {
                self.fares_well();
                answers
            }
            Err(trouble) => {
                let text = self.in_trouble(&trouble);
                vec![Err(KeyStoreError(text)); batch.len()]
            }
        };
        let mut unheard = Vec::new();
        for (request, answer) in batch.into_iter().zip(answers) {
            if let Err(Ok(Taken::New)) = request.answer.send(answer)
                && matches!(request.what, What::Take { .. })
            {
                unheard.push(request.key);
            }
        }
        // Nobody waits any more, and nothing was run: the next call of that key is the first.
        if !unheard.is_empty()
            && let Err(trouble) = self.give_back(&unheard)
        {
            tracing::warn!(reason = trouble.text(), "keys that nobody used stay taken");
        }
    }

    /// All of them in one transaction: they are on the disk when this returns, or none of them is.
    fn serve(&mut self, batch: &[Request]) -> Result<Vec<Answer>, Trouble> {
        let lock = self.markers.lock()?;
        let now = (self.clock)();
        self.open(&lock, &now)?;
        let (path, owner, markers) = (&self.path, &self.owner, &self.markers);
        let limits = self.limits;
        let sql = |error: rusqlite::Error| in_words(&error, path);
        let Some(Opened { database, marker }) = &mut self.opened else {
            return Err(Trouble::Failed("it is not open".to_owned()));
        };
        // A mark must survive the machine, an outcome only the process: without it the answer is "it may have run".
        let takes = batch
            .iter()
            .any(|one| matches!(one.what, What::Take { .. }));
        let level = if takes { "FULL" } else { "NORMAL" };
        let connection = &mut database.connection;
        connection
            .pragma_update(None, "synchronous", level)
            .map_err(sql)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        let mut store = that_store(&transaction, marker, path)?;
        let before = store.takes;
        store.observe(&now);
        let answers = batch
            .iter()
            .map(|one| answer(&transaction, &mut store, limits, owner, one, now.wall_ms));
        let answers: Vec<_> = answers.collect::<rusqlite::Result<_>>().map_err(sql)?;
        store.write(&transaction).map_err(sql)?;
        transaction.commit().map_err(sql)?;
        if store.takes > before {
            marker.takes = store.takes;
            if let Err(error) = markers.note(marker) {
                // Without the marker nobody would notice that these keys are missing: their calls do not run.
                let taken = batch.iter().zip(&answers);
                let taken = taken.filter(|(_, answer)| matches!(answer, Ok(Taken::New)));
                let taken: Vec<_> = taken.map(|(request, _)| request.key).collect();
                release(database, owner, &taken).map_err(sql)?;
                return Err(opening::unwritten(markers, &error));
            }
        }
        Ok(answers)
    }

    /// The file that belongs here, open. The marker is read each time: another process may have taken keys, or a
    /// person may have accepted a loss.
    fn open(&mut self, _lock: &File, now: &ClockReading) -> Result<(), Trouble> {
        if let Some(opened) = &mut self.opened {
            match self.markers.read()? {
                Said::This(marker)
                    if marker.store == opened.marker.store
                        && marker.generation == opened.marker.generation
                        && opened.database.is_in_place(&self.path) =>
                {
                    opened.marker = marker;
                    return Ok(());
                }
                _ => self.leave(),
            }
        }
        self.opened = Some(opening::open(&self.path, &self.markers, self.limits, now)?);
        Ok(())
    }

    fn leave(&mut self) {
        if let Some(old) = self.opened.take()
            && !old.database.is_in_place(&self.path)
        {
            old.database.leave(&self.path);
        }
    }

    fn give_back(&mut self, keys: &[[u8; 32]]) -> Result<(), Trouble> {
        let _lock = self.markers.lock()?;
        match &mut self.opened {
            Some(opened) => release(&mut opened.database, &self.owner, keys)
                .map_err(|error| in_words(&error, &self.path)),
            None => Ok(()),
        }
    }

    /// What is wrong with the file is known before the first key needs it. Nothing is made.
    fn check(&mut self) {
        if self.opened.is_some() {
            return;
        }
        let looked = self.markers.read().and_then(|said| {
            // After a call was refused, it is tried to make the file: else it is said to be well until the next one.
            if said == Said::Nothing && !self.path.exists() && self.told().is_none() {
                return Ok(());
            }
            let lock = self.markers.lock()?;
            let now = (self.clock)();
            self.open(&lock, &now)
        });
        match looked {
            Ok(()) => self.fares_well(),
            Err(trouble) => {
                self.in_trouble(&trouble);
            }
        }
    }

    /// Everything is in the file and on the disk when this returns, if the disk allows it.
    fn close(&mut self) {
        let Some(opened) = self.opened.take() else {
            return;
        };
        let lock = self.markers.lock();
        let connection = &opened.database.connection;
        let carried = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = carried {
            // It is in the log still, and the next one who opens the file finds it there.
            tracing::debug!(%error, "the log of idempotency keys is not carried over");
        }
        if lock.is_ok()
            && let Err(error) = self.markers.write(&newest(&self.markers, &opened.marker))
        {
            tracing::debug!(%error, "the marker of idempotency keys is not written again");
        }
    }

    /// Forgets what is old and carries the log over, a bounded step at a time.
    fn tidy_up(&mut self) {
        if self.tidied.elapsed() < TIDY {
            return;
        }
        self.tidied = Instant::now();
        if self.opened.is_none() && self.told().is_some() {
            return self.check();
        }
        match self.tidy() {
            Ok(()) => self.fares_well(),
            Err(trouble) => {
                tracing::warn!(
                    reason = trouble.text(),
                    "old idempotency keys are not forgotten"
                );
            }
        }
    }

    fn tidy(&mut self) -> Result<(), Trouble> {
        let _lock = self.markers.lock()?;
        let now = (self.clock)();
        let sql = |error: rusqlite::Error| in_words(&error, &self.path);
        let Some(opened) = &mut self.opened else {
            return Ok(());
        };
        if !opened.database.is_in_place(&self.path) {
            // The next request sees to it.
            return Ok(());
        }
        opening::forget(&mut opened.database, self.limits, &now).map_err(sql)?;
        opened
            .database
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(sql)?;
        let marker = newest(&self.markers, &opened.marker);
        self.markers
            .write(&marker)
            .map_err(|error| opening::unwritten(&self.markers, &error))
    }

    fn told(&self) -> Option<String> {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn fares_well(&self) {
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if told.take().is_some() {
            tracing::info!("calls with an idempotency key are taken again");
        }
    }

    /// Tells it once in the log, and gives back how it is told to callers.
    fn in_trouble(&mut self, trouble: &Trouble) -> String {
        // With the file as it was nothing is wrong then, and looking through it again for each call takes long.
        if !matches!(trouble, Trouble::Locked(_) | Trouble::Full(_)) {
            self.leave();
        }
        let text = advice(trouble);
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref() != Some(&text) {
            tracing::error!(reason = text, "calls with an idempotency key are refused");
            *told = Some(text.clone());
        }
        text
    }
}

/// What happened and what to do. Keys that are lost are not made up for as a history would be: they are promises.
pub(super) fn advice(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Lost(reason) | Trouble::Broken(reason) => format!(
            "{reason}. Which calls have run is not known for certain: put the newest copy of the file back, or run \
             `{ACCEPT_COMMAND}` to go on without what is missing; a call from before that is repeated may then run again"
        ),
        other => other.text().to_owned(),
    }
}

/// The row that says which store this is. It must hold what the marker says that was given out.
fn that_store(
    transaction: &Transaction<'_>,
    marker: &Marker,
    path: &Path,
) -> Result<Store, Trouble> {
    let store = Store::read(transaction).map_err(|error| in_words(&error, path))?;
    match store {
        Some(store)
            if store.id == marker.store
                && store.generation == marker.generation
                && store.takes >= marker.takes =>
        {
            Ok(store)
        }
        _ => Err(Trouble::Lost(format!(
            "{} is not what it was a moment ago: keys are missing in it",
            path.display()
        ))),
    }
}

/// Another process may have written the marker since.
fn newest(markers: &Markers, known: &Marker) -> Marker {
    match markers.read() {
        Ok(Said::This(marker)) if marker.store == known.store => marker,
        _ => known.clone(),
    }
}

fn release(database: &mut Database, owner: &[u8], keys: &[[u8; 32]]) -> rusqlite::Result<()> {
    let transaction = database
        .connection
        .transaction_with_behavior(TransactionBehavior::Immediate)?;
    for key in keys {
        table::release(&transaction, owner, key)?;
    }
    transaction.commit()
}

fn answer(
    transaction: &Transaction<'_>,
    store: &mut Store,
    limits: KeyLimits,
    owner: &[u8],
    request: &Request,
    wall_ms: u64,
) -> rusqlite::Result<Answer> {
    match &request.what {
        What::Take { call, taker } => {
            let take = Take {
                key: &request.key,
                call,
                taker: taker.as_ref(),
                owner,
                wall_ms,
            };
            table::take(transaction, store, limits, &take)
        }
        What::Settle(outcome) => {
            table::settle(transaction, limits, &request.key, outcome)?;
            Ok(Ok(Taken::Unfinished))
        }
        What::Release => {
            table::release(transaction, owner, &request.key)?;
            Ok(Ok(Taken::Unfinished))
        }
    }
}
