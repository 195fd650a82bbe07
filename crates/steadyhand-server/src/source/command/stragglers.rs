//! Finds the processes of a run that left its group: daemons that made a session of their own.
//!
//! Linux only, from `/proc`: whoever is in the session, carries the run's mark in the environment it was
//! started with, or descends from one of these. What clears its environment *and* leaves the session
//! *and* lets its parent die is found only where we adopt orphans (`adopt_orphans`: a program that makes one call
//! at a time); elsewhere than on Linux only the group is.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rustix::process::Pid;

/// The variable that marks every process of a run.
pub(super) const MARK: &str = "STEADYHAND_RUN";

/// What tells the processes of a run from others.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) leader: Pid,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    mark: String,
    /// When the leader was started, in ticks: nobody older belongs to the run.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    since: u64,
    /// Number and start of everyone found so far: who is seen once is not lost when its parent dies.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    known: Arc<Mutex<HashSet<(i32, u64)>>>,
}

/// Whether orphans of our programs become our children.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(super) static ADOPTS: AtomicBool = AtomicBool::new(false);

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{find, started};
#[cfg(target_os = "linux")]
pub(super) use linux::{find, started};

impl Run {
    pub(super) fn new(leader: Pid, mark: String) -> Run {
        Run {
            leader,
            since: started(leader),
            mark: format!("{MARK}={mark}"),
            known: Arc::default(),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;
    use std::io::Read;
    use std::sync::PoisonError;
    use std::sync::atomic::Ordering;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::Run;

    /// More than the kernel lets an environment have by default.
    const ENVIRONMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

    /// One living process of a run.
    #[derive(Debug, Clone)]
    pub(in super::super) struct Straggler {
        pid: i32,
        parent: i32,
        session: i32,
        group: i32,
        started: u64,
    }

    impl Straggler {
        /// A signal to the group does not reach it.
        pub(in super::super) fn is_outside(&self, run: &Run) -> bool {
            self.group != run.leader.as_raw_nonzero().get()
        }

        fn key(&self) -> (i32, u64) {
            (self.pid, self.started)
        }

        /// Sends a signal to this very process, not to one that got its number later.
        pub(in super::super) fn signal(&self, signal: Signal) {
            let Some(pid) = Pid::from_raw(self.pid) else {
                return;
            };
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
                return;
            };
            if read(self.pid).is_some_and(|now| now.started == self.started) {
                let _ = pidfd_send_signal(handle, signal);
            }
        }
    }

    /// The living processes of a run, its leader included.
    pub(in super::super) fn find(run: &Run) -> Vec<Straggler> {
        let leader = run.leader.as_raw_nonzero().get();
        let mut known = run.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut others): (Vec<_>, Vec<_>) = living(run.since).partition(|process| {
            process.session == leader
                || process.group == leader
                || known.contains(&process.key())
                || is_marked(process.pid, &run.mark)
                || is_adopted(process)
        });
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
        *known = found.iter().map(Straggler::key).collect();
        found
    }

    /// When a process was started, in ticks since the system was; 0 when nobody knows.
    pub(in super::super) fn started(pid: Pid) -> u64 {
        read_stat(pid.as_raw_nonzero().get()).map_or(0, |(_, process)| process.started)
    }

    fn living(since: u64) -> impl Iterator<Item = Straggler> {
        let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(move |pid| *pid != ourselves)
            .filter_map(read)
            .filter(move |process| process.started >= since)
    }

    fn read(pid: i32) -> Option<Straggler> {
        let (state, process) = read_stat(pid)?;
        (!matches!(state, b'Z' | b'X' | b'x')).then_some(process)
    }

    fn read_stat(pid: i32) -> Option<(u8, Straggler)> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything, parentheses too.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 2..)?).ok()?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        let process = Straggler {
            pid,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            started: fields.get(19)?.parse().ok()?,
        };
        Some((*fields.first()?.as_bytes().first()?, process))
    }

    /// Ours by adoption: its parent is gone, and we are the one who makes calls one at a time.
    fn is_adopted(process: &Straggler) -> bool {
        let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
        super::ADOPTS.load(Ordering::Relaxed) && process.parent == ourselves
    }

    fn is_marked(pid: i32, mark: &str) -> bool {
        let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else {
            return false;
        };
        let mut environment = Vec::new();
        let read = file
            .take(ENVIRONMENT_BYTES_MAX)
            .read_to_end(&mut environment);
        let mut variables = environment.split(|byte| *byte == 0);
        read.is_ok() && variables.any(|variable| variable == mark.as_bytes())
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use rustix::process::{Pid, Signal};

    use super::Run;

    pub(in super::super) enum Straggler {}

    impl Straggler {
        pub(in super::super) fn is_outside(&self, _: &Run) -> bool {
            match *self {}
        }

        pub(in super::super) fn signal(&self, _: Signal) {
            match *self {}
        }
    }

    pub(in super::super) fn find(_: &Run) -> Vec<Straggler> {
        Vec::new()
    }

    pub(in super::super) fn started(_: Pid) -> u64 {
        0
    }
}
