//! Calls with an idempotency key: run once, joined while they run, repeated when they have run.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{MayFallBack, ToolExecutor};
use crate::call::Call;
use crate::case::Case;
use crate::failure::{Effect, Failure, FailureCode};
use crate::failures;
use crate::guard::attempt::{Bounded, Ended};
use crate::idempotency::Fingerprint;
use crate::kept_outcomes::Found;
use crate::key_store::{KeyStoreError, Taken, settle};
use crate::outcome::Outcome;
use crate::permit::Permission;
use crate::schema;
use crate::tool_error::friendly_text;

/// How long a call waits for its key to be written down before it is refused.
const TAKING_MAX: Duration = Duration::from_secs(5);

impl ToolExecutor {
    /// Runs a call with an idempotency key, joins the one that runs, or repeats its outcome.
    pub(super) async fn run_once(&self, call: Call, key: String) -> Outcome {
        if schema::is_too_deep(&call.args) {
            return self.run(call, MayFallBack::Yes).await;
        }
        let mut catalogue = self.tools.catalogue();
        // What may not be used is refused there, and leaves no trace under its key.
        let known = catalogue.find(&call.name);
        let name = known.map_or(call.name.as_str(), |entry| entry.tool.name());
        if call.permit.as_ref().is_some_and(|it| !it.allows(name)) {
            return self.run(call, MayFallBack::Yes).await;
        }
        if catalogue.find(&call.name).is_none() {
            let _ = self.await_arrival(&call).await;
            catalogue = self.tools.catalogue();
        }
        let Some(entry) = catalogue.find(&call.name) else {
            return self.run(call, MayFallBack::Yes).await;
        };
        let fingerprint = Fingerprint::of(entry.tool.name(), &call.args);
        let mut running = match self.keys.look_up(&key, fingerprint) {
            Found::New(sender) => {
                return self.run_in_a_task(call, key, fingerprint, sender).await;
            }
            Found::Running(running) => running,
            Found::Finished(outcome) => {
                let mut case = Case::open(call, Some(entry), self.tools.observers());
                case.found(entry);
                return case.close_joined(&outcome);
            }
            Found::Conflict => {
                let mut case = Case::open(call, Some(entry), self.tools.observers());
                case.found(entry);
                let (code, effect, message) = conflict();
                let failure = failures::of(code, effect, entry, message);
                return case.close(Err(failure), None);
            }
        };
        let mut case = Case::open(call, Some(entry), self.tools.observers());
        case.found(entry);
        let wait = Box::pin(async move {
            let seen = running.wait_for(Option::is_some).await;
            seen.ok().and_then(|outcome| outcome.clone())
        });
        let token = case.call.cancellation.as_ref();
        let code = match Bounded::new(wait, case.progress.deadline, token).await {
            Ended::Finished(Some(outcome)) => return case.close_joined(&outcome),
            Ended::TimedOut => FailureCode::Timeout,
            Ended::Cancelled | Ended::Panicked(_) | Ended::Finished(None) => FailureCode::Cancelled,
        };
        let message = "another call with the same idempotency key had not ended yet";
        let failure = failures::of(code, Effect::Unknown, entry, message.to_owned());
        case.close(Err(failure), None)
    }

    /// The first call of a key: it goes on without its caller, and leaves its outcome to the others.
    async fn run_in_a_task(
        &self,
        call: Call,
        key: String,
        fingerprint: Fingerprint,
        sender: watch::Sender<Option<Arc<Outcome>>>,
    ) -> Outcome {
        let executor = self.clone();
        let (id, name, started) = (call.id.clone(), call.name.clone(), Instant::now());
        let caller = call.permit.as_ref().and_then(Permission::key_caller);
        let owner: Option<Arc<str>> = caller.map(|caller| caller.name.into());
        let task = tokio::spawn(async move {
            let outcome = Arc::new(executor.run_kept(call, &key, fingerprint.0).await);
            executor.keys.settle(&key, owner, &outcome);
            sender.send_replace(Some(Arc::clone(&outcome)));
            outcome
        });
        if let Ok(outcome) = task.await {
            return Arc::unwrap_or_clone(outcome);
        }
        // The runtime is going down with the task; what it did is on record as cancelled.
        let code = FailureCode::Cancelled;
        let mut failure = Failure::new(code, Effect::Unknown, "the runtime shut down")
            .for_people(friendly_text(code, &name));
        failure.complete(false);
        Outcome {
            call_id: id,
            tool_name: name,
            result: Err(Box::new(failure)),
            fallback: None,
            execution_time: started.elapsed(),
            approval_time: Duration::ZERO,
            attempts: 0,
            coerced: Vec::new(),
            dropped_arguments: Vec::new(),
            replayed: false,
        }
    }

    /// The first call of a key in this process: perhaps not the first of all.
    async fn run_kept(&self, call: Call, key: &str, digest: [u8; 32]) -> Outcome {
        let Some(store) = self.key_store.clone() else {
            return self.run(call, MayFallBack::Yes).await;
        };
        let patience = call.deadline.unwrap_or(TAKING_MAX).min(TAKING_MAX);
        let permit = call.permit.clone();
        let caller = permit.as_ref().and_then(Permission::key_caller);
        let taking = store.take_for(caller, key, &digest);
        let taken = match tokio::time::timeout(patience, taking).await {
            Ok(taken) => taken,
            Err(_) => {
                // It may still be written; what it would mark has not run. The store is asked now, not in a task that
                // starts some time: by then the next call of this key might be marked, and would lose its mark.
                let (store, key) = (Arc::clone(&store), key.to_owned());
                let mut releasing = Box::pin(async move { store.release(&key).await });
                if (&mut releasing).now_or_never().is_none() {
                    tokio::spawn(releasing);
                }
                Err(KeyStoreError(format!("no answer within {patience:?}")))
            }
        };
        if let Ok(Taken::New) = taken {
            let outcome = self.run(call, MayFallBack::Yes).await;
            settle(&*store, key, &outcome).await;
            return outcome;
        }
        self.answer_for(call, taken)
    }

    /// The call is not run; this is why.
    fn answer_for(&self, call: Call, taken: Result<Taken, KeyStoreError>) -> Outcome {
        let catalogue = self.tools.catalogue();
        let entry = catalogue.find(&call.name);
        let mut case = Case::open(call, entry.map(|entry| &**entry), self.tools.observers());
        if let Some(entry) = entry {
            case.found(entry);
        }
        let (code, effect, message) = match taken {
            Ok(Taken::Finished(text)) => match Outcome::from_kept(&text) {
                Ok(outcome) => return case.close_joined(&outcome),
                Err(error) => unfinished(&format!(" (its outcome cannot be read: {error})")),
            },
            Ok(Taken::New | Taken::Unfinished) => unfinished(""),
            Ok(Taken::Conflict) => conflict(),
            Err(error) => (
                FailureCode::Overloaded,
                Effect::None,
                format!(
                    "its idempotency key could not be stored, and without it the call might run twice: {error}"
                ),
            ),
        };
        let failure =
            Failure::new(code, effect, message).for_people(friendly_text(code, &case.call.name));
        case.close(Err(Box::new(failure)), None)
    }
}

fn conflict() -> (FailureCode, Effect, String) {
    let message = "the idempotency key was used before with another tool or other arguments; use a \
                   new key for a new call";
    (
        FailureCode::IdempotencyConflict,
        Effect::None,
        message.to_owned(),
    )
}

fn unfinished(why: &str) -> (FailureCode, Effect, String) {
    let message = format!(
        "an earlier call with the same idempotency key was started, and its end is not on record{why}; this call was \
         not started. Find out what the earlier one did; use a new key to run it again"
    );
    (FailureCode::Cancelled, Effect::Unknown, message)
}
