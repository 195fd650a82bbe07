//! A look at a history's file from outside: nothing is made, nothing is written, and it ends in time.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::ErrorCode;

use super::database::{Database, Trouble};
use super::keys::{self, KeysOptions};
use super::schema::{KIND, read_id};

/// How a history's file fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Soundness {
    /// There is none yet.
    Absent,
    /// What is in it holds together.
    Sound,
    /// It is too large to be looked through in the time there was; nothing was wrong with what was seen.
    Unfinished,
    /// It is no database any more, and how that shows.
    Broken(String),
    /// It cannot be read now, and why.
    Unusable(String),
}

impl Soundness {
    fn of(trouble: &Trouble) -> Soundness {
        let text = trouble.text().to_owned();
        match trouble {
            Trouble::Broken(_) | Trouble::Lost(_) => Soundness::Broken(text),
            Trouble::Locked(_)
            | Trouble::Full(_)
            | Trouble::Foreign(_)
            | Trouble::Gone(_)
            | Trouble::Failed(_)
            | Trouble::Refused(_) => Soundness::Unusable(text),
        }
    }
}

/// What a file is kept for.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// Past calls.
    History,
    /// Idempotency keys.
    Keys,
}

/// Looks through a file of keys and what must be in it, for at most so long.
pub fn soundness_of_keys(options: &KeysOptions, limit: Duration) -> Soundness {
    match options.look() {
        Ok(()) => soundness(options.path(), Which::Keys, limit),
        Err(trouble) => Soundness::of(&trouble),
    }
}

/// Looks through a file, for at most so long.
pub fn soundness(path: &Path, which: Which, limit: Duration) -> Soundness {
    if !path.exists() {
        return Soundness::Absent;
    }
    let kind = match which {
        Which::History => &KIND,
        Which::Keys => &keys::KIND,
    };
    let connection = match Database::open_to_look(path, kind) {
        Ok((connection, _)) => connection,
        Err(trouble) => return Soundness::of(&trouble),
    };
    let interrupt = connection.get_interrupt_handle();
    let (done, is_done) = mpsc::channel::<()>();
    let clock = std::thread::Builder::new().name("inspect".to_owned());
    let clock = clock.spawn(move || {
        if is_done.recv_timeout(limit).is_err_and(is_over) {
            interrupt.interrupt();
        }
    });
    if let Err(error) = clock {
        return Soundness::Unusable(format!("there is no thread to look at it: {error}"));
    }
    let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let said = connection.query_row("PRAGMA quick_check(1)", [], read);
    drop(done);
    match said {
        Ok(said) if said == "ok" => Soundness::Sound,
        Ok(said) => Soundness::Broken(format!("{} is broken: {said}", path.display())),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Soundness::Unfinished,
            _ => Soundness::of(&Trouble::of(&error, path)),
        },
    }
}

fn is_over(end: mpsc::RecvTimeoutError) -> bool {
    end == mpsc::RecvTimeoutError::Timeout
}

/// The ids of the newest calls, each with its tool; none where the file cannot be read.
pub fn newest(path: &Path, count: usize) -> Vec<(String, String)> {
    if !path.exists() {
        return Vec::new();
    }
    let Ok(connection) = Database::open_to_read(path, &KIND) else {
        return Vec::new();
    };
    let read = || -> rusqlite::Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(
            "SELECT c.id, t.name FROM calls c LEFT JOIN tools t ON t.id = c.tool ORDER BY c.row DESC LIMIT ?1",
        )?;
        let rows = statement.query_map([count as i64], |row| {
            let tool = row.get::<_, Option<String>>(1)?;
            Ok((read_id(row.get_ref(0)?), tool.unwrap_or_default()))
        })?;
        rows.collect()
    };
    read().unwrap_or_default()
}
