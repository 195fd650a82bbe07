//! What stands before a tool that needs a yes.

use futures_util::future::{BoxFuture, ready};
use steadyhand::{Asked, Category, Gate, ToolError};

use super::desk::{Desk, Said};

/// Waits for a person.
pub(crate) struct Ask {
    pub(crate) desk: Desk,
    /// A yes counts for the same arguments within a conversation.
    pub(crate) remembers: bool,
}

impl Gate for Ask {
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.ask(asked))
    }
}

impl Ask {
    async fn ask(&self, asked: Asked<'_>) -> Result<(), ToolError> {
        if self.remembers && self.desk.remembers(&asked) {
            return Ok(());
        }
        let tool = asked.tool_name;
        let approval = if self.remembers { "ask" } else { "always" };
        let Some(question) = self.desk.enter(&asked, approval) else {
            return Err(ToolError::of(
                Category::Overloaded,
                format!("'{tool}' needs approval, and too many calls wait for one already"),
            ));
        };
        let wait = humantime::format_duration(question.wait);
        match question.answered().await {
            Some(Said::Yes) => {
                if self.remembers {
                    self.desk.remember(&asked);
                }
                Ok(())
            }
            Some(Said::No { by, reason }) => {
                let reason = reason.map(|reason| format!(": {reason}"));
                let message = format!("'{tool}' was denied by {by}{}", reason.unwrap_or_default());
                Err(ToolError::of(Category::Denied, message))
            }
            None => Err(ToolError::of(
                Category::Expired,
                format!("nobody said yes or no to '{tool}' within {wait}; it was not run"),
            )),
        }
    }
}

/// Where there is nobody to ask.
pub(crate) struct NobodyToAsk;

impl Gate for NobodyToAsk {
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        let tool = asked.tool_name;
        let error = ToolError::of(
            Category::Denied,
            format!(
                "'{tool}' needs approval and nobody was asked; allow it with --approve {tool}, or set approval = \"never\""
            ),
        );
        Box::pin(ready(Err(error)))
    }
}
