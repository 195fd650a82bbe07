//! How much a program may use: output, memory, CPU time.

use std::io;
use std::time::Duration;

use rustix::process::Pid;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::units::{Size, Span};

/// What is read of a program's output where nothing else is said.
const OUTPUT_BYTES: usize = 1024 * 1024;

/// How much a program may use.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandLimits {
    /// Memory of each of its processes (Linux): more is refused to it, and most programs end then.
    pub memory: Option<Size>,
    /// How much of its output is kept (1MiB by default); the rest is read and thrown away, with a note.
    pub output: Option<Size>,
    /// CPU time of each of its processes, in whole seconds (Linux).
    pub cpu: Option<Span>,
}

/// The same, as it is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) output_bytes: usize,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cpu: Option<Duration>,
}

impl From<Option<CommandLimits>> for Limits {
    fn from(limits: Option<CommandLimits>) -> Limits {
        let limits = limits.unwrap_or_default();
        let output = limits.output.and_then(|size| usize::try_from(size.0).ok());
        Limits {
            output_bytes: output.unwrap_or(OUTPUT_BYTES),
            memory_bytes: limits.memory.map(|size| size.0),
            cpu: limits.cpu.map(|span| span.0),
        }
    }
}

impl Limits {
    /// Sets the limits of a program that has just been started; what it starts inherits them.
    ///
    /// Memory is what it may write to (`RLIMIT_DATA`), not its address space: runtimes reserve
    /// gigabytes of that and never use them (docs/decisions/0009).
    #[cfg(target_os = "linux")]
    pub(crate) fn apply(&self, leader: Pid) -> io::Result<()> {
        use rustix::process::Resource;

        if let Some(bytes) = self.memory_bytes {
            set(leader, Resource::Data, bytes, bytes)?;
        }
        if let Some(time) = self.cpu {
            let seconds = time.as_millis().div_ceil(1000).max(1) as u64;
            // At the first a signal that says why, at the second the end.
            set(leader, Resource::Cpu, seconds, seconds + 1)?;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn apply(&self, _: Pid) -> io::Result<()> {
        match (self.memory_bytes, self.cpu) {
            (None, None) => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "limits.memory and limits.cpu need Linux",
            )),
        }
    }
}

#[cfg(target_os = "linux")]
fn set(pid: Pid, resource: rustix::process::Resource, soft: u64, hard: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, prlimit};

    // A program inherits our own limits; nobody may raise them.
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit {
        current: Some(soft.min(ceiling)),
        maximum: Some(hard.min(ceiling)),
    };
    match prlimit(Some(pid), resource, limit) {
        // It has ended already.
        Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
