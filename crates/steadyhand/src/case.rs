//! The case of one call: opened when it comes in, closed exactly once, even when its future is dropped.

use std::mem::swap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::call::{Arguments, Call};
use crate::clock::{self, after};
use crate::cut;
use crate::event::Event;
use crate::failure::{Effect, Failure, FailureCode};
use crate::failures;
use crate::fair_queue::FairQueue;
use crate::gate::ApprovalListener;
use crate::guard::retry::Next;
use crate::lent_arguments::{LentArguments, lock};
use crate::manager::Entry;
use crate::metrics::Ending;
use crate::observer::Observers;
use crate::outcome::{Outcome, Status, millis};
use crate::output::Output;
use crate::permit::Permission;
use crate::redact::{self, Secrets};
use crate::schema::{self, CheckFailure, GivenUp, Mended, STEPS_INLINE, STEPS_MAX};
use crate::tool_error::friendly_text;

/// A call that takes longer than this is worth a warning (SPEC V08).
const SLOW: Duration = Duration::from_millis(1000);
/// The target of lines that are no warnings, and that are shown wherever warnings are.
const NOTICE: &str = "steadyhand::notice";
/// What a log shows of arguments and results.
const LOGGED_BYTES_MAX: usize = 2 * 1024;
/// What is told of arguments that no tool got.
const SENT_BYTES_MAX: usize = 16 * 1024;

/// Checks of arguments that take longer than a moment, at the same time: all other calls share the processors with them.
const LONG_CHECKS_AT_ONCE: usize = 2;
/// Where the next ones wait.
static LONG_CHECKS: LazyLock<FairQueue> = LazyLock::new(|| FairQueue::new(LONG_CHECKS_AT_ONCE));

/// A call and what has become of it so far.
pub(crate) struct Case<'a> {
    pub(crate) call: Call,
    pub(crate) progress: Progress<'a>,
    mended: Mended,
    are_checked: bool,
    closed: bool,
}

/// How far a call is: apart from the call, so that its tool can read the one while we write the other.
pub(crate) struct Progress<'a> {
    /// Since when its caller waits.
    started: Instant,
    /// When its tool could be started at the earliest: after the tool was there, and the approval given.
    pub(crate) ready: Instant,
    /// How long the whole call may take; the wait for an approval does not count.
    patience: Duration,
    /// When the whole call ends.
    pub(crate) deadline: Instant,
    /// How long it has waited for an approval, and since when it does now.
    approval_time: Duration,
    approval_since: Option<Instant>,
    /// How often the tool was started.
    pub(crate) attempts: u32,
    entry: Option<&'a Entry>,
    observers: &'a Arc<Observers>,
    effect: Effect,
    running: bool,
    /// See [`Event::Started`].
    pub(crate) number: u64,
    /// The arguments as those who watch may see them, once the tool has got them.
    shown: Option<(Arc<Value>, Secrets)>,
}

impl<'a> Progress<'a> {
    /// How long the whole call may take; the wait for an approval does not count.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// What the call waited for is there.
    pub(crate) fn is_ready(&mut self) {
        self.ready = Instant::now();
    }

    /// The call asks for an approval. Its arguments are kept for those who watch: a person decides about them.
    pub(crate) fn approval_begins(&mut self, call: &Call) {
        self.approval_since = Some(Instant::now());
        self.show(call);
    }

    /// It does not wait any more: approved, or not. An approved call has its whole time before it.
    pub(crate) fn approval_ends(&mut self, call: &Call, has_waited: bool) {
        if has_waited {
            self.approval_time = self.approval_time();
        }
        self.approval_since = None;
        self.is_ready();
        self.deadline = after(self.ready, self.patience);
        if let Some(progress) = &call.progress {
            progress.approval_over();
        }
    }

    /// How long the call has waited for an approval, up to now.
    fn approval_time(&self) -> Duration {
        let now = self
            .approval_since
            .map_or(Duration::ZERO, |it| it.elapsed());
        self.approval_time + now
    }

    /// A person has to decide, and has not yet.
    pub(crate) fn tell_approval_asked(&self, call: &Call) {
        if let (Some(progress), Some(since)) = (&call.progress, self.approval_since) {
            progress.approval_asked(since);
        }
        self.tell(|elapsed_ms| Event::ApprovalAsked {
            number: self.number,
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            elapsed_ms,
            args: self.shown.as_ref().map(|(args, _)| Arc::clone(args)),
        });
    }

    /// Somebody said yes.
    pub(crate) fn tell_approved(&self, call: &Call, by: &str) {
        self.tell(|elapsed_ms| Event::Approved {
            number: self.number,
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            elapsed_ms,
            waited_ms: millis(self.approval_time()),
            by: by.to_owned(),
        });
    }

    fn show(&mut self, call: &Call) {
        if self.shown.is_none() && !self.observers.is_empty() {
            self.shown = Some(shown(call.args.checked()));
        }
    }

    /// The tool is about to be started, after waiting so long for a place.
    pub(crate) fn attempt_started(&mut self, call: &Call, waited: Duration) {
        self.attempts += 1;
        self.running = true;
        match (self.entry, self.attempts) {
            (Some(entry), 1) => entry.metrics.entered(),
            (Some(entry), _) => entry.metrics.retried(),
            (None, _) => {}
        }
        if let Some(progress) = &call.progress {
            progress.attempt_started(self.attempts);
        }
        if self.observers.is_empty() {
            return;
        }
        self.show(call);
        self.tell(|elapsed_ms| Event::AttemptStarted {
            number: self.number,
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            attempt: self.attempts,
            elapsed_ms,
            waited_ms: millis(waited),
            args: self.shown.as_ref().map(|(args, _)| Arc::clone(args)),
        });
    }

    /// The tool is no longer running. Gives back what the call has done out there, all in all.
    pub(crate) fn attempt_ended(&mut self, effect: Effect) -> Effect {
        self.running = false;
        self.effect = self.effect.max(effect);
        self.effect
    }

    pub(crate) fn effect(&self) -> Effect {
        match self.running {
            true => self.effect.max(Effect::Unknown),
            false => self.effect,
        }
    }

    pub(crate) fn tell_attempt_failed(&self, call: &Call, failure: &Failure, next: Next) {
        tracing::debug!(
            tool = call.name,
            call_id = call.id,
            attempt = self.attempts,
            code = failure.code.as_str(),
            effect = failure.effect_sentence(),
            ?next,
            "attempt failed"
        );
        let (retry_in_ms, stopped) = match next {
            Next::Wait(wait) => (Some(millis(wait)), None),
            Next::Stop(reason) => (None, Some(reason)),
        };
        self.tell(|elapsed_ms| Event::AttemptFailed {
            number: self.number,
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            attempt: self.attempts,
            elapsed_ms,
            code: failure.code,
            message: failure.message.clone(),
            retry_in_ms,
            stopped,
        });
    }

    /// Tells those who watch, if anyone does.
    pub(crate) fn tell(&self, event: impl FnOnce(f64) -> Event) {
        if !self.observers.is_empty() {
            self.observers.tell(event(millis(self.started.elapsed())));
        }
    }
}

impl<'a> Case<'a> {
    /// `known` is the tool it asks for, if it is there already.
    pub(crate) fn open(
        call: Call,
        known: Option<&Entry>,
        observers: &'a Arc<Observers>,
    ) -> Case<'a> {
        let now = Instant::now();
        let started = call.waiting_since.map_or(now, |since| since.min(now));
        let mut number = 0;
        if !observers.is_empty() {
            number = observers.number();
            observers.tell(Event::Started {
                number,
                call_id: call.id.clone(),
                tool_name: call.name.clone(),
                at_ms: clock::wall_ms().saturating_sub((now - started).as_millis() as u64),
                caller: call.caller.clone(),
                traceparent: call.traceparent.clone(),
                replay_of: call.replay_of.clone(),
                source: known.and_then(|entry| entry.tool.shared_source()),
                deadline_ms: known.map(|entry| millis(patience(&call, entry))),
            });
        }
        Case {
            call,
            progress: Progress {
                started,
                ready: now,
                patience: Duration::ZERO,
                deadline: started,
                approval_time: Duration::ZERO,
                approval_since: None,
                attempts: 0,
                entry: None,
                observers,
                effect: Effect::None,
                running: false,
                number,
                shown: None,
            },
            mended: Mended::default(),
            are_checked: false,
            closed: false,
        }
    }

    pub(crate) fn found(&mut self, entry: &'a Entry) {
        let progress = &mut self.progress;
        progress.deadline = after(progress.started, patience(&self.call, entry));
        // As much of it as there is time at all.
        progress.patience = progress.deadline - progress.started;
        self.progress.entry = Some(entry);
    }

    /// Makes the arguments what the tool gets, or tells every fault in them.
    pub(crate) async fn check_arguments(&mut self, entry: &Entry) -> Result<(), Box<Failure>> {
        let (document, rules) = (entry.tool.schema(), entry.rules);
        let args = schema::read(
            &mut self.call.args,
            document,
            rules,
            entry.tool.preparation(),
            &mut self.mended,
        )?;
        let mut steps = STEPS_INLINE;
        let checked = match entry.schema.takes_long(args) {
            true => Err(CheckFailure::GivenUp(GivenUp::Steps)),
            false => entry
                .schema
                .check(args, document, rules, &mut self.mended, &mut steps),
        };
        match checked {
            Ok(()) => {}
            Err(CheckFailure::GivenUp(GivenUp::Steps)) => self.check_arguments_aside(entry).await?,
            Err(other) => return Err(other.into_failure()),
        }
        if let Some(used) = entry.tool.used_arguments() {
            self.mended.name_unused(&self.call.args, used);
        }
        self.are_checked = true;
        Ok(())
    }

    /// A check that takes long runs where no other call waits for the thread, few of them at once.
    #[cold]
    async fn check_arguments_aside(&mut self, entry: &Entry) -> Result<(), Box<Failure>> {
        let Arguments::Json(args) = &mut self.call.args else {
            return Ok(());
        };
        let mut mended = self.mended.clone();
        let (schema, tool, rules) = (
            Arc::clone(&entry.schema),
            Arc::clone(&entry.tool),
            entry.rules,
        );
        let owner = self.call.permit.as_ref().and_then(Permission::owner);
        let owner = owner.or(self.call.caller.as_deref()).unwrap_or_default();
        let is_watched = !self.progress.observers.is_empty();
        let lent = LentArguments::of(args);
        let shared = lent.shared();
        let check = async move {
            let place = LONG_CHECKS.take(owner).await;
            let check = tokio::task::spawn_blocking(move || {
                let mut args = lock(&shared).clone();
                let mut steps = STEPS_MAX;
                let checked =
                    schema.check(&mut args, tool.schema(), rules, &mut mended, &mut steps);
                // Here as well, as long as nobody waits for the thread: to copy a million values takes a while, and so
                // does forgetting them.
                let shown = (is_watched && checked.is_ok()).then(|| shown(&args));
                swap(&mut *lock(&shared), &mut args);
                // A check whose call has ended keeps its place until it ends itself.
                drop(place);
                (checked, mended, shown)
            });
            check.await
        };
        let Ok(ended) = tokio::time::timeout_at(self.progress.deadline, check).await else {
            return Err(failures::too_late(entry));
        };
        let (checked, mended, shown) = ended.map_err(|error| {
            failures::refused(FailureCode::ToolExecutionError, entry, error.to_string())
        })?;
        drop(lent);
        self.mended = mended;
        self.progress.shown = shown;
        checked.map_err(CheckFailure::into_failure)
    }

    /// No tool has this name.
    pub(crate) fn close_unknown(&mut self, suggestions: Vec<String>) -> Outcome {
        tracing::warn!(
            tool = self.call.name,
            call_id = self.call.id,
            args = logged(&self.call.args),
            ?suggestions,
            effect = Effect::None.sentence(),
            "unknown tool"
        );
        let code = FailureCode::ToolNotFound;
        let message = format!("Tool '{}' not found", self.call.name);
        let mut failure = Failure::new(code, Effect::None, message)
            .for_people(friendly_text(code, &self.call.name));
        failure.suggestions = suggestions;
        self.close(Err(Box::new(failure)), None)
    }

    /// The arguments do not fit.
    pub(crate) fn close_invalid(&mut self, mut failure: Box<Failure>) -> Outcome {
        if failure.user_message.is_empty() {
            failure.user_message = friendly_text(failure.code, &self.call.name);
        }
        self.finish(Err(failure), None, Some(Ending::Invalid))
    }

    /// Another call with the same idempotency key answers for this one.
    pub(crate) fn close_joined(&mut self, other: &Outcome) -> Outcome {
        self.closed = true;
        let execution_time = self.progress.started.elapsed();
        self.call
            .replay_of
            .get_or_insert_with(|| other.call_id.clone());
        let outcome = Outcome {
            call_id: std::mem::take(&mut self.call.id),
            tool_name: std::mem::take(&mut self.call.name),
            execution_time,
            // It waited for the same approval, if not for all of it.
            approval_time: other.approval_time.min(execution_time),
            replayed: true,
            ..other.clone()
        };
        self.record(&outcome, Ending::Joined);
        outcome
    }

    /// The call has ended.
    pub(crate) fn close(
        &mut self,
        result: Result<Output, Box<Failure>>,
        fallback: Option<Output>,
    ) -> Outcome {
        self.finish(result, fallback, None)
    }

    fn finish(
        &mut self,
        result: Result<Output, Box<Failure>>,
        fallback: Option<Output>,
        ending: Option<Ending>,
    ) -> Outcome {
        self.closed = true;
        let result = result.map_err(|mut failure| {
            failure.complete(self.is_safe_to_repeat());
            failure
        });
        let outcome = Outcome {
            call_id: std::mem::take(&mut self.call.id),
            tool_name: std::mem::take(&mut self.call.name),
            result,
            fallback: fallback.map(Box::new),
            execution_time: self.progress.started.elapsed(),
            approval_time: self.progress.approval_time(),
            attempts: self.progress.attempts,
            coerced: std::mem::take(&mut self.mended.coerced),
            dropped_arguments: std::mem::take(&mut self.mended.dropped),
            replayed: false,
        };
        let ending = ending.unwrap_or_else(|| self.ending(&outcome));
        self.record(&outcome, ending);
        outcome
    }

    /// Whether the tool may be run again although it may have acted. What is no tool cannot act.
    pub(crate) fn is_safe_to_repeat(&self) -> bool {
        let entry = self.progress.entry;
        entry.is_none_or(|entry| entry.policy.safe_to_repeat)
    }

    /// Which counter a call belongs to. Only what was started is an execution (SPEC R08).
    fn ending(&self, outcome: &Outcome) -> Ending {
        let cancelled = outcome
            .failure()
            .is_some_and(|failure| failure.code == FailureCode::Cancelled);
        match (self.progress.attempts > 0, cancelled, outcome.status()) {
            (true, true, _) => Ending::CancelledRunning,
            (false, true, _) => Ending::CancelledWaiting,
            (false, false, _) => Ending::Rejected,
            (true, false, Status::Success) => Ending::Success,
            (true, false, Status::Timeout) => Ending::Timeout,
            (true, false, Status::Error) => Ending::Error,
        }
    }

    fn record(&mut self, outcome: &Outcome, ending: Ending) {
        let args = self.are_checked.then(|| self.call.args.checked());
        // How long a person takes says nothing about the tool.
        let took = outcome.running_time();
        if let Some(entry) = self.progress.entry {
            entry.metrics.ended(ending, took);
            if let (Some(failure), false) = (outcome.failure(), outcome.replayed) {
                entry.metrics.failed(failure.code);
            }
        }
        log(outcome, args, &self.call.args);
        if took > SLOW {
            tracing::warn!(
                tool = outcome.tool_name,
                call_id = outcome.call_id,
                ms = millis(took),
                "slow call"
            );
        }
        let observers = self.progress.observers;
        if observers.is_empty() {
            return;
        }
        let known = self.progress.shown.take().or_else(|| args.map(shown));
        let (args, sent, secrets) = match known {
            Some((args, secrets)) => (Some(args), None, secrets),
            None => {
                let (sent, secrets) = sent(&self.call.args);
                (None, Some(sent), secrets)
            }
        };
        observers.tell(Event::Finished {
            number: self.progress.number,
            at_ms: clock::wall_ms(),
            source: self
                .progress
                .entry
                .and_then(|entry| entry.tool.shared_source()),
            kind: self.progress.entry.map(|entry| entry.tool.kind()),
            args,
            sent,
            caller: self.call.caller.take(),
            traceparent: self.call.traceparent.take(),
            replay_of: self.call.replay_of.take(),
            secrets,
            outcome: Arc::new(outcome.clone()),
        });
    }
}

/// How long the whole call may take.
fn patience(call: &Call, entry: &Entry) -> Duration {
    call.deadline.unwrap_or(entry.policy.deadline)
}

/// Arguments as those who watch may see them.
fn shown(args: &Value) -> (Arc<Value>, Secrets) {
    let (args, secrets) = redact::value_and_secrets(args);
    (Arc::new(args), secrets)
}

/// The same for arguments that no tool got: they may be anything, of any size.
fn sent(args: &Arguments) -> (Value, Secrets) {
    match args {
        Arguments::Json(value) => redact::value_and_secrets(&cut::value(value, SENT_BYTES_MAX)),
        Arguments::Text(text) => {
            let shown = redact::text(&cut::text(text, SENT_BYTES_MAX)).into_owned();
            (Value::String(shown), Secrets::default())
        }
    }
}

impl ApprovalListener for Case<'_> {
    fn approved(&self, by: &str) {
        self.progress.tell_approved(&self.call, by);
    }
}

/// The future was dropped: the caller has withdrawn the call, and nobody waits for its outcome.
/// It is recorded all the same.
impl Drop for Case<'_> {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let code = FailureCode::Cancelled;
        let effect = self.progress.effect();
        let message = match effect {
            Effect::None => "withdrawn by the caller before it was started",
            Effect::Unknown | Effect::Done => "withdrawn by the caller after it was started",
        };
        let failure =
            Failure::new(code, effect, message).for_people(friendly_text(code, &self.call.name));
        self.finish(Err(Box::new(failure)), None, None);
    }
}

/// Arguments that no tool got, as a log shows them.
fn logged(args: &Arguments) -> String {
    let shown = match sent(args).0 {
        Value::String(text) => text,
        value => value.to_string(),
    };
    cut::text(&shown, LOGGED_BYTES_MAX)
}

/// One line per call (SPEC V02, V04): what is shown is bounded, and made only if someone reads it.
fn log(outcome: &Outcome, args: Option<&Value>, sent: &Arguments) {
    let shown = |value: &Value| cut::text(&redact::value(value).to_string(), LOGGED_BYTES_MAX);
    let args = || args.map_or_else(|| logged(sent), shown);
    let (tool, call_id) = (outcome.tool_name.as_str(), outcome.call_id.as_str());
    match &outcome.result {
        Ok(output) => {
            let attempts = outcome.attempts;
            let ms = millis(outcome.execution_time);
            // That a tool needed help is worth knowing where single calls are not shown.
            if attempts > 1 && !outcome.replayed {
                tracing::info!(target: NOTICE, tool, call_id, ms, "succeeded on attempt {attempts}");
            }
            if tracing::enabled!(tracing::Level::INFO) {
                let (args, result) = (args(), shown(output.value()));
                tracing::info!(tool, call_id, args, ms, attempts, result, "call succeeded");
            }
        }
        Err(failure) => {
            if tracing::enabled!(tracing::Level::WARN) {
                let ms = millis(outcome.execution_time);
                let args = args();
                let code = failure.code.as_str();
                let error = failure.message.as_str();
                let effect = failure.effect_sentence();
                let fallback = outcome.fallback.is_some();
                let attempts = outcome.attempts;
                tracing::warn!(
                    tool,
                    call_id,
                    args,
                    ms,
                    code,
                    error,
                    effect,
                    attempts,
                    fallback,
                    "call failed"
                );
            }
        }
    }
}
