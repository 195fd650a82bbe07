//! What a server printed, kept on disk beside its catalogue: for those who ask when the process that saw it is gone.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use steadyhand_process::private;

use crate::client::catalogue::names;
use crate::client::record::LogLine;

/// A file that has grown beyond this is cut …
const FILE_BYTES_MAX: u64 = 512 * 1024;
/// … to its last lines.
const FILE_BYTES_KEPT: u64 = 128 * 1024;

/// What a server printed when it last ran, as far as it was kept; empty if nothing was.
pub fn kept_log(state: &Path, server: &str) -> io::Result<Vec<LogLine>> {
    match last_bytes(&path(state, server), FILE_BYTES_MAX) {
        Ok(bytes) => Ok(read(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(crate) fn path(state: &Path, server: &str) -> PathBuf {
    let name = names::file_name(server);
    state.join("mcp").join(format!("{name}.log"))
}

/// Adds lines; several processes may do so at once.
pub(crate) fn append(path: &Path, lines: &[LogLine]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private::make_folder(folder)?;
    }
    let mut file = private::open(path, OpenOptions::new().create(true).append(true))?;
    // In one piece: lines of others come before or after it.
    file.write_all(&written(lines)?)?;
    match file.metadata()?.len() > FILE_BYTES_MAX {
        true => cut(path),
        false => Ok(()),
    }
}

fn cut(path: &Path) -> io::Result<()> {
    let lines = read(&last_bytes(path, FILE_BYTES_KEPT)?);
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}", std::process::id()));
    private::replace(path, Path::new(&new), &written(&lines)?)
}

fn written(lines: &[LogLine]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// A line that cannot be read, such as the rest of one that was cut, is left out.
fn read(bytes: &[u8]) -> Vec<LogLine> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn last_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = private::open_to_read(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}
