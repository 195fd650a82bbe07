//! Tools that are on their way: a call that comes before them waits for them, and is told if they do not come.

use futures_util::future::BoxFuture;

use crate::tool_error::ToolError;

/// Knows of tools that are not there yet: of a server that is still starting, say.
pub trait Arrivals: Send + Sync {
    /// None if no tool of this name can arrive. Otherwise waits until those that can have arrived; an error
    /// says why the tool cannot be asked for.
    fn arriving(&self, name: &str) -> Option<BoxFuture<'static, Result<(), ToolError>>>;

    /// What is known about the wait for a tool when a call's time is up: who is late, and what went wrong so far.
    fn why_late(&self, _name: &str) -> Option<String> {
        None
    }
}
