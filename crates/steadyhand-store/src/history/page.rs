//! Pages of the history, the newest call first, by a cursor that stays good while calls are added.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::health::HistoryError;
use super::record::CallSummary;

/// A page of calls, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// The calls.
    pub calls: Vec<CallSummary>,
    /// Where the next page begins; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub next: Option<Cursor>,
    /// The search stopped here, to be quick, before the page was full: go on with `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_to_ms: Option<u64>,
}

/// A place in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub(super) i64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:x}", self.0)
    }
}

impl FromStr for Cursor {
    type Err = HistoryError;

    fn from_str(text: &str) -> Result<Cursor, HistoryError> {
        let wrong = || HistoryError::Cursor(text.chars().take(64).collect());
        let digits = text.strip_prefix('c').ok_or_else(wrong)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let row = i64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        match is_hex {
            true => Ok(Cursor(row)),
            false => Err(wrong()),
        }
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cursor, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
