//! Runs calls: find, check, guard, run. The path of a call, top to bottom.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::call::Call;
use crate::case::Case;
use crate::cut;
use crate::event::{Event, Observer, Watch};
use crate::failure::{Effect, Failure, FailureCode, Health};
use crate::fallback::{Answer, Fallback};
use crate::guard::attempt::{Bounded, Ended, contained};
use crate::guard::breaker::{Admission, Verdict};
use crate::guard::limit::Place;
use crate::guard::retry::{Next, Situation, StopReason};
use crate::handler::{Around, IdempotencyKey, Invocation};
use crate::idempotency::{Fingerprint, Found, Keys};
use crate::manager::{Entry, ToolManager};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::redact;
use crate::schema;
use crate::tool_error::{ToolError, friendly_text};

/// A failure's text is cut to this size.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// How much later than its deadline a half-open breaker's trial is given up for lost.
const LEASE_SLACK: Duration = Duration::from_secs(1);

/// Runs calls. Cheap to clone: clones share everything.
#[derive(Debug, Clone)]
pub struct ToolExecutor {
    tools: ToolManager,
    keys: Arc<Keys>,
}

impl ToolExecutor {
    /// An executor over these tools; adding to them later is fine.
    pub fn new(tools: ToolManager) -> ToolExecutor {
        ToolExecutor {
            tools,
            keys: Arc::default(),
        }
    }

    /// The tools it runs.
    pub fn tools(&self) -> &ToolManager {
        &self.tools
    }

    /// Lets someone watch. It gets a thread of its own, and a queue with an end.
    pub fn observe(&self, observer: impl Observer) -> std::io::Result<Watch> {
        self.tools.observers().add(observer)
    }

    /// Runs a call. Not a `Result`: there is always an outcome.
    ///
    /// Dropping the future withdraws the call: the tool's work is dropped, and everything the call
    /// held is given back. A call with an idempotency key goes on to its end by itself, so that
    /// whoever comes back with the same key learns what became of it.
    pub async fn execute(&self, call: Call) -> Outcome {
        if call.idempotency_key.is_none() {
            return self.run(call, MayFallBack::Yes).await;
        }
        Box::pin(self.run_once(call)).await
    }

    /// Runs calls concurrently. `outcomes[i]` answers `calls[i]`, whatever happens to the others.
    pub async fn execute_batch(&self, calls: Vec<Call>) -> Vec<Outcome> {
        join_all(calls.into_iter().map(|call| self.execute(call))).await
    }

    async fn run(&self, call: Call, may_fall_back: MayFallBack) -> Outcome {
        let catalogue = self.tools.catalogue();
        let mut case = Case::open(call, self.tools.observers());
        let Some(entry) = catalogue.find(&case.call.name) else {
            let near = catalogue.near(&case.call.name);
            return case.close_unknown(near);
        };
        case.found(entry);
        let arguments = std::mem::take(&mut case.call.args);
        let checked = match entry
            .schema
            .check(arguments, entry.tool.schema(), entry.rules)
        {
            Ok(checked) => checked,
            Err(failure) => return case.close_invalid(failure),
        };
        case.coerced = checked.coerced;
        let result = self.guarded(entry, &checked.args, &mut case).await;
        let failure = match result {
            Ok(output) => return case.close(Ok(output), None, Some(&checked.args)),
            Err(failure) => failure,
        };
        let fallback = match (&entry.policy.fallback, may_fall_back) {
            (Some(fallback), MayFallBack::Yes) if fallback.applies_to(failure.code) => {
                Box::pin(self.fall_back(fallback, entry, &checked.args, &failure, &case)).await
            }
            _ => None,
        };
        case.close(Err(failure), fallback, Some(&checked.args))
    }

    /// The breaker around the attempts: it counts a call once, after its retries.
    async fn guarded(
        &self,
        entry: &Entry,
        args: &Value,
        case: &mut Case<'_>,
    ) -> Result<Output, Box<Failure>> {
        let passage = self.admit(entry, case)?;
        let result = self.attempts(&passage, args, case).await;
        passage.settle(match &result {
            Ok(_) => Health::Healthy,
            Err(failure) => failure.health(),
        });
        result
    }

    fn admit<'a>(&'a self, entry: &'a Entry, case: &Case<'_>) -> Result<Passage<'a>, Box<Failure>> {
        let mut passage = Passage {
            entry,
            executor: self,
            generation: None,
        };
        let Some(breaker) = &entry.breaker else {
            return Ok(passage);
        };
        let lease = (case.patience() + LEASE_SLACK).as_millis() as u64;
        let (admission, change) = breaker.admit(|| entry.ms(Instant::now()), lease);
        entry.tell_change(change, self.tools.observers());
        match admission {
            Admission::Pass { generation } | Admission::Trial { generation } => {
                passage.generation = Some(generation);
                Ok(passage)
            }
            Admission::Refuse { retry_after_ms } => {
                let mut failure = self.circuit_open(entry);
                failure.retry_after = Some(Duration::from_millis(retry_after_ms));
                Err(failure)
            }
        }
    }

    /// Attempts until one works, or trying again makes no sense.
    async fn attempts(
        &self,
        passage: &Passage<'_>,
        args: &Value,
        case: &mut Case<'_>,
    ) -> Result<Output, Box<Failure>> {
        let entry = passage.entry;
        let policy = &entry.policy;
        let reserve = match &policy.fallback {
            Some(fallback) => fallback.reserve(case.patience()),
            None => Duration::ZERO,
        };
        let work_until = case.deadline() - reserve;
        let timeout = case.call.timeout.unwrap_or(policy.timeout);
        let key = IdempotencyKey::given(case.call.idempotency_key.clone());
        let (id, token) = (case.call.id.clone(), case.call.cancellation.clone());
        let around = Around {
            deadline: case.deadline(),
            states: &entry.states,
            key: &key,
            caller_token: token.as_ref(),
            observers: self.tools.observers(),
        };
        let mut invocation = Invocation::new(args, &id, entry.tool.name(), around);
        let mut now = case.started;
        let mut last: Option<Box<Failure>> = None;
        loop {
            let place = match entry.limit.try_enter() {
                Some(place) if now < work_until => place,
                _ => match self.queue(entry, case, work_until).await {
                    Ok(place) => {
                        now = Instant::now();
                        place
                    }
                    // What the tool said tells more than that there was no second try.
                    Err(refusal) if refusal.code != FailureCode::Cancelled => {
                        return Err(last.unwrap_or(refusal));
                    }
                    Err(cancelled) => return Err(cancelled),
                },
            };
            // While a breaker is open its tool is not started: not after a wait in the queue, not
            // after a backoff.
            if !passage.still_stands() {
                return Err(last.unwrap_or_else(|| self.circuit_open(entry)));
            }
            case.attempt_started();
            let until = after(now, timeout).min(work_until);
            invocation.begin(case.attempts, until);
            let ended = match contained(|| entry.tool.handler().run(&invocation)) {
                Ok(work) => Bounded::new(work, until, token.as_ref()).await,
                Err(panic) => Ended::Panicked(panic),
            };
            drop(place);
            let mut failure = match ended {
                Ended::Finished(Ok(output)) => {
                    case.attempt_ended(Effect::Done);
                    if let Some(budget) = &entry.budget {
                        budget.put_back();
                    }
                    return Ok(cut::output(output, policy.output_bytes_max));
                }
                Ended::Finished(Err(error)) => self.read_error(error, entry, args),
                Ended::Panicked(text) => self.panicked(&text, entry, args),
                Ended::TimedOut => self.timed_out(entry, until - now, until < work_until),
                Ended::Cancelled => self.cancelled(entry, Effect::Unknown),
            };
            failure.effect = case.attempt_ended(failure.effect);
            now = Instant::now();
            let next = self.next(
                entry,
                case,
                &failure,
                work_until.saturating_duration_since(now),
            );
            case.tell_attempt_failed(&failure, next);
            let Next::Wait(wait) = next else {
                return Err(failure);
            };
            entry.metrics.retried();
            let wake = Box::pin(sleep_until(now + wait));
            if let Ended::Cancelled = Bounded::new(wake, work_until, token.as_ref()).await {
                return Err(self.cancelled(entry, case.effect()));
            }
            now = Instant::now();
            last = Some(failure);
        }
    }

    /// A place in the queue, within the deadline.
    async fn queue<'a>(
        &self,
        entry: &'a Entry,
        case: &Case<'_>,
        work_until: Instant,
    ) -> Result<Place<'a>, Box<Failure>> {
        let token = case.call.cancellation.as_ref();
        let place = match work_until > case.started {
            true => Bounded::new(Box::pin(entry.limit.enter()), work_until, token).await,
            false => Ended::TimedOut,
        };
        match place {
            Ended::Finished(Ok(place)) => Ok(place),
            Ended::Finished(Err(_)) | Ended::Panicked(_) => {
                let limit = entry.policy.limit;
                let message = format!(
                    "{} calls of '{}' run and {} wait; there is no room for more",
                    limit.concurrent,
                    entry.tool.name(),
                    limit.queue
                );
                Err(self.own(FailureCode::Overloaded, entry, message))
            }
            Ended::TimedOut => {
                let message = format!(
                    "the deadline passed before '{}' could be started; it did not run",
                    entry.tool.name()
                );
                let mut failure = self.own(FailureCode::Timeout, entry, message);
                // It waited for us, not for the tool.
                failure.neutral = true;
                Err(failure)
            }
            Ended::Cancelled => Err(self.cancelled(entry, case.effect())),
        }
    }

    fn next(&self, entry: &Entry, case: &Case<'_>, failure: &Failure, time_left: Duration) -> Next {
        if !case.call.retry {
            return Next::Stop(StopReason::NoAttemptsLeft);
        }
        let situation = Situation {
            attempts: case.attempts,
            failure,
            safe_to_repeat: entry.policy.safe_to_repeat,
            time_left,
        };
        let random = match entry.policy.retry.jitter {
            true => fastrand::f64(),
            false => 0.0,
        };
        match entry.policy.retry.next(situation, random) {
            Next::Wait(_) if entry.budget.as_ref().is_some_and(|budget| !budget.take()) => {
                Next::Stop(StopReason::NoBudgetLeft)
            }
            next => next,
        }
    }

    /// Asks the fallback. What it says is an answer beside the failure, never in its place.
    async fn fall_back(
        &self,
        fallback: &Fallback,
        entry: &Entry,
        args: &Value,
        failure: &Failure,
        case: &Case<'_>,
    ) -> Option<Output> {
        case.tell(|elapsed_ms| Event::FallbackStarted {
            call_id: case.call.id.clone(),
            tool_name: case.call.name.clone(),
            elapsed_ms,
        });
        let now = Instant::now();
        let until = after(now, fallback.timeout).min(case.deadline().max(now));
        let token = case.call.cancellation.as_ref();
        let work: Result<_, String> = match &fallback.answer {
            Answer::Value(value) => {
                entry.metrics.fell_back();
                return Some(cut::output(
                    Output::json(value.clone()),
                    entry.policy.output_bytes_max,
                ));
            }
            Answer::Function(answer) => contained(|| answer(args.clone(), failure.clone())),
            Answer::Tool { name, args: make } => {
                let made = contained(|| {
                    make.as_ref()
                        .map_or_else(|| args.clone(), |make| make(args))
                });
                made.map(|args| self.ask_other_tool(name, args, until - now, case))
            }
        };
        let ended = match work {
            Ok(work) => Bounded::new(work, until, token).await,
            Err(panic) => Ended::Panicked(panic),
        };
        let why_not = match ended {
            Ended::Finished(Ok(output)) => {
                entry.metrics.fell_back();
                return Some(cut::output(output, entry.policy.output_bytes_max));
            }
            Ended::Finished(Err(error)) => redact::text_about(error.message().to_owned(), args),
            Ended::Panicked(text) => format!("it panicked: {}", redact::text_about(text, args)),
            Ended::TimedOut => "it took too long".to_owned(),
            Ended::Cancelled => "the call was cancelled".to_owned(),
        };
        tracing::warn!(
            tool = case.call.name,
            call_id = case.call.id,
            why_not,
            "the fallback failed too"
        );
        None
    }

    /// Another tool as a fallback: a whole call of its own, but with no fallback of its own.
    fn ask_other_tool(
        &self,
        name: &str,
        args: Value,
        deadline: Duration,
        case: &Case<'_>,
    ) -> futures_util::future::BoxFuture<'static, Result<Output, ToolError>> {
        let mut call = Call::new(name, args)
            .id(format!("{}-fallback", case.call.id))
            .deadline(deadline);
        call.cancellation = case.call.cancellation.clone();
        let executor = self.clone();
        Box::pin(async move {
            let outcome = executor.run(call, MayFallBack::No).await;
            outcome
                .result
                .map_err(|failure| ToolError::answer(failure.message))
        })
    }

    /// Runs a call with an idempotency key, joins the one that runs, or repeats its outcome.
    async fn run_once(&self, call: Call) -> Outcome {
        let Some(key) = call.idempotency_key.clone() else {
            return self.run(call, MayFallBack::Yes).await;
        };
        if schema::is_too_deep(&call.args) {
            return self.run(call, MayFallBack::Yes).await;
        }
        let fingerprint = Fingerprint::of(&call);
        let started = Instant::now();
        let (mut running, joined) = match self.keys.look_up(&key, fingerprint) {
            Found::Conflict => return self.refuse_key(call, started),
            Found::Finished(outcome) => return self.replay(&outcome, call, started),
            Found::Running(running) => (running, true),
            Found::New(sender) => {
                let running = sender.subscribe();
                let (executor, call) = (self.clone(), call.clone());
                tokio::spawn(async move {
                    let outcome = Arc::new(executor.run(call, MayFallBack::Yes).await);
                    executor.keys.settle(&key, &outcome);
                    sender.send_replace(Some(outcome));
                });
                (running, false)
            }
        };
        let deadline = after(started, call.deadline.unwrap_or(JOINED_WAIT_MAX));
        // The call itself is bounded; only a joiner may be less patient than the call it joined.
        let until = match joined {
            true => deadline,
            false => after(started, JOINED_WAIT_MAX),
        };
        let token = if joined {
            call.cancellation.clone()
        } else {
            None
        };
        let wait = Box::pin(async move {
            let seen = running.wait_for(Option::is_some).await;
            seen.ok().and_then(|outcome| outcome.clone())
        });
        let code = match Bounded::new(wait, until, token.as_ref()).await {
            Ended::Finished(Some(outcome)) if joined => {
                return self.replay(&outcome, call, started);
            }
            Ended::Finished(Some(outcome)) => return Outcome::clone(&outcome),
            Ended::TimedOut => FailureCode::Timeout,
            Ended::Cancelled | Ended::Panicked(_) | Ended::Finished(None) => FailureCode::Cancelled,
        };
        let message = format!(
            "a call of '{}' with the same idempotency key had not ended yet; it may have run",
            call.name
        );
        let failure = Failure::new(code, Effect::Unknown, message)
            .for_people(friendly_text(code, &call.name));
        unrun_outcome(call, failure, started)
    }

    fn replay(&self, outcome: &Outcome, call: Call, started: Instant) -> Outcome {
        if let Some(entry) = self.tools.catalogue().find(&call.name) {
            entry.metrics.joined();
        }
        Outcome {
            call_id: call.id,
            tool_name: call.name,
            execution_time: started.elapsed(),
            replayed: true,
            ..outcome.clone()
        }
    }

    fn refuse_key(&self, call: Call, started: Instant) -> Outcome {
        let code = FailureCode::IdempotencyConflict;
        let message = "the idempotency key was used before with another tool or other arguments; \
                       use a new key for a new call";
        let failure =
            Failure::new(code, Effect::None, message).for_people(friendly_text(code, &call.name));
        unrun_outcome(call, failure, started)
    }

    /// A tool's own error, read by its type, its classifier, its words.
    fn read_error(&self, error: ToolError, entry: &Entry, args: &Value) -> Box<Failure> {
        let error = match &entry.policy.classifier {
            None => error,
            Some(classify) => match contained(|| classify(&error)) {
                Ok(Some(category)) => error.reclassified(category),
                Ok(None) => error,
                Err(panic) => {
                    tracing::warn!(tool = entry.tool.name(), panic, "its classifier panicked");
                    error
                }
            },
        };
        let mut failure = error.into_failure(entry.tool.name());
        failure.message = tidy(failure.message, args);
        failure.user_message = tidy(failure.user_message, args);
        Box::new(failure)
    }

    fn panicked(&self, text: &str, entry: &Entry, args: &Value) -> Box<Failure> {
        let message = tidy(format!("the tool panicked: {text}"), args);
        self.of(
            FailureCode::ToolExecutionError,
            Effect::Unknown,
            entry,
            message,
        )
    }

    fn timed_out(&self, entry: &Entry, after: Duration, by_timeout: bool) -> Box<Failure> {
        let which = match by_timeout {
            true => "its time limit",
            false => "the call's deadline",
        };
        let message = format!(
            "'{}' was stopped after {after:?} by {which}; it may have run",
            entry.tool.name()
        );
        self.of(FailureCode::Timeout, Effect::Unknown, entry, message)
    }

    fn cancelled(&self, entry: &Entry, effect: Effect) -> Box<Failure> {
        let message = match effect {
            Effect::None => format!("cancelled before '{}' was started", entry.tool.name()),
            Effect::Unknown | Effect::Done => {
                format!(
                    "cancelled while '{}' was running; it may have run",
                    entry.tool.name()
                )
            }
        };
        self.of(FailureCode::Cancelled, effect, entry, message)
    }

    fn circuit_open(&self, entry: &Entry) -> Box<Failure> {
        let failures = entry
            .breaker
            .as_ref()
            .map_or(0, |breaker| breaker.failures());
        let message = format!(
            "the breaker of '{}' is open after {failures} failures in a row; it was not run",
            entry.tool.name()
        );
        self.own(FailureCode::CircuitOpen, entry, message)
    }

    /// A refusal of ours: the tool was not started.
    fn own(&self, code: FailureCode, entry: &Entry, message: String) -> Box<Failure> {
        self.of(code, Effect::None, entry, message)
    }

    fn of(
        &self,
        code: FailureCode,
        effect: Effect,
        entry: &Entry,
        message: String,
    ) -> Box<Failure> {
        let friendly = friendly_text(code, entry.tool.name());
        Box::new(Failure::new(code, effect, message).for_people(friendly))
    }
}

/// A fallback has no fallback: there is no cycle to fall into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MayFallBack {
    Yes,
    No,
}

/// Longer than any call lasts that nobody gave a deadline to.
const JOINED_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A call that passed the breaker. Left without a verdict, a trial's slot is given back (SPEC D9).
struct Passage<'a> {
    entry: &'a Entry,
    executor: &'a ToolExecutor,
    generation: Option<u32>,
}

impl Passage<'_> {
    /// Whether the breaker would still let this call start its tool.
    fn still_stands(&self) -> bool {
        match (self.generation, &self.entry.breaker) {
            (Some(generation), Some(breaker)) => breaker.still_passes(generation),
            _ => true,
        }
    }

    fn settle(mut self, health: Health) {
        self.tell(match health {
            Health::Healthy => Verdict::Healthy,
            Health::Unhealthy => Verdict::Unhealthy,
            Health::Neutral => Verdict::Neutral,
        });
    }

    fn tell(&mut self, verdict: Verdict) {
        let (Some(generation), Some(breaker)) = (self.generation.take(), &self.entry.breaker)
        else {
            return;
        };
        let now_ms = || self.entry.ms(Instant::now());
        let change = breaker.settle(generation, verdict, now_ms, crate::clock::wall_ms);
        self.entry
            .tell_change(change, self.executor.tools.observers());
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        self.tell(Verdict::Neutral);
    }
}

/// The tool's own words: secrets removed, and not endless.
fn tidy(message: String, args: &Value) -> String {
    cut::text(&redact::text_about(message, args), MESSAGE_BYTES_MAX)
}

fn unrun_outcome(call: Call, failure: Failure, started: Instant) -> Outcome {
    tracing::warn!(tool = call.name, call_id = call.id, code = %failure.code, "call not run");
    Outcome {
        call_id: call.id,
        tool_name: call.name,
        result: Err(Box::new(failure)),
        fallback: None,
        execution_time: started.elapsed(),
        attempts: 0,
        coerced: Vec::new(),
        replayed: false,
    }
}

/// A moment so much later; a duration that reaches beyond time means "in thirty years".
pub(crate) fn after(start: Instant, duration: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    start.checked_add(duration.min(FAR)).unwrap_or(start)
}
