//! Finds the processes of a run that left its group: daemons that made a session of their own.
//!
//! Linux only, from `/proc`: whoever is in the session, carries the run's mark in the environment it was
//! started with, or descends from one of these. What clears its environment *and* leaves the session
//! *and* lets its parent die is found only where we adopt orphans (`adopt_orphans`); elsewhere than on Linux
//! only the group is.

#[cfg(not(target_os = "linux"))]
use elsewhere::Straggler;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{find, keep, reap, started};
#[cfg(target_os = "linux")]
use linux::Straggler;
#[cfg(target_os = "linux")]
pub(crate) use linux::{find, keep, reap, started};

/// The living processes of a run, its leader included.
pub(crate) struct Found {
    pub(crate) living: Vec<Straggler>,
    /// Whether these are all; otherwise look again.
    pub(crate) all: bool,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;

    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
    };

    use super::Found;
    use crate::adoption::{self, Adoption};
    use crate::proc::{self, Marked, Process};
    use crate::run::{self, Run};

    /// One living process of a run.
    #[derive(Debug)]
    pub(crate) struct Straggler(Process);

    impl Straggler {
        /// A signal to the group does not reach it.
        pub(crate) fn is_outside(&self, run: &Run) -> bool {
            self.0.group != run.leader.as_raw_nonzero().get()
        }

        /// Sends a signal to this very process, not to one that got its number later.
        pub(crate) fn signal(&self, signal: Signal) {
            let Some(pid) = Pid::from_raw(self.0.pid) else {
                return;
            };
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
                return;
            };
            if proc::read(self.0.pid).is_some_and(|now| now.started == self.0.started) {
                let _ = pidfd_send_signal(handle, signal);
            }
        }
    }

    pub(crate) fn find(run: &Run) -> Found {
        let adoption = run::adopts().then(|| Adoption::begin(run));
        let young: Vec<Process> = proc::living()
            .filter(|process| process.started >= run.since)
            .collect();
        let sure = adoption.as_ref().is_none_or(Adoption::is_sure);
        let adoption = adoption.filter(|_| sure);
        let known = run.known.lock().clone();
        let belongs = |process: &Process| {
            if process.is_of(run.leader) || known.contains(&process.key()) {
                return true;
            }
            match proc::mark_of(process.pid, &run.mark) {
                Marked::WithThis => true,
                Marked::WithAnotherOfOurs => false,
                Marked::Not => adoption.as_ref().is_some_and(|it| it.takes(process)),
            }
        };
        let (mut found, mut others): (Vec<_>, Vec<_>) = young.into_iter().partition(belongs);
        loop {
            let parents: HashSet<i32> = found.iter().map(|process| process.pid).collect();
            let (children, rest): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|process| parents.contains(&process.parent));
            others = rest;
            if children.is_empty() {
                break;
            }
            found.extend(children);
        }
        run.known.lock().extend(found.iter().map(Process::key));
        Found {
            living: found.into_iter().map(Straggler).collect(),
            all: sure,
        }
    }

    /// Remembers the processes of a run that go on, so that no other run takes them for its own.
    pub(crate) fn keep(run: &Run) {
        let found = find(run);
        adoption::keep(found.living.iter().map(|straggler| straggler.0.key()));
    }

    /// Takes the ended processes of a run from the process table that became our children.
    pub(crate) fn reap(run: &Run) {
        let ourselves = proc::ourselves();
        for key in run.known.lock().iter() {
            let ended = proc::read_stat(key.0).filter(|(state, process)| {
                *state == b'Z' && process.key() == *key && process.parent == ourselves
            });
            if let (Some(_), Some(pid)) = (ended, Pid::from_raw(key.0)) {
                let _ = waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                );
            }
        }
    }

    /// When a process was started, in ticks since the system was; 0 when nobody knows.
    pub(crate) fn started(pid: Pid) -> u64 {
        let stat = proc::read_stat(pid.as_raw_nonzero().get());
        stat.map_or(0, |(_, process)| process.started)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use rustix::process::{Pid, Signal};

    use super::Found;
    use crate::run::Run;

    pub(crate) enum Straggler {}

    impl Straggler {
        pub(crate) fn is_outside(&self, _: &Run) -> bool {
            match *self {}
        }

        pub(crate) fn signal(&self, _: Signal) {
            match *self {}
        }
    }

    pub(crate) fn find(_: &Run) -> Found {
        Found {
            living: Vec::new(),
            all: true,
        }
    }

    pub(crate) fn keep(_: &Run) {}

    pub(crate) fn reap(_: &Run) {}

    pub(crate) fn started(_: Pid) -> u64 {
        0
    }
}
