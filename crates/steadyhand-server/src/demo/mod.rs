//! The demo set: what there is without a configuration. One TOML that is read by the ordinary loader, quiet traffic
//! for the dashboard, and a server that is broken on purpose.

mod broken;
mod traffic;

use std::path::PathBuf;

pub(crate) use broken::crash;
pub(crate) use traffic::traffic;

/// What it is called where a setting's origin is shown.
pub(crate) const FILE_NAME: &str = "demo.toml";
/// The set itself.
pub(crate) const TEXT: &str = include_str!("demo.toml");
/// The server that is this program.
pub(crate) const BROKEN_SERVER: &str = "broken_server";

/// This program, to be started as that server.
pub(crate) fn own_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}
