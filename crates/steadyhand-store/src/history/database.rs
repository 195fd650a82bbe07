//! The database file: opened, made, brought up to date, set aside when it is broken.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use steadyhand_process::private;

/// How long is waited for another process that holds the file.
const BUSY: Duration = Duration::from_secs(1);
/// Broken files that are kept for someone to look at.
const ASIDE_MAX: usize = 3;
/// Statements kept ready: more than there are.
const STATEMENTS_MAX: usize = 64;
/// SQLite's own size of a page.
const PAGE_BYTES: u64 = 4096;

/// One kind of database: what makes a file ours, and how each version is made from the one before it.
pub(super) struct Kind {
    /// What people call it.
    pub(super) name: &'static str,
    /// SQLite's mark for whose file it is.
    pub(super) application: i32,
    /// The first makes a file, each next one changes what the ones before made.
    pub(super) migrations: &'static [&'static str],
}

/// An open file, and which one it is.
pub(super) struct Database {
    pub(super) connection: Connection,
    identity: Option<Identity>,
    /// The same for the two files beside it, its log and the log's index.
    beside: [Option<Identity>; 2],
}

/// What the names of those two end with.
pub(super) const ENDS: [&str; 2] = ["-wal", "-shm"];

/// Why a database does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another process holds it.
    Locked(String),
    /// No room.
    Full(String),
    /// Not a database, or no longer one.
    Broken(String),
    /// Not ours to write: of a newer version, or something else altogether.
    Foreign(String),
    /// It is gone from where it was.
    Gone(String),
    /// It is not the one that belongs here, or what it must hold is missing.
    Lost(String),
    /// Something else must change first.
    Failed(String),
    /// What was to be written makes no sense to it, and never will.
    Refused(String),
}

impl Trouble {
    pub(super) fn text(&self) -> &str {
        match self {
            Trouble::Locked(text)
            | Trouble::Full(text)
            | Trouble::Broken(text)
            | Trouble::Foreign(text)
            | Trouble::Gone(text)
            | Trouble::Lost(text)
            | Trouble::Failed(text)
            | Trouble::Refused(text) => text,
        }
    }

    /// What an SQLite error means for whoever runs the program.
    pub(super) fn of(error: &rusqlite::Error, path: &Path) -> Trouble {
        let path = path.display();
        let said = error.to_string();
        let Some(code) = error.sqlite_error_code() else {
            return Trouble::Refused(format!("{path}: {said}"));
        };
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Trouble::Locked(format!(
                "{path} is locked by another process; end that, or wait: it is tried again"
            )),
            ErrorCode::DiskFull => Trouble::Full(format!(
                "no room on the disk of {path}; make some, or set a smaller history.max_size: it is tried again"
            )),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Trouble::Broken(format!("{path} is broken: {said}"))
            }
            ErrorCode::ReadOnly if is_moved(error) => {
                Trouble::Gone(format!("{path} was moved or deleted"))
            }
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                Trouble::Failed(format!(
                    "{path} cannot be written: {said}; check the folder and its permissions: it is tried again"
                ))
            }
            ErrorCode::SystemIoFailure => Trouble::Failed(format!(
                "{path}: the disk says no ({said}); it is tried again"
            )),
            ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::ParameterOutOfRange => Trouble::Refused(format!("{path}: {said}")),
            _ => Trouble::Failed(format!("{path}: {said}; it is tried again")),
        }
    }
}

impl Database {
    /// Opens the file, or makes it.
    /// `log_bytes` is how large the log may grow that SQLite writes first, before it is carried over.
    pub(super) fn open(path: &Path, kind: &Kind, log_bytes: u64) -> Result<Database, Trouble> {
        make_file(path)?;
        let sql = |error: rusqlite::Error| Trouble::of(&error, path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(sql)?;
        connection.busy_timeout(BUSY).map_err(sql)?;
        configure(&connection).map_err(sql)?;
        let version = standing(&connection, path, kind)?;
        if version == 0 {
            // Before anything is in the file, or it has no effect.
            connection
                .pragma_update(None, "auto_vacuum", "INCREMENTAL")
                .map_err(sql)?;
        }
        let settings: [(&str, &dyn rusqlite::ToSql); 7] = [
            ("journal_mode", &"WAL"),
            ("synchronous", &"NORMAL"),
            ("journal_size_limit", &(log_bytes as i64)),
            ("wal_autocheckpoint", &((log_bytes / PAGE_BYTES / 2) as i64)),
            ("cache_size", &-4000),
            ("temp_store", &"MEMORY"),
            ("trusted_schema", &false),
        ];
        for (name, value) in settings {
            connection.pragma_update(None, name, value).map_err(sql)?;
        }
        migrate(&mut connection, kind).map_err(sql)?;
        Ok(Database {
            connection,
            identity: Identity::of(path),
            beside: ENDS.map(|end| Identity::of(&beside(path, end))),
        })
    }

    /// Opens the file to read, if it is there and ours.
    pub(super) fn open_to_read(path: &Path, kind: &Kind) -> Result<Connection, Trouble> {
        let (connection, version) = Database::open_to_look(path, kind)?;
        if version < kind.migrations.len() {
            return Err(Trouble::Failed(format!(
                "{} is not ready yet",
                path.display()
            )));
        }
        Ok(connection)
    }

    /// The same for one that need not be up to date; with its version.
    pub(super) fn open_to_look(path: &Path, kind: &Kind) -> Result<(Connection, usize), Trouble> {
        let sql = |error: rusqlite::Error| Trouble::of(&error, path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(sql)?;
        connection.busy_timeout(BUSY / 4).map_err(sql)?;
        configure(&connection).map_err(sql)?;
        let version = standing(&connection, path, kind)?;
        connection
            .pragma_update(None, "query_only", true)
            .map_err(sql)?;
        connection
            .pragma_update(None, "trusted_schema", false)
            .map_err(sql)?;
        Ok((connection, version))
    }

    /// Which file was opened; none where that cannot be known.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Whether the files are still those that were opened. SQLite goes on writing into a deleted one.
    pub(super) fn is_in_place(&self, path: &Path) -> bool {
        let is_same =
            |known: Option<Identity>, path: &Path| known.is_none() || Identity::of(path) == known;
        is_same(self.identity, path) && is_same(self.beside[0], &beside(path, ENDS[0]))
    }

    /// Leaves a file that is no longer where it was. What is in its log goes into it: it may have been moved, not
    /// deleted. The log goes, too: SQLite would take it for that of the next file of this name, and ruin that.
    pub(super) fn leave(self, path: &Path) {
        let carried = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = carried {
            tracing::debug!(%error, "the log of a file that is gone is not carried over");
        }
        for (end, known) in ENDS.iter().zip(self.beside) {
            let path = beside(path, end);
            if known.is_some() && Identity::of(&path) == known {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Whether what is in the file holds together.
    pub(super) fn check(&self, path: &Path) -> Result<(), Trouble> {
        let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        match self.connection.query_row("PRAGMA quick_check(1)", [], read) {
            Ok(said) if said == "ok" => Ok(()),
            Ok(said) => Err(Trouble::Broken(format!(
                "{} is broken: {said}",
                path.display()
            ))),
            Err(error) => Err(Trouble::of(&error, path)),
        }
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A plan stays a plan: else SQLite plans anew whenever a parameter might make a partial index fit.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// Gives a broken file another name, for someone to look at. Says which.
pub(super) fn set_aside(path: &Path, now_ms: u64) -> io::Result<PathBuf> {
    let aside = beside(path, &format!(".broken-{now_ms}"));
    fs::rename(path, &aside)?;
    for end in ENDS {
        // Often there is none.
        let _ = fs::rename(beside(path, end), beside(&aside, end));
    }
    forget_older(path);
    Ok(aside)
}

/// Of the files set aside, the last few stay.
fn forget_older(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let start = format!("{}.broken-", name.to_string_lossy());
    let number = |name: &str| name.strip_prefix(&start)?.parse::<u64>().ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<u64> = entries
        .filter_map(|entry| number(&entry.file_name().to_string_lossy()))
        .collect();
    found.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
    for old in found.into_iter().skip(ASIDE_MAX) {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(beside(path, &format!(".broken-{old}{end}")));
        }
    }
}

/// A name with something after it.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// The version of the file, if it is ours and not of a later program. 0 is an empty file.
fn standing(connection: &Connection, path: &Path, kind: &Kind) -> Result<usize, Trouble> {
    let ask = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|error| Trouble::of(&error, path))
    };
    let version = ask("PRAGMA user_version")?;
    let application = ask("PRAGMA application_id")?;
    let tables = ask("SELECT count(*) FROM sqlite_schema")?;
    let path = path.display();
    if tables == 0 {
        return Ok(0);
    }
    if application != i64::from(kind.application) {
        return Err(Trouble::Foreign(format!(
            "{path} is a database of another program, so it is left alone; give {} another path",
            kind.name
        )));
    }
    match usize::try_from(version) {
        Ok(version) if version <= kind.migrations.len() => Ok(version),
        _ => Err(Trouble::Foreign(format!(
            "{path} was written by a newer version of steadyhand (format {version}, this one knows {}), so it is \
             left alone; use that version, or give {} another path",
            kind.migrations.len(),
            kind.name
        ))),
    }
}

fn migrate(connection: &mut Connection, kind: &Kind) -> rusqlite::Result<()> {
    let newest = kind.migrations.len();
    let version_of = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))
    };
    if version_of(connection)? as usize == newest {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been quicker.
    let version = version_of(&transaction)? as usize;
    for step in kind.migrations.iter().skip(version) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", kind.application)?;
    transaction.pragma_update(None, "user_version", newest as i64)?;
    transaction.commit()
}

/// The folder and an empty file that only its owner may read: it holds what people ask for.
fn make_file(path: &Path) -> Result<(), Trouble> {
    let failed = |what: &str, error: io::Error| {
        Trouble::Failed(format!(
            "cannot make {what} {}: {error}; check the path and its permissions: it is tried again",
            path.display()
        ))
    };
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        private::make_folder(folder).map_err(|error| failed("the folder of", error))?;
    }
    let mut options = OpenOptions::new();
    // Never one that is there: closing it again would give up the locks that SQLite holds on it in this process.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            private::refuse_link(path).map_err(|error| failed("the file", error))
        }
        Err(error) => Err(failed("the file", error)),
    }
}

/// SQLITE_READONLY_DBMOVED
fn is_moved(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_READONLY_DBMOVED)
}

/// Which file a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Identity> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).ok()?;
        Some(Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    #[cfg(not(unix))]
    pub(super) fn of(_path: &Path) -> Option<Identity> {
        // An open file cannot be deleted there.
        None
    }
}
