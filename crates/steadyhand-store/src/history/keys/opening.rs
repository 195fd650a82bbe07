//! The file of keys is opened: is it the one that belongs here, is it whole, does it hold every key that was given out.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::TransactionBehavior;

use super::super::database::{Database, ENDS, Trouble, beside, set_aside};
use super::clock::ClockReading;
use super::marker::{Making, Marker, Markers, Said};
use super::shares::KeyLimits;
use super::table::{self, KIND, MARKED_VERSION, Store};

/// What the log beside the file may take.
const LOG_BYTES: u64 = 4 * 1024 * 1024;

/// An open file of keys, and what its marker said.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) marker: Marker,
}

/// Opens the file, or makes the first one. The caller holds the lock.
pub(super) fn open(
    path: &Path,
    markers: &Markers,
    limits: KeyLimits,
    now: &ClockReading,
) -> Result<Opened, Trouble> {
    opened(path, markers, limits, now).map_err(as_damage)
}

fn opened(
    path: &Path,
    markers: &Markers,
    limits: KeyLimits,
    now: &ClockReading,
) -> Result<Opened, Trouble> {
    let sql = |error: rusqlite::Error| in_words(&error, path);
    let mut marker = belongs_here(path, markers)?;
    let mut database = Database::open(path, &KIND, LOG_BYTES)?;
    let store = match Store::read(&database.connection).map_err(sql)? {
        Some(store) => is_that_one(path, &marker, &store).map(|()| store)?,
        None if marker.making == Making::Done => {
            return Err(lost(path, "does not say which store it is"));
        }
        None => adopt(&mut database, &marker, now).map_err(sql)?,
    };
    let callers = table::check_contents(&database.connection).map_err(sql)?;
    callers.correct(&mut database.connection).map_err(sql)?;
    marker.takes = store.takes;
    marker.making = Making::Done;
    markers
        .write(&marker)
        .map_err(|error| unwritten(markers, &error))?;
    forget(&mut database, limits, now).map_err(sql)?;
    Ok(Opened { database, marker })
}

/// Forgets what is old.
pub(super) fn forget(
    database: &mut Database,
    limits: KeyLimits,
    now: &ClockReading,
) -> rusqlite::Result<()> {
    let transaction = database
        .connection
        .transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(mut store) = Store::read(&transaction)? {
        store.observe(now);
        store.write(&transaction)?;
        table::forget_old(&transaction, &store, limits)?;
    }
    transaction.commit()
}

/// What must be in the file, before anything is written to it.
fn belongs_here(path: &Path, markers: &Markers) -> Result<Marker, Trouble> {
    let is_there = is_there(path)?;
    let begin = |making: Making| {
        let marker = Marker::new(making);
        let written = markers.write(&marker);
        written.map_err(|error| unwritten(markers, &error))?;
        Ok(marker)
    };
    let version = match is_there {
        true => Database::open_to_look(path, &KIND)?.1,
        false => 0,
    };
    match markers.read()? {
        Said::Unclear(why) => Err(Trouble::Lost(why)),
        Said::Nothing if !is_there && has_log(path) => {
            Err(lost(path, "is missing, and its log is there"))
        }
        Said::Nothing if !is_there => begin(Making::New),
        // An earlier version made the file, and its tables a moment later. Both may have been there.
        Said::Nothing if version == 0 => Err(lost(path, "is empty")),
        Said::Nothing if version < MARKED_VERSION => begin(Making::Upgrade),
        Said::Nothing => Err(Trouble::Lost(format!(
            "{} is missing: whether {} is the newest copy cannot be told",
            markers.path().display(),
            path.display()
        ))),
        Said::This(marker) => match marker.making {
            Making::New => Ok(marker),
            Making::Upgrade | Making::Done if !is_there => Err(lost(path, "is missing")),
            Making::Upgrade | Making::Done if version == 0 => Err(lost(path, "is empty")),
            Making::Done if version < MARKED_VERSION => {
                Err(lost(path, "is an older copy, from before an upgrade"))
            }
            Making::Upgrade | Making::Done => Ok(marker),
        },
    }
}

fn is_that_one(path: &Path, marker: &Marker, store: &Store) -> Result<(), Trouble> {
    if store.id != marker.store {
        return Err(lost(path, "is another file than the one that was here"));
    }
    if store.generation != marker.generation {
        return Err(lost(
            path,
            "is an older copy, from before a loss was accepted",
        ));
    }
    if store.takes < marker.takes {
        let missing = marker.takes - store.takes;
        return Err(lost(
            path,
            &format!("is an older copy, or damaged: its last {missing} keys are missing"),
        ));
    }
    Ok(())
}

/// A file that is new, or of an earlier version, becomes the one that the marker means.
fn adopt(database: &mut Database, marker: &Marker, now: &ClockReading) -> rusqlite::Result<Store> {
    let transaction = database
        .connection
        .transaction_with_behavior(TransactionBehavior::Immediate)?;
    table::fill_checks(&transaction)?;
    let before = Store::read(&transaction).ok().flatten();
    let store = Store {
        id: marker.store.clone(),
        generation: marker.generation,
        takes: table::totals(&transaction)?.0 as u64,
        // It never runs backwards: else keys of a copy would be known for longer and longer.
        observed_ms: table::observed_max(&transaction)?
            .max(before.map_or(0, |before| before.observed_ms)),
        boot: now.boot.clone(),
        up_ms: now.up_ms,
    };
    store.write(&transaction)?;
    transaction.commit()?;
    Ok(store)
}

/// What became of a loss that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What was wrong.
    pub reason: String,
    /// Keys that are still known.
    pub kept: u64,
    /// Where the file went that could not be used, if there was one.
    pub set_aside: Option<PathBuf>,
}

/// Goes on with what there is, because a person said so. Nothing where nothing is wrong.
pub(super) fn accept_loss(
    path: &Path,
    markers: &Markers,
    limits: KeyLimits,
    now: &ClockReading,
) -> Result<Option<Accepted>, Trouble> {
    let _lock = markers.lock()?;
    let reason = match open(path, markers, limits, now) {
        Ok(_) => return Ok(None),
        Err(Trouble::Lost(reason) | Trouble::Broken(reason)) => reason,
        Err(other) => return Err(other),
    };
    let generation = match markers.read()? {
        Said::This(marker) => marker.generation,
        Said::Nothing | Said::Unclear(_) => 0,
    };
    let mut marker = Marker::new(Making::Done);
    marker.generation = generation + 1;
    let failed = |error: &std::io::Error| unwritten(markers, error);
    if let Ok(mut database) = usable(path) {
        let sql = |error: rusqlite::Error| in_words(&error, path);
        let store = adopt(&mut database, &marker, now).map_err(sql)?;
        marker.takes = store.takes;
        markers.write(&marker).map_err(|error| failed(&error))?;
        return Ok(Some(Accepted {
            reason,
            kept: store.takes,
            set_aside: None,
        }));
    }
    let aside = move_away(path, now.wall_ms).map_err(|error| {
        Trouble::Failed(format!("{} cannot be moved away: {error}", path.display()))
    })?;
    marker.making = Making::New;
    markers.write(&marker).map_err(|error| failed(&error))?;
    open(path, markers, limits, now)?;
    Ok(Some(Accepted {
        reason,
        kept: 0,
        set_aside: aside,
    }))
}

/// A file whose keys are whole, whichever they are.
fn usable(path: &Path) -> Result<Database, Trouble> {
    let sql = |error: rusqlite::Error| in_words(&error, path);
    if !is_there(path)? || Database::open_to_look(path, &KIND)?.1 == 0 {
        return Err(Trouble::Lost("there is nothing in it".to_owned()));
    }
    let mut database = Database::open(path, &KIND, LOG_BYTES)?;
    let transaction = database.connection.transaction().map_err(sql)?;
    table::fill_checks(&transaction).map_err(sql)?;
    transaction.commit().map_err(sql)?;
    Store::read(&database.connection).map_err(sql)?;
    table::check_contents(&database.connection).map_err(sql)?;
    Ok(database)
}

fn move_away(path: &Path, now_ms: u64) -> std::io::Result<Option<PathBuf>> {
    if fs::exists(path)? {
        return set_aside(path, now_ms).map(Some);
    }
    for end in ENDS {
        let log = beside(path, end);
        if fs::exists(&log)? {
            fs::rename(&log, beside(path, &format!(".broken-{now_ms}{end}")))?;
        }
    }
    Ok(None)
}

/// How a file of keys fares, looked at from outside: nothing is made, nothing is written.
pub(crate) fn look(path: &Path, markers: &Markers) -> Result<(), Trouble> {
    // The marker first: a server that runs may add keys in between, and never takes them away.
    let said = markers.read()?;
    let is_there = is_there(path)?;
    if let (Said::Nothing, false, false) = (&said, is_there, has_log(path)) {
        return Ok(());
    }
    let marker = match said {
        Said::Unclear(why) => return Err(Trouble::Lost(why)),
        Said::This(marker) if marker.making == Making::New => return Ok(()),
        Said::This(marker) => Some(marker),
        Said::Nothing => None,
    };
    if !is_there {
        return Err(lost(path, "is missing"));
    }
    let (connection, version) = Database::open_to_look(path, &KIND)?;
    match marker {
        _ if version == 0 => Err(lost(path, "is empty")),
        None if version < MARKED_VERSION => Ok(()),
        None => Err(Trouble::Lost(format!(
            "{} is missing",
            markers.path().display()
        ))),
        Some(marker) if version < MARKED_VERSION => match marker.making {
            Making::Upgrade => Ok(()),
            Making::New | Making::Done => {
                Err(lost(path, "is an older copy, from before an upgrade"))
            }
        },
        Some(marker) => {
            let store = Store::read(&connection).map_err(|error| in_words(&error, path))?;
            match store {
                Some(store) => is_that_one(path, &marker, &store),
                None if marker.making == Making::Done => {
                    Err(lost(path, "does not say which store it is"))
                }
                None => Ok(()),
            }
        }
    }
}

/// Once it is open, a table that is not there or a row that does not fit is damage.
pub(super) fn in_words(error: &rusqlite::Error, path: &Path) -> Trouble {
    match error.sqlite_error_code() {
        None | Some(rusqlite::ErrorCode::Unknown) => {
            Trouble::Broken(format!("{} is broken: {error}", path.display()))
        }
        Some(_) => as_damage(Trouble::of(error, path)),
    }
}

fn as_damage(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Refused(text) => Trouble::Broken(text),
        other => other,
    }
}

fn lost(path: &Path, what: &str) -> Trouble {
    Trouble::Lost(format!("{} {what}", path.display()))
}

pub(super) fn unwritten(markers: &Markers, error: &std::io::Error) -> Trouble {
    Trouble::Failed(format!(
        "{} cannot be written: {error}; check the folder, its permissions and the room on the disk: it is tried again",
        markers.path().display()
    ))
}

fn is_there(path: &Path) -> Result<bool, Trouble> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Trouble::Failed(format!(
            "{} cannot be read: {error}; check the folder and its permissions: it is tried again",
            path.display()
        ))),
    }
}

fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, ENDS[0])).is_ok_and(|log| log.len() > 0)
}
