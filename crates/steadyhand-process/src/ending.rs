//! Waits for a program to end without taking it from the process table, and at no cost until then.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::Exit;

/// A signal may be lost when several children end at once, so we look now and then as well.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What tells us that a program has ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// A handle that becomes readable at its end.
    #[cfg(target_os = "linux")]
    Handle(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    /// The signal that some child has ended, where there are no such handles.
    Signals(Signal),
}

/// The signal, heard from before the program is started, so that its end cannot be missed. Without it a
/// process that was started with SIGCHLD ignored could not wait for its children at all.
pub(crate) struct Children(Signal);

impl Children {
    pub(crate) fn listen() -> io::Result<Children> {
        Ok(Children(signal(SignalKind::child())?))
    }
}

impl Ending {
    pub(crate) fn of(leader: Pid, children: Children) -> Ending {
        #[cfg(target_os = "linux")]
        if let Ok(handle) = handle_of(leader) {
            return Ending::Handle(handle);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = leader;
        Ending::Signals(children.0)
    }

    pub(crate) async fn wait(&mut self, leader: Pid) -> io::Result<Exit> {
        loop {
            if let Some(exit) = exit_of(leader)? {
                return Ok(exit);
            }
            match self {
                #[cfg(target_os = "linux")]
                Ending::Handle(handle) => {
                    let mut ready = handle.readable().await?;
                    if let Some(exit) = exit_of(leader)? {
                        return Ok(exit);
                    }
                    ready.clear_ready();
                }
                Ending::Signals(children) => {
                    let _ = timeout(LOOK_AGAIN, children.recv()).await;
                }
            }
        }
    }
}

/// How a child of ours ended, if it has; it stays in the process table.
pub(crate) fn exit_of(child: Pid) -> io::Result<Option<Exit>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(child), options)?;
    Ok(status.as_ref().and_then(Exit::read))
}

#[cfg(target_os = "linux")]
#[allow(
    deprecated,
    reason = "what replaces it is unsafe: it takes handles that someone else may close, and nobody closes an OwnedFd"
)]
fn handle_of(leader: Pid) -> io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    use rustix::process::{PidfdFlags, pidfd_open};
    use tokio::io::{Interest, unix::AsyncFd};

    let handle = pidfd_open(leader, PidfdFlags::empty())?;
    AsyncFd::with_interest(handle, Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_is_heard_where_there_are_no_handles() {
        let children = Children::listen().expect("a signal");
        let mut command = tokio::process::Command::new("sh");
        let child = command.args(["-c", "exit 3"]).spawn().expect("a shell");
        let id = i32::try_from(child.id().expect("a number")).expect("a number");
        let leader = Pid::from_raw(id).expect("a number");
        let mut ending = Ending::Signals(children.0);
        assert_eq!(ending.wait(leader).await.expect("it ends"), Exit::Code(3));
    }
}
