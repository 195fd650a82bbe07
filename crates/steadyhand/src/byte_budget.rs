//! Memory that is accounted for: a limit in bytes, and reservations that give their bytes back when they are dropped.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The limit of the process, unless it is set to another one (`[server] limits.memory`).
const PROCESS_BYTES_MAX: usize = 512 * 1024 * 1024;

/// A limit for bytes that are held for others: for a server, a caller, or the whole process. A budget can be a part of
/// another one; then its bytes count in both. Cheap to clone; clones are the same budget.
///
/// ```
/// # use steadyhand::ByteBudget;
/// let process = ByteBudget::new("the process", 1_000);
/// let server = process.part("server 'weather'", 600);
/// let held = server.reserve(500).unwrap();
/// assert!(server.reserve(200).is_err());
/// assert_eq!(process.used(), 500);
/// drop(held);
/// assert_eq!(process.used(), 0);
/// ```
#[derive(Clone)]
pub struct ByteBudget(Arc<Account>);

struct Account {
    /// Whose memory it is, for error texts.
    name: Arc<str>,
    bytes_max: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
    refused: AtomicU64,
    whole: Option<ByteBudget>,
}

/// Bytes of a budget. Dropping it gives them back.
pub struct ReservedBytes {
    budget: ByteBudget,
    bytes: usize,
}

/// There is no room for so many bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the memory for {budget} is used up: {used} of {bytes_max} bytes are in use, {wanted} more are needed"
)]
pub struct BudgetExceeded {
    /// Which budget has no room: the one that was asked, or one that it is a part of.
    pub budget: Arc<str>,
    /// Its limit.
    pub bytes_max: usize,
    /// What is in use of it.
    pub used: usize,
    /// What was to be added.
    pub wanted: usize,
}

impl ByteBudget {
    /// A budget of its own. `name` says whose memory it is, in error texts: `caller 'ci'`.
    pub fn new(name: impl Into<Arc<str>>, bytes_max: usize) -> ByteBudget {
        ByteBudget::within(None, name.into(), bytes_max)
    }

    /// The budget of the whole process, of which all others should be parts. 512 MB unless it is set.
    pub fn process() -> &'static ByteBudget {
        static PROCESS: OnceLock<ByteBudget> = OnceLock::new();
        PROCESS.get_or_init(|| ByteBudget::new("all servers and callers", PROCESS_BYTES_MAX))
    }

    /// A part of this budget, with a limit of its own: its bytes count in both.
    pub fn part(&self, name: impl Into<Arc<str>>, bytes_max: usize) -> ByteBudget {
        ByteBudget::within(Some(self.clone()), name.into(), bytes_max)
    }

    fn within(whole: Option<ByteBudget>, name: Arc<str>, bytes_max: usize) -> ByteBudget {
        ByteBudget(Arc::new(Account {
            name,
            bytes_max: AtomicUsize::new(bytes_max),
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            whole,
        }))
    }

    /// Reserves so many bytes, or none.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        let mut reserved = self.nothing();
        reserved.grow(bytes)?;
        Ok(reserved)
    }

    /// A reservation without bytes, for something that grows.
    pub fn nothing(&self) -> ReservedBytes {
        ReservedBytes {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// What is in use now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Acquire)
    }

    /// The most that ever was in use.
    pub fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Acquire)
    }

    /// How often there was no room.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// The limit.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max.load(Ordering::Relaxed)
    }

    /// Another limit from now on. What is in use beyond it stays; nothing is added until it has gone.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.0.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    fn add(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        let account = &*self.0;
        let bytes_max = self.bytes_max();
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= bytes_max);
        let added = account
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        let before = added.map_err(|used| {
            account.refused.fetch_add(1, Ordering::Relaxed);
            BudgetExceeded {
                budget: Arc::clone(&account.name),
                bytes_max,
                used,
                wanted: bytes,
            }
        })?;
        if let Some(whole) = &account.whole
            && let Err(exceeded) = whole.add(bytes)
        {
            account.used.fetch_sub(bytes, Ordering::AcqRel);
            account.refused.fetch_add(1, Ordering::Relaxed);
            return Err(exceeded);
        }
        account.peak.fetch_max(before + bytes, Ordering::AcqRel);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(whole) = &self.0.whole {
            whole.give_back(bytes);
        }
    }
}

impl ReservedBytes {
    /// How many it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many more, or an error and nothing is changed.
    pub fn grow(&mut self, more: usize) -> Result<(), BudgetExceeded> {
        if more > 0 {
            self.budget.add(more)?;
            self.bytes += more;
        }
        Ok(())
    }

    /// Gives back what is beyond so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        if surplus > 0 {
            self.bytes -= surplus;
            self.budget.give_back(surplus);
        }
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl fmt::Debug for ByteBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, used, bytes_max) = (&self.0.name, self.used(), self.bytes_max());
        write!(f, "ByteBudget({name}: {used} of {bytes_max})")
    }
}

impl fmt::Debug for ReservedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReservedBytes({} of {:?})", self.bytes, self.budget)
    }
}
