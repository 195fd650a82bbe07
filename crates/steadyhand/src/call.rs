//! One request to run one tool.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::failure::option_ms;
use crate::luggage::Luggage;
use crate::permit::{Permission, Permit};

/// One request to run one tool. Goes into [`ToolExecutor::execute`](crate::ToolExecutor::execute).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Names the call in conversations, logs and histories. Two calls may share one.
    #[serde(default = "clock::new_id")]
    pub id: String,
    /// The tool, by name or alias.
    pub name: String,
    /// What the tool is to work with.
    #[serde(default)]
    pub args: Arguments,
    /// The caller's patience for the whole call, in place of the tool's own deadline.
    #[serde(
        default,
        rename = "deadline_ms",
        skip_serializing_if = "Option::is_none",
        with = "option_ms"
    )]
    pub deadline: Option<Duration>,
    /// The limit for one attempt, in place of the tool's own.
    #[serde(
        default,
        rename = "timeout_ms",
        skip_serializing_if = "Option::is_none",
        with = "option_ms"
    )]
    pub timeout: Option<Duration>,
    /// Calls with the same key and arguments happen once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Who asks: `rest`, `cli`, the name of an MCP client. For people who read histories; never checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The caller's W3C trace context, handed on to the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The conversation it belongs to: what is allowed or counted for one is not for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The id of an earlier call that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<String>,
    /// Whether a failed attempt may be repeated, where the tool allows it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub retry: bool,
    /// Ends the call early, with an outcome that says so.
    #[serde(skip)]
    pub cancellation: Option<CancellationToken>,
    /// Filled in while the call runs: for those who show calls while they run.
    #[serde(skip)]
    pub progress: Option<Arc<CallProgress>>,
    /// Since when the caller waits, where that is earlier than the call reaches the executor: for a server to start,
    /// say. The call's time and its deadline count from then.
    #[serde(skip)]
    pub waiting_since: Option<Instant>,
    /// Something between whoever calls and the tool, which the engine does not look at.
    #[serde(skip)]
    pub luggage: Option<Luggage>,
    /// Which tools whoever calls may use; all of them without one.
    #[serde(skip)]
    pub permit: Option<Permission>,
    /// Told how far the tool is, in the order it says so and before the outcome.
    #[serde(skip)]
    pub on_progress: Option<OnProgress>,
    /// What is wrong with the call itself: see [`Call::malformed`].
    #[serde(skip)]
    pub fault: Option<String>,
}

/// How far a call is, for those who show calls while they run: see [`Call::progress`].
#[derive(Debug, Default)]
pub struct CallProgress {
    attempts: AtomicU32,
    approval: Mutex<ApprovalWait>,
}

#[derive(Debug, Default)]
struct ApprovalWait {
    /// It waits now, since then.
    since: Option<Instant>,
    /// Waits that are over.
    before: Duration,
}

impl CallProgress {
    /// How often its tool was started so far.
    pub fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Whether it waits for an approval now: its tool was not started.
    pub fn waits_for_approval(&self) -> bool {
        self.approval().since.is_some()
    }

    /// How long it has waited for an approval, up to now. Its deadline does not count this time.
    pub fn approval_time(&self) -> Duration {
        let wait = self.approval();
        wait.before + wait.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(crate) fn attempt_started(&self, attempts: u32) {
        self.attempts.store(attempts, Ordering::Relaxed);
    }

    pub(crate) fn approval_asked(&self, since: Instant) {
        self.approval().since = Some(since);
    }

    pub(crate) fn approval_over(&self) {
        let mut wait = self.approval();
        if let Some(since) = wait.since.take() {
            wait.before += since.elapsed();
        }
    }

    fn approval(&self) -> MutexGuard<'_, ApprovalWait> {
        // Each change leaves it whole.
        self.approval.lock()
    }
}

/// Told how far a call's tool is: see [`Call::on_progress`]. Whatever it does holds up the tool.
#[derive(Clone)]
pub struct OnProgress(Arc<Told>);

type Told = dyn Fn(f64, Option<f64>, &str) + Send + Sync;

impl OnProgress {
    pub(crate) fn tell(&self, done: f64, total: Option<f64>, message: &str) {
        (self.0)(done, total, message);
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OnProgress")
    }
}

impl Call {
    /// A call with an id of our making. Arguments are a JSON value, or the text a model sent.
    pub fn new(name: impl Into<String>, args: impl Into<Arguments>) -> Call {
        Call::with_id(clock::new_id(), name, args)
    }

    /// A call with the id that the model or the application gave it.
    pub fn with_id(
        id: impl Into<String>,
        name: impl Into<String>,
        args: impl Into<Arguments>,
    ) -> Call {
        Call {
            id: id.into(),
            name: name.into(),
            args: args.into(),
            deadline: None,
            timeout: None,
            idempotency_key: None,
            caller: None,
            traceparent: None,
            conversation: None,
            replay_of: None,
            retry: true,
            cancellation: None,
            progress: None,
            waiting_since: None,
            luggage: None,
            permit: None,
            on_progress: None,
            fault: None,
        }
    }

    /// Stands for something that was sent as a call and is none, so that it has an outcome like the others of its batch:
    /// `VALIDATION_ERROR`, not run. `fault` says what is wrong with it, and what a call looks like.
    pub fn malformed(
        id: impl Into<String>,
        name: impl Into<String>,
        fault: impl Into<String>,
    ) -> Call {
        let mut call = Call::with_id(id, name, Arguments::default());
        call.fault = Some(fault.into());
        call
    }

    /// The id the model or the application gave.
    pub fn id(mut self, id: impl Into<String>) -> Call {
        self.id = id.into();
        self
    }

    /// See [`Call::deadline`](struct.Call.html#structfield.deadline).
    pub fn deadline(mut self, deadline: Duration) -> Call {
        self.deadline = Some(deadline);
        self
    }

    /// See [`Call::timeout`](struct.Call.html#structfield.timeout).
    pub fn timeout(mut self, timeout: Duration) -> Call {
        self.timeout = Some(timeout);
        self
    }

    /// See [`Call::idempotency_key`](struct.Call.html#structfield.idempotency_key).
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Call {
        self.idempotency_key = Some(key.into());
        self
    }

    /// See [`Call::caller`](struct.Call.html#structfield.caller).
    pub fn caller(mut self, caller: impl Into<String>) -> Call {
        self.caller = Some(caller.into());
        self
    }

    /// See [`Call::traceparent`](struct.Call.html#structfield.traceparent).
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Call {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// See [`Call::conversation`](struct.Call.html#structfield.conversation).
    pub fn conversation(mut self, conversation: impl Into<String>) -> Call {
        self.conversation = Some(conversation.into());
        self
    }

    /// See [`Call::replay_of`](struct.Call.html#structfield.replay_of).
    pub fn replay_of(mut self, id: impl Into<String>) -> Call {
        self.replay_of = Some(id.into());
        self
    }

    /// See [`Call::waiting_since`](struct.Call.html#structfield.waiting_since).
    pub fn waiting_since(mut self, since: Instant) -> Call {
        self.waiting_since = Some(since);
        self
    }

    /// One attempt, whatever the tool's policy says.
    pub fn no_retry(mut self) -> Call {
        self.retry = false;
        self
    }

    /// See [`Call::luggage`](struct.Call.html#structfield.luggage).
    pub fn luggage<T: Any + Send + Sync>(mut self, luggage: Arc<T>) -> Call {
        self.luggage = Some(Luggage::new(luggage));
        self
    }

    /// See [`Call::permit`](struct.Call.html#structfield.permit).
    pub fn permit(mut self, permit: Arc<dyn Permit>) -> Call {
        self.permit = Some(Permission::new(permit));
        self
    }

    /// Told how far the tool is: how much is done, of how much, in words. It must not wait for anything.
    pub fn on_progress(
        mut self,
        told: impl Fn(f64, Option<f64>, &str) + Send + Sync + 'static,
    ) -> Call {
        self.on_progress = Some(OnProgress(Arc::new(told)));
        self
    }

    /// Cancelling the token ends the call with `CANCELLED`.
    pub fn cancellation(mut self, token: CancellationToken) -> Call {
        self.cancellation = Some(token);
        self
    }
}

/// The arguments as they came: already parsed, or the text a model wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "Value")]
pub enum Arguments {
    /// A JSON value; anything but an object is answered with `VALIDATION_ERROR`.
    Json(Value),
    /// JSON text; unfinished or broken text is answered, never executed.
    Text(String),
}

impl Arguments {
    /// The object they are once they have been checked; nothing else is run.
    pub(crate) fn checked(&self) -> &Value {
        match self {
            Arguments::Json(value) => value,
            Arguments::Text(_) => &Value::Null,
        }
    }
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments::Json(Value::Null)
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Arguments {
        Arguments::Json(value)
    }
}

/// In JSON, arguments that are a string are the text a model wrote.
impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arguments, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Arguments::Text(text),
            value => Arguments::Json(value),
        })
    }
}

impl From<String> for Arguments {
    fn from(text: String) -> Arguments {
        Arguments::Text(text)
    }
}

impl From<&str> for Arguments {
    fn from(text: &str) -> Arguments {
        Arguments::Text(text.to_owned())
    }
}

impl From<Arguments> for Value {
    fn from(arguments: Arguments) -> Value {
        match arguments {
            Arguments::Json(value) => value,
            Arguments::Text(text) => Value::String(text),
        }
    }
}

fn yes() -> bool {
    true
}

fn is_yes(flag: &bool) -> bool {
    *flag
}
