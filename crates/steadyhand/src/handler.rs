//! The seam to what runs a tool: one trait, and what a run is told about its call.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::OnProgress;
use crate::clock::{self, after};
use crate::cut;
use crate::event::Event;
use crate::guard::patience::Patience;
use crate::luggage::Luggage;
use crate::observer::Observers;
use crate::output::Output;
use crate::state::States;
use crate::tool_error::ToolError;
use crate::trace;

/// What those who watch are told of a report of progress: a tool may make thousands of them.
const PROGRESS_BYTES_MAX: usize = 4 * 1024;

/// Runs a tool. Functions become handlers by themselves; sources write their own.
pub trait Handler: Send + Sync {
    /// One attempt. Dropping the future cancels it: nothing may go on behind it unnoticed.
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// One attempt to run a tool, as its handler sees it.
pub struct Invocation<'a> {
    /// The checked arguments, always an object.
    pub args: &'a Value,
    /// The call's id.
    pub call_id: &'a str,
    /// The tool's own name.
    pub tool_name: &'a str,
    /// Counts from 1.
    pub attempt: u32,
    /// When this attempt is cut off.
    pub until: Instant,
    /// When the whole call ends.
    pub deadline: Instant,
    pub(crate) states: &'a States,
    pub(crate) key: &'a IdempotencyKey,
    traceparent: Option<&'a str>,
    luggage: Option<&'a Luggage>,
    on_progress: Option<&'a OnProgress>,
    number: u64,
    pub(crate) caller_token: Option<&'a CancellationToken>,
    pub(crate) observers: &'a Arc<Observers>,
    pub(crate) patience: Patience,
    // Made when someone asks.
    trace: OnceLock<Option<String>>,
    // Made when someone asks; cancelled when the attempt is over, however it ends.
    token: OnceLock<(CancellationToken, DropGuard)>,
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(
        args: &'a Value,
        call_id: &'a str,
        tool_name: &'a str,
        around: Around<'a>,
    ) -> Invocation<'a> {
        Invocation {
            args,
            call_id,
            tool_name,
            attempt: 1,
            until: around.deadline,
            deadline: around.deadline,
            states: around.states,
            key: around.key,
            traceparent: around.traceparent,
            luggage: around.luggage,
            on_progress: around.on_progress,
            number: around.number,
            caller_token: around.caller_token,
            observers: around.observers,
            patience: Patience::new(around.deadline),
            trace: OnceLock::new(),
            token: OnceLock::new(),
        }
    }

    /// The same invocation for the next attempt.
    pub(crate) fn begin(&mut self, attempt: u32, now: Instant, timeout: Duration, latest: Instant) {
        self.attempt = attempt;
        self.trace = OnceLock::new();
        self.until = after(now, timeout).min(latest);
        self.patience = Patience::of_attempt(now, self.until, timeout, latest);
    }

    /// The attempt is over: whatever still works for it is told so. Gives back when it would have been cut off.
    pub(crate) fn end(&mut self) -> Instant {
        self.token = OnceLock::new();
        self.patience.until()
    }

    /// The tool gives signs of life: its time limit starts anew, within the call's deadline.
    pub fn still_alive(&self) {
        self.patience.renew();
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// What the call carries for its tool, if it is of this type.
    pub fn luggage<T: std::any::Any>(&self) -> Option<&T> {
        self.luggage?.get()
    }

    /// Tells those who watch how far the work is.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        tell_progress(
            self.observers,
            self.on_progress,
            (self.number, self.call_id, self.tool_name),
            done,
            total,
            message.into(),
        );
    }

    /// Tells whoever records spans what this attempt does, under the names that OpenTelemetry has for it. What is told
    /// later replaces what was told earlier under the same name. Nothing is asked for while nobody records spans.
    pub fn describe(&self, attributes: impl FnOnce() -> Vec<(&'static str, Value)>) {
        if self.observers.spans().is_none() {
            return;
        }
        self.observers.tell(Event::AttemptDescribed {
            number: self.number,
            call_id: self.call_id.to_owned(),
            tool_name: self.tool_name.to_owned(),
            attempt: self.attempt,
            attributes: attributes(),
        });
    }

    /// Cancelled when this attempt ends for any reason: for work that the future does not own.
    pub fn cancellation(&self) -> CancellationToken {
        let (token, _) = self.token.get_or_init(|| {
            let token = match self.caller_token {
                Some(caller) => caller.child_token(),
                None => CancellationToken::new(),
            };
            (token.clone(), token.drop_guard())
        });
        token.clone()
    }

    /// The same for all attempts of the call, and for no other call.
    pub fn idempotency_key(&self) -> &str {
        self.key.get()
    }

    /// The W3C trace context to hand on to whatever the tool calls: the span of this attempt where spans
    /// are recorded, else the caller's. Never one that is not well-formed.
    pub fn traceparent(&self) -> Option<&str> {
        let trace = self.trace.get_or_init(|| {
            let spans = self.observers.spans();
            let trace = trace::for_attempt(spans, self.number, self.attempt, self.traceparent);
            trace.map(|trace| trace.to_string())
        });
        trace.as_deref()
    }

    /// What a function gets that asks for a [`CallContext`].
    pub fn context(&self) -> CallContext {
        CallContext {
            call_id: self.call_id.to_owned(),
            tool_name: self.tool_name.to_owned(),
            attempt: self.attempt,
            until: self.until,
            deadline: self.deadline,
            idempotency_key: self.idempotency_key().to_owned(),
            traceparent: self.traceparent().map(str::to_owned),
            number: self.number,
            cancellation: self.cancellation(),
            observers: Arc::clone(self.observers),
            on_progress: self.on_progress.cloned(),
        }
    }
}

/// The parts of an invocation that are the same for every attempt and every handler.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) deadline: Instant,
    pub(crate) states: &'a States,
    pub(crate) key: &'a IdempotencyKey,
    pub(crate) traceparent: Option<&'a str>,
    pub(crate) luggage: Option<&'a Luggage>,
    pub(crate) on_progress: Option<&'a OnProgress>,
    pub(crate) number: u64,
    pub(crate) caller_token: Option<&'a CancellationToken>,
    pub(crate) observers: &'a Arc<Observers>,
}

/// The caller's key, or one of our making when a tool first asks for it. Not the call's id: models
/// give two calls the same id, and a payment service would then swallow the second.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKey {
    key: OnceLock<String>,
}

impl IdempotencyKey {
    pub(crate) fn given(key: Option<String>) -> IdempotencyKey {
        let cell = IdempotencyKey::default();
        if let Some(key) = key {
            let _ = cell.key.set(key);
        }
        cell
    }

    fn get(&self) -> &str {
        self.key.get_or_init(clock::new_id)
    }
}

/// What a tool's function may know about its call. Ask for it in the signature; the model never sees it.
#[derive(Debug, Clone)]
pub struct CallContext {
    call_id: String,
    tool_name: String,
    attempt: u32,
    until: Instant,
    deadline: Instant,
    idempotency_key: String,
    traceparent: Option<String>,
    number: u64,
    cancellation: CancellationToken,
    observers: Arc<Observers>,
    on_progress: Option<OnProgress>,
}

impl CallContext {
    /// A context as a test would have it, to call a tool's function as a plain function.
    pub fn for_test() -> CallContext {
        let now = Instant::now();
        CallContext {
            call_id: clock::new_id(),
            tool_name: "test".to_owned(),
            attempt: 1,
            until: now + Duration::from_secs(30),
            deadline: now + Duration::from_secs(60),
            idempotency_key: clock::new_id(),
            traceparent: None,
            number: 0,
            cancellation: CancellationToken::new(),
            observers: Arc::default(),
            on_progress: None,
        }
    }

    /// The call's id.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The tool's own name.
    pub fn tool_name(&self) -> &str {
        &self.tool_name
    }

    /// Counts from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When this attempt is cut off.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// When the whole call ends.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The same for all attempts of the call: hand it to services that know such keys.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// The W3C trace context to hand on to whatever the tool calls.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Cancelled when this attempt ends for any reason: for work in tasks or threads of its own.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Tells those who watch how far the work is.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        tell_progress(
            &self.observers,
            self.on_progress.as_ref(),
            (self.number, &self.call_id, &self.tool_name),
            done,
            total,
            message.into(),
        );
    }
}

fn tell_progress(
    observers: &Observers,
    on_progress: Option<&OnProgress>,
    (number, call_id, tool_name): (u64, &str, &str),
    done: f64,
    total: Option<f64>,
    message: String,
) {
    if let Some(told) = on_progress {
        told.tell(done, total, &message);
    }
    if observers.is_empty() {
        return;
    }
    observers.tell(Event::Progress {
        number,
        call_id: call_id.to_owned(),
        tool_name: tool_name.to_owned(),
        done,
        total,
        message: match message.len() > PROGRESS_BYTES_MAX {
            true => cut::text(&message, PROGRESS_BYTES_MAX),
            false => message,
        },
    });
}
