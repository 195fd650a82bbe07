//! The marker beside the file of keys: which file belongs here, and how many keys it must hold at least. Without it a
//! file that is missing, emptied, damaged or older than the last call would look like one that was never used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steadyhand_process::private;
use tokio::time::Instant;

use super::super::database::Trouble;

/// A marker is two of these: the newer one counts, and a torn write leaves the older one.
const SLOT_BYTES: usize = 512;
/// How long another process may hold the files.
const LOCK_MAX: Duration = Duration::from_secs(1);
const LOCK_AGAIN: Duration = Duration::from_millis(2);

/// What the file of keys must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// The random id that the file has, too.
    pub(super) store: String,
    /// Counts from 1; one more each time a person accepted a loss.
    pub(super) generation: u64,
    /// Keys that were ever taken, and on the disk when their calls ran.
    pub(super) takes: u64,
    /// What is not finished yet.
    pub(super) making: Making,
    /// Counts writes of this marker.
    revision: u64,
}

/// How far the file of keys has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Making {
    /// It is being made. No key of it was ever given out.
    New,
    /// It is one of an earlier version, and is being brought up to date.
    Upgrade,
    /// It is there.
    Done,
}

/// A marker as it stands in a slot.
#[derive(Serialize, Deserialize)]
struct Slot {
    marker: Marker,
    sha256: String,
}

/// The files around the one of keys: one marker beside it, one elsewhere, and a lock.
#[derive(Debug, Clone)]
pub(super) struct Markers {
    beside: PathBuf,
    elsewhere: Option<PathBuf>,
    lock: PathBuf,
}

/// What the markers say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// There was never one.
    Nothing,
    /// This is what belongs here.
    This(Marker),
    /// They are there, and what they say cannot be used: why.
    Unclear(String),
}

impl Marker {
    pub(super) fn new(making: Making) -> Marker {
        Marker {
            store: uuid::Uuid::new_v4().to_string(),
            generation: 1,
            takes: 0,
            making,
            revision: 0,
        }
    }

    fn slot(&self) -> io::Result<Vec<u8>> {
        let slot = Slot {
            marker: self.clone(),
            sha256: self.digest()?,
        };
        let mut bytes = serde_json::to_vec(&slot)?;
        bytes.resize(SLOT_BYTES - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn digest(&self) -> io::Result<String> {
        let digest = Sha256::digest(serde_json::to_vec(self)?);
        Ok(digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    fn of_slot(bytes: &[u8]) -> Option<Marker> {
        let slot: Slot = serde_json::from_slice(bytes).ok()?;
        let is_whole = slot
            .marker
            .digest()
            .is_ok_and(|digest| digest == slot.sha256);
        is_whole.then_some(slot.marker)
    }
}

impl Markers {
    /// Those of this file of keys.
    pub(super) fn of(path: &Path, elsewhere: Option<PathBuf>) -> Markers {
        Markers {
            beside: path.with_extension("marker"),
            elsewhere,
            lock: path.with_extension("lock"),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.beside
    }

    /// One process at a time works on the files, for as long as this lives.
    pub(super) fn lock(&self) -> Result<File, Trouble> {
        let failed = |error: &io::Error| {
            Trouble::Failed(format!(
                "{} cannot be locked: {error}; check the folder and its permissions: it is tried again",
                self.lock.display()
            ))
        };
        make_folder(&self.lock).map_err(|error| failed(&error))?;
        let mut options = only_ours();
        options.create(true).truncate(false);
        let file = private::open(&self.lock, &mut options).map_err(|error| failed(&error))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::Error(error)) => return Err(failed(&error)),
                Err(fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_MAX => {
                    std::thread::park_timeout(LOCK_AGAIN);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(Trouble::Locked(format!(
                        "{} is locked by another process; end that, or wait: it is tried again",
                        self.lock.display()
                    )));
                }
            }
        }
    }

    /// What they say. An error of the disk is an error: no marker is taken for missing that cannot be read.
    pub(super) fn read(&self) -> Result<Said, Trouble> {
        let beside = read(&self.beside)?;
        let elsewhere = match &self.elsewhere {
            Some(path) => read(path)?,
            None => One::Missing,
        };
        Ok(match (beside, elsewhere) {
            (One::Missing, One::Missing) => Said::Nothing,
            (One::Whole(marker), One::Missing | One::Damaged)
            | (One::Missing | One::Damaged, One::Whole(marker)) => Said::This(marker),
            (One::Whole(one), One::Whole(other)) if one.store == other.store => {
                let order = |it: &Marker| (it.generation, it.takes, it.making == Making::Done);
                Said::This(if order(&one) < order(&other) {
                    other
                } else {
                    one
                })
            }
            (One::Whole(_), One::Whole(_)) => Said::Unclear(format!(
                "{} is of another store than the marker in {}: the folder was replaced",
                self.beside.display(),
                self.elsewhere.as_deref().unwrap_or(&self.beside).display()
            )),
            _ => Said::Unclear(format!("{} is damaged", self.beside.display())),
        })
    }

    /// Writes both: on the disk when this returns.
    pub(super) fn write(&self, marker: &Marker) -> io::Result<()> {
        write(&self.beside, marker, true)?;
        match &self.elsewhere {
            Some(path) => write(path, marker, true),
            None => Ok(()),
        }
    }

    /// Writes down that keys were taken. The one beside the file is on the disk when this returns; the other one
    /// follows: it need not survive the machine, only the folder.
    pub(super) fn note(&self, marker: &Marker) -> io::Result<()> {
        write(&self.beside, marker, true)?;
        if let Some(path) = &self.elsewhere
            && let Err(error) = write(path, marker, false)
        {
            tracing::warn!(%error, path = %path.display(), "the second marker of idempotency keys is not written");
        }
        Ok(())
    }
}

enum One {
    Missing,
    Damaged,
    Whole(Marker),
}

fn read(path: &Path) -> Result<One, Trouble> {
    let mut bytes = Vec::with_capacity(2 * SLOT_BYTES);
    let read = private::open_to_read(path)
        .and_then(|file| file.take(2 * SLOT_BYTES as u64).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(One::Missing),
        Err(error) => {
            return Err(Trouble::Failed(format!(
                "{} cannot be read: {error}; check its permissions: it is tried again",
                path.display()
            )));
        }
    }
    let slots = bytes.chunks(SLOT_BYTES).filter_map(Marker::of_slot);
    Ok(slots
        .max_by_key(|marker| marker.revision)
        .map_or(One::Damaged, One::Whole))
}

/// The older slot is written over; a marker that is not there, or is damaged, is made as a whole.
fn write(path: &Path, marker: &Marker, is_durable: bool) -> io::Result<()> {
    let before = match read(path) {
        Ok(One::Whole(before)) => before,
        Ok(One::Missing | One::Damaged) => return make(path, marker),
        Err(trouble) => return Err(io::Error::other(trouble.text().to_owned())),
    };
    let mut marker = marker.clone();
    marker.revision = before.revision + 1;
    let place = (marker.revision % 2) * SLOT_BYTES as u64;
    let mut file = private::open(path, &mut only_ours())?;
    file.seek(SeekFrom::Start(place))?;
    file.write_all(&marker.slot()?)?;
    match is_durable {
        true => file.sync_data(),
        false => Ok(()),
    }
}

/// Both slots at once, so that later writes need no more room on the disk.
fn make(path: &Path, marker: &Marker) -> io::Result<()> {
    make_folder(path)?;
    let unfinished = path.with_extension("marker.new");
    let _ = fs::remove_file(&unfinished);
    let mut file = private::open(&unfinished, only_ours().create_new(true))?;
    let slot = marker.slot()?;
    file.write_all(&[slot.as_slice(), slot.as_slice()].concat())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    match path.parent() {
        Some(folder) => sync_folder(folder),
        None => Ok(()),
    }
}

/// A name in a folder is on the disk only when the folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) else {
        return Ok(());
    };
    private::make_folder(folder)
}

fn only_ours() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}
