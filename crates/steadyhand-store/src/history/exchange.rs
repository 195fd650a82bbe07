//! Exchanges with providers that are worth remembering: mended, refused, failed, or answered with broken calls. What
//! was said in them is not kept.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::pending::row_at;
use super::reader::{key_of, row_of};

/// Changes and problems of one exchange that are listed; the others are counted.
pub const LISTED_MAX: usize = 50;
/// Exchanges that are kept.
const KEPT_MAX: i64 = 5_000;
/// Exchanges that wait to be written; the next ones are dropped.
const PENDING_MAX: usize = 1_024;
/// The longest record, in bytes of JSON.
const RECORD_BYTES_MAX: usize = 32 * 1024;

/// One exchange with a provider through the proxy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Exchange {
    /// Names this record, and where a page goes on
    #[serde(default)]
    pub key: String,
    /// When the request came in, in milliseconds since 1970
    pub at_ms: u64,
    /// The name in the proxy's address
    pub provider: String,
    /// The provider's own path, without what follows a question mark
    pub path: String,
    /// The model that was asked
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub model: Option<String>,
    /// Who asked
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub caller: Option<String>,
    /// The status that was answered
    pub status: u16,
    /// Whether the answer came as a stream
    #[serde(default)]
    pub streamed: bool,
    /// All of it
    pub took_ms: f64,
    /// What was mended in the conversation; the first 50
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub fixes: Vec<Finding>,
    /// How many fixes there were
    pub fix_count: usize,
    /// What is wrong with the answer; the first 50
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub problems: Vec<Finding>,
    /// Why there is no answer, or no whole one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub failure: Option<ExchangeFailure>,
    /// What the provider said where it refused the conversation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub refusal: Option<Refusal>,
}

/// Something that was found, with its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExchangeFinding)]
pub struct Finding {
    /// Where, as a JSON Pointer
    pub at: String,
    /// For programs
    pub code: String,
    /// For people
    pub message: String,
}

/// Why there is no answer, or no whole one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeFailure {
    /// For programs
    pub code: String,
    /// For people
    pub message: String,
}

/// A refusal of the provider's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ProviderRefusal)]
pub struct Refusal {
    /// Its own words, secrets removed
    pub message: String,
    /// The place it names, as a JSON Pointer into the request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub at: Option<String>,
    /// Whether the rule is one that we know
    pub is_known: bool,
    /// The file that keeps the case
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub case: Option<String>,
}

/// Those that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<(i64, String)>);

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// False when there is no room for it.
    pub(super) fn push(&mut self, exchange: &Exchange) -> bool {
        let tie = uuid::Uuid::new_v4().as_u128() as u64;
        let Ok(json) = serde_json::to_string(exchange) else {
            return false;
        };
        if self.0.len() >= PENDING_MAX || json.len() > RECORD_BYTES_MAX {
            return false;
        }
        self.0.push((row_at(exchange.at_ms, tie), json));
        true
    }

    /// Those that could not be written wait again.
    pub(super) fn give_back(&mut self, older: Waiting) {
        let newer = std::mem::replace(&mut self.0, older.0);
        self.0.extend(newer);
        self.0.truncate(PENDING_MAX);
    }

    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut put = connection
            .prepare_cached("INSERT OR IGNORE INTO exchanges (row, json) VALUES (?1, ?2)")?;
        for (row, json) in &self.0 {
            put.execute(params![row, json])?;
        }
        Ok(())
    }
}

/// A page of them, the newest first.
pub(super) fn page(
    connection: &Connection,
    before: Option<&str>,
    limit: usize,
) -> rusqlite::Result<Vec<Exchange>> {
    let before = before.and_then(row_of).unwrap_or(i64::MAX);
    let mut list = connection.prepare_cached(
        "SELECT row, json FROM exchanges WHERE row < ?1 ORDER BY row DESC LIMIT ?2",
    )?;
    let rows = list.query_map(params![before, limit as i64], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut page = Vec::new();
    for row in rows {
        let (row, json) = row?;
        // One that cannot be read costs itself, not the page.
        if let Ok(exchange) = serde_json::from_str::<Exchange>(&json) {
            page.push(Exchange {
                key: key_of(row),
                ..exchange
            });
        }
    }
    Ok(page)
}

/// Forgets those that are too old or too many; half of them where the file is too large.
pub(super) fn forget(
    connection: &Connection,
    before_ms: u64,
    is_full: bool,
) -> rusqlite::Result<()> {
    let there: i64 = connection
        .prepare_cached("SELECT count(*) FROM exchanges")?
        .query_row([], |row| row.get(0))?;
    let kept = match is_full {
        true => there / 2,
        false => KEPT_MAX,
    };
    let too_many = (there - kept).max(0);
    connection
        .prepare_cached(
            "DELETE FROM exchanges WHERE row < ?1
                OR row IN (SELECT row FROM exchanges ORDER BY row LIMIT ?2)",
        )?
        .execute(params![row_at(before_ms, 0), too_many])?;
    Ok(())
}
