//! What of a server is pinned.

use serde::{Deserialize, Serialize};
use steadyhand_mcp::Listed;
use utoipa::ToSchema;

/// What a definition is one of
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinnedKind {
    Tool,
    Prompt,
    Resource,
    ResourceTemplate,
    /// How to use the server, in its own words
    Instructions,
}

impl PinnedKind {
    pub(super) fn of(list: Listed) -> PinnedKind {
        match list {
            Listed::Prompts => PinnedKind::Prompt,
            Listed::Resources => PinnedKind::Resource,
            Listed::ResourceTemplates => PinnedKind::ResourceTemplate,
        }
    }

    /// What it is called where it is shown and decided about.
    pub(super) fn subject(self, server: &str, key: &str) -> String {
        match self {
            PinnedKind::Tool => key.to_owned(),
            PinnedKind::Prompt => format!("{server}/prompts/{key}"),
            PinnedKind::Resource => format!("{server}/resources/{key}"),
            PinnedKind::ResourceTemplate => format!("{server}/templates/{key}"),
            PinnedKind::Instructions => format!("{server}/instructions"),
        }
    }
}
