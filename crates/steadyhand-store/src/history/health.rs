//! How history itself fares: it may fail, and says so; calls never notice.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How history fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = HistoryHealth)]
pub struct Health {
    /// Whether calls are written down.
    pub state: HealthState,
    /// Why not, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Something that happened to the file and is over: set aside as broken, begun anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// The database file.
    pub path: String,
    /// How large it is, in bytes.
    pub bytes: u64,
    /// Calls written since the start.
    pub written: u64,
    /// Calls that were not written, because history was behind or could not write; what it was too slow to hear of
    /// them counts, too.
    pub dropped: u64,
    /// Calls that wait to be written.
    pub queued: u64,
    /// How many may wait.
    pub queue_max: u64,
}

/// Whether calls are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = HistoryState)]
pub enum HealthState {
    /// They are.
    Ok,
    /// They are not, for now. It is tried again.
    Degraded,
}

/// Why history cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The database cannot be read now.
    #[error("the history of calls cannot be read: {0}")]
    Unavailable(String),
    /// A cursor that is none of ours.
    #[error(
        "\"{0}\" is no place in the history of calls; leave the cursor out to start with the newest"
    )]
    Cursor(String),
    /// The beginning of several ids.
    #[error("\"{given}\" is the beginning of several call ids: {}", ids.join(", "))]
    Ambiguous {
        /// What was given.
        given: String,
        /// Some of the ids.
        ids: Vec<String>,
    },
    /// Whoever gets the export cannot take more of it.
    #[error("the export stopped: {0}")]
    Export(String),
}
