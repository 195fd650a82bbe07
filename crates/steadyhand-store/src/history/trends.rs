//! How a tool fared over time: buckets that are filled as calls are written.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::marks::Mark;

/// How a tool, or all of them, fared lately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trends {
    /// The tool; absent for all of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How far back.
    pub window: Window,
    /// How long one bucket is.
    pub bucket_ms: u64,
    /// The whole window.
    pub total: Counts,
    /// The window before it, to compare with.
    pub previous: Counts,
    /// The oldest first, without gaps; the last one is still being filled.
    pub buckets: Vec<Bucket>,
    /// How the times of the whole window are spread, the shortest first.
    #[serde(default)]
    pub times: Vec<Spread>,
    /// What changed within the window, the oldest first; at most 100.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// Calls whose tool ran, by how long they took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DurationSpread)]
pub struct Spread {
    /// At most this long, in milliseconds, and longer than the one before.
    pub up_to_ms: f64,
    /// How many.
    pub calls: u64,
}

/// One span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrendBucket)]
pub struct Bucket {
    /// When it begins, in milliseconds since 1970.
    pub start_ms: u64,
    /// What happened in it.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What happened in a span of time. A call belongs to the moment it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CallCounts)]
pub struct Counts {
    /// Calls that ended, however.
    pub calls: u64,
    /// Of those, the ones whose tool failed; time-outs not among them.
    pub errors: u64,
    /// Of those, the ones that ran out of time.
    pub timeouts: u64,
    /// Of those, the ones refused before the tool was started.
    pub rejected: u64,
    /// Of those, the ones withdrawn by their caller.
    pub cancelled: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Failed calls that a fallback answered.
    pub fallbacks: u64,
    /// How often a breaker opened.
    pub trips: u64,
    /// Calls whose tool ran and answered, failed or ran out of time: what an error rate is a share of.
    #[serde(default)]
    pub ran: u64,
    /// Half of the calls whose tool ran were at least this fast, in milliseconds (within an eighth); absent if none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 95 in 100 were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
}

impl Counts {
    /// Calls whose tool ran and gave no answer: errors and time-outs. What was refused before is not among them.
    pub fn failed(&self) -> u64 {
        self.errors + self.timeouts
    }

    /// The one definition of an error rate (SPEC R08): failed calls among those whose tool ran, 0 to 1; none if none ran.
    pub fn error_rate(&self) -> Option<f64> {
        (self.ran > 0).then(|| self.failed() as f64 / self.ran as f64)
    }
}

/// How far back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = TrendWindow)]
pub enum Window {
    /// An hour, minute by minute.
    #[default]
    #[serde(rename = "1h")]
    Hour,
    /// A day, in quarters of an hour.
    #[serde(rename = "1d")]
    Day,
    /// A week, in steps of two hours.
    #[serde(rename = "7d")]
    Week,
}

impl Window {
    /// As it is written in a query.
    pub fn as_str(self) -> &'static str {
        match self {
            Window::Hour => "1h",
            Window::Day => "1d",
            Window::Week => "7d",
        }
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        match text {
            "1h" => Ok(Window::Hour),
            "1d" | "24h" => Ok(Window::Day),
            "7d" | "1w" => Ok(Window::Week),
            _ => Err(format!("\"{text}\" is no window; use 1h, 1d or 7d")),
        }
    }
}
