//! Runs calls: find, check, guard, run. The path of a call, top to bottom.

mod approval;
mod awaited_tool;
mod once;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::call::Call;
use crate::case::{Case, Progress};
use crate::clock::{self, after};
use crate::cut;
use crate::event::Event;
use crate::failure::{Effect, Failure, FailureCode, Health};
use crate::failures;
use crate::fallback::{Answer, Fallback};
use crate::guard::attempt::{Bounded, Ended, contained};
use crate::guard::breaker::{Admission, Verdict};
use crate::guard::limit::Place;
use crate::guard::retry::{Next, Situation, StopReason};
use crate::handler::{Around, IdempotencyKey, Invocation};
use crate::kept_outcomes::KeptOutcomes;
use crate::key_store::KeyStore;
use crate::manager::{Entry, ToolManager};
use crate::observer::{Observer, ObserverQueue, Watch};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::permit::Permission;
use crate::redact;
use crate::tool_error::ToolError;
use crate::trace::{self, Spans};

/// How much later than its deadline a half-open breaker's trial is given up for lost.
const LEASE_SLACK: Duration = Duration::from_secs(1);

/// Runs calls. Cheap to clone: clones share everything.
#[derive(Debug, Clone)]
pub struct ToolExecutor {
    pub(crate) tools: ToolManager,
    pub(crate) keys: Arc<KeptOutcomes>,
    pub(crate) key_store: Option<Arc<dyn KeyStore>>,
}

impl ToolExecutor {
    /// An executor over these tools; adding to them later is fine.
    pub fn new(tools: ToolManager) -> ToolExecutor {
        ToolExecutor {
            tools,
            keys: Arc::default(),
            key_store: None,
        }
    }

    /// Idempotency keys are kept there, too, so that a call that was cut off by a crash is not run again by the
    /// next process. A call whose key cannot be written down is refused: it might run twice.
    #[must_use]
    pub fn with_key_store(mut self, store: Arc<dyn KeyStore>) -> ToolExecutor {
        self.key_store = Some(store);
        self
    }

    /// Why calls with an idempotency key are refused now, if they are and the key store knows.
    pub fn key_store_trouble(&self) -> Option<String> {
        self.key_store.as_ref()?.trouble()
    }

    /// The tools it runs.
    pub fn tools(&self) -> &ToolManager {
        &self.tools
    }

    /// Lets someone watch. It gets a thread of its own, and a queue with an end.
    pub fn observe(&self, observer: impl Observer) -> std::io::Result<Watch> {
        self.observe_with_queue(observer, ObserverQueue::default())
    }

    /// The same with a queue of one's own: longer for one who must not miss much, in handfuls for one who is in no hurry.
    pub fn observe_with_queue(
        &self,
        observer: impl Observer,
        queue: ObserverQueue,
    ) -> std::io::Result<Watch> {
        self.tools.observers().add(observer, queue)
    }

    /// From here on tools are told the span of their attempt, for whoever records those spans from the
    /// events: an observer must be there already. Always gives back the same ones.
    pub fn record_spans(&self) -> Spans {
        self.tools.observers().record_spans(true)
    }

    /// Whether spans are recorded.
    pub fn records_spans(&self) -> bool {
        self.tools.observers().spans().is_some()
    }

    /// From here on tools are told what the caller sent, as before anyone recorded spans.
    pub fn stop_recording_spans(&self) {
        self.tools.observers().record_spans(false);
    }

    /// Runs a call. Not a `Result`: there is always an outcome.
    ///
    /// Dropping the future withdraws the call: the tool's work is dropped, and everything the call
    /// held is given back. A call with an idempotency key goes on to its end by itself, so that
    /// whoever comes back with the same key learns what became of it.
    pub async fn execute(&self, call: Call) -> Outcome {
        match call.idempotency_key.clone() {
            None => self.run(call, MayFallBack::Yes).await,
            Some(key) => Box::pin(self.run_once(call, key)).await,
        }
    }

    /// Runs calls concurrently. `outcomes[i]` answers `calls[i]`, whatever happens to the others.
    pub async fn execute_batch(&self, calls: Vec<Call>) -> Vec<Outcome> {
        join_all(calls.into_iter().map(|call| self.execute(call))).await
    }

    /// The same for those who show calls while others still run: `tell` gets each outcome, with its place in
    /// the batch, as soon as it is there.
    pub async fn execute_batch_telling(
        &self,
        calls: Vec<Call>,
        tell: impl Fn(usize, &Outcome),
    ) -> Vec<Outcome> {
        let tell = &tell;
        let one = |(place, call)| async move {
            let outcome = self.execute(call).await;
            tell(place, &outcome);
            outcome
        };
        join_all(calls.into_iter().enumerate().map(one)).await
    }

    async fn run(&self, call: Call, may_fall_back: MayFallBack) -> Outcome {
        let mut catalogue = self.tools.catalogue();
        let known = catalogue.find(&call.name);
        let is_known = known.is_some();
        let mut case = Case::open(call, known.map(|entry| &**entry), self.tools.observers());
        if let Some(failure) = failures::malformed(&case.call) {
            return case.close_invalid(failure);
        }
        let permit = case.call.permit.clone();
        if !is_known {
            // Whether there is such a tool is nobody's business who may not use it.
            if let Some(Err(refused)) = permit.as_ref().map(|it| it.check(&case.call.name)) {
                return case.close(Err(refused), None);
            }
            let arrived = Box::pin(self.await_arrival(&case.call)).await;
            case.progress.is_ready();
            catalogue = self.tools.catalogue();
            if let (Err(failure), None) = (arrived, catalogue.find(&case.call.name)) {
                return case.close(Err(failure), None);
            }
        }
        let Some(entry) = catalogue.find(&case.call.name) else {
            self.tools.count_unknown_call();
            let mut near = catalogue.near(&case.call.name);
            if let Some(permit) = &permit {
                near.retain(|name| permit.allows(name));
            }
            return case.close_unknown(near);
        };
        case.found(entry);
        if let Some(Err(refused)) = permit.as_ref().map(|it| it.check(entry.tool.name())) {
            return case.close(Err(refused), None);
        }
        if let Err(failure) = case.check_arguments(entry).await {
            return case.close_invalid(failure);
        }
        if let Some(Err(refused)) = permit.as_ref().map(|it| approval::admit(it, &case, entry)) {
            return case.close(Err(refused), None);
        }
        if let Err(failure) = approval::pass(&mut case, entry).await {
            return case.close(Err(failure), None);
        }
        let mut failure = match self.guarded(entry, &mut case).await {
            Ok(output) => return case.close(Ok(output), None),
            Err(failure) => failure,
        };
        failure.complete(case.is_safe_to_repeat());
        if let Some(told) = failure.told_again.take() {
            return case.close(Err(failure), told.fallback);
        }
        let fallback = match (&entry.policy.fallback, may_fall_back) {
            (Some(fallback), MayFallBack::Yes) if fallback.applies_to(failure.code) => {
                Box::pin(self.fall_back(fallback, entry, &failure, &case)).await
            }
            _ => None,
        };
        case.close(Err(failure), fallback)
    }

    /// The breaker around the attempts: it counts a call once, after its retries.
    async fn guarded(&self, entry: &Entry, case: &mut Case<'_>) -> Result<Output, Box<Failure>> {
        let passage = self.admit(entry, case.progress.patience())?;
        let result = self
            .attempts(&passage, &case.call, &mut case.progress)
            .await;
        let health = match &result {
            Ok(_) => Health::Healthy,
            Err(failure) => failure.health(),
        };
        if let (Err(failure), Health::Unhealthy) = (&result, health) {
            entry.breaker_counts(failure, &case.call.id);
        }
        passage.settle(health);
        result
    }

    fn admit<'a>(
        &'a self,
        entry: &'a Entry,
        patience: Duration,
    ) -> Result<Passage<'a>, Box<Failure>> {
        let mut passage = Passage {
            entry,
            executor: self,
            generation: None,
        };
        let Some(breaker) = &entry.breaker else {
            return Ok(passage);
        };
        let lease = (patience + LEASE_SLACK).as_millis() as u64;
        let (admission, change) = breaker.admit(|| entry.ms(Instant::now()), lease);
        entry.tell_change(change, self.tools.observers());
        match admission {
            Admission::Pass { generation } | Admission::Trial { generation } => {
                passage.generation = Some(generation);
                Ok(passage)
            }
            Admission::Refuse { retry_after_ms } => {
                let mut failure = failures::circuit_open(entry);
                failure.retry_after = Some(Duration::from_millis(retry_after_ms));
                Err(failure)
            }
        }
    }

    /// Attempts until one works, or trying again makes no sense.
    async fn attempts(
        &self,
        passage: &Passage<'_>,
        call: &Call,
        progress: &mut Progress<'_>,
    ) -> Result<Output, Box<Failure>> {
        let entry = passage.entry;
        let policy = &entry.policy;
        let args = call.args.checked();
        let reserve = match &policy.fallback {
            Some(fallback) => fallback.reserve(progress.patience()),
            None => Duration::ZERO,
        };
        let work_until = progress.deadline - reserve;
        let timeout = call.timeout.unwrap_or(policy.timeout);
        let token = call.cancellation.as_ref();
        let key = IdempotencyKey::given(call.idempotency_key.clone());
        let around = Around {
            deadline: progress.deadline,
            states: &entry.states,
            key: &key,
            traceparent: call.traceparent.as_deref(),
            luggage: call.luggage.as_ref(),
            on_progress: call.on_progress.as_ref(),
            number: progress.number,
            caller_token: token,
            observers: self.tools.observers(),
        };
        let mut invocation = Invocation::new(args, &call.id, entry.tool.name(), around);
        let mut now = progress.ready;
        let mut last: Option<Box<Failure>> = None;
        loop {
            let mut waited = Duration::ZERO;
            let place = match entry.limit.try_enter() {
                Some(place) => place,
                None => {
                    let begun = Instant::now();
                    match self.queue(entry, call, progress, work_until).await {
                        Ok(place) => {
                            now = Instant::now();
                            waited = now - begun;
                            place
                        }
                        // What the tool said tells more than that there was no second try.
                        Err(refusal) if refusal.code != FailureCode::Cancelled => {
                            return Err(last.unwrap_or(refusal));
                        }
                        Err(cancelled) => return Err(cancelled),
                    }
                }
            };
            // Asked again before every start: the wait for it may have been long.
            if token.is_some_and(|token| token.is_cancelled()) {
                return Err(failures::cancelled(entry, progress.effect()));
            }
            if now >= work_until {
                return Err(last.unwrap_or_else(|| failures::too_late(entry)));
            }
            // While a breaker is open its tool is not started.
            if !passage.still_stands() {
                return Err(last.unwrap_or_else(|| failures::circuit_open(entry)));
            }
            progress.attempt_started(call, waited);
            invocation.begin(progress.attempts, now, timeout, work_until);
            let ended = match contained(|| entry.tool.handler().run(&invocation)) {
                Ok(work) => {
                    let bounded = Bounded::new(work, invocation.until, token);
                    bounded.moved_by(invocation.patience()).await
                }
                Err(panic) => Ended::Panicked(panic),
            };
            drop(place);
            let until = invocation.end();
            let mut failure = match ended {
                Ended::Finished(Ok(output)) => {
                    progress.attempt_ended(Effect::Done);
                    if let Some(budget) = &entry.budget {
                        budget.put_back();
                    }
                    return Ok(cut::output(output, policy.output_bytes_max));
                }
                Ended::Finished(Err(error)) => failures::read_error(error, entry, args),
                Ended::Panicked(text) => failures::panicked(&text, entry, args),
                Ended::TimedOut => failures::timed_out(entry, until - now, until < work_until),
                Ended::Cancelled => failures::cancelled(entry, Effect::Unknown),
            };
            failure.effect = progress.attempt_ended(failure.effect);
            now = Instant::now();
            let next = self.next(
                entry,
                call,
                progress.attempts,
                &failure,
                work_until.saturating_duration_since(now),
            );
            progress.tell_attempt_failed(call, &failure, next);
            let Next::Wait(wait) = next else {
                return Err(failure);
            };
            let wake = Box::pin(sleep_until(now + wait));
            if let Ended::Cancelled = Bounded::new(wake, work_until, token).await {
                return Err(failures::cancelled(entry, progress.effect()));
            }
            now = Instant::now();
            last = Some(failure);
        }
    }

    /// A place in the queue, within the deadline.
    async fn queue<'a>(
        &self,
        entry: &'a Entry,
        call: &Call,
        progress: &Progress<'_>,
        work_until: Instant,
    ) -> Result<Place<'a>, Box<Failure>> {
        let token = call.cancellation.as_ref();
        let caller = call.permit.as_ref().and_then(Permission::owner);
        let waits = Box::pin(async move {
            match caller {
                Some(caller) => wait_in_line(entry, caller).await,
                None => entry.limit.enter().await.ok(),
            }
        });
        match Bounded::new(waits, work_until, token).await {
            Ended::Finished(Some(place)) => Ok(place),
            Ended::Finished(None) | Ended::Panicked(_) => Err(failures::no_room(entry)),
            Ended::TimedOut => Err(failures::too_late(entry)),
            Ended::Cancelled => Err(failures::cancelled(entry, progress.effect())),
        }
    }

    fn next(
        &self,
        entry: &Entry,
        call: &Call,
        attempts: u32,
        failure: &Failure,
        time_left: Duration,
    ) -> Next {
        if !call.retry || failure.told_again.is_some() {
            return Next::Stop(StopReason::NoAttemptsLeft);
        }
        let situation = Situation {
            attempts,
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
        failure: &Failure,
        case: &Case<'_>,
    ) -> Option<Output> {
        let args = case.call.args.checked();
        case.progress.tell(|elapsed_ms| Event::FallbackStarted {
            number: case.progress.number,
            fallback: fallback.tool_name().map(str::to_owned),
            call_id: case.call.id.clone(),
            tool_name: case.call.name.clone(),
            elapsed_ms,
        });
        let now = Instant::now();
        let until = after(now, fallback.timeout).min(case.progress.deadline.max(now));
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
        case.progress.tell(|elapsed_ms| Event::FallbackFailed {
            number: case.progress.number,
            call_id: case.call.id.clone(),
            tool_name: case.call.name.clone(),
            elapsed_ms,
            message: why_not,
        });
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
        call.caller = case.call.caller.clone();
        call.conversation = case.call.conversation.clone();
        let caller = case.call.traceparent.as_deref();
        let trace = trace::for_call(self.tools.observers().spans(), case.progress.number, caller);
        call.traceparent = trace.map(|trace| trace.to_string());
        let executor = self.clone();
        Box::pin(async move {
            let outcome = executor.run(call, MayFallBack::No).await;
            outcome
                .result
                .map_err(|failure| ToolError::answer(failure.message))
        })
    }
}

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
        let change = breaker.settle(generation, verdict, now_ms, clock::wall_ms);
        self.entry
            .tell_change(change, self.executor.tools.observers());
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        self.tell(Verdict::Neutral);
    }
}

/// A fallback has no fallback: there is no cycle to fall into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MayFallBack {
    Yes,
    No,
}

/// A place for a call of one of several callers; none if there is no room, or somebody else needs it more.
async fn wait_in_line<'a>(entry: &'a Entry, caller: &str) -> Option<Place<'a>> {
    let queue_max = entry.policy.limit.queue;
    let line = entry
        .lines
        .enter(caller, entry.limit.waiting(), queue_max)?;
    let turn = tokio::select! {
        biased;
        () = line.pushed_out.cancelled() => return None,
        turn = entry.lines.turn(caller) => turn,
    };
    drop(line);
    let place = entry.limit.enter().await.ok();
    drop(turn);
    place
}
