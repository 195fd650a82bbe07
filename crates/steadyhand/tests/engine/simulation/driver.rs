//! The callers of the simulation: they call, wait, give up, forget, and check every answer.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use steadyhand::guard::breaker::Verdict;
use steadyhand::testing::on_paused_clock;
use steadyhand::{
    BreakerState, Call, Effect, FailureCode, Health, Outcome, Status, ToolExecutor, ToolMetrics,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::report::Report;
use super::world::{
    BREAKER, DEADLINE, NAMES, OUTPUT_BYTES_MAX, PAYMENT, WITH_FUNCTION, WITH_VALUE, World,
};
use crate::breaker_model::{Model, Ticket};

const CALLERS: u32 = 40;

/// One run from one seed; panics, naming the seed, when anything is not as it must be.
pub(super) fn simulate(seed: u64, calls: u32) -> Report {
    // Jitter takes its random numbers from the thread.
    fastrand::seed(seed);
    on_paused_clock(async move {
        let world = World::new(seed);
        let town = Arc::new(Town {
            executor: ToolExecutor::new(world.tools.clone()),
            models: Mutex::new(NAMES.map(|name| (name, Model::new(BREAKER))).into()),
            calls: Mutex::default(),
            world,
        });
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| tokio::spawn(live(Arc::clone(&town), caller, calls / CALLERS)))
            .collect();
        for caller in callers {
            if let Err(failed) = caller.await {
                panic!("seed {seed}: {failed}");
            }
        }
        town.check_what_is_left();
        town.report()
    })
}

struct Town {
    executor: ToolExecutor,
    world: Arc<World>,
    models: Mutex<HashMap<&'static str, Model>>,
    calls: Mutex<HashMap<&'static str, Counts>>,
}

/// What the callers saw, to hold against the metrics.
#[derive(Default, Clone)]
struct Counts {
    success: u64,
    error: u64,
    timeout: u64,
    apart: u64,
    last: Option<ToolMetrics>,
}

async fn live(town: Arc<Town>, caller: u32, calls: u32) {
    for number in 0..calls {
        let pause = town.world.random(0..200);
        sleep(Duration::from_millis(pause.into())).await;
        let id = format!("{caller}-{number}");
        match town.world.random(0..100) {
            0 => town.call_nobody(id).await,
            1 => town.call_badly(id).await,
            2..5 => town.call_with_a_key(id).await,
            5 if town.world.random(0..10) == 0 => town.reset_a_breaker(),
            _ => town.call(id).await,
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl Town {
    /// An ordinary call, and what becomes of its caller's patience.
    async fn call(&self, id: String) {
        let name = NAMES[self.world.random(0..NAMES.len() as u32) as usize];
        let token = CancellationToken::new();
        let call = Call::new(name, json!({"n": 1}))
            .id(id.clone())
            .cancellation(token.clone());
        let executor = self.executor.clone();
        let mut running: Running = Box::pin(async move { executor.execute(call).await });
        let started = Instant::now();
        // The breaker is asked in the first poll: so is the model.
        let ticket = self.model_admit(name);
        if let Poll::Ready(outcome) = poll_once(&mut running).await {
            return self.check(name, &id, started, ticket, outcome);
        }
        assert!(
            ticket.is_some(),
            "{name}: admitted although the model refuses"
        );
        let patience = Duration::from_millis(self.world.random(0..6_000).into());
        // Trials get stuck more often here than in life: their leases are to run out, too.
        let is_trial = self.executor.tools().breaker(name).unwrap().state == BreakerState::HalfOpen;
        let fate = match is_trial && self.world.random(0..8) == 0 {
            true => 7,
            false => self.world.random(0..100),
        };
        match fate {
            0..4 => {
                let outcome = tokio::select! {
                    biased;
                    outcome = &mut running => outcome,
                    () = sleep(patience) => {
                        drop(running);
                        return self.withdrawn(name, &id, ticket, "dropped");
                    }
                };
                self.check(name, &id, started, ticket, outcome);
            }
            4..7 => {
                let cancel = async {
                    sleep(patience).await;
                    self.world.count("fate cancelled");
                    token.cancel();
                    std::future::pending::<()>().await;
                };
                let outcome = tokio::select! { biased; outcome = &mut running => outcome, () = cancel => return };
                self.check(name, &id, started, ticket, outcome);
            }
            7 => self.freeze(name, &id, started, ticket, running).await,
            _ => {
                let outcome = running.await;
                self.check(name, &id, started, ticket, outcome);
            }
        }
    }

    /// A caller that stops polling, as a stuck task does: the call neither ends nor goes away.
    async fn freeze(
        &self,
        name: &'static str,
        id: &str,
        started: Instant,
        ticket: Option<Ticket>,
        running: Running,
    ) {
        sleep(Duration::from_millis(
            self.world.random(1_000..20_000).into(),
        ))
        .await;
        if self.world.random(0..2) == 0 {
            drop(running);
            return self.withdrawn(name, id, ticket, "frozen, then dropped");
        }
        self.world.count("fate frozen, then resumed");
        let outcome = running.await;
        self.settle(name, ticket, &outcome);
        self.count(name, &outcome);
        assert!(outcome.execution_time >= started.elapsed().saturating_sub(DEADLINE));
    }

    async fn call_nobody(&self, id: String) {
        let outcome = self
            .executor
            .execute(Call::new("nobody", json!({})).id(id))
            .await;
        assert_eq!(code(&outcome), Some(FailureCode::ToolNotFound));
        self.world.count("outcome TOOL_NOT_FOUND");
        self.world.count("calls");
    }

    async fn call_badly(&self, id: String) {
        let args = match self.world.random(0..3) {
            0 => steadyhand::Arguments::from("{\"n\": 1"),
            1 => steadyhand::Arguments::from(json!([1])),
            _ => steadyhand::Arguments::from(json!({"m": 1})),
        };
        let outcome = self
            .executor
            .execute(Call::new("plain", args).id(id.clone()))
            .await;
        assert_eq!(code(&outcome), Some(FailureCode::ValidationError));
        assert!(self.starts(&id).is_empty());
        self.count("plain", &outcome);
    }

    /// Few keys, so that they meet: the same call joins or repeats, another one is refused.
    async fn call_with_a_key(&self, id: String) {
        let key = format!("key {}", self.world.random(0..300));
        let n = self.world.random(0..8).min(1);
        // A tool whose breaker no model follows: joining hides who settles when.
        let call = Call::new(WITH_FUNCTION, json!({"n": n}))
            .id(id.clone())
            .idempotency_key(key);
        let outcome = self.executor.execute(call).await;
        assert_eq!(outcome.call_id, id);
        if outcome.replayed {
            self.world.count("replayed by key");
            self.world.count("calls");
            return;
        }
        self.count(WITH_FUNCTION, &outcome);
    }

    fn reset_a_breaker(&self) {
        let name = NAMES[self.world.random(0..NAMES.len() as u32) as usize];
        self.executor.tools().reset_breaker(name);
        self.models.lock().unwrap().get_mut(name).unwrap().close();
        self.world.count("breaker reset by hand");
    }

    /// Everything that must be true of an outcome.
    fn check(
        &self,
        name: &'static str,
        id: &str,
        started: Instant,
        ticket: Option<Ticket>,
        outcome: Outcome,
    ) {
        assert_eq!(
            (outcome.call_id.as_str(), outcome.tool_name.as_str()),
            (id, name)
        );
        self.settle(name, ticket, &outcome);
        self.count(name, &outcome);
        let took = started.elapsed();
        assert!(
            took <= DEADLINE + Duration::from_millis(2),
            "I3: {name} took {took:?}"
        );
        let starts = self.starts(id);
        assert_eq!(starts.len(), outcome.attempts as usize, "{outcome:?}");
        assert!(starts.len() <= 4, "I4");
        assert!(
            starts.iter().all(|start| *start <= started + DEADLINE),
            "I4"
        );
        let jittered = if name == "thrifty" { 2 } else { 1 };
        for (gap, wait_ms) in starts.windows(2).zip([100, 200, 400]) {
            let shortest = Duration::from_millis(wait_ms.min(50 * jittered) / jittered);
            assert!(
                gap[1] - gap[0] >= shortest,
                "I4: {:?} apart",
                gap[1] - gap[0]
            );
        }
        self.check_the_truth(name, id, &outcome);
        self.count_fallback(name, &outcome);
        if let Some(output) = outcome.output() {
            let bytes = output.value().to_string().len();
            assert!(bytes <= OUTPUT_BYTES_MAX + 2, "an output of {bytes} bytes");
        }
    }

    /// Never lie, never fire twice: what the outcome says against what the tool did.
    fn check_the_truth(&self, name: &str, id: &str, outcome: &Outcome) {
        let acts = self
            .world
            .truth
            .lock()
            .unwrap()
            .acts
            .get(id)
            .copied()
            .unwrap_or_default();
        match outcome.failure() {
            None => assert!(acts >= 1, "a success of a tool that did nothing"),
            Some(failure) => {
                assert!(
                    failure.effect != Effect::None || acts == 0,
                    "{failure:?} but it acted"
                );
                assert!(!failure.message.is_empty() && !failure.user_message.is_empty());
                self.world
                    .count(format!("effect {:?}", failure.effect).to_lowercase());
            }
        }
        assert!(name != PAYMENT || acts <= 1, "I5: paid {acts} times");
    }

    fn count_fallback(&self, name: &str, outcome: &Outcome) {
        let may = outcome.failure().is_some_and(|failure| {
            use FailureCode::{Cancelled, ValidationError};
            !matches!(failure.code, ValidationError | Cancelled)
        });
        match (name, may) {
            (WITH_VALUE, true) => assert_eq!(
                outcome.fallback.as_ref().map(|out| out.value()),
                Some(&json!("instead"))
            ),
            (WITH_FUNCTION, true) => self.world.count(match outcome.fallback {
                Some(_) => "fallback answered",
                None => "fallback failed",
            }),
            _ => assert!(outcome.fallback.is_none()),
        }
    }

    fn withdrawn(&self, name: &'static str, _id: &str, ticket: Option<Ticket>, how: &str) {
        if let Some(ticket) = ticket {
            self.model_settle(name, ticket, Verdict::Neutral);
        }
        self.calls.lock().unwrap().entry(name).or_default().apart += 1;
        self.world.count(format!("fate {how}"));
        self.world.count("calls");
    }

    fn settle(&self, name: &'static str, ticket: Option<Ticket>, outcome: &Outcome) {
        let Some(ticket) = ticket else {
            assert_eq!(
                code(outcome),
                Some(FailureCode::CircuitOpen),
                "{name}: the model refuses, the breaker does not"
            );
            assert_eq!(outcome.attempts, 0);
            return;
        };
        let health = outcome
            .failure()
            .map_or(Health::Healthy, |failure| failure.health());
        self.model_settle(
            name,
            ticket,
            match health {
                Health::Healthy => Verdict::Healthy,
                Health::Unhealthy => Verdict::Unhealthy,
                Health::Neutral => Verdict::Neutral,
            },
        );
    }

    fn model_admit(&self, name: &'static str) -> Option<Ticket> {
        if name == WITH_FUNCTION {
            // Its outcome comes later than its verdict, so the model cannot keep step.
            return Some(Ticket::unknown());
        }
        let lease = DEADLINE + Duration::from_secs(1);
        let now_ms = self.world.epoch.elapsed().as_millis() as u64;
        let mut models = self.models.lock().unwrap();
        models
            .get_mut(name)
            .unwrap()
            .admit(now_ms, lease.as_millis() as u64)
    }

    fn model_settle(&self, name: &'static str, ticket: Ticket, verdict: Verdict) {
        if name == WITH_FUNCTION {
            return;
        }
        let now_ms = self.world.epoch.elapsed().as_millis() as u64;
        let mut models = self.models.lock().unwrap();
        let model = models.get_mut(name).unwrap();
        model.settle(ticket, verdict, now_ms);
        let state = self.executor.tools().breaker(name).unwrap().state;
        assert_eq!(
            state,
            model.state(),
            "I8, I10: {name}'s breaker and its model"
        );
    }

    fn count(&self, name: &'static str, outcome: &Outcome) {
        let mut calls = self.calls.lock().unwrap();
        let counts = calls.entry(name).or_default();
        let cancelled = code(outcome) == Some(FailureCode::Cancelled);
        match (outcome.attempts, cancelled, outcome.status()) {
            (0, _, _) | (_, true, _) => counts.apart += 1,
            (_, false, Status::Success) => counts.success += 1,
            (_, false, Status::Error) => counts.error += 1,
            (_, false, Status::Timeout) => counts.timeout += 1,
        }
        self.world.count("calls");
        self.world.count(format!("attempts {}", outcome.attempts));
        self.world.count(match code(outcome) {
            None => "outcome success".to_owned(),
            Some(code) => format!("outcome {code}"),
        });
        if self.world.random(0..500) == 0 {
            counts.check_that_metrics_only_grow(self.executor.tools().metrics(name).unwrap());
        }
    }

    fn starts(&self, id: &str) -> Vec<Instant> {
        let truth = self.world.truth.lock().unwrap();
        truth.starts.get(id).cloned().unwrap_or_default()
    }

    /// I2, I9, I12, I17: after the last call, nothing is held, nothing is uncounted.
    fn check_what_is_left(&self) {
        let truth = self.world.truth.lock().unwrap();
        assert!(truth.running.values().all(|running| *running == 0));
        assert!(truth.live_trials.values().all(|trials| *trials == 0));
        for (name, counts) in self.calls.lock().unwrap().iter() {
            let metrics = self.executor.tools().metrics(name).unwrap();
            assert_eq!((metrics.in_flight, metrics.queued), (0, 0), "{name}");
            assert_eq!(metrics.success_count, counts.success, "{name}");
            assert_eq!(metrics.error_count, counts.error, "{name}");
            assert_eq!(metrics.timeout_count, counts.timeout, "{name}");
            let apart = metrics.rejected + metrics.invalid + metrics.cancelled;
            assert_eq!(apart, counts.apart, "{name}");
            assert_eq!(
                metrics.total_executions,
                counts.success + counts.error + counts.timeout
            );
        }
    }

    fn report(&self) -> Report {
        let mut report = self.world.report.lock().unwrap().clone();
        for model in self.models.lock().unwrap().values() {
            let seen = model.seen;
            for (what, many) in [
                ("breaker closed → open", seen.closed_to_open),
                ("breaker open → half-open", seen.open_to_trial),
                ("breaker half-open → closed", seen.trial_to_closed),
                ("breaker half-open → open", seen.trial_to_open),
                ("breaker trial handed on", seen.trial_handed_on),
                ("breaker lease expired", seen.lease_expired),
                ("breaker stale result", seen.stale),
            ] {
                report.count_many(what, many);
            }
        }
        report
    }
}

impl Counts {
    fn check_that_metrics_only_grow(&mut self, now: ToolMetrics) {
        if let Some(before) = &self.last {
            let grown = [
                (before.total_executions, now.total_executions),
                (before.success_count, now.success_count),
                (before.error_count, now.error_count),
                (before.rejected, now.rejected),
                (before.cancelled, now.cancelled),
                (before.retries, now.retries),
            ];
            assert!(grown.iter().all(|(before, now)| before <= now), "I17");
        }
        self.last = Some(now);
    }
}

async fn poll_once(running: &mut Running) -> Poll<Outcome> {
    poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await
}

fn code(outcome: &Outcome) -> Option<FailureCode> {
    outcome.failure().map(|failure| failure.code)
}
