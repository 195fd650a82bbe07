//! Asks whoever has a say before a tool is started: the permit of the call, and the gate of the tool.

use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use tokio::time::Instant;

use crate::case::Case;
use crate::clock::after;
use crate::failure::{Effect, Failure, FailureCode};
use crate::failures;
use crate::gate::{Asked, Gate, Listener};
use crate::guard::attempt::{Bounded, Ended, contained};
use crate::manager::Entry;
use crate::permit::Permission;

/// No gate holds a call longer, whatever it says itself.
const GATE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

fn asked<'a>(case: &'a Case<'_>, entry: &'a Entry) -> Asked<'a> {
    let call = &case.call;
    Asked {
        call_id: &call.id,
        tool_name: entry.tool.name(),
        args: call.args.checked(),
        caller: call.caller.as_deref(),
        conversation: call.conversation.as_deref(),
        owner: call.permit.as_ref().and_then(Permission::owner),
        luggage: call.luggage.as_ref(),
        listener: Listener(case),
    }
}

/// Whether the permit of the call admits it now.
pub(super) fn admit(
    permission: &Permission,
    case: &Case<'_>,
    entry: &Entry,
) -> Result<(), Box<Failure>> {
    let asked = asked(case, entry);
    match contained(|| permission.permit().admit(&asked)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            let failure = error.never_started().into_failure(entry.tool.name());
            Err(Box::new(failure))
        }
        Err(panic) => {
            let mut failure = failures::panicked(&panic, entry, asked.args);
            failure.effect = Effect::None;
            Err(failure)
        }
    }
}

/// Waits at the gate of a tool, if it has one. The wait is a part of the call's time, and not of its deadline.
pub(super) async fn pass(case: &mut Case<'_>, entry: &Entry) -> Result<(), Box<Failure>> {
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
    let ended = match contained(|| gate.pass(asked(case, entry))) {
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
