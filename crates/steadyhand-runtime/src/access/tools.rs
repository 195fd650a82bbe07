//! The tools that someone may use: names and patterns, what is forbidden before what is allowed.

use serde::{Deserialize, Serialize};
use steadyhand::wildcard::wild;

/// Patterns in one list: more is no list any more.
pub(super) const PATTERNS_MAX: usize = 256;

/// Which tools. Nothing said means all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// Names or patterns; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Names or patterns, whatever is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl Tools {
    pub fn are_all(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    pub fn include(&self, tool: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| wild(pattern, tool));
        !any(&self.deny) && (self.allow.is_empty() || any(&self.allow))
    }
}
