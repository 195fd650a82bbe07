//! Idempotency keys over a restart: a file beside the history, a marker that knows what must be in it, and the one
//! thread that writes both.
//!
//! A key is on the disk before its call may run. Where that cannot be, or where keys that were given out may be
//! missing, the call is refused: never fire twice.

mod clock;
mod keeper;
mod marker;
mod opening;
mod shares;
mod table;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use steadyhand::{FairQueue, KeyCaller, KeyStore, KeyStoreError, Taken};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::database::{Database, Trouble};
pub use clock::{Clock, ClockReading};
use keeper::{Keeper, Message, Request, What};
use marker::Markers;
pub use opening::Accepted;
pub use shares::KeysUsage;
use shares::{KeyLimits, Taker};
pub(super) use table::KIND;

/// Requests that wait for the thread. The next ones wait for a place, in the order in which they came: what gives a
/// key back must not be overtaken by what takes it next.
const QUEUE_MAX: usize = 1024;
/// Messages that are no requests: they have places of their own.
const OTHER_MESSAGES_MAX: usize = 16;
/// Of these, how many may be about new calls. The next ones wait before that, each caller's in turn.
const TAKES_MAX: usize = QUEUE_MAX / 2;
const NO_PLACE: &str = "too many calls with a key wait for the disk; try again";
/// How long a request waits for a place.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(5);
/// The command that goes on after a loss, as it is told to people.
pub const ACCEPT_COMMAND: &str = "steadyhand calls keys accept-loss";

/// Where the file of keys is, and what it is opened with.
pub struct KeysOptions {
    path: PathBuf,
    second_marker: Option<PathBuf>,
    clock: Clock,
    limits: KeyLimits,
}

impl KeysOptions {
    /// A file, with its marker beside it.
    pub fn new(path: impl Into<PathBuf>) -> KeysOptions {
        KeysOptions {
            path: path.into(),
            second_marker: None,
            clock: clock::of_this_machine(),
            limits: KeyLimits::default(),
        }
    }

    /// A second marker in another folder tells when the whole folder of the first was emptied or replaced.
    #[must_use]
    pub fn second_marker(mut self, path: impl Into<PathBuf>) -> KeysOptions {
        self.second_marker = Some(path.into());
        self
    }

    /// Another clock than the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> KeysOptions {
        self.clock = clock;
        self
    }

    /// So many keys are kept instead of a million. One caller may have half of what the others leave, and one part in
    /// sixteen is for operators.
    #[must_use]
    pub fn keys_max(mut self, keys_max: u32) -> KeysOptions {
        self.limits.keys_max = i64::from(keys_max);
        self
    }

    /// So many bytes of outcomes are kept instead of 256 MiB; of others only the key is. Whoever has most of them makes
    /// room.
    #[must_use]
    pub fn outcomes_bytes_max(mut self, bytes_max: u32) -> KeysOptions {
        self.limits.outcomes_bytes_max = i64::from(bytes_max);
        self
    }

    fn markers(&self) -> Markers {
        Markers::of(&self.path, self.second_marker.clone())
    }

    /// Goes on with the keys there are, because a person said so: those that are missing may run again. Says what was
    /// wrong, or nothing where nothing was. Blocks for as long as a disk may.
    pub fn accept_loss(mut self) -> Result<Option<Accepted>, KeyStoreError> {
        let now = (self.clock)();
        opening::accept_loss(&self.path, &self.markers(), self.limits, &now)
            .map_err(|trouble| KeyStoreError(trouble.text().to_owned()))
    }

    /// How the file fares, looked at from outside.
    pub(super) fn look(&self) -> Result<(), Trouble> {
        opening::look(&self.path, &self.markers())
    }

    /// How many keys are kept, and whose they are. Nothing where the file cannot be read, or is of an earlier version.
    pub fn usage(&self) -> Option<KeysUsage> {
        let connection = Database::open_to_read(&self.path, &KIND).ok()?;
        KeysUsage::read(&connection, self.limits).ok()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Idempotency keys in a file. Give it to an executor with
/// [`with_key_store`](steadyhand::ToolExecutor::with_key_store).
pub struct KeptKeys {
    path: PathBuf,
    messages: SyncSender<Message>,
    /// One permit for each place in the queue: whoever floods it delays others and does not shut them out.
    places: Arc<Semaphore>,
    takes: FairQueue,
    trouble: Arc<Mutex<Option<String>>>,
}

impl KeptKeys {
    /// Opens the file, or makes one, when the first key comes. Never fails: without the file, calls with a key
    /// are refused, and say why.
    pub fn open(path: impl Into<PathBuf>) -> KeptKeys {
        KeptKeys::open_with(KeysOptions::new(path))
    }

    /// The same with everything that can be said of it.
    pub fn open_with(options: KeysOptions) -> KeptKeys {
        let path = options.path.clone();
        let trouble = Arc::default();
        let (messages, inbox) = sync_channel(QUEUE_MAX + OTHER_MESSAGES_MAX);
        let markers = options.markers();
        let mut keeper = Keeper::new(
            &path,
            markers,
            options.clock,
            options.limits,
            Arc::clone(&trouble),
        );
        let started = std::thread::Builder::new()
            .name("steadyhand-keys".to_owned())
            .spawn(move || keeper.work(&inbox));
        if let Err(error) = started {
            // Nobody answers then, and every call with a key is refused.
            tracing::error!(%error, "there is no thread to keep idempotency keys");
        }
        KeptKeys {
            path,
            messages,
            places: Arc::new(Semaphore::new(QUEUE_MAX)),
            takes: FairQueue::new(TAKES_MAX),
            trouble,
        }
    }

    /// Looks at the file now instead of at the first key, if there is one: what is wrong is in the log and in
    /// [`KeyStore::trouble`] soon.
    pub fn check_soon(&self) {
        // A full queue looks at the file anyway.
        let _ = self.messages.try_send(Message::Check);
    }

    /// Carries everything over into the file and closes it, for at most so long: call it before the process ends.
    /// Blocks. Whether it was done; a later key opens the file again.
    pub fn close(&self, limit: Duration) -> bool {
        let (done, is_done) = sync_channel(1);
        let asked = self.messages.try_send(Message::Close(done));
        asked.is_ok() && is_done.recv_timeout(limit).is_ok()
    }

    fn refused(&self, why: &str) -> KeyStoreError {
        KeyStoreError(format!("{}: {why}", self.path.display()))
    }

    async fn ask(&self, key: &str, what: What) -> Result<Taken, KeyStoreError> {
        let place = timeout(PLACE_WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(self.refused(NO_PLACE));
        };
        let (answer, answered) = oneshot::channel();
        let request = Request {
            // A key may be of any length, and is nobody's business.
            key: Sha256::digest(key.as_bytes()).into(),
            what,
            answer,
            _place: place,
        };
        self.messages
            .try_send(Message::Request(request))
            .map_err(|_| self.refused("the thread that keeps idempotency keys has ended"))?;
        match answered.await {
            Ok(answer) => answer,
            Err(_) => Err(self.refused("the thread that keeps idempotency keys has ended")),
        }
    }
}

impl KeyStore for KeptKeys {
    fn take<'a>(
        &'a self,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        self.take_for(None, key, call)
    }

    fn take_for<'a>(
        &'a self,
        caller: Option<KeyCaller<'a>>,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        Box::pin(async move {
            let line = caller.map_or("", |caller| caller.name);
            let turn = timeout(PLACE_WAIT_MAX, self.takes.take(line));
            let _turn = turn.await.map_err(|_| self.refused(NO_PLACE))?;
            let take = What::Take {
                call: *call,
                taker: caller.map(Taker::of),
            };
            self.ask(key, take).await
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

    fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone()
    }
}

impl fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptKeys({})", self.path.display())
    }
}
