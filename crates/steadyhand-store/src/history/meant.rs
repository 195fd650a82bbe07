//! Which call a person means by less than an id: the beginning of one, or the last.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, named_params};

use super::health::HistoryError;
use super::reader::{Reader, record};
use super::record::CallRecord;
use super::schema::read_id;

/// The newest call.
const LAST: &str = "last";
/// Ids that are named where several begin alike.
const NAMED_MAX: i64 = 5;
/// How an id of our own making is written: 32 digits, with hyphens after these.
const DIGITS: usize = 32;
const HYPHENS_AFTER: [usize; 4] = [8, 12, 16, 20];

/// Calls of one owner, or of all where there is none.
const OF_OWNER: &str = "(:owner IS NULL OR caller IN
    (SELECT id FROM callers WHERE name = :owner OR substr(name, 1, length(:owner) + 1) = :owner || '/'))";

impl Reader {
    pub(super) fn meant(
        &self,
        word: &str,
        owner: Option<&str>,
    ) -> Result<Option<CallRecord>, HistoryError> {
        let found = self.read(|connection| {
            let rows = match word {
                "" => Vec::new(),
                LAST => newest(connection, owner)?,
                _ => beginning(connection, word, owner)?,
            };
            match rows.as_slice() {
                [(_, row)] => record(connection, *row).map(Ok),
                rows => Ok(Err(rows.iter().map(|(id, _)| id.clone()).collect())),
            }
        })?;
        found.or_else(|ids: Vec<String>| match ids.is_empty() {
            true => Ok(None),
            false => Err(HistoryError::Ambiguous {
                given: word.to_owned(),
                ids,
            }),
        })
    }
}

type Found = Vec<(String, i64)>;

fn newest(connection: &Connection, owner: Option<&str>) -> rusqlite::Result<Found> {
    let mut find = connection.prepare_cached(&format!(
        "SELECT id, row FROM calls WHERE {OF_OWNER} ORDER BY row DESC LIMIT 1"
    ))?;
    let rows = find.query_map(named_params! {":owner": owner}, found)?;
    rows.collect()
}

fn found(row: &Row<'_>) -> rusqlite::Result<(String, i64)> {
    Ok((read_id(row.get_ref(0)?), row.get(1)?))
}

/// The ids that begin so, each with its newest row.
fn beginning(connection: &Connection, word: &str, owner: Option<&str>) -> rusqlite::Result<Found> {
    let text = (
        Value::Text(word.to_owned()),
        Value::Text(format!("{word}{}", char::MAX)),
    );
    let mut all = Vec::new();
    for (first, last) in [Some(text), own_ids(word)].into_iter().flatten() {
        let mut find = connection.prepare_cached(&format!(
            "SELECT id, max(row) FROM calls WHERE id BETWEEN :first AND :last AND {OF_OWNER}
             GROUP BY id LIMIT {NAMED_MAX}"
        ))?;
        let range = named_params! {":first": first, ":last": last, ":owner": owner};
        for row in find.query_map(range, found)? {
            all.push(row?);
        }
    }
    Ok(all)
}

/// The first and the last id of our own making that begin so, as they are stored.
fn own_ids(word: &str) -> Option<(Value, Value)> {
    let mut digits = String::new();
    for c in word.chars() {
        match c {
            '-' if HYPHENS_AFTER.contains(&digits.len()) => {}
            c if c.is_ascii_hexdigit() => digits.push(c),
            _ => return None,
        }
    }
    let filled = |with: char| {
        let mut id = digits.clone();
        id.extend(std::iter::repeat_n(with, DIGITS.checked_sub(id.len())?));
        let id = uuid::Uuid::try_parse(&id).ok()?;
        Some(Value::Blob(id.into_bytes().to_vec()))
    };
    Some((filled('0')?, filled('f')?))
}
