//! The index of one collection: a SQLite file with a full-text table, shared by all processes that
//! search the same folders. It only holds what can be read again, so a broken one is made anew.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};
use steadyhand_process::private;

use super::read::{self, Document, Skipped};
use super::scan::{FoundFile, Scan};
use super::shelf::Shelf;
use super::words;

/// Another number makes all indexes anew. It is part of the file's name too, so that two versions
/// of the program do not take turns at that.
pub(super) const FORMAT: i32 = 1;
/// How long one process waits while another writes.
const BUSY: Duration = Duration::from_secs(10);
/// Files that are written at once, and how much of them is in memory for it.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 8 * 1024 * 1024;
/// A file changed so shortly before it was read may change once more without a new stamp.
const UNSURE: Duration = Duration::from_millis(100);

const SCHEMA: &str = "
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        root INTEGER NOT NULL,
        path TEXT NOT NULL,
        stamp TEXT NOT NULL,
        skipped TEXT,
        first_passage INTEGER NOT NULL,
        last_passage INTEGER NOT NULL,
        UNIQUE (root, path)
    ) STRICT;
    CREATE VIRTUAL TABLE passage USING fts5 (
        title, heading, text, file UNINDEXED, line UNINDEXED,
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
";

/// The one connection of this process that writes.
pub(super) struct Index {
    connection: Connection,
}

/// Why something with the index did not work.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It must be made anew.
    Broken(String),
    /// Something else must change first; the text says what.
    Failed(String),
    /// Nobody waits for it any more.
    Stopped,
}

impl Index {
    /// Opens the index, making it anew where it is broken or of another format.
    pub(super) fn open(path: &Path) -> Result<Index, Trouble> {
        match Index::open_as_is(path) {
            Err(Trouble::Broken(reason)) => {
                tracing::info!(index = %path.display(), reason, "the index of documents is made anew");
                Index::open_anew(path)
            }
            other => other,
        }
    }

    /// Opens the index with nothing in it.
    pub(super) fn open_anew(path: &Path) -> Result<Index, Trouble> {
        create_file(path)?;
        let connection = connect(path)?;
        // SQLite's own way to empty a database it cannot read, safe while others have it open.
        let reset = connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)
            .and_then(|_| connection.execute_batch("VACUUM"));
        drop(connection);
        if let Err(error) = reset {
            tracing::debug!(%error, "the index cannot be emptied and is removed");
            remove_files(path);
        }
        Index::open_as_is(path)
    }

    fn open_as_is(path: &Path) -> Result<Index, Trouble> {
        create_file(path)?;
        let mut connection = connect(path)?;
        prepare(&mut connection).map_err(|error| trouble(&error, path))?;
        Ok(Index { connection })
    }

    /// Brings the index to what the scan found. Tells `(done, total)` of the files that changed.
    pub(super) fn update(
        &mut self,
        shelf: &Shelf,
        scan: &Scan,
        stop: &AtomicBool,
        mut tell: impl FnMut(u64, u64),
    ) -> Result<(), Trouble> {
        let path = PathBuf::from(self.connection.path().unwrap_or_default());
        let sql = |error: rusqlite::Error| trouble(&error, &path);
        let mut known = known_files(&self.connection).map_err(sql)?;
        let is_new = |file: &&FoundFile| {
            let row = known.remove(&(file.root, file.relative.clone()));
            row.is_none_or(|row| row.stamp != file.stamp)
        };
        let changed: Vec<&FoundFile> = scan.files.iter().filter(is_new).collect();
        let gone: Vec<Row> = known
            .into_iter()
            .filter(|((root, relative), _)| scan.cut || !is_there(shelf, *root, relative))
            .map(|(_, row)| row)
            .collect();
        self.remove(&gone).map_err(sql)?;

        let mut rest = changed.as_slice();
        while !rest.is_empty() {
            tell((changed.len() - rest.len()) as u64, changed.len() as u64);
            let (batch, later) = rest.split_at(batch_len(rest));
            rest = later;
            let mut files = Vec::with_capacity(batch.len());
            for file in batch {
                if stop.load(Ordering::Relaxed) {
                    return Err(Trouble::Stopped);
                }
                files.push(ReadFile::read(file, shelf));
            }
            self.write(&files).map_err(sql)?;
        }
        Ok(())
    }

    fn remove(&mut self, gone: &[Row]) -> rusqlite::Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let transaction = begin(&mut self.connection)?;
        for row in gone {
            forget(&transaction, row)?;
        }
        transaction.commit()
    }

    fn write(&mut self, files: &[ReadFile<'_>]) -> rusqlite::Result<()> {
        let transaction = begin(&mut self.connection)?;
        for file in files {
            file.write(&transaction)?;
        }
        transaction.commit()
    }
}

/// A connection that waits for others and takes no lock by itself.
pub(super) fn connect(path: &Path) -> Result<Connection, Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    };
    open().map_err(|error| trouble(&error, path))
}

/// What an error of SQLite means for the index.
pub(super) fn trouble(error: &rusqlite::Error, path: &Path) -> Trouble {
    let path = path.display();
    match error.sqlite_error_code() {
        // The last one is "no such table": somebody else's database, or half of ours.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) => {
            Trouble::Broken(error.to_string())
        }
        Some(ErrorCode::OperationInterrupted) => Trouble::Stopped,
        Some(ErrorCode::DiskFull) => Trouble::Failed(format!(
            "the disk is full, the index {path} cannot be written; free some space"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Failed(format!(
            "another process has been writing the index {path} for {} s; try again",
            BUSY.as_secs()
        )),
        _ => Trouble::Failed(format!(
            "the index {path} cannot be used: {error}; check its folder or choose another with --state"
        )),
    }
}

/// Documents may be private, so their index is too. SQLite gives the files beside it the same mode.
fn create_file(path: &Path) -> Result<(), Trouble> {
    let mut options = fs::OpenOptions::new();
    let created = path
        .parent()
        .map_or(Ok(()), private::make_folder)
        .and_then(|()| private::open(path, options.create(true).append(true)));
    created.map(drop).map_err(|error| {
        Trouble::Failed(format!(
            "the index {} cannot be created: {error}; make its folder writable or choose another with --state",
            path.display()
        ))
    })
}

fn remove_files(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        let _ = fs::remove_file(PathBuf::from(file));
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))
    };
    let is_empty = |connection: &Connection| {
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
            row.get(0)
        })
    };
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        // Some file systems cannot; then readers and writers wait for each other.
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    }
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update_and_check(None, "journal_size_limit", 8 * 1024 * 1024, |_| Ok(()))?;
    if is_empty(connection)? {
        let transaction = begin(connection)?;
        // Another process may have been first.
        if is_empty(&transaction)? {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        transaction.commit()?;
    }
    if version(connection)? != FORMAT {
        return Err(broken("it has another format"));
    }
    connection
        .query_row("SELECT stamp, first_passage FROM file LIMIT 1", [], |_| {
            Ok(())
        })
        .optional()?;
    connection
        .query_row("SELECT title, line FROM passage LIMIT 1", [], |_| Ok(()))
        .optional()?;
    Ok(())
}

fn broken(reason: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some(reason.to_owned()))
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// A file the index knows.
struct Row {
    id: i64,
    stamp: String,
    first_passage: i64,
    last_passage: i64,
}

fn known_files(connection: &Connection) -> rusqlite::Result<HashMap<(usize, String), Row>> {
    let sql = "SELECT root, path, id, stamp, first_passage, last_passage FROM file";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let key = (row.get::<_, i64>(0)? as usize, row.get(1)?);
        Ok((key, read_row(row, 2)?))
    })?;
    rows.collect()
}

fn read_row(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Row> {
    Ok(Row {
        id: row.get(from)?,
        stamp: row.get(from + 1)?,
        first_passage: row.get(from + 2)?,
        last_passage: row.get(from + 3)?,
    })
}

fn forget(transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM passage WHERE rowid BETWEEN ?1 AND ?2 AND file = ?3")?
        .execute(params![row.first_passage, row.last_passage, row.id])?;
    transaction
        .prepare_cached("DELETE FROM file WHERE id = ?1")?
        .execute([row.id])?;
    Ok(())
}

/// Whether a file our scan did not see is there all the same: another process may have scanned
/// later than we did and know it already.
fn is_there(shelf: &Shelf, root: usize, relative: &str) -> bool {
    let Some(root) = shelf.roots.get(root) else {
        return false;
    };
    let real = root.path.join(relative).canonicalize();
    let expected = root.path.canonicalize().map(|root| root.join(relative));
    matches!((real, expected), (Ok(real), Ok(expected)) if real == expected && real.is_file())
}

fn batch_len(files: &[&FoundFile]) -> usize {
    let mut bytes = 0;
    let fits = |file: &&&FoundFile| {
        bytes += file.size;
        bytes <= BATCH_BYTES
    };
    let fitting = files.iter().take(BATCH_FILES).take_while(fits).count();
    fitting.max(1)
}

/// A file on its way into the index.
struct ReadFile<'a> {
    found: &'a FoundFile,
    stamp: String,
    content: Result<Document, Skipped>,
}

impl<'a> ReadFile<'a> {
    fn read(found: &'a FoundFile, shelf: &Shelf) -> ReadFile<'a> {
        let root = &shelf.roots[found.root].path;
        let content = match found.size > shelf.file_bytes_max {
            true => Err(Skipped::TooLarge),
            false => read::file(&found.path, root, shelf.file_bytes_max),
        };
        let stamp = match found.changed_within(UNSURE) {
            true => format!("{} unsure", found.stamp),
            false => found.stamp.clone(),
        };
        ReadFile {
            found,
            stamp,
            content,
        }
    }

    fn write(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let FoundFile { root, relative, .. } = self.found;
        let root = *root as i64;
        let known = transaction
            .prepare_cached(
                "SELECT id, stamp, first_passage, last_passage FROM file WHERE root = ?1 AND path = ?2",
            )?
            .query_row(params![root, relative], |row| read_row(row, 0))
            .optional()?;
        match &known {
            // Another process was faster.
            Some(row) if row.stamp == self.stamp => return Ok(()),
            Some(row) => forget(transaction, row)?,
            None => {}
        }
        let skipped = self.content.as_ref().err().map(|skipped| skipped.as_str());
        let mut insert = transaction.prepare_cached(
            "INSERT INTO file (root, path, stamp, skipped, first_passage, last_passage)
             VALUES (?1, ?2, ?3, ?4, 0, -1)",
        )?;
        let id = insert.insert(params![root, relative, self.stamp, skipped])?;
        let Ok(document) = &self.content else {
            return Ok(());
        };
        let mut insert = transaction.prepare_cached(
            "INSERT INTO passage (title, heading, text, file, line) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let title = words::spaced(&document.title);
        let (mut first, mut last) = (None, 0);
        for passage in &document.passages {
            let (heading, text) = (
                words::spaced(&passage.heading),
                words::spaced(&passage.text),
            );
            last = insert.insert(params![title, heading, text, id, passage.line as i64])?;
            first.get_or_insert(last);
        }
        // All in one transaction, so the numbers of its passages follow each other.
        transaction
            .prepare_cached("UPDATE file SET first_passage = ?1, last_passage = ?2 WHERE id = ?3")?
            .execute(params![first.unwrap_or(0), last, id])?;
        Ok(())
    }
}
