//! The guard: one small process beside ours that kills what we started when we are gone, however we went.
//!
//! It reads from a socket whose other end only we hold. The system closes that end when we die, of KILL too:
//! no program of ours, nor what that has started, survives us. See `guard.sh` for what it does then.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use process_wrap::std::{CommandWrap, ProcessSession};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::time::Instant;

use crate::run::{FAMILY, Mark, Spawning};

const SCRIPT: &str = include_str!("guard.sh");
/// Where its tools are when we do not know a PATH.
const PATH: &str = "/usr/bin:/bin";
/// A guard that has lived so long was well: the next starts at once.
const LIFE_MIN: Duration = Duration::from_secs(60);
/// How long we wait at most before a guard that keeps dying is started again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A run that the guard knows of. Dropping it tells the guard that it is over: do that while the number of
/// its leader cannot be someone else's.
#[derive(Debug)]
pub(crate) struct Guarded {
    run: u64,
}

impl Guarded {
    /// Tells the guard of a run that is about to begin. Without a guard it begins all the same.
    pub(crate) fn begin(mark: &Mark, spawning: &Spawning) -> Guarded {
        GUARD.lock().begin(mark.number, spawning);
        Guarded { run: mark.number }
    }

    /// Tells the guard who leads the run.
    pub(crate) fn led_by(&self, leader: Pid) {
        GUARD.lock().led_by(self.run, leader);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        GUARD.lock().over(self.run);
    }
}

/// The guard's own number, so that nobody takes it for an orphan.
#[cfg(target_os = "linux")]
pub(crate) fn pid() -> Option<i32> {
    let guard = GUARD.lock();
    let shell = guard.shell.as_ref()?;
    Some(shell.pid.as_raw_nonzero().get())
}

/// What the guard must know, and the guard as far as there is one.
struct Guard {
    /// The shell.
    program: &'static str,
    runs: BTreeMap<u64, Option<Pid>>,
    shell: Option<Shell>,
    /// How many died young, one after the other.
    died_young: u32,
    warned: bool,
    /// This system has no shell: there will never be a guard.
    impossible: bool,
}

struct Shell {
    pid: Pid,
    line: UnixStream,
    started: Instant,
}

impl Guard {
    const fn with(program: &'static str) -> Guard {
        Guard {
            program,
            runs: BTreeMap::new(),
            shell: None,
            died_young: 0,
            warned: false,
            impossible: false,
        }
    }

    fn begin(&mut self, run: u64, spawning: &Spawning) {
        self.runs.insert(run, None);
        match self.shell {
            Some(_) => self.tell(&format!("+ {run}\n")),
            // It is told of all runs at its start.
            None => self.start(spawning),
        }
    }

    fn led_by(&mut self, run: u64, leader: Pid) {
        self.runs.insert(run, Some(leader));
        self.tell(&format!("= {run} {}\n", leader.as_raw_nonzero()));
    }

    fn over(&mut self, run: u64) {
        self.runs.remove(&run);
        self.tell(&format!("- {run}\n"));
    }

    /// Never waits: a guard that does not listen is replaced by one that is told everything anew.
    fn tell(&mut self, message: &str) {
        let Some(shell) = &mut self.shell else {
            return;
        };
        let told = shell.line.write(message.as_bytes());
        if !matches!(told, Ok(bytes) if bytes == message.len()) {
            // Its number is its own: who watches it reaps it only when it is forgotten here.
            let _ = kill_process(shell.pid, Signal::KILL);
        }
    }

    fn start(&mut self, _spawning: &Spawning) {
        if self.impossible || self.shell.is_some() {
            return;
        }
        match start_shell(self.program, self.list()) {
            Ok(shell) => {
                let pid = shell.pid;
                self.shell = Some(shell);
                let watching = thread::Builder::new()
                    .name("steadyhand-guard".to_owned())
                    .spawn(move || watch(pid));
                if let Err(error) = watching {
                    tracing::debug!(%error, "nobody will notice when the guard of programs dies");
                }
            }
            Err(error) => {
                self.impossible = error.kind() == io::ErrorKind::NotFound;
                if !self.warned {
                    self.warned = true;
                    tracing::warn!(
                        "cannot start {} to guard programs: {error}; if this process is killed (SIGKILL), the programs it started go on",
                        self.program
                    );
                }
            }
        }
    }

    /// All runs, as the script reads them.
    fn list(&self) -> impl Iterator<Item = String> {
        self.runs.iter().map(|(run, leader)| match leader {
            Some(leader) => format!("{run}:{}", leader.as_raw_nonzero()),
            None => format!("{run}:"),
        })
    }
}

fn start_shell(program: &str, runs: impl Iterator<Item = String>) -> io::Result<Shell> {
    // Both ends are closed in every program that is started.
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(program);
    command
        .args(["-c", SCRIPT, "steadyhand-guard", &FAMILY])
        .args(runs)
        .current_dir("/")
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_else(|| PATH.into()))
        // The script finds it in its own environment to see whether grep can be used.
        .env("STEADYHAND_GUARD", FAMILY.as_str())
        .stdin(OwnedFd::from(theirs))
        // Whoever reads our output must not wait for the guard.
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = CommandWrap::from(command).wrap(ProcessSession).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(Shell {
        pid: pid.ok_or_else(|| io::Error::other("the guard has no process id"))?,
        line: ours,
        started: Instant::now(),
    })
}

/// Waits until a guard is dead and starts another if there is anything to guard. On a thread, because runtimes
/// come and go.
fn watch(pid: Pid) {
    let ended = || {
        waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
    };
    while matches!(ended(), Err(Errno::INTR)) {}
    let Some(pause) = bury(pid) else {
        return;
    };
    tracing::debug!("the guard of programs has died and is started again");
    thread::park_timeout(pause);
    let spawning = Spawning::begin();
    let mut guard = GUARD.lock();
    if !guard.runs.is_empty() {
        guard.start(&spawning);
    }
}

/// Forgets a dead guard. How long to wait before the next one; none when there is nothing to guard.
fn bury(pid: Pid) -> Option<Duration> {
    let mut guard = GUARD.lock();
    let lived = guard.shell.take().map(|shell| shell.started.elapsed());
    let _ = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
    );
    guard.died_young = match lived {
        Some(lived) if lived < LIFE_MIN => guard.died_young.saturating_add(1),
        _ => 0,
    };
    if guard.runs.is_empty() {
        return None;
    }
    let pause = match guard.died_young {
        0 | 1 => Duration::ZERO,
        often => Duration::from_millis(50) * 2_u32.saturating_pow(often.min(20)),
    };
    Some(pause.min(PAUSE_MAX))
}

static GUARD: Mutex<Guard> = Mutex::new(Guard::with("/bin/sh"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_shell_there_is_one_warning_and_no_second_try() {
        let mut guard = Guard::with("/nowhere/sh");
        let spawning = Spawning::begin();
        for run in 1..4 {
            guard.begin(run, &spawning);
            guard.led_by(run, rustix::process::getpid());
            assert!(guard.warned && guard.impossible && guard.shell.is_none());
        }
        guard.over(2);
        let known: Vec<u64> = guard.runs.into_keys().collect();
        assert_eq!(known, [1, 3]);
    }
}
