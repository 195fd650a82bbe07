//! Whose an orphan is that became our child, where several programs run at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::guard;
use crate::proc::{self, Process};
use crate::run::{self, Key, Run};

/// What must be known to say whether an orphan belongs to a run.
pub(crate) struct Adoption {
    others: Vec<Arc<Run>>,
    our_session: Option<i32>,
    guard: Option<i32>,
    starts: Option<u64>,
}

impl Adoption {
    /// Begin before looking at processes.
    pub(crate) fn begin(run: &Run) -> Adoption {
        Adoption {
            starts: run::starts(),
            others: run::others(run),
            // 0 in a container whose session began outside; the children in it have 0 as well.
            our_session: proc::read(proc::ourselves()).map(|process| process.session),
            guard: guard::pid(),
        }
    }

    /// Whether no child was started since the beginning: every child of ours that was seen is the leader of a
    /// run, the guard, or an orphan. Otherwise it could be a program that somebody starts just now.
    pub(crate) fn is_sure(&self) -> bool {
        self.starts.is_some() && self.starts == run::starts()
    }

    /// Whether a process without a mark of ours is an orphan that can be of no other run, or of one that is
    /// being stopped as well. What could be of several ends with the last of them.
    pub(crate) fn takes(&self, process: &Process) -> bool {
        process.parent == proc::ourselves()
            // What a run starts is in another session; ours has children of this process that are no runs.
            && Some(process.session) != self.our_session
            && Some(process.pid) != self.guard
            && !KEPT.lock().contains(&process.key())
            && !self.others.iter().any(|other| may_be_of(process, other))
    }
}

fn may_be_of(process: &Process, other: &Run) -> bool {
    let could_be = !other.is_stopping() && other.since <= process.started;
    could_be || process.is_of(other.leader) || other.known.lock().contains(&process.key())
}

/// Remembers processes that go on although their run is over.
pub(crate) fn keep(processes: impl Iterator<Item = Key>) {
    let mut kept = KEPT.lock();
    kept.retain(|key| proc::read(key.0).is_some_and(|process| process.key() == *key));
    kept.extend(processes);
}

static KEPT: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());
