//! Who calls, and what goes with every call of theirs: their rights, their rate, their budget, their memory.

use std::sync::Arc;
use std::time::Duration;

use steadyhand::{ByteBudget, Call, Category, KeyCaller, Permit, ToolError};
use tokio::time::Instant;

use super::account::{CallerAccount, budget_owner};
use super::memory::may_start;
use super::not_admitted::{NotAdmitted, NotAdmittedReason};
use crate::access::{Budget, Door, Identity, Refusal, TooSoon, Unnamed};

/// When to try again, where nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Who calls, and the trace the request is part of.
#[derive(Clone)]
pub struct Caller {
    /// `@ci/nightly`: who it is, and what it says it is.
    pub name: Arc<str>,
    pub traceparent: Option<String>,
    pub conversation: Option<String>,
    pub identity: Arc<Identity>,
    pub account: CallerAccount,
    /// What the answer to its request may take of memory.
    pub memory: ByteBudget,
    pub door: Arc<Door>,
    pub budget: Option<Arc<Budget>>,
}

impl Caller {
    /// The call, as one of this caller's.
    pub fn of(&self, mut call: Call) -> Call {
        call.caller = Some(self.name.to_string());
        call.traceparent.clone_from(&self.traceparent);
        call.conversation.clone_from(&self.conversation);
        if let (Some(name), Some(key)) = (&self.identity.name, &call.idempotency_key) {
            // Two who use the same key have nothing to do with each other.
            call.idempotency_key = Some(format!("{name}/{key}"));
        }
        call.permit(Arc::new(CallerPermit {
            identity: Arc::clone(&self.identity),
            account: self.account.clone(),
            door: Arc::clone(&self.door),
            way: Way::Rest,
            budget: self.budget.clone(),
            memory: self.memory.clone(),
        }))
    }

    /// Whether so many calls may come now.
    pub fn take(&self, calls: usize) -> Result<(), NotAdmitted> {
        take(&self.identity, calls)
    }
}

/// Whether so many calls of someone may come now.
fn take(identity: &Identity, calls: usize) -> Result<(), NotAdmitted> {
    let Some(pace) = &identity.pace else {
        return Ok(());
    };
    let who = identity.name.as_deref().unwrap_or_default();
    let who = who.trim_start_matches('@');
    let rate = pace.rate;
    match pace.take(calls, Instant::now()) {
        Ok(()) => Ok(()),
        Err(TooSoon::Wait(wait)) => Err(NotAdmitted::new(
            NotAdmittedReason::RateLimited,
            format!("{who} may make {rate} calls, and has made them; nothing was run"),
            "Wait for as long as retry-after says",
        )
        .after(wait)),
        Err(TooSoon::Never) => Err(NotAdmitted::new(
            NotAdmittedReason::RateLimited,
            format!("{who} may make {rate} calls, and these are {calls} at once; nothing was run"),
            "Send fewer at once",
        )
        .after(rate.per)),
    }
}

/// What goes with every call of someone: whom it counts for, what it may use, and what it is taken from.
pub struct CallerPermit {
    pub identity: Arc<Identity>,
    pub account: CallerAccount,
    pub door: Arc<Door>,
    pub way: Way,
    pub budget: Option<Arc<Budget>>,
    /// What the answer may take of memory.
    pub memory: ByteBudget,
}

/// How a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over REST: the rate was counted with the request.
    Rest,
    /// Over MCP: many calls may be in one request there, each of them is counted by itself.
    Mcp,
}

impl Permit for CallerPermit {
    fn allows(&self, tool: &str) -> bool {
        self.identity.tools.include(tool)
    }

    fn refusal(&self, tool: &str) -> String {
        let name = self.identity.name.as_deref();
        let name = name.map(|name| name.trim_start_matches('@'));
        let reason = format!("{} may not use '{tool}'", name.unwrap_or("this caller"));
        self.door.audit.record(Refusal {
            who: name.map(str::to_owned),
            asked: "call".to_owned(),
            tool: Some(tool.to_owned()),
            code: "tool_not_allowed".to_owned(),
            reason: reason.clone(),
            ..Refusal::default()
        });
        reason
    }

    fn owner(&self) -> Option<&str> {
        Some(self.account.id())
    }

    fn key_caller(&self) -> Option<KeyCaller<'_>> {
        Some(KeyCaller {
            name: budget_owner(self.account.id()),
            uses_reserve: self.account.is_operator(),
        })
    }

    fn admit(&self, asked: &steadyhand::Asked<'_>) -> Result<(), ToolError> {
        may_start(&self.memory)?;
        if let Some(budget) = &self.budget {
            let unnamed = match self.way {
                Way::Rest => Unnamed::IsNotCounted,
                Way::Mcp => Unnamed::IsOneConversation,
            };
            budget.take(asked, budget_owner(self.account.id()), unnamed)?;
        }
        if self.way == Way::Rest {
            return Ok(());
        }
        take(&self.identity, 1).map_err(|refused| {
            let wait = refused.retry_after.unwrap_or(RETRY_AFTER);
            ToolError::of(Category::Overloaded, refused.in_words()).retry_after(wait)
        })
    }
}
