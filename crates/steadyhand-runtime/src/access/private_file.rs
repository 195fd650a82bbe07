//! Files that only their owner may read: replaced as a whole, by one writer at a time over all processes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use steadyhand_process::private;
pub use steadyhand_process::private::open_to_read as open;

/// Puts this there, whole or not at all: somebody may look at any moment.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    private::replace(path, &path.with_extension("json.new"), bytes)
}

/// One change at a time, for as long as this lives.
pub fn lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        private::make_folder(folder)?;
    }
    let path = path.with_extension("lock");
    let file = private::open(
        &path,
        OpenOptions::new().write(true).create(true).truncate(false),
    )?;
    file.lock()?;
    Ok(file)
}
