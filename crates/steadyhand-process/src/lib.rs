//! Starts programs, and stops them with everything they started.
//!
//! A [`Group`] is a program in a session of its own, with all it has started. Dropping it stops them all: TERM,
//! then KILL, daemons included where the system lets us find them (Linux). [`start`] is the usual way to one:
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! let (mut group, pipes) = steadyhand_process::start(|| {
//!     let mut command = tokio::process::Command::new("/bin/cat");
//!     command.stdin(std::process::Stdio::piped());
//!     command
//! })
//! .await?;
//! drop(pipes.stdin);
//! println!("cat {}", group.ended().await?);
//! group.stop(std::time::Duration::from_secs(2)).await;
//! # Ok(())
//! # }
//! ```
#![cfg(unix)]
// Only there can we find who has left a group.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod adoption;
mod ending;
mod exit;
mod find;
mod group;
mod guard;
mod members;
pub mod private;
#[cfg(target_os = "linux")]
mod proc;
mod run;
mod stragglers;

pub use exit::Exit;
pub use find::{NotFound, Reason, find_command, find_command_with_home};
pub use group::{Group, Pipes, start};
pub use members::settle;
pub use run::{adopt_orphans, depth};
