//! Idempotency keys that outlive the process: the seam to whatever keeps them, and how a call uses it.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Effect, Failure};
use crate::outcome::Outcome;
use crate::output::{Cut, Output};
use crate::permit::KeyCaller;
use crate::schema::Coercion;

/// How long its caller waits for the outcome to be; the tool has run by then.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// Keeps idempotency keys beyond this process, so that a call that was cut off by a crash is not run again by the next one.
pub trait KeyStore: fmt::Debug + Send + Sync {
    /// Takes the key for a call that is about to run; `call` is a digest of its tool and arguments. Where
    /// this says [`Taken::New`], a mark must be left that survives a crash: it is what keeps the call from running twice.
    fn take<'a>(
        &'a self,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>>;

    /// The same for a caller whom the key counts for. A store with an end should refuse the new keys of a caller that has
    /// its share, and never forget a key to make room: it still keeps a call from running twice.
    fn take_for<'a>(
        &'a self,
        _caller: Option<KeyCaller<'a>>,
        key: &'a str,
        call: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Taken, KeyStoreError>> {
        self.take(key, call)
    }

    /// The call of this key has ended so; the text is given back by [`Taken::Finished`].
    fn settle<'a>(
        &'a self,
        key: &'a str,
        outcome: String,
    ) -> BoxFuture<'a, Result<(), KeyStoreError>>;

    /// The call of this key never reached its tool: the key may be used again.
    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), KeyStoreError>>;

    /// Why calls with a key are refused now, as far as that is known; nothing while they are taken.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// What a key was, when it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Unused. It is marked as used now.
    New,
    /// Used by the same call, which has ended so.
    Finished(String),
    /// Used by the same call, whose end nobody has told: it runs elsewhere, or was cut off.
    Unfinished,
    /// Used by another call.
    Conflict,
}

/// A key could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyStoreError(pub String);

/// Writes down how the first call of a key ended, or gives the key back where its tool was never reached.
pub(crate) async fn settle(store: &dyn KeyStore, key: &str, outcome: &Outcome) {
    let never_ran = outcome
        .failure()
        .is_some_and(|failure| failure.effect == Effect::None);
    let settled = match never_ran {
        true => store.release(key),
        false => store.settle(key, outcome.to_kept()),
    };
    let problem = match tokio::time::timeout(SETTLING_MAX, settled).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {SETTLING_MAX:?}"),
    };
    tracing::warn!(
        tool = outcome.tool_name,
        call_id = outcome.call_id,
        problem,
        "the outcome of a call with an idempotency key is not written down; after a restart the same key gets \"it may have run\""
    );
}

/// An outcome as it is kept: all of it, unlike the views.
#[derive(Serialize, Deserialize)]
struct KeptOutcome {
    call_id: String,
    tool_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<KeptOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Box<Failure>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<KeptOutput>,
    took_ms: u64,
    attempts: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    coerced: Vec<Coercion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped_arguments: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct KeptOutput {
    value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifact: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
}

impl Outcome {
    fn to_kept(&self) -> String {
        let kept = KeptOutcome {
            call_id: self.call_id.clone(),
            tool_name: self.tool_name.clone(),
            output: self.result.as_ref().ok().map(KeptOutput::of),
            failure: self.result.as_ref().err().cloned(),
            fallback: self.fallback.as_deref().map(KeptOutput::of),
            took_ms: self.execution_time.as_millis() as u64,
            attempts: self.attempts,
            coerced: self.coerced.clone(),
            dropped_arguments: self.dropped_arguments.clone(),
        };
        serde_json::to_string(&kept).unwrap_or_default()
    }

    pub(crate) fn from_kept(text: &str) -> Result<Outcome, String> {
        let kept: KeptOutcome = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let result = match (kept.output, kept.failure) {
            (Some(output), None) => Ok(output.whole()),
            (None, Some(failure)) => Err(failure),
            _ => return Err("it has neither an output nor a failure".to_owned()),
        };
        Ok(Outcome {
            call_id: kept.call_id,
            tool_name: kept.tool_name,
            result,
            fallback: kept.fallback.map(|output| Box::new(output.whole())),
            execution_time: Duration::from_millis(kept.took_ms),
            approval_time: Duration::ZERO,
            attempts: kept.attempts,
            coerced: kept.coerced,
            dropped_arguments: kept.dropped_arguments,
            replayed: true,
        })
    }
}

impl KeptOutput {
    fn of(output: &Output) -> KeptOutput {
        KeptOutput {
            value: output.value().clone(),
            text: output.own_text().map(str::to_owned),
            artifact: output.artifact().cloned(),
            cut: output.cut(),
        }
    }

    fn whole(self) -> Output {
        Output::of_parts(self.value, self.text, self.artifact, self.cut)
    }
}
