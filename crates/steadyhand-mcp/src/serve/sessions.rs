//! All sessions: found by id, bounded in number, gone when nobody uses them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use tokio::time::Instant;
use uuid::Uuid;

use super::client::Client;
use super::news::Versions;
use super::session::Session;

const SESSIONS_MAX: usize = 16_384;
/// One that nobody uses for so long is gone; its client begins anew when it comes back.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
/// When there is no room, one that nobody has used for so long makes place.
const IDLE_MIN: Duration = Duration::from_secs(30);
const SHARDS: usize = 16;

type Shard = HashMap<Arc<str>, Arc<Session>, RandomState>;

/// All sessions.
pub(super) struct Sessions {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    count: AtomicUsize,
    started: Instant,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            count: AtomicUsize::new(0),
            started: Instant::now(),
        }
    }
}

impl Sessions {
    /// A new one. None if there is no room.
    pub(super) fn open(
        &self,
        client: Client,
        owner: Option<Arc<str>>,
        told: Versions,
    ) -> Option<Arc<Session>> {
        if self.count() >= SESSIONS_MAX {
            self.tidy();
        }
        if self.count() >= SESSIONS_MAX && !self.make_place() {
            return None;
        }
        // Whoever can guess an id would have someone else's session.
        let id: Arc<str> = Uuid::new_v4().simple().to_string().into();
        let session = Arc::new(Session::new(Arc::clone(&id), owner, client, told));
        self.use_now(&session);
        self.shard(&id).insert(id, Arc::clone(&session));
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(session)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.shard(id).get(id).cloned()?;
        self.use_now(&session);
        Some(session)
    }

    /// Ends one. False if there is none of this id.
    pub(super) fn end(&self, id: &str) -> bool {
        let session = self.shard(id).remove(id);
        if let Some(session) = &session {
            self.count.fetch_sub(1, Ordering::Relaxed);
            session.end();
        }
        session.is_some()
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        for shard in &self.shards {
            let sessions = std::mem::take(&mut *lock(shard));
            self.count.fetch_sub(sessions.len(), Ordering::Relaxed);
            sessions.values().for_each(|session| session.end());
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Ends those that nobody uses any more.
    pub(super) fn tidy(&self) {
        for (idle, id) in self.idle() {
            if idle >= IDLE_MAX {
                self.end(&id);
            }
        }
    }

    /// Ends the one that was not used for the longest time.
    fn make_place(&self) -> bool {
        let longest = self.idle().into_iter().max_by_key(|(idle, _)| *idle);
        match longest {
            Some((idle, id)) if idle >= IDLE_MIN => self.end(&id),
            Some(_) | None => false,
        }
    }

    /// Those that are not in use, and for how long.
    fn idle(&self) -> Vec<(Duration, Arc<str>)> {
        let now = self.now_ms();
        let idle = |session: &Arc<Session>| {
            let used = session.used_ms.load(Ordering::Relaxed);
            let idle = Duration::from_millis(now.saturating_sub(used));
            (!session.is_busy()).then(|| (idle, Arc::clone(&session.id)))
        };
        let shards = self.shards.iter().map(lock);
        shards
            .flat_map(|shard| shard.values().filter_map(idle).collect::<Vec<_>>())
            .collect()
    }

    fn use_now(&self, session: &Session) {
        session.used_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, Shard> {
        let place = self.hasher.hash_one(id) as usize % SHARDS;
        lock(&self.shards[place])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
