//! What stands before a tool that needs a yes.

use futures_util::future::{BoxFuture, ready};
use steadyhand::{Asked, Category, Gate, InexactInteger, ToolError};
use steadyhand_mcp::Passage;

use super::desk::{Desk, Said};
use super::elicited;

/// Waits for a person.
pub struct Ask {
    pub desk: Desk,
    /// A yes counts for the same arguments within a conversation.
    pub remembers: bool,
}

impl Gate for Ask {
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.ask(asked))
    }
}

impl Ask {
    async fn ask(&self, asked: Asked<'_>) -> Result<(), ToolError> {
        send_what_is_shown(&asked)?;
        if self.remembers && self.desk.remembers(&asked) {
            return Ok(());
        }
        let tool = asked.tool_name;
        if !self.desk.is_listed() && !elicited::can_ask(&asked, &self.desk) {
            return Err(match elicited::has_forms(&asked) {
                true => caller_may_not(tool),
                false => nobody_to_ask(tool),
            });
        }
        let approval = if self.remembers { "ask" } else { "always" };
        let Some(question) = self.desk.enter(&asked, approval) else {
            return Err(ToolError::of(
                Category::Overloaded,
                format!("'{tool}' needs approval, and too many calls wait for one already"),
            ));
        };
        let wait = humantime::format_duration(question.wait);
        let (desk, approval) = (&self.desk, question.approval.clone());
        let said = tokio::select! {
            said = question.answered() => said,
            never = elicited::ask(&asked, &approval, desk) => match never {},
        };
        match said {
            Some(Said::Yes { by }) => {
                asked.approved_by(&by);
                self.desk.until_written_down().await;
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
                format!("nobody said yes or no to '{tool}' within {wait}"),
            )),
        }
    }
}

/// A client's arguments usually go on to a server as they were written. What a person is shown, and says yes to, is the
/// value that was read from them: so it is the value that goes on. A number that the value would round is refused.
fn send_what_is_shown(asked: &Asked<'_>) -> Result<(), ToolError> {
    let Some(passage) = asked.luggage::<Passage>() else {
        return Ok(());
    };
    let written = passage.arguments().map(|raw| raw.get());
    if let Some(inexact) = written.and_then(InexactInteger::first_in) {
        let message = format!("Invalid parameters: {}: {}", inexact.at, inexact.message());
        return Err(ToolError::of(Category::Validation, message));
    }
    passage.send_value();
    Ok(())
}

/// Where there is nobody to ask.
pub struct NobodyToAsk;

impl Gate for NobodyToAsk {
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(ready(Err(nobody_to_ask(asked.tool_name))))
    }
}

fn caller_may_not(tool: &str) -> ToolError {
    let message = format!(
        "'{tool}' needs approval, and a client does not approve its own calls. Set approval_by_caller = true under [server] if the person at the client may, or use a running steadyhand serve, where somebody else approves"
    );
    ToolError::of(Category::Denied, message)
}

fn nobody_to_ask(tool: &str) -> ToolError {
    let message = format!(
        "'{tool}' needs approval and nobody was asked; allow it with --approve {tool}, or set approval = \"never\""
    );
    ToolError::of(Category::Denied, message)
}
