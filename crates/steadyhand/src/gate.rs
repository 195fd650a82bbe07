//! What must be settled before a tool is started: a person's yes, say. The call's deadline begins after it.

use std::fmt;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::poll;
use serde_json::Value;
use tokio::time::Instant;

use crate::call::Call;
use crate::case::{Case, Progress};
use crate::executor::after;
use crate::failure::{Effect, Failure, FailureCode};
use crate::failures;
use crate::guard::attempt::{Bounded, Ended, contained};
use crate::manager::Entry;
use crate::permit::Permission;
use crate::tool_error::ToolError;

/// No gate holds a call longer, whatever it says itself.
const GATE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

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
    call: &'a Call,
    waiting: Waiting<'a>,
}

/// What the call knows of its own wait.
#[derive(Clone, Copy)]
struct Waiting<'a>(&'a Progress<'a>);

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Waiting")
    }
}

impl<'a> Asked<'a> {
    pub(crate) fn of(case: &'a Case<'_>, entry: &'a Entry) -> Asked<'a> {
        let call = &case.call;
        Asked {
            call_id: &call.id,
            tool_name: entry.tool.name(),
            args: call.args.checked(),
            caller: call.caller.as_deref(),
            conversation: call.conversation.as_deref(),
            owner: call.permit.as_ref().and_then(Permission::owner),
            call,
            waiting: Waiting(&case.progress),
        }
    }

    /// Says who approved the call, for those who watch. To be called before the gate lets it pass.
    pub fn approved_by(&self, by: &str) {
        self.waiting.0.tell_approved(self.call, by);
    }

    /// What the call carries, if it is of this type: see [`Call::luggage`].
    pub fn luggage<T: std::any::Any>(&self) -> Option<&'a T> {
        self.call.luggage.as_ref()?.get()
    }
}

/// Waits at the gate of a tool, if it has one. The wait is a part of the call's time, and not of its deadline.
pub(crate) async fn pass(case: &mut Case<'_>, entry: &Entry) -> Result<(), Box<Failure>> {
    let Some(gate) = entry.tool.gate() else {
        return Ok(());
    };
    case.progress.approval_begins(&case.call);
    let mut has_waited = false;
    let passed = let_through(&**gate, case, entry, &mut has_waited).await;
    case.progress.approval_ends(&case.call, has_waited);
    passed
}

async fn let_through(
    gate: &dyn Gate,
    case: &Case<'_>,
    entry: &Entry,
    has_waited: &mut bool,
) -> Result<(), Box<Failure>> {
    let call = &case.call;
    let args = call.args.checked();
    let until = after(Instant::now(), GATE_MAX);
    let ended = match contained(|| gate.pass(Asked::of(case, entry))) {
        Ok(waiting) => {
            let mut waiting = Bounded::new(waiting, until, call.cancellation.as_ref());
            match poll!(&mut waiting) {
                Poll::Ready(ended) => ended,
                Poll::Pending => {
                    *has_waited = true;
                    case.progress.tell_approval_asked(call);
                    waiting.await
                }
            }
        }
        Err(panic) => Ended::Panicked(panic),
    };
    match ended {
        Ended::Finished(Ok(())) => Ok(()),
        Ended::Finished(Err(error)) => {
            let failure = error.never_started().into_failure(entry.tool.name());
            Err(Box::new(failure))
        }
        Ended::Cancelled => Err(failures::cancelled(entry, Effect::None)),
        Ended::TimedOut => Err(failures::refused(
            FailureCode::ApprovalExpired,
            entry,
            format!("nobody let '{}' run in time", entry.tool.name()),
        )),
        Ended::Panicked(panic) => {
            let mut failure = failures::panicked(&panic, entry, args);
            failure.effect = Effect::None;
            Err(failure)
        }
    }
}
