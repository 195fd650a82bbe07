//! Waits for a tool that is on its way, within the call's deadline.

use tokio::time::Instant;

use super::ToolExecutor;
use crate::call::Call;
use crate::clock::after;
use crate::failure::{Effect, Failure, FailureCode};
use crate::guard::attempt::{Bounded, Ended};
use crate::tool_error::friendly_text;

impl ToolExecutor {
    /// Waits for a tool nobody has yet, if one of this name may arrive, within the call's deadline.
    pub(super) async fn await_arrival(&self, call: &Call) -> Result<(), Box<Failure>> {
        let arrival = self
            .tools
            .arrivals()
            .and_then(|all| all.arriving(&call.name));
        let Some(arrival) = arrival else {
            return Ok(());
        };
        let patience = call.deadline.unwrap_or(self.tools.default_deadline());
        let since = call.waiting_since.unwrap_or_else(Instant::now);
        let until = after(since, patience);
        let token = call.cancellation.as_ref();
        match Bounded::new(arrival, until, token).await {
            Ended::Finished(Ok(())) => Ok(()),
            Ended::Finished(Err(error)) => Err(Box::new(error.into_failure(&call.name))),
            Ended::Panicked(_) => Ok(()),
            Ended::TimedOut => {
                let known = self
                    .tools
                    .arrivals()
                    .and_then(|all| all.why_late(&call.name));
                let known = known.unwrap_or_else(|| {
                    "the tool's source was still starting when the call's time was up".to_owned()
                });
                Err(refused(FailureCode::Timeout, call, &known))
            }
            Ended::Cancelled => Err(refused(
                FailureCode::Cancelled,
                call,
                "cancelled before the tool was there",
            )),
        }
    }
}

fn refused(code: FailureCode, call: &Call, message: &str) -> Box<Failure> {
    let failure = Failure::new(code, Effect::None, message);
    Box::new(failure.for_people(friendly_text(code, &call.name)))
}
