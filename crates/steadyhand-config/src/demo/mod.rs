//! The demo set: what there is without a configuration. One TOML that is read by the ordinary loader.

use std::path::PathBuf;

/// What it is called where a setting's origin is shown.
pub const FILE_NAME: &str = "demo.toml";
/// The set itself.
pub const TEXT: &str = include_str!("demo.toml");
/// The server that is this program.
pub const BROKEN_SERVER: &str = "broken_server";

/// This program, to be started as that server.
pub fn own_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}
