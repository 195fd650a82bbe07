//! What is probed in a tool's place: the same definition and policy, run by something that does as it is told.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use steadyhand::{
    Call, Handler, Invocation, Outcome, Output, Policy, Tool, ToolError, ToolExecutor, ToolManager,
};
use tokio::sync::Notify;

/// How long those who meet wait for each other.
const MEETING_MAX: Duration = Duration::from_secs(5);
/// What it panics with.
pub(super) const PANIC: &str = "on purpose, by steadyhand verify";

/// What the stand-in does.
#[derive(Clone)]
pub(super) enum Act {
    Answer(Value),
    /// Fails for the call of this id, answers the others.
    FailFor(&'static str, String),
    /// Panics for the call of this id, answers the others.
    PanicFor(&'static str),
    Hang,
    /// Answers once so many run at the same time.
    Meet(usize),
}

/// A tool's place, taken.
pub(super) struct Rig {
    pub(super) executor: ToolExecutor,
    pub(super) name: String,
    pub(super) policy: Policy,
    /// Arguments that fit, if there are any.
    pub(super) fitting: Option<Value>,
    stand_in: Arc<StandIn>,
}

struct StandIn {
    act: Mutex<Act>,
    starts: AtomicU32,
    here: AtomicUsize,
    all_here: Notify,
}

impl Rig {
    /// The error is why the tool's definition is refused.
    pub(super) fn of(tool: &Tool, policy: &Policy, declared: Option<Value>) -> Result<Rig, String> {
        let stand_in = Arc::new(StandIn {
            act: Mutex::new(Act::Answer(json!("fine"))),
            starts: AtomicU32::new(0),
            here: AtomicUsize::new(0),
            all_here: Notify::new(),
        });
        let manager = ToolManager::new();
        let probed = tool
            .clone()
            .run_by(Arc::clone(&stand_in) as Arc<dyn Handler>);
        manager.add(probed).map_err(|refused| refused.fault)?;
        let made = steadyhand::example_arguments(tool.schema());
        let fits = |arguments: &Value| {
            let checked = manager.check(tool.name(), arguments.clone().into());
            checked.is_some_and(|checked| checked.is_ok())
        };
        let fitting = declared.into_iter().chain(made).find(fits);
        Ok(Rig {
            executor: ToolExecutor::new(manager),
            name: tool.name().to_owned(),
            policy: policy.clone(),
            fitting,
            stand_in,
        })
    }

    /// From here on it does this, as a healthy tool that was never called.
    pub(super) fn plays(&self, act: Act) {
        *self.stand_in.act() = act;
        self.stand_in.starts.store(0, Ordering::Relaxed);
        self.stand_in.here.store(0, Ordering::Relaxed);
        self.executor.tools().reset_breaker(&self.name);
    }

    pub(super) fn starts(&self) -> u32 {
        self.stand_in.starts.load(Ordering::Relaxed)
    }

    /// A call that would work, tried once.
    pub(super) fn call(&self, id: &str, arguments: &Value) -> Call {
        Call::new(&self.name, arguments.clone()).id(id).no_retry()
    }

    pub(super) async fn batch(&self, calls: Vec<Call>) -> Vec<Outcome> {
        self.executor.execute_batch(calls).await
    }
}

impl Handler for StandIn {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(self.play(invocation.call_id))
    }
}

impl StandIn {
    fn act(&self) -> MutexGuard<'_, Act> {
        self.act.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn play(&self, call_id: &str) -> Result<Output, ToolError> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let act = self.act().clone();
        match act {
            Act::Answer(value) => Ok(Output::json(value)),
            Act::FailFor(id, words) if id == call_id => Err(ToolError::new(words)),
            // Without the hook that would tell the person in front of it of a bug.
            Act::PanicFor(id) if id == call_id => {
                std::panic::resume_unwind(Box::new(PANIC.to_owned()))
            }
            Act::FailFor(..) | Act::PanicFor(_) => Ok(Output::json("fine")),
            Act::Hang => std::future::pending().await,
            Act::Meet(count) => self.meet(count).await,
        }
    }

    async fn meet(&self, count: usize) -> Result<Output, ToolError> {
        let all_here = self.all_here.notified();
        tokio::pin!(all_here);
        all_here.as_mut().enable();
        if self.here.fetch_add(1, Ordering::AcqRel) + 1 >= count {
            self.all_here.notify_waiters();
            return Ok(Output::json("met"));
        }
        match tokio::time::timeout(MEETING_MAX, all_here).await {
            Ok(()) => Ok(Output::json("met")),
            Err(_) => Err(ToolError::answer("the others did not come")),
        }
    }
}
