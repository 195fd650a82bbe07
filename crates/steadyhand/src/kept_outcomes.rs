//! The idempotency keys of one executor, and the outcomes of their calls: a bounded memory. When it is full, the caller
//! that has most of it makes room, so that no other caller's outcomes go.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cut::json_bytes;
use crate::failure::Effect;
use crate::idempotency::Fingerprint;
use crate::outcome::Outcome;

/// Finished outcomes kept at most, and for how long.
const KEPT_MAX: usize = 10_000;
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What a key leads to.
pub(crate) enum Found {
    /// Nobody has used it: run the call, and tell the result here.
    New(watch::Sender<Option<Arc<Outcome>>>),
    /// The same call runs now.
    Running(watch::Receiver<Option<Arc<Outcome>>>),
    /// The same call has run.
    Finished(Arc<Outcome>),
    /// Another call has used it.
    Conflict,
}

/// All keys of one executor.
#[derive(Debug, Default)]
pub(crate) struct KeptOutcomes {
    memory: Mutex<Memory>,
}

/// Whom an outcome counts for; none is the application itself.
type Owner = Option<Arc<str>>;

#[derive(Debug, Default)]
struct Memory {
    uses: HashMap<String, Use>,
    /// Finished keys by their numbers, the oldest first.
    finished: BTreeMap<u64, FinishedKey>,
    by_owner: HashMap<Owner, OwnerPart>,
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct FinishedKey {
    key: String,
    owner: Owner,
    bytes: usize,
    since: Instant,
}

/// What one caller has of the memory.
#[derive(Debug, Default)]
struct OwnerPart {
    /// The numbers of its finished keys, the oldest first.
    finished: VecDeque<u64>,
    bytes: usize,
}

#[derive(Debug)]
struct Use {
    fingerprint: Fingerprint,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Running(watch::Receiver<Option<Arc<Outcome>>>),
    Finished(Arc<Outcome>),
}

impl KeptOutcomes {
    pub(crate) fn look_up(&self, key: &str, fingerprint: Fingerprint) -> Found {
        let mut memory = self.memory();
        memory.forget_old();
        if let Some(known) = memory.uses.get(key) {
            if known.fingerprint != fingerprint {
                return Found::Conflict;
            }
            return match &known.progress {
                Progress::Finished(outcome) => Found::Finished(Arc::clone(outcome)),
                Progress::Running(outcome) => Found::Running(outcome.clone()),
            };
        }
        memory.forget_lost();
        let (sender, receiver) = watch::channel(None);
        let progress = Progress::Running(receiver);
        let known = Use {
            fingerprint,
            progress,
        };
        memory.uses.insert(key.to_owned(), known);
        Found::New(sender)
    }

    /// The call of this key has ended. What never reached the tool may be tried again.
    pub(crate) fn settle(&self, key: &str, owner: Option<Arc<str>>, outcome: &Arc<Outcome>) {
        let mut memory = self.memory();
        if outcome
            .failure()
            .is_some_and(|failure| failure.effect == Effect::None)
        {
            memory.uses.remove(key);
            return;
        }
        let Some(known) = memory.uses.get_mut(key) else {
            return;
        };
        known.progress = Progress::Finished(Arc::clone(outcome));
        let finished = FinishedKey {
            key: key.to_owned(),
            owner,
            bytes: key.len() + 512 + weight(outcome),
            since: Instant::now(),
        };
        memory.keep(finished);
        memory.forget_old();
        memory.make_room();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic between two changes leaves it usable: a number that leads nowhere is skipped.
        self.memory.lock()
    }
}

impl Memory {
    fn keep(&mut self, finished: FinishedKey) {
        self.last += 1;
        self.bytes += finished.bytes;
        let part = self.by_owner.entry(finished.owner.clone()).or_default();
        part.bytes += finished.bytes;
        part.finished.push_back(self.last);
        self.finished.insert(self.last, finished);
    }

    /// A call whose runtime was shut down has no one left to tell its outcome. Looked for only when
    /// there are many: their keys stay taken until then, since the calls may have run.
    fn forget_lost(&mut self) {
        if self.uses.len() < 2 * KEPT_MAX {
            return;
        }
        self.uses.retain(|_, known| match &known.progress {
            Progress::Running(outcome) => outcome.has_changed().is_ok(),
            Progress::Finished(_) => true,
        });
    }

    fn forget_old(&mut self) {
        while let Some((_, oldest)) = self.finished.first_key_value()
            && oldest.since.elapsed() >= KEPT_FOR
        {
            // The oldest of all is the oldest of its owner.
            let owner = oldest.owner.clone();
            self.forget_oldest_of(&owner);
        }
    }

    /// Whoever has most of what there is too much of makes room.
    fn make_room(&mut self) {
        loop {
            let parts = self.by_owner.iter();
            let most = if self.finished.len() > KEPT_MAX {
                parts.max_by_key(|(_, part)| part.finished.len())
            } else if self.bytes > KEPT_BYTES_MAX {
                parts.max_by_key(|(_, part)| part.bytes)
            } else {
                return;
            };
            let Some((owner, _)) = most else {
                return;
            };
            let owner = owner.clone();
            self.forget_oldest_of(&owner);
        }
    }

    fn forget_oldest_of(&mut self, owner: &Owner) {
        let Some(part) = self.by_owner.get_mut(owner) else {
            return;
        };
        let number = part.finished.pop_front();
        if let Some(old) = number.and_then(|number| self.finished.remove(&number)) {
            part.bytes -= old.bytes;
            self.bytes -= old.bytes;
            self.uses.remove(&old.key);
        }
        if part.finished.is_empty() {
            self.by_owner.remove(owner);
        }
    }
}

fn weight(outcome: &Outcome) -> usize {
    let output = outcome
        .output()
        .map_or(0, |output| json_bytes(output.value(), usize::MAX));
    output + outcome.failure().map_or(0, |failure| failure.message.len())
}
