//! What changed at a moment: a configuration put in force, a server that went down, a start of the program. Charts show
//! them on their axis of time, so that a change of the figures has its cause beside it.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::reader::text;

/// Marks that one answer has; the newest of more.
const MARKS_MAX: usize = 100;
/// The longest text of one.
const TEXT_BYTES_MAX: usize = 256;

/// Something changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangeMark)]
pub struct Mark {
    /// In milliseconds since 1970.
    pub at_ms: u64,
    /// What kind of change.
    pub kind: MarkKind,
    /// In words.
    pub text: String,
    /// The server it is about; absent for what concerns every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChangeMarkKind)]
pub enum MarkKind {
    /// The program was started.
    Start,
    /// A configuration was put in force.
    Config,
    /// A configuration was refused, and the one before stays.
    Refused,
    /// An MCP server came up or went down.
    Server,
    /// There are other tools than before.
    Tools,
}

impl MarkKind {
    const ALL: [MarkKind; 5] = [
        MarkKind::Start,
        MarkKind::Config,
        MarkKind::Refused,
        MarkKind::Server,
        MarkKind::Tools,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            MarkKind::Start => "start",
            MarkKind::Config => "config",
            MarkKind::Refused => "refused",
            MarkKind::Server => "server",
            MarkKind::Tools => "tools",
        }
    }
}

impl Mark {
    /// The text is cut to a size that is worth keeping.
    pub fn new(at_ms: u64, kind: MarkKind, text: &str) -> Mark {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Mark {
            at_ms,
            kind,
            text: text[..end].to_owned(),
            source: None,
        }
    }

    /// The same about one server.
    pub fn of_source(mut self, source: &str) -> Mark {
        self.source = Some(source.to_owned());
        self
    }

    /// Whether it can have an effect on the tools of a source.
    pub fn concerns(&self, source: Option<&str>) -> bool {
        self.source.is_none() || self.source.as_deref() == source
    }
}

pub(super) fn write(connection: &Connection, marks: &[Mark]) -> rusqlite::Result<()> {
    let mut put = connection
        .prepare_cached("INSERT INTO marks (at_ms, kind, text, source) VALUES (?1, ?2, ?3, ?4)")?;
    for mark in marks {
        let kind = mark.kind.as_str();
        put.execute(params![mark.at_ms as i64, kind, mark.text, mark.source])?;
    }
    Ok(())
}

/// Since a moment, the oldest first. With a tool, those that concern one of its sources.
pub(super) fn read(
    connection: &Connection,
    since_ms: u64,
    tool: Option<&str>,
) -> rusqlite::Result<Vec<Mark>> {
    let mut find = connection.prepare_cached(
        "SELECT at_ms, kind, text, source FROM marks WHERE at_ms >= ?1
         AND (?3 IS NULL OR source IS NULL OR source IN (SELECT source FROM tools WHERE name = ?3))
         ORDER BY at_ms DESC LIMIT ?2",
    )?;
    let mut rows = find.query(params![since_ms as i64, MARKS_MAX as i64, tool])?;
    let mut marks = Vec::new();
    while let Some(row) = rows.next()? {
        let word = text(row, 1)?.unwrap_or_default();
        let kind = MarkKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        // One of a later version of the program.
        let Some(kind) = kind else { continue };
        marks.push(Mark {
            at_ms: row.get::<_, i64>(0)?.max(0) as u64,
            kind,
            text: text(row, 2)?.unwrap_or_default(),
            source: text(row, 3)?,
        });
    }
    marks.reverse();
    Ok(marks)
}

pub(super) fn forget_old(connection: &Connection, before_ms: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM marks WHERE at_ms < ?1")?
        .execute([before_ms as i64])?;
    Ok(())
}
