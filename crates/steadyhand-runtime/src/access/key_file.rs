//! The file of keys: read as a whole, replaced as a whole, one writer at a time over all processes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use steadyhand_process::private;

use super::keys::{CannotKeep, Key};
use super::private_file;
use steadyhand_config::document::plain;

const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where keys are kept.
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    keys: Vec<Kept>,
}

/// A key as it is kept.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(flatten)]
    pub(super) key: Key,
    pub(super) sha256: String,
}

/// Tells one state of a file from another: it is only ever replaced as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl KeyFile {
    pub(super) fn read(&self) -> Result<Vec<Kept>, CannotKeep> {
        let failed = |why: String| CannotKeep::File(format!("{}: {why}", self.path.display()));
        let bytes = match private::read(&self.path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(plain(&error))),
        };
        let written: Written = serde_json::from_slice(&bytes).map_err(|error| {
            failed(format!(
                "it is no file of keys: {}",
                steadyhand::plain_words::json(&error)
            ))
        })?;
        match written.version {
            1 => Ok(written.keys),
            other => Err(failed(format!(
                "it has format {other}, and this program knows 1"
            ))),
        }
    }

    pub(super) fn write(&self, keys: Vec<Kept>) -> Result<(), CannotKeep> {
        let failed = |error: io::Error| {
            CannotKeep::File(format!(
                "{} cannot be written: {}",
                self.path.display(),
                plain(&error)
            ))
        };
        let text = serde_json::to_vec_pretty(&Written { version: 1, keys })
            .map_err(|error| failed(error.into()))?;
        private_file::replace(&self.path, &text).map_err(failed)
    }

    /// One change at a time, over all processes.
    pub(super) fn lock(&self) -> Result<File, CannotKeep> {
        let failed = |error: io::Error| {
            CannotKeep::File(format!(
                "{} cannot be locked: {}",
                self.path.display(),
                plain(&error)
            ))
        };
        private_file::lock(&self.path).map_err(failed)
    }

    pub(super) fn stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.path)
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let about = fs::metadata(path).ok()?;
        Some(Stamp {
            modified: about.modified().ok(),
            bytes: about.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&about),
            #[cfg(not(unix))]
            inode: 0,
        })
    }
}
