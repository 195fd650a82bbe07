//! Tools that are on their way: a call that comes before them waits for them, and is told if they do not come.

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::call::Call;
use crate::failure::{Effect, Failure, FailureCode};
use crate::guard::attempt::{Bounded, Ended};
use crate::manager::ToolManager;
use crate::tool_error::{ToolError, friendly_text};

/// Knows of tools that are not there yet: of a server that is still starting, say.
pub trait Arrivals: Send + Sync {
    /// None if no tool of this name can arrive. Otherwise waits until those that can have arrived; an error
    /// says why the tool cannot be asked for.
    fn arriving(&self, name: &str) -> Option<BoxFuture<'static, Result<(), ToolError>>>;

    /// What is known about the wait for a tool when a call's time is up: who is late, and what went wrong so far.
    fn why_late(&self, _name: &str) -> Option<String> {
        None
    }
}

impl ToolManager {
    /// Waits for a tool nobody has yet, if one of this name may arrive, within the call's deadline.
    pub(crate) async fn await_arrival(&self, call: &Call) -> Result<(), Box<Failure>> {
        let arrival = self.arrivals().and_then(|all| all.arriving(&call.name));
        let Some(arrival) = arrival else {
            return Ok(());
        };
        let patience = call.deadline.unwrap_or(self.default_deadline());
        let since = call.waiting_since.unwrap_or_else(Instant::now);
        let until = crate::executor::after(since, patience);
        let token = call.cancellation.as_ref();
        match Bounded::new(arrival, until, token).await {
            Ended::Finished(Ok(())) => Ok(()),
            Ended::Finished(Err(error)) => Err(Box::new(error.into_failure(&call.name))),
            Ended::Panicked(_) => Ok(()),
            Ended::TimedOut => {
                let known = self.arrivals().and_then(|all| all.why_late(&call.name));
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
