//! The history's file: its tables, how each version of it is made from the one before, and what numbers mean in it.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use steadyhand::{Effect, FailureCode};

use super::database::Kind;
use super::record::CallState;

/// The history's file. What a list shows is apart from the rest, so that lists read little.
pub(super) const KIND: Kind = Kind {
    name: "history",
    application: 0x5348_4831,
    migrations: &[FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH],
};

const FIRST: &str = "
    CREATE TABLE tools (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        source TEXT NOT NULL,
        UNIQUE (name, source)
    ) STRICT;
    CREATE TABLE callers (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        pid INTEGER NOT NULL,
        seen_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE calls (
        row INTEGER PRIMARY KEY,
        id ANY NOT NULL,
        tool INTEGER NOT NULL,
        asked TEXT,
        caller INTEGER,
        state INTEGER NOT NULL,
        code INTEGER,
        effect INTEGER,
        took_us INTEGER,
        deadline_ms REAL,
        attempts INTEGER NOT NULL,
        flags INTEGER NOT NULL,
        replay_of TEXT,
        message TEXT,
        run INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX calls_by_id ON calls (id);
    CREATE INDEX calls_by_tool ON calls (tool, state, row, took_us);
    CREATE INDEX calls_slow ON calls (tool, state, row, took_us) WHERE took_us >= 100000;
    CREATE INDEX calls_by_caller ON calls (caller, row) WHERE caller IS NOT NULL;
    CREATE INDEX calls_running ON calls (run) WHERE state = 0;
    CREATE TABLE details (
        row INTEGER PRIMARY KEY,
        json TEXT NOT NULL
    ) STRICT;
    CREATE TABLE buckets (
        width INTEGER NOT NULL,
        tool INTEGER NOT NULL,
        start INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        timeouts INTEGER NOT NULL,
        rejected INTEGER NOT NULL,
        cancelled INTEGER NOT NULL,
        retries INTEGER NOT NULL,
        fallbacks INTEGER NOT NULL,
        trips INTEGER NOT NULL,
        times BLOB NOT NULL,
        PRIMARY KEY (width, tool, start)
    ) STRICT, WITHOUT ROWID;
";

/// An error is looked for in the index: rows are looked up only where it is the right one.
const SECOND: &str = "
    DROP INDEX calls_by_tool;
    DROP INDEX calls_slow;
    CREATE INDEX calls_by_tool ON calls (tool, state, row, took_us, code);
    CREATE INDEX calls_slow ON calls (tool, state, row, took_us, code) WHERE took_us >= 100000;
";

/// What changed at a moment, for the axes of charts.
const THIRD: &str = "
    CREATE TABLE marks (
        row INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX marks_by_time ON marks (at_ms);
";

/// Exchanges with providers that went through the proxy.
const FOURTH: &str = "
    CREATE TABLE IF NOT EXISTS exchanges (
        row INTEGER PRIMARY KEY,
        json TEXT NOT NULL
    ) STRICT;
";

/// How long a call waited for an approval.
const FIFTH: &str = "
    ALTER TABLE calls ADD COLUMN approval_us INTEGER;
";

/// Which server a mark is about: the chart of a tool leaves out those of other servers. Older marks name it in their text.
const SIXTH: &str = "
    ALTER TABLE marks ADD COLUMN source TEXT;
    UPDATE marks SET source = substr(text, 1, instr(text, ': ') - 1) WHERE kind = 'server' AND instr(text, ': ') > 1;
    UPDATE marks SET source = substr(text, 10, length(text) - 17)
        WHERE kind = 'tools' AND text LIKE 'Tools of % changed';
";

/// Calls at least this slow have an index of their own; the same number is in the schema.
pub(super) const SLOW_US: i64 = 100_000;
/// Calls to tools that do not exist.
pub(super) const NO_TOOL: i64 = 0;
pub(super) const FLAG_FALLBACK: i64 = 1;
pub(super) const FLAG_REPLAYED: i64 = 2;
/// It waits for an approval: its tool was not started.
pub(super) const FLAG_WAITING: i64 = 4;

/// An id as it is stored: ids of our own making take less than half as bytes.
pub(super) enum StoredId<'a> {
    Own(uuid::Bytes),
    Other(&'a str),
}

impl<'a> StoredId<'a> {
    pub(super) fn of(id: &'a str) -> StoredId<'a> {
        let buffer = &mut uuid::Uuid::encode_buffer();
        let own = uuid::Uuid::try_parse(id).ok();
        match own.filter(|uuid| uuid.hyphenated().encode_lower(buffer) == id) {
            Some(uuid) => StoredId::Own(uuid.into_bytes()),
            None => StoredId::Other(id),
        }
    }
}

impl ToSql for StoredId<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            StoredId::Own(bytes) => ValueRef::Blob(bytes),
            StoredId::Other(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// The id again.
pub(super) fn read_id(stored: ValueRef<'_>) -> String {
    match stored {
        ValueRef::Blob(bytes) => match uuid::Uuid::from_slice(bytes) {
            Ok(uuid) => uuid.hyphenated().to_string(),
            Err(_) => String::new(),
        },
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

pub(super) fn state_number(state: CallState) -> i64 {
    match state {
        CallState::Running => 0,
        CallState::Ok => 1,
        CallState::Error => 2,
        CallState::Timeout => 3,
        CallState::Cancelled => 4,
        CallState::Rejected => 5,
        CallState::Interrupted => 6,
    }
}

pub(super) fn state_of(number: i64) -> CallState {
    let found = CallState::ALL
        .into_iter()
        .find(|state| state_number(*state) == number);
    found.unwrap_or(CallState::Interrupted)
}

pub(super) fn code_number(code: FailureCode) -> i64 {
    match code {
        FailureCode::NetworkError => 1,
        FailureCode::Timeout => 2,
        FailureCode::RateLimitError => 3,
        FailureCode::ToolExecutionError => 4,
        FailureCode::AuthenticationError => 5,
        FailureCode::ValidationError => 6,
        FailureCode::CircuitOpen => 7,
        FailureCode::ToolNotFound => 8,
        FailureCode::Cancelled => 9,
        FailureCode::Overloaded => 10,
        FailureCode::ApprovalDenied => 11,
        FailureCode::ApprovalExpired => 12,
        FailureCode::IdempotencyConflict => 13,
    }
}

pub(super) fn code_of(number: i64) -> Option<FailureCode> {
    FailureCode::ALL
        .into_iter()
        .find(|code| code_number(*code) == number)
}

pub(super) fn effect_number(effect: Effect) -> i64 {
    match effect {
        Effect::None => 0,
        Effect::Unknown => 1,
        Effect::Done => 2,
    }
}

pub(super) fn effect_of(number: i64) -> Effect {
    match number {
        0 => Effect::None,
        2 => Effect::Done,
        _ => Effect::Unknown,
    }
}
