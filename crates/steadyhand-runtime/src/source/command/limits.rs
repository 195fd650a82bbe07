//! How much a program may use: output, memory, CPU time.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use schemars::JsonSchema;
use serde::Deserialize;

use steadyhand_config::units::{Size, Span, TIME_LIMIT};

/// What is read of a program's output where nothing else is said.
const OUTPUT_BYTES: usize = 1024 * 1024;

/// How much a program may use.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandLimits {
    /// Memory of each of its processes: more is refused to it, and most programs end then. Needs prlimit (util-linux).
    pub memory: Option<Size>,
    /// How much of its output is kept (1MiB by default); the rest is read and thrown away, with a note.
    pub output: Option<Size>,
    /// CPU time of each of its processes, in whole seconds. Needs prlimit (util-linux).
    #[schemars(extend("format" = TIME_LIMIT))]
    pub cpu: Option<Span>,
}

/// The same, as it is run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub output_bytes: usize,
    pub memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
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
    /// What goes before the program so that it has its limits from its first instruction, and all it
    /// starts after it; nothing when there are none. `Err` when the system has no such program.
    ///
    /// Memory is what it may write to (`RLIMIT_DATA`), not its address space: runtimes reserve
    /// gigabytes of that and never use them (docs/decisions/0009).
    pub(super) fn launcher(&self) -> Result<Vec<OsString>, which::Error> {
        let mut options = Vec::new();
        if let Some(bytes) = self.memory_bytes {
            options.push(option("--data", Resource::Data, bytes, bytes));
        }
        if let Some(time) = self.cpu {
            let seconds = time.as_millis().div_ceil(1000).max(1) as u64;
            // At the first a signal that says why, at the second the end.
            options.push(option("--cpu", Resource::Cpu, seconds, seconds + 1));
        }
        if options.is_empty() {
            return Ok(Vec::new());
        }
        options.insert(0, which::which("prlimit")?.into());
        options.push("--".into());
        Ok(options)
    }
}

fn option(name: &str, resource: Resource, soft: u64, hard: u64) -> OsString {
    // Our own limit is inherited, and nobody may raise it.
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    format!("{name}={}:{}", soft.min(ceiling), hard.min(ceiling)).into()
}
