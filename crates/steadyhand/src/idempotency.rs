//! Calls with the same idempotency key happen once: the first runs, the others get its outcome.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::call::{Arguments, Call};
use crate::case::Case;
use crate::executor::{MayFallBack, ToolExecutor};
use crate::failure::{Effect, Failure, FailureCode};
use crate::failures;
use crate::guard::attempt::{Bounded, Ended};
use crate::kept_outcomes::Found;
use crate::outcome::Outcome;
use crate::permit::Permission;
use crate::schema;
use crate::tool_error::friendly_text;

impl ToolExecutor {
    /// Runs a call with an idempotency key, joins the one that runs, or repeats its outcome.
    pub(crate) async fn run_once(&self, call: Call, key: String) -> Outcome {
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
            let _ = self.tools.await_arrival(&call).await;
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
}

pub(crate) fn conflict() -> (FailureCode, Effect, String) {
    let message = "the idempotency key was used before with another tool or other arguments; use a \
                   new key for a new call";
    (
        FailureCode::IdempotencyConflict,
        Effect::None,
        message.to_owned(),
    )
}

/// What makes two calls the same: the tool and the arguments, whatever the order of their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// `tool` is the tool's own name, whatever alias the call used.
    pub(crate) fn of(tool: &str, args: &Arguments) -> Fingerprint {
        let mut hash = Sha256::new();
        hash.update(tool.as_bytes());
        hash.update([0]);
        match args {
            Arguments::Json(value) => feed_args(&mut hash, value),
            Arguments::Text(text) if text.trim_ascii().is_empty() => {
                feed_args(&mut hash, &Value::Null);
            }
            Arguments::Text(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) => feed_args(&mut hash, &value),
                Err(_) => hash.update(text.as_bytes()),
            },
        }
        Fingerprint(hash.finalize().into())
    }
}

/// No arguments at all are an empty object.
fn feed_args(hash: &mut Sha256, args: &Value) {
    match args {
        Value::Null => hash.update(b"{}"),
        other => feed(hash, other),
    }
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            hash.update(b"{");
            for name in names {
                hash.update(name.len().to_le_bytes());
                hash.update(name.as_bytes());
                feed(hash, &fields[name]);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
            }
            hash.update(b"]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let text = match value.as_f64() {
                // 3.0 is 3, as it is to a schema.
                Some(float) if float.fract() == 0.0 && float.abs() < 2f64.powi(53) => {
                    (float as i64).to_string()
                }
                _ => value.to_string(),
            };
            hash.update(text.len().to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
}
