//! A program and everything it starts: one session, stopped as a whole, so that nothing survives.
//!
//! The leader is not reaped before the rest is gone: as long as it is a zombie, its number cannot be
//! given to someone else, and a signal to its group can hit nobody but the group.

use std::collections::HashSet;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::stragglers::{self, Run};

/// How long a program may tidy up after TERM, before KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long KILL may take to work; longer only in a broken kernel or on a dead network disk.
const KILL_WAIT: Duration = Duration::from_secs(3);
/// A signal may be lost when several children end at once, so we look now and then as well.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Without a runtime nobody can wait: so often we look for what was forked meanwhile.
const KILL_ROUNDS: usize = 5;

/// A running program with all it has started. Dropping it stops them all: TERM, then KILL.
pub(crate) struct Group {
    members: Option<Members>,
    children: Signals,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Our ends of the program's pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

/// Waits until every program that is being stopped now is gone, or the time is up. Call it before the
/// process ends: programs that are still there then get KILL with no more time to tidy up.
pub async fn settle(limit: Duration) {
    let mut stopping = STOPPING.subscribe();
    let now = stopping.borrow().clone();
    let gone = stopping.wait_for(|stopping| stopping.is_disjoint(&now));
    let _ = timeout(limit, gone).await;
}

/// Makes this process the parent of what its programs leave behind: for a program that ends with the call,
/// which can then stop every descendant it has.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        stragglers::ADOPTS.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Group {
    /// Starts a program in a session of its own: no terminal to ask for a password on, no Ctrl-C.
    pub(crate) fn start(command: Command, mark: String) -> io::Result<(Group, Pipes)> {
        // Before the program, or its end could be missed.
        let children = signal(SignalKind::child())?;
        let mut child = CommandWrap::from(command).wrap(ProcessSession).spawn()?;
        let leader = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            .ok_or_else(|| io::Error::other("the program has no process id"))?;
        let pipes = Pipes {
            stdin: child.stdin().take(),
            stdout: child.stdout().take(),
            stderr: child.stderr().take(),
        };
        let members = Members {
            child,
            run: Run::new(leader, mark),
            over: false,
        };
        let group = Group {
            members: Some(members),
            children,
        };
        Ok((group, pipes))
    }

    /// Waits for the program itself to end; what it has started may go on.
    pub(crate) async fn ended(&mut self) -> io::Result<Exit> {
        let members = self.members.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let leader = members.run.leader;
        loop {
            if let Some(exit) = exit_of(leader)? {
                return Ok(exit);
            }
            let _ = timeout(LOOK_AGAIN, self.children.recv()).await;
        }
    }

    /// The program has ended, and what it has started may go on.
    pub(crate) fn leave(mut self) {
        if let (Some(mut members), Ok(runtime)) = (self.members.take(), Handle::try_current()) {
            members.over = true;
            runtime.spawn(async move { members.reap().await });
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(members) = self.members.take() else {
            return;
        };
        STOPPING.send_modify(|stopping| {
            stopping.insert(members.run.leader);
        });
        // Without a runtime, or when it ends meanwhile, dropping the members kills them at once.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(members.stop());
        }
    }
}

struct Members {
    child: Box<dyn ChildWrapper>,
    run: Run,
    over: bool,
}

impl Members {
    async fn stop(mut self) {
        // Most programs leave nothing behind.
        if !self.gone_within(Duration::ZERO, &[]).await {
            // A stopped program takes no notice of TERM before CONT.
            self.sweep(&[Signal::TERM, Signal::CONT]).await;
            if !self.gone_within(GRACE, &[]).await {
                tracing::debug!(leader = ?self.run.leader, "still there after TERM: KILL");
            }
        }
        // To the group in any case: elsewhere than on Linux nobody knows who is left in it.
        if !self.gone_within(KILL_WAIT, &[Signal::KILL]).await {
            tracing::warn!(leader = ?self.run.leader, "a program is still there after KILL");
        }
        self.over = true;
        self.reap().await;
    }

    /// Whether all are gone in time; whoever is not gets `signals` each time we look.
    async fn gone_within(&self, limit: Duration, signals: &'static [Signal]) -> bool {
        let until = Instant::now() + limit;
        let mut pause = Duration::from_millis(5);
        loop {
            if self.sweep(signals).await {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// [`sweep`] on a thread that may wait for the disk.
    async fn sweep(&self, signals: &'static [Signal]) -> bool {
        let run = self.run.clone();
        let swept = tokio::task::spawn_blocking(move || sweep(&run, signals));
        swept.await.unwrap_or(false)
    }

    /// Takes the ended leader from the process table, and what else of its group is ours (as process 1
    /// of a container we inherit orphans).
    async fn reap(&mut self) {
        let _ = timeout(KILL_WAIT, self.child.inner_mut().wait()).await;
        let _ = self.child.try_wait();
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if !self.over {
            let all_gone = || sweep(&self.run, &[Signal::KILL]);
            let _ = (0..KILL_ROUNDS).any(|_| all_gone());
            let _ = self.child.inner_mut().try_wait();
        }
        STOPPING.send_modify(|stopping| {
            stopping.remove(&self.run.leader);
        });
    }
}

/// Sends signals to the group, each in one step, and to those who have left it. Whether all were gone.
fn sweep(run: &Run, signals: &[Signal]) -> bool {
    // First: the signal cuts the tie between a parent and the child that left the group.
    let left = stragglers::find(run);
    for signal in signals {
        let _ = kill_process_group(run.leader, *signal);
        let outside = left.iter().filter(|straggler| straggler.is_outside(run));
        outside.for_each(|straggler| straggler.signal(*signal));
    }
    left.is_empty() && !matches!(exit_of(run.leader), Ok(None))
}

/// How the leader ended, if it has; it stays in the process table.
fn exit_of(leader: Pid) -> io::Result<Option<Exit>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(leader), options)?;
    Ok(status.as_ref().and_then(read_exit))
}

fn read_exit(status: &WaitIdStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// The leaders of all programs that are being stopped, in the whole process.
static STOPPING: LazyLock<watch::Sender<HashSet<Pid>>> = LazyLock::new(watch::Sender::default);
