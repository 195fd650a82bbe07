//! An alert: raised, seen, kept quiet, over – and why it was raised and why it is over.

use serde::Serialize;
use utoipa::ToSchema;

/// Something that somebody should know
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Alert {
    /// Its name
    pub id: String,
    /// raised, acknowledged or cleared
    pub state: AlertState,
    /// The rule that raised it, as it would be written
    pub rule: String,
    /// What is watched: error_rate, breaker_open …
    pub watched: String,
    /// The tool or server it is about
    pub subject: String,
    /// In words, with numbers
    pub message: String,
    /// What was measured when it was last looked at
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub value: Option<f64>,
    /// In milliseconds since 1970
    pub raised_ms: u64,
    /// When somebody said that they know
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub acknowledged_ms: Option<u64>,
    /// Who
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub acknowledged_by: Option<String>,
    /// Until when nobody is told of it
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub silenced_until_ms: Option<u64>,
    /// When it was over
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub cleared_ms: Option<u64>,
    /// What ended it
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub cleared_because: Option<String>,
}

/// Where an alert stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// It is so, and nobody has said that they know.
    Raised,
    /// It is so, and somebody knows.
    Acknowledged,
    /// It is over.
    Cleared,
}

impl AlertState {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            AlertState::Raised => "raised",
            AlertState::Acknowledged => "acknowledged",
            AlertState::Cleared => "cleared",
        }
    }
}

/// Something became of an alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What.
    pub kind: ChangeKind,
    /// The alert as it is now.
    pub alert: Alert,
    /// The number of its rule.
    pub rule: usize,
    /// Nobody is to be told: it is silenced.
    pub is_silenced: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is so.
    Raised,
    /// It is over.
    Cleared,
}

impl ChangeKind {
    /// `alert.raised`, `alert.cleared`
    pub fn word(self) -> &'static str {
        match self {
            ChangeKind::Raised => "alert.raised",
            ChangeKind::Cleared => "alert.cleared",
        }
    }
}
