//! A program and everything it starts: one session, stopped as a whole, so that nothing survives.

use std::io;
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, ProcessSession};
use rustix::process::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::Exit;
use crate::ending::{Children, Ending};
use crate::guard::Guarded;
use crate::members::Members;
use crate::run::{Mark, Run, Spawning, VARIABLE};
use crate::stragglers;

/// How long a program may tidy up after TERM, before KILL, when its group is dropped.
const GRACE: Duration = Duration::from_secs(2);
/// How often, and after which wait, a busy file is tried again.
const BUSY_TRIES: u32 = 10;
const BUSY_WAIT: Duration = Duration::from_millis(20);

/// A running program with all it has started. Dropping it stops them all: TERM, then KILL.
#[derive(Debug)]
pub struct Group {
    members: Option<Members>,
    leader: Pid,
    ending: Ending,
    exit: Option<Exit>,
    own_accord: Duration,
}

/// Our ends of the program's pipes, of those that the command asked for.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: Option<ChildStdin>,
    /// What it answers.
    pub stdout: Option<ChildStdout>,
    /// What it complains about.
    pub stderr: Option<ChildStderr>,
}

/// Starts a program. A file that was written a moment ago is busy while another thread of ours, in the
/// middle of starting something else, holds a copy of the writer's handle: that passes.
pub async fn start(make: impl Fn() -> Command) -> io::Result<(Group, Pipes)> {
    let mut tries_left = BUSY_TRIES;
    loop {
        match Group::start(make()) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries_left > 0 => {
                tries_left -= 1;
                sleep(BUSY_WAIT).await;
            }
            started => return started,
        }
    }
}

impl Group {
    /// Starts a program in a session of its own: no terminal to ask for a password on, no Ctrl-C.
    pub fn start(mut command: Command) -> io::Result<(Group, Pipes)> {
        let mark = Mark::next();
        command.env(VARIABLE, mark.value());
        let children = Children::listen()?;
        let spawning = Spawning::begin();
        // Before the program: from its first moment on it cannot survive us.
        let guarded = Guarded::begin(&mark, &spawning);
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
        guarded.led_by(leader);
        let run = Run::begin(leader, stragglers::started(leader), mark, &spawning);
        let members = Members::new(child, run, guarded);
        drop(spawning);
        let group = Group {
            members: Some(members),
            leader,
            ending: Ending::of(leader, children),
            exit: None,
            own_accord: Duration::ZERO,
        };
        Ok((group, pipes))
    }

    /// How long it may take to end of its own accord when it is stopped, before TERM: for programs that end when
    /// their stdin does.
    pub fn ends_by_itself_within(&mut self, limit: Duration) {
        self.own_accord = limit;
    }

    /// The number of the program itself, which is also the number of its group and session.
    pub fn pid(&self) -> u32 {
        self.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for the program itself to end; what it has started may go on. Costs nothing while it waits,
    /// may be dropped at any time, and called again.
    pub async fn ended(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let exit = self.ending.wait(self.leader).await?;
        self.exit = Some(exit);
        Ok(exit)
    }

    /// The program has ended, and what it has started may go on, even after the end of this process.
    pub fn leave(mut self) {
        if let Some(members) = self.members.take() {
            members.leave();
        }
    }

    /// Stops them all: TERM, after the grace KILL. Returns when they are gone, or seconds after KILL. When
    /// this is not awaited to its end, they are stopped all the same.
    pub async fn stop(mut self, grace: Duration) {
        if let Some(stopped) = self.begin_to_stop(grace) {
            let _ = stopped.await;
        }
    }

    fn begin_to_stop(&mut self, grace: Duration) -> Option<JoinHandle<()>> {
        let members = self.members.take()?;
        members.announce_stop();
        // Without a runtime, or when it ends meanwhile, dropping the members kills them at once.
        let runtime = Handle::try_current().ok()?;
        Some(runtime.spawn(members.stop(self.own_accord, grace)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.begin_to_stop(GRACE);
    }
}
