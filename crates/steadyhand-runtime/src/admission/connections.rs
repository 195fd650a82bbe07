//! The connections that are open: so many, and when there are too many, one that nobody uses makes room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Slot;

/// A connection that has been idle for less than this makes no room: its request may be on its way.
const IDLE_MIN: Duration = Duration::from_millis(100);

/// All open connections.
pub struct ConnectionTable {
    max: usize,
    /// Counts what happens on connections: which of them was used last.
    clock: AtomicU64,
    started: Instant,
    open: Mutex<Open>,
    emptied: Notify,
}

#[derive(Default)]
struct Open {
    last: u64,
    connections: HashMap<u64, (IpAddr, Arc<ConnectionActivity>)>,
    by_address: HashMap<IpAddr, usize>,
}

/// What happens on one connection, as far as it matters for who makes room.
pub struct ConnectionActivity {
    table: Arc<ConnectionTable>,
    /// A request is answered there, or its answer is not all sent yet.
    in_use: AtomicBool,
    /// The body of the answer was handed over; when it is sent, the connection is idle.
    answered: AtomicBool,
    has_spoken: AtomicBool,
    is_closing: AtomicBool,
    used: AtomicU64,
    idle_since_ms: AtomicU64,
    /// The slot of the request that is answered.
    slot: Mutex<Option<Slot>>,
    /// Cancelled when it is to make room.
    pub evicted: CancellationToken,
}

/// One open connection: gone from the table when this goes.
pub struct OpenConnection {
    number: u64,
    pub activity: Arc<ConnectionActivity>,
}

impl ConnectionTable {
    /// A table of at most so many.
    pub fn new(max: usize) -> Arc<ConnectionTable> {
        Arc::new(ConnectionTable {
            max,
            clock: AtomicU64::new(0),
            started: Instant::now(),
            open: Mutex::default(),
            emptied: Notify::new(),
        })
    }

    /// Takes a connection in. None when all others are in use, or belong to addresses that have fewer.
    pub fn take_in(self: &Arc<Self>, address: IpAddr) -> Option<OpenConnection> {
        let address = address.to_canonical();
        let mut open = self.open();
        if open.connections.len() >= self.max {
            let evicted = open.evict(address, self.now_ms())?;
            evicted.evicted.cancel();
        }
        let activity = Arc::new(ConnectionActivity {
            table: Arc::clone(self),
            in_use: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            has_spoken: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            used: AtomicU64::new(self.tick()),
            idle_since_ms: AtomicU64::new(self.now_ms()),
            slot: Mutex::default(),
            evicted: CancellationToken::new(),
        });
        open.last += 1;
        let number = open.last;
        let entry = (address, Arc::clone(&activity));
        open.connections.insert(number, entry);
        *open.by_address.entry(address).or_default() += 1;
        Some(OpenConnection { number, activity })
    }

    /// Waits until none is open.
    pub async fn until_none(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // From here on nothing is missed.
            emptied.as_mut().enable();
            if self.open().connections.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Takes the one out that is to make room: of the address that has most, one that was never used, or else the one
    /// that was not used for the longest time. No address makes room for one that has more.
    fn evict(&mut self, newcomer: IpAddr, now_ms: u64) -> Option<Arc<ConnectionActivity>> {
        let of = |address: &IpAddr| self.by_address.get(address).map_or(0, |count| *count);
        let own = of(&newcomer);
        let idle = self.connections.iter().filter(|(_, (address, activity))| {
            activity.is_idle(now_ms) && of(address) >= own.max(1)
        });
        let (number, _) = idle.min_by_key(|(_, (address, activity))| {
            let most_first = std::cmp::Reverse(of(address));
            let has_spoken = activity.has_spoken.load(Ordering::Relaxed);
            let is_others = *address != newcomer;
            let used = activity.used.load(Ordering::Relaxed);
            (most_first, is_others, has_spoken, used)
        })?;
        let number = *number;
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<Arc<ConnectionActivity>> {
        let (address, activity) = self.connections.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(activity)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let table = &self.activity.table;
        let mut open = table.open();
        // One that made room is out already.
        let _ = open.remove(self.number);
        let is_empty = open.connections.is_empty();
        drop(open);
        if is_empty {
            table.emptied.notify_waiters();
        }
    }
}

impl ConnectionActivity {
    /// A request has come.
    pub fn request_begins(&self) {
        // One that was sent in advance begins when the answer before is written, and perhaps not sent yet.
        drop(self.slot().take());
        self.answered.store(false, Ordering::Release);
        self.has_spoken.store(true, Ordering::Relaxed);
        self.in_use.store(true, Ordering::Release);
        self.used.store(self.table.tick(), Ordering::Relaxed);
    }

    /// Keeps the slot of the request until its answer is sent.
    pub fn hold(&self, slot: Slot) {
        *self.slot() = Some(slot);
    }

    /// The whole answer was handed over.
    pub fn answer_ends(&self) {
        self.answered.store(true, Ordering::Release);
    }

    /// Everything that was handed over is sent.
    pub fn sent(&self) {
        if self.answered.swap(false, Ordering::AcqRel) {
            drop(self.slot().take());
            self.used.store(self.table.tick(), Ordering::Relaxed);
            let now_ms = self.table.now_ms();
            self.idle_since_ms.store(now_ms, Ordering::Relaxed);
            self.in_use.store(false, Ordering::Release);
        }
    }

    /// Everything is sent, and no request will come any more: it makes room at once.
    pub fn closes(&self) {
        self.answer_ends();
        self.sent();
        self.is_closing.store(true, Ordering::Release);
    }

    fn is_idle(&self, now_ms: u64) -> bool {
        let since = self.idle_since_ms.load(Ordering::Relaxed);
        let is_closing = self.is_closing.load(Ordering::Acquire);
        let is_unused = now_ms.saturating_sub(since) >= IDLE_MIN.as_millis() as u64;
        is_closing || (!self.is_in_use() && is_unused)
    }

    pub fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Acquire)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Slot>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s02_an_idle_connection_of_the_address_that_has_most_makes_room() {
        let table = ConnectionTable::new(4);
        let [much, little]: [IpAddr; 2] =
            ["10.0.0.1", "10.0.0.2"].map(|it| it.parse().expect("an address"));
        let kept = table.take_in(little).expect("room");
        let all: Vec<_> = (0..3).map(|_| table.take_in(much).expect("room")).collect();
        all[0].activity.request_begins();
        all[0].activity.answer_ends();
        all[0].activity.sent();
        assert!(
            table.take_in(little).is_none(),
            "a request may be on its way"
        );
        tokio::time::advance(IDLE_MIN).await;
        let _another = table.take_in(little).expect("one makes room");
        let evicted: Vec<bool> = all
            .iter()
            .map(|it| it.activity.evicted.is_cancelled())
            .collect();
        assert_eq!(
            evicted,
            [false, true, false],
            "the oldest that never said a word"
        );
        all[0].activity.request_begins();
        let _one_more = table.take_in(much).expect("its own makes room");
        assert!(all[2].activity.evicted.is_cancelled());
        assert!(!all[0].activity.evicted.is_cancelled(), "it is in use");
        assert!(!kept.activity.evicted.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn s02_connections_in_use_stay_and_the_next_one_is_not_taken_in() {
        let table = ConnectionTable::new(2);
        let address: IpAddr = "10.0.0.1".parse().expect("an address");
        let open = [(); 2].map(|()| table.take_in(address).expect("room"));
        open.iter().for_each(|it| it.activity.request_begins());
        assert!(table.take_in(address).is_none());
        open[1].activity.sent();
        assert!(table.take_in(address).is_none(), "its answer is not over");
        open[1].activity.answer_ends();
        open[1].activity.sent();
        tokio::time::advance(IDLE_MIN).await;
        assert!(table.take_in(address).is_some());
    }
}
