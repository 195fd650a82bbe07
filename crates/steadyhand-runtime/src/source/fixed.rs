//! A source whose tools are known from the start.

use futures_util::future::{BoxFuture, ready};
use steadyhand::{SourceError, Tool, ToolSource};

use super::Source;

/// Tools that need nothing from outside to be known.
pub struct Fixed {
    name: String,
    tools: Vec<Tool>,
}

impl Fixed {
    /// These tools.
    pub fn new(name: impl Into<String>, tools: Vec<Tool>) -> Fixed {
        Fixed {
            name: name.into(),
            tools,
        }
    }
}

impl ToolSource for Fixed {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<Tool>, SourceError>> {
        Box::pin(ready(Ok(self.tools.clone())))
    }
}

impl Source for Fixed {}
