//! Which tools whoever calls may use. The engine asks; who they are is the application's business.

use std::fmt;
use std::sync::Arc;

use crate::failure::{Effect, Failure, FailureCode};
use crate::gate::Asked;
use crate::tool_error::ToolError;

/// What one caller may use.
pub trait Permit: Send + Sync {
    /// Whether the tool of this name may be used. Also asked for names that no tool has.
    fn allows(&self, tool: &str) -> bool;

    /// Why it may not, in words. Asked once for each call that is refused for it.
    fn refusal(&self, tool: &str) -> String;

    /// Whom limits count the call for: who the caller has proved to be, never what it calls itself. None where
    /// there is only one.
    fn owner(&self) -> Option<&str> {
        None
    }

    /// Whom the idempotency keys of its calls count for. Without a word of your own: for the [owner](Permit::owner), who
    /// may not use what is kept for operators.
    fn key_caller(&self) -> Option<KeyCaller<'_>> {
        self.owner().map(KeyCaller::new)
    }

    /// Asked once for each call that would be run, its arguments checked: a budget may be used up.
    fn admit(&self, _asked: &Asked<'_>) -> Result<(), ToolError> {
        Ok(())
    }
}

/// Whom a key counts for. Who is no [permit](Permit)'s business is nobody: the application itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCaller<'a> {
    /// Who the caller has proved to be, or the address it comes from; never what it calls itself.
    pub name: &'a str,
    /// It may use what is kept for operators.
    pub uses_reserve: bool,
}

impl<'a> KeyCaller<'a> {
    /// One that has its share, and nothing of what is kept for operators.
    pub fn new(name: &'a str) -> KeyCaller<'a> {
        KeyCaller {
            name,
            uses_reserve: false,
        }
    }
}

/// A permit as a call carries it: see [`Call::permit`](crate::Call::permit).
#[derive(Clone)]
pub struct Permission(Arc<dyn Permit>);

impl Permission {
    /// What every call of an application may carry.
    pub fn new(permit: Arc<dyn Permit>) -> Permission {
        Permission(permit)
    }

    /// Whom limits count the call for: see [`Permit::owner`].
    pub fn owner(&self) -> Option<&str> {
        self.0.owner()
    }

    pub(crate) fn key_caller(&self) -> Option<KeyCaller<'_>> {
        self.0.key_caller()
    }

    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.0.allows(tool)
    }

    /// The failure of a call of a tool that may not be used.
    pub(crate) fn check(&self, tool: &str) -> Result<(), Box<Failure>> {
        if self.0.allows(tool) {
            return Ok(());
        }
        let code = FailureCode::AuthenticationError;
        let failure = Failure::new(code, Effect::None, self.0.refusal(tool));
        let friendly = format!("You are not allowed to use {tool}.");
        Err(Box::new(failure.for_people(friendly)))
    }

    /// What the call was given.
    pub(crate) fn permit(&self) -> &dyn Permit {
        &*self.0
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permission")
    }
}
