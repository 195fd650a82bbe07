//! The tools of the simulation: what they do wrong, and what they truly did.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::BoxFuture;
use serde_json::json;
use steadyhand::{
    BreakerPolicy, BreakerState, BudgetPolicy, Category, Fallback, Handler, Invocation, Output,
    RetryPolicy, Tool, ToolError, ToolManager,
};
use tokio::time::{Instant, sleep};

use super::report::Report;
use crate::quiet::ON_PURPOSE;

/// The ways an attempt can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    Error,
    ErrorAfterActing,
    ErrorInWords,
    Network,
    NetworkNeverStarted,
    RateLimited,
    RateLimitedForADay,
    Unauthorized,
    Rejected,
    Answer,
    Busy,
    SaysTimeout,
    PanicBefore,
    PanicAfterActing,
    Hangs,
    ActsThenHangs,
    PanicsWhenDropped,
    JustInTime,
    JustTooLate,
    HugeOutput,
}

impl Fault {
    pub(super) const ALL: [Fault; 20] = [
        Fault::Error,
        Fault::ErrorAfterActing,
        Fault::ErrorInWords,
        Fault::Network,
        Fault::NetworkNeverStarted,
        Fault::RateLimited,
        Fault::RateLimitedForADay,
        Fault::Unauthorized,
        Fault::Rejected,
        Fault::Answer,
        Fault::Busy,
        Fault::SaysTimeout,
        Fault::PanicBefore,
        Fault::PanicAfterActing,
        Fault::Hangs,
        Fault::ActsThenHangs,
        Fault::PanicsWhenDropped,
        Fault::JustInTime,
        Fault::JustTooLate,
        Fault::HugeOutput,
    ];
}

/// The tools, by what is special about them.
pub(super) const PLAIN: &str = "plain";
pub(super) const PAYMENT: &str = "payment";
pub(super) const NARROW: &str = "narrow";
pub(super) const WITH_VALUE: &str = "with_value";
pub(super) const WITH_FUNCTION: &str = "with_function";
pub(super) const THRIFTY: &str = "thrifty";
pub(super) const NAMES: [&str; 6] = [PLAIN, PAYMENT, NARROW, WITH_VALUE, WITH_FUNCTION, THRIFTY];

pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// A short rest, so that a run sees many of them.
pub(super) const BREAKER: BreakerPolicy = BreakerPolicy {
    failures: 5,
    cooldown_ms: 2_000,
};
const HUGE: usize = 20_000;
pub(super) const OUTPUT_BYTES_MAX: usize = 4_096;

/// What really happened, kept by the tools themselves.
#[derive(Default)]
pub(super) struct Truth {
    /// By call: when it was started, and how often it acted.
    pub(super) starts: HashMap<String, Vec<Instant>>,
    pub(super) acts: HashMap<String, u32>,
    pub(super) keys: HashMap<String, String>,
    pub(super) live_trials: HashMap<&'static str, i32>,
    pub(super) running: HashMap<&'static str, i32>,
}

/// Everything the tools and the driver share.
pub(super) struct World {
    pub(super) rng: Mutex<Rng>,
    pub(super) truth: Mutex<Truth>,
    pub(super) report: Mutex<Report>,
    pub(super) tools: ToolManager,
    pub(super) epoch: Instant,
}

impl World {
    pub(super) fn new(seed: u64) -> Arc<World> {
        let world = Arc::new(World {
            rng: Mutex::new(Rng::with_seed(seed)),
            truth: Mutex::default(),
            report: Mutex::default(),
            tools: ToolManager::new(),
            epoch: Instant::now(),
        });
        for name in NAMES {
            let handler = SimulatedTool {
                name,
                world: Arc::downgrade(&world),
            };
            let tool = Tool::new(
                name,
                "Simulated",
                json!({"type": "object", "required": ["n"]}),
                Arc::new(handler),
            )
            .timeout(TIMEOUT)
            .deadline(DEADLINE)
            .breaker(BREAKER.failures, Duration::from_millis(BREAKER.cooldown_ms))
            .output_bytes_max(OUTPUT_BYTES_MAX);
            let tool = match name {
                PAYMENT => tool.not_safe_to_repeat(),
                NARROW => tool.limit(3, 5),
                WITH_VALUE => tool.fallback_value(json!("instead")),
                WITH_FUNCTION => tool.fallback(fallback(Arc::downgrade(&world))),
                THRIFTY => tool.retry(RetryPolicy {
                    jitter: true,
                    budget: Some(BudgetPolicy::default()),
                    ..RetryPolicy::default()
                }),
                _ => tool,
            };
            world.tools.add(tool).unwrap();
        }
        world
    }

    pub(super) fn random(&self, range: std::ops::Range<u32>) -> u32 {
        self.rng.lock().unwrap().u32(range)
    }

    pub(super) fn count(&self, what: impl Into<String>) {
        self.report.lock().unwrap().count(what);
    }
}

fn fallback(world: std::sync::Weak<World>) -> Fallback {
    Fallback::function(move |_, _| {
        let dice = world.upgrade().map_or(0, |world| world.random(0..10));
        async move {
            sleep(Duration::from_millis(20)).await;
            match dice {
                0 => Err(ToolError::new("no fallback either")),
                1 => panic!("{ON_PURPOSE}: in a fallback"),
                2 => pending().await,
                _ => Ok(Output::json(json!("instead"))),
            }
        }
    })
}

struct SimulatedTool {
    name: &'static str,
    world: std::sync::Weak<World>,
}

impl Handler for SimulatedTool {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let world = self.world.upgrade().expect("the world outlives its calls");
            let _running = Running::begin(&world, self.name, invocation);
            let act = || {
                let mut truth = world.truth.lock().unwrap();
                *truth.acts.entry(invocation.call_id.to_owned()).or_default() += 1;
            };
            let Some(fault) = weather(&world, self.name) else {
                if world.random(0..4) == 0 {
                    let ms = world.random(1..300);
                    sleep(Duration::from_millis(ms.into())).await;
                }
                act();
                return Ok(Output::json(invocation.args["n"].clone()));
            };
            world.count(format!("fault {fault:?}"));
            perform(fault, act).await
        })
    }
}

/// Each tool has good times, bad times and outages, half a virtual minute each.
fn weather(world: &World, name: &str) -> Option<Fault> {
    let half_minute = world.epoch.elapsed().as_secs() / 30;
    let faults_in_100 = match (half_minute + name.len() as u64) % 5 {
        0 => 98,
        1 => 50,
        _ => 4,
    };
    if world.random(0..100) >= faults_in_100 {
        return None;
    }
    let which = world.random(0..Fault::ALL.len() as u32);
    Some(Fault::ALL[which as usize])
}

async fn perform(fault: Fault, act: impl Fn()) -> Result<Output, ToolError> {
    let of = |category| Err(ToolError::of(category, format!("{fault:?}")));
    match fault {
        Fault::Error => Err(ToolError::new("it broke")),
        Fault::ErrorAfterActing => {
            act();
            Err(ToolError::new("it broke at the end"))
        }
        Fault::ErrorInWords => Err(ToolError::new("connect ECONNREFUSED 127.0.0.1:1")),
        Fault::Network => of(Category::Network),
        Fault::NetworkNeverStarted => {
            Err(ToolError::of(Category::Network, "refused").never_started())
        }
        Fault::RateLimited => {
            Err(ToolError::of(Category::RateLimit, "slower").retry_after(Duration::from_millis(50)))
        }
        Fault::RateLimitedForADay => {
            Err(ToolError::of(Category::RateLimit, "tomorrow")
                .retry_after(Duration::from_secs(86_400)))
        }
        Fault::Unauthorized => of(Category::Authentication),
        Fault::Rejected => of(Category::Validation),
        Fault::Answer => Err(ToolError::answer("no")),
        Fault::Busy => of(Category::Overloaded),
        Fault::SaysTimeout => of(Category::Timeout),
        Fault::PanicBefore => panic!("{ON_PURPOSE}: before"),
        Fault::PanicAfterActing => {
            act();
            panic!("{ON_PURPOSE}: after");
        }
        Fault::Hangs => pending().await,
        Fault::ActsThenHangs => {
            act();
            pending().await
        }
        Fault::PanicsWhenDropped => {
            let _bomb = Bomb;
            pending().await
        }
        Fault::JustInTime => {
            sleep(TIMEOUT - Duration::from_millis(1)).await;
            act();
            Ok(Output::json("late"))
        }
        Fault::JustTooLate => {
            sleep(TIMEOUT + Duration::from_millis(1)).await;
            act();
            Ok(Output::json("too late"))
        }
        Fault::HugeOutput => {
            act();
            Ok(Output::json("x".repeat(HUGE)))
        }
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{ON_PURPOSE}: while being dropped");
        }
    }
}

/// One running attempt: counted while it lives, however it ends.
struct Running<'a> {
    world: &'a World,
    name: &'static str,
    is_trial: bool,
}

impl<'a> Running<'a> {
    fn begin(world: &'a World, name: &'static str, invocation: &Invocation<'_>) -> Running<'a> {
        let state = world.tools.breaker(name).expect("each has one").state;
        assert_ne!(
            state,
            BreakerState::Open,
            "I11: {name} was started while its breaker is open"
        );
        let is_trial = state == BreakerState::HalfOpen;
        let mut truth = world.truth.lock().unwrap();
        if is_trial {
            *truth.live_trials.entry(name).or_default() += 1;
        }
        let running = truth.running.entry(name).or_default();
        *running += 1;
        assert!(
            name != NARROW || *running <= 3,
            "more than the limit at once"
        );
        let id = invocation.call_id.to_owned();
        truth
            .starts
            .entry(id.clone())
            .or_default()
            .push(Instant::now());
        let key = invocation.idempotency_key().to_owned();
        let known = truth.keys.entry(id).or_insert_with(|| key.clone());
        assert_eq!(*known, key, "I6: all attempts of a call carry the same key");
        Running {
            world,
            name,
            is_trial,
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut truth = self.world.truth.lock().unwrap();
        *truth.running.entry(self.name).or_default() -= 1;
        if self.is_trial {
            *truth.live_trials.entry(self.name).or_default() -= 1;
        }
    }
}
