//! The seam to whatever brings tools.

use futures_util::future::BoxFuture;

use crate::tool::Tool;

/// Brings tools. What runs them is in each tool's handler.
pub trait ToolSource: Send + Sync {
    /// What it is called in lists and messages.
    fn name(&self) -> &str;

    /// The tools it has now.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Tool>, SourceError>>;
}

/// A source that cannot say which tools it has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {reason}")]
pub struct SourceError {
    /// The source.
    pub source_name: String,
    /// What happened, and what to do.
    pub reason: String,
}
