//! What must be settled before a tool is started: a person's yes, say. The call's deadline begins after it.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::luggage::Luggage;
use crate::tool_error::ToolError;

/// Stands before a tool: see [`Tool::gated_by`](crate::Tool::gated_by).
pub trait Gate: Send + Sync {
    /// Waits until the tool may be started, and gives up by itself at some time. Dropping the future withdraws the
    /// question.
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// A call that asks to be let through, its arguments checked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The call's id.
    pub call_id: &'a str,
    /// The tool's own name.
    pub tool_name: &'a str,
    /// What the tool would get.
    pub args: &'a Value,
    /// Who asks.
    pub caller: Option<&'a str>,
    /// The conversation it belongs to.
    pub conversation: Option<&'a str>,
    /// Whom limits count it for, where the permit of the call says so.
    pub owner: Option<&'a str>,
    pub(crate) luggage: Option<&'a Luggage>,
    pub(crate) listener: Listener<'a>,
}

/// Told who approved a call.
pub(crate) trait ApprovalListener: Sync {
    fn approved(&self, by: &str);
}

#[derive(Clone, Copy)]
pub(crate) struct Listener<'a>(pub(crate) &'a dyn ApprovalListener);

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Listener")
    }
}

impl<'a> Asked<'a> {
    /// Says who approved the call, for those who watch. To be called before the gate lets it pass.
    pub fn approved_by(&self, by: &str) {
        self.listener.0.approved(by);
    }

    /// What the call carries, if it is of this type: see [`Call::luggage`](crate::Call::luggage).
    pub fn luggage<T: std::any::Any>(&self) -> Option<&'a T> {
        self.luggage?.get()
    }
}
