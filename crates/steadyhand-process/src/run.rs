//! The runs of this process: what marks the processes of each, and which runs are still there.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustix::process::Pid;

/// The variable that marks every process of a run.
pub(crate) const VARIABLE: &str = "STEADYHAND_RUN";
/// An inherited value that is longer was not made by us.
const OUTER_BYTES_MAX: usize = 1024;

/// Number and start of a process: together nobody else's, ever.
pub(crate) type Key = (i32, u64);

/// Makes this process the parent of what its programs leave behind: for a program that ends with its calls,
/// which can then stop every descendant it has.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// How many Steadyhands stand above this process: one started it, another started that one, and so on.
pub fn depth() -> usize {
    let outer = env::var(VARIABLE).unwrap_or_default();
    // Each mark is the family and the number of a run, with a dot behind either.
    outer.matches('.').count() / 2
}

/// Whether orphans of our programs become our children.
pub(crate) fn adopts() -> bool {
    ADOPTS.load(Ordering::Relaxed)
}

/// What every process of one run carries in its environment.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) number: u64,
    /// Unique, and no part of another mark: it ends with a dot.
    pub(crate) text: String,
}

impl Mark {
    pub(crate) fn next() -> Mark {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let text = format!("{}{number}.", *FAMILY);
        Mark { number, text }
    }

    /// What the variable is set to. A program of ours may be Steadyhand itself: what it starts belongs to
    /// its runs and to ours.
    pub(crate) fn value(&self) -> String {
        let outer = env::var(VARIABLE).unwrap_or_default();
        match outer.len() <= OUTER_BYTES_MAX {
            true => outer + &self.text,
            false => self.text.clone(),
        }
    }
}

/// What all marks of this process begin with.
pub(crate) static FAMILY: LazyLock<String> =
    LazyLock::new(|| format!("{}.", uuid::Uuid::new_v4().simple()));

/// What tells the processes of a run from others.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) leader: Pid,
    pub(crate) mark: Mark,
    /// When the leader was started, in ticks: nobody older belongs to the run.
    pub(crate) since: u64,
    /// Everyone found so far: who is seen once is not lost when its parent dies.
    pub(crate) known: Mutex<HashSet<Key>>,
    /// All that belongs to it is to end.
    stopping: AtomicBool,
}

impl Run {
    /// A run whose leader was started at `since`, in ticks. It is known from before the end of `_spawning`.
    pub(crate) fn begin(leader: Pid, since: u64, mark: Mark, _spawning: &Spawning) -> Arc<Run> {
        let run = Arc::new(Run {
            leader,
            since,
            mark,
            known: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        RUNS.lock().insert(run.mark.number, Arc::clone(&run));
        run
    }

    /// It is gone, or left alone: what is found from now on is not its.
    pub(crate) fn end(&self) {
        RUNS.lock().remove(&self.mark.number);
    }

    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// The other runs that are there now.
pub(crate) fn others(run: &Run) -> Vec<Arc<Run>> {
    let runs = RUNS.lock();
    let others = runs
        .values()
        .filter(|other| other.mark.number != run.mark.number);
    others.cloned().collect()
}

/// There while a child is started, until it is known whose it is.
pub(crate) struct Spawning(());

impl Spawning {
    pub(crate) fn begin() -> Spawning {
        STARTING.fetch_add(1, Ordering::SeqCst);
        STARTS.fetch_add(1, Ordering::SeqCst);
        Spawning(())
    }
}

impl Drop for Spawning {
    fn drop(&mut self) {
        STARTING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How many children have been started, if none is being started now. The same answer twice: none was
/// started in between.
pub(crate) fn starts() -> Option<u64> {
    let starts = STARTS.load(Ordering::SeqCst);
    (STARTING.load(Ordering::SeqCst) == 0).then_some(starts)
}

static ADOPTS: AtomicBool = AtomicBool::new(false);
static RUNS: Mutex<BTreeMap<u64, Arc<Run>>> = Mutex::new(BTreeMap::new());
static STARTS: AtomicU64 = AtomicU64::new(0);
static STARTING: AtomicU64 = AtomicU64::new(0);
