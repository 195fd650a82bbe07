//! All sessions: found by id, bounded in number for all and for each caller, gone when nobody uses them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};
use std::hash::BuildHasher;
use tokio::time::Instant;
use uuid::Uuid;

use super::caller_budgets::CallerBudgets;
use super::client::Client;
use super::exchange::Who;
use super::news::{TOLD_BYTES_MAX, Versions};
use super::session::Session;
use super::stream::KEPT_BYTES_OF_ALL_MAX;

/// Sessions at the same time, over all callers.
const SESSIONS_MAX: usize = 16_384;
/// Sessions of one caller; those it leaves unused make room for its new ones.
const SESSIONS_PER_CALLER_MAX: usize = 8_192;
/// Of all sessions, so many are kept for operators.
const SESSIONS_OPERATOR_RESERVE: usize = 256;
/// One that nobody uses for so long is gone; its client begins anew when it comes back.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
/// When there is no room, one that nobody has used for so long makes place.
const IDLE_MIN: Duration = Duration::from_secs(30);
/// So many are ended when one is to make room: looking for them takes a while.
const MADE_ROOM: usize = 64;
/// When nothing can make room, that is not looked into again for so long.
const NO_ROOM_FOR: Duration = Duration::from_secs(1);
const SHARDS: usize = 16;

type Shard = HashMap<Arc<str>, Arc<Session>, RandomState>;

/// All sessions.
pub(super) struct Sessions {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    count: AtomicUsize,
    by_account: Mutex<HashMap<Arc<str>, OfCaller>>,
    /// The memory of what waits for clients to take it.
    pub(super) told: Arc<CallerBudgets>,
    /// The memory of what streams keep.
    kept: Arc<CallerBudgets>,
    started: Instant,
}

/// What one caller has.
#[derive(Debug, Clone, Copy, Default)]
struct OfCaller {
    count: usize,
    /// When it is worth looking again for sessions that could make room for it, in milliseconds of our clock.
    look_again_ms: u64,
}

/// Why there is no session.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    #[error(
        "{0} has {SESSIONS_PER_CALLER_MAX} sessions, which is as many as one caller may have, and all of them were used lately; end one (DELETE), or try again later. No session was begun"
    )]
    OfCaller(Arc<str>),
    #[error(
        "there are {SESSIONS_MAX} sessions, which is as many as all callers may have; try again later. No session was begun"
    )]
    OfAll,
}

/// One that nobody uses now.
struct Idle {
    since: Duration,
    id: Arc<str>,
    account: Arc<str>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            count: AtomicUsize::new(0),
            by_account: Mutex::default(),
            told: CallerBudgets::new("messages for MCP clients", TOLD_BYTES_MAX),
            kept: CallerBudgets::new("what is kept for MCP sessions", KEPT_BYTES_OF_ALL_MAX),
            started: Instant::now(),
        }
    }
}

impl Sessions {
    /// A new one, if there is room for it: its caller's own unused sessions make room first, then those of the
    /// caller that has most.
    pub(super) fn open(
        &self,
        client: Client,
        who: Option<&Who>,
        told: Versions,
    ) -> Result<Arc<Session>, NoRoom> {
        let owner = who.and_then(|who| who.name.clone());
        let account = who.map_or_else(|| "".into(), |who| Arc::clone(&who.account));
        let max = match who.is_some_and(|who| who.is_operator) {
            true => SESSIONS_MAX,
            false => SESSIONS_MAX - SESSIONS_OPERATOR_RESERVE,
        };
        let own = self.of(&account);
        if own >= SESSIONS_PER_CALLER_MAX && !self.make_room_of(&account) {
            let name = account.trim_start_matches('@');
            return Err(NoRoom::OfCaller(name.into()));
        }
        if self.count() >= max && !self.make_room(&account) {
            return Err(NoRoom::OfAll);
        }
        // Whoever can guess an id would have someone else's session.
        let id: Arc<str> = Uuid::new_v4().simple().to_string().into();
        self.by_account
            .lock()
            .entry(Arc::clone(&account))
            .or_default()
            .count += 1;
        let memory = (self.told.of(&account), self.kept.of(&account));
        let session = Session::new(Arc::clone(&id), owner, account, client, told, memory);
        let session = Arc::new(session);
        self.use_now(&session);
        self.shard(&id).insert(id, Arc::clone(&session));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(session)
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
            self.gone(session);
            session.end();
        }
        session.is_some()
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        for shard in &self.shards {
            let sessions = std::mem::take(&mut *shard.lock());
            for session in sessions.values() {
                self.gone(session);
                session.end();
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many a caller has.
    fn of(&self, account: &str) -> usize {
        self.by_account.lock().get(account).map_or(0, |it| it.count)
    }

    /// It is in the table no more.
    fn gone(&self, session: &Session) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let mut by_account = self.by_account.lock();
        if let Some(of_caller) = by_account.get_mut(&session.account) {
            of_caller.count -= 1;
            if of_caller.count == 0 {
                by_account.remove(&session.account);
            }
        }
    }

    /// Ends those that nobody uses any more.
    pub(super) fn tidy(&self) {
        for idle in self.idle() {
            if idle.since >= IDLE_MAX {
                self.end(&idle.id);
            }
        }
    }

    /// Ends the sessions of a caller that it has not used for the longest time. False where it uses all of them.
    fn make_room_of(&self, account: &str) -> bool {
        let is_unused = |idle: &Idle| *idle.account == *account && idle.since >= IDLE_MIN;
        self.end_some(account, |idle| is_unused(idle).then_some(0))
    }

    /// Ends those that were not used for the longest time, of the caller that has most. Whoever has more than the one
    /// who asks makes room even with what it has used a moment ago.
    fn make_room(&self, account: &str) -> bool {
        let counts = self.by_account.lock().clone();
        let of = |account: &str| counts.get(account).map_or(0, |it| it.count);
        let own = of(account);
        self.end_some(account, |idle| {
            let count = of(&idle.account);
            (idle.since >= IDLE_MIN || count > own + MADE_ROOM).then_some(count)
        })
    }

    /// Ends some of those that may go: those of the highest rank, and of these the ones unused for longest. False if
    /// there are none.
    fn end_some(&self, account: &str, rank: impl Fn(&Idle) -> Option<usize>) -> bool {
        let now = self.now_ms();
        let again = self
            .by_account
            .lock()
            .get(account)
            .map(|it| it.look_again_ms);
        if again.is_some_and(|again| now < again) {
            return false;
        }
        let idle = self.idle().into_iter();
        let mut may_go: Vec<(usize, Idle)> =
            idle.filter_map(|idle| Some((rank(&idle)?, idle))).collect();
        let first = |(rank, idle): &(usize, Idle)| std::cmp::Reverse((*rank, idle.since));
        if may_go.len() > MADE_ROOM {
            may_go.select_nth_unstable_by_key(MADE_ROOM, first);
        }
        may_go.truncate(MADE_ROOM);
        for (_, idle) in &may_go {
            self.end(&idle.id);
        }
        if may_go.is_empty()
            && let Some(of_caller) = self.by_account.lock().get_mut(account)
        {
            of_caller.look_again_ms = now + NO_ROOM_FOR.as_millis() as u64;
        }
        !may_go.is_empty()
    }

    /// Those that are not in use, and for how long.
    fn idle(&self) -> Vec<Idle> {
        let now = self.now_ms();
        let idle = |session: &Arc<Session>| {
            let used = session.used_ms.load(Ordering::Relaxed);
            let since = Duration::from_millis(now.saturating_sub(used));
            (!session.is_busy()).then(|| Idle {
                since,
                id: Arc::clone(&session.id),
                account: Arc::clone(&session.account),
            })
        };
        let shards = self.shards.iter().map(Mutex::lock);
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
        self.shards[place].lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadyhand::ByteBudget;

    use super::*;
    use crate::gateway::era::Era;

    fn who(name: &str, is_operator: bool) -> Who {
        Who {
            name: None,
            account: name.into(),
            is_operator,
            permit: None,
            is_limited: false,
            may_decide: false,
            memory: ByteBudget::new("a test", 1),
            shares: None,
        }
    }

    fn open(sessions: &Sessions, who: &Who) -> Result<Arc<Session>, NoRoom> {
        let client = Client::new(Era::Legacy("2025-11-25"), None, json!({}));
        sessions.open(client, Some(who), Versions::default())
    }

    #[tokio::test(start_paused = true)]
    async fn s02_sessions_of_one_caller_leave_room_for_others_and_operators() {
        let sessions = Sessions::default();
        let [first, second, other] = ["first", "second", "other"].map(|name| who(name, false));
        for _ in 0..SESSIONS_PER_CALLER_MAX {
            assert!(open(&sessions, &first).is_ok());
        }
        let refused = open(&sessions, &first).err();
        assert_eq!(refused, Some(NoRoom::OfCaller("first".into())));
        for _ in 0..SESSIONS_PER_CALLER_MAX - SESSIONS_OPERATOR_RESERVE {
            assert!(open(&sessions, &second).is_ok());
        }
        // Everything that is not kept for operators is taken: whoever has most makes room.
        for _ in 0..200 {
            assert!(open(&sessions, &other).is_ok());
        }
        assert_eq!(sessions.of("other"), 200);
        let ended = SESSIONS_PER_CALLER_MAX - sessions.of("first");
        assert!((200..200 + MADE_ROOM).contains(&ended), "{ended}");
        assert!(open(&sessions, &who("operator", true)).is_ok());
        // What was not used for a while makes room for new ones of the same caller.
        tokio::time::advance(IDLE_MIN).await;
        for _ in 0..201 {
            assert!(open(&sessions, &first).is_ok());
        }
        sessions.end_all();
        assert_eq!((sessions.count(), sessions.of("first")), (0, 0));
    }
}
