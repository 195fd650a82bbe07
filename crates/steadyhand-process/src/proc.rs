//! Reads processes from `/proc`.

use std::fs;
use std::io::Read;

use rustix::process::Pid;

use crate::run::{FAMILY, Key, Mark, VARIABLE};

/// More than the kernel lets an environment have by default.
const ENVIRONMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What `/proc` says about a process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// In ticks since the system was started.
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn key(&self) -> Key {
        (self.pid, self.started)
    }

    /// Whether it is in the session or the group of a leader, or the leader itself.
    pub(crate) fn is_of(&self, leader: Pid) -> bool {
        let leader = leader.as_raw_nonzero().get();
        self.session == leader || self.group == leader
    }
}

/// Whose mark a process carries.
pub(crate) enum Marked {
    WithThis,
    WithAnotherOfOurs,
    Not,
}

pub(crate) fn ourselves() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// Every process that lives, but ourselves.
pub(crate) fn living() -> impl Iterator<Item = Process> {
    let ourselves = ourselves();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(move |pid| *pid != ourselves)
        .filter_map(read)
}

/// A process, if it lives.
pub(crate) fn read(pid: i32) -> Option<Process> {
    let (state, process) = read_stat(pid)?;
    (!matches!(state, b'Z' | b'X' | b'x')).then_some(process)
}

/// A process and its state, whether it lives or waits to be reaped.
pub(crate) fn read_stat(pid: i32) -> Option<(u8, Process)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    let process = Process {
        pid,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
    };
    Some((*fields.first()?.as_bytes().first()?, process))
}

/// Whose mark a process carries in the environment it was started with.
pub(crate) fn mark_of(pid: i32, mark: &Mark) -> Marked {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else {
        return Marked::Not;
    };
    let mut environment = Vec::new();
    let read = file
        .take(ENVIRONMENT_BYTES_MAX)
        .read_to_end(&mut environment);
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        let value = variable.strip_prefix(VARIABLE.as_bytes())?;
        std::str::from_utf8(value.strip_prefix(b"=")?).ok()
    });
    match (read, value) {
        (Ok(_), Some(value)) if value.contains(&mark.text) => Marked::WithThis,
        (Ok(_), Some(value)) if value.contains(FAMILY.as_str()) => Marked::WithAnotherOfOurs,
        _ => Marked::Not,
    }
}
