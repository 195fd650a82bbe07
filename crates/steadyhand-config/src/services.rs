//! Services that a configuration sets up for its tools of kind `internal`.

use std::path::Path;

use steadyhand::source::internal::InternalHandlers;

use super::Configuration;
use super::progress::Progress;

/// Offers handlers to tools, by what a configuration says.
pub trait Services: Send + Sync {
    /// Offers what this configuration asks for. State is kept in this folder. What was offered for the configuration before
    /// goes on where nothing about it has changed.
    fn offer(
        &self,
        configuration: &Configuration,
        handlers: &InternalHandlers,
        state: &Path,
        progress: &Progress,
    );
}
