//! Tools that do what a script says, and a clock that does not run.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::handler::{Handler, Invocation};
use crate::output::Output;
use crate::tool::Tool;
use crate::tool_error::ToolError;

/// Runs a test on a clock that stands still while something works and jumps when all wait, so that
/// hours of waiting take no time and every run is the same.
///
/// ```
/// use std::time::Duration;
/// use steadyhand::testing::{on_paused_clock, script};
/// use steadyhand::{Call, ToolError, ToolExecutor, ToolManager};
///
/// on_paused_clock(async {
///     let tools = ToolManager::new();
///     let doctor = script("flaky").fails(ToolError::new("not yet")).answers("done");
///     tools.add(doctor.tool()).unwrap();
///     let outcome = ToolExecutor::new(tools).execute(Call::new("flaky", "{}")).await;
///     assert!(outcome.is_success());
///     assert_eq!(outcome.attempts, 2);
///     assert!(outcome.execution_time >= Duration::from_millis(100));
/// });
/// ```
pub fn on_paused_clock<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime
        .expect("a runtime without I/O needs nothing")
        .block_on(test)
}

/// A tool that does one step of its script per attempt, then the last step for ever.
pub fn script(name: impl Into<String>) -> Script {
    Script {
        name: name.into(),
        schema: json!({"type": "object"}),
        log: Arc::default(),
    }
}

/// See [`script`].
#[derive(Clone)]
pub struct Script {
    name: String,
    schema: Value,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    steps: VecDeque<Step>,
    seen: Vec<Seen>,
    finished: u32,
}

/// What a scripted tool saw of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The arguments.
    pub args: Value,
    /// The call.
    pub call_id: String,
    /// Counts from 1.
    pub attempt: u32,
    /// What it could have handed on to another service.
    pub idempotency_key: String,
    /// When it was started, on tokio's clock.
    pub at: tokio::time::Instant,
}

type MakeError = Arc<dyn Fn() -> ToolError + Send + Sync>;

#[derive(Clone)]
enum Step {
    Answers(Value),
    Fails(MakeError),
    Hangs,
    Panics(String),
    Takes(Duration, Box<Step>),
    Drips(u32, Duration, Value),
}

impl Script {
    /// Answers with this value.
    #[must_use]
    pub fn answers(self, value: impl Into<Value>) -> Script {
        self.then(Step::Answers(value.into()))
    }

    /// Fails with this error, as often as this step is repeated.
    #[must_use]
    pub fn fails(self, error: ToolError) -> Script {
        let error = Mutex::new(error);
        self.fails_with(move || error.lock().duplicate())
    }

    /// Fails with a new error each time.
    #[must_use]
    pub fn fails_with(self, error: impl Fn() -> ToolError + Send + Sync + 'static) -> Script {
        self.then(Step::Fails(Arc::new(error)))
    }

    /// Never ends by itself, and takes no notice of being cancelled.
    #[must_use]
    pub fn hangs(self) -> Script {
        self.then(Step::Hangs)
    }

    /// Panics with this text.
    #[must_use]
    pub fn panics(self, text: impl Into<String>) -> Script {
        self.then(Step::Panics(text.into()))
    }

    /// Does the step before this one, but takes so long for it.
    #[must_use]
    pub fn taking(self, time: Duration) -> Script {
        let mut log = self.log.lock();
        if let Some(step) = log.steps.pop_back() {
            log.steps.push_back(Step::Takes(time, Box::new(step)));
        }
        drop(log);
        self
    }

    /// Works in small steps with a pause after each, then answers.
    #[must_use]
    pub fn drips(self, steps: u32, pause: Duration, value: impl Into<Value>) -> Script {
        self.then(Step::Drips(steps, pause, value.into()))
    }

    /// With this schema, in place of one that takes any object.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Script {
        self.schema = schema;
        self
    }

    /// The tool. It shares its log with this script.
    pub fn tool(&self) -> Tool {
        Tool::new(
            self.name.clone(),
            "A scripted tool",
            self.schema.clone(),
            Arc::new(self.clone()),
        )
    }

    /// What it has seen so far, one entry per attempt.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.lock().seen.clone()
    }

    /// How often it was started.
    pub fn starts(&self) -> usize {
        self.log.lock().seen.len()
    }

    /// How often it came to the end of a step, by answering or failing.
    pub fn ends(&self) -> u32 {
        self.log.lock().finished
    }

    fn then(self, step: Step) -> Script {
        self.log.lock().steps.push_back(step);
        self
    }

    fn next_step(&self) -> Step {
        let mut log = self.log.lock();
        match log.steps.len() {
            0 => Step::Answers(Value::Null),
            1 => log.steps[0].clone(),
            _ => log.steps.pop_front().expect("there are several"),
        }
    }
}

impl Handler for Script {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            self.log.lock().seen.push(Seen {
                args: invocation.args.clone(),
                call_id: invocation.call_id.to_owned(),
                attempt: invocation.attempt,
                idempotency_key: invocation.idempotency_key().to_owned(),
                at: tokio::time::Instant::now(),
            });
            let result = perform(self.next_step()).await;
            self.log.lock().finished += 1;
            result
        })
    }
}

async fn perform(mut step: Step) -> Result<Output, ToolError> {
    loop {
        match step {
            Step::Answers(value) => return Ok(Output::json(value)),
            Step::Fails(error) => return Err(error()),
            Step::Hangs => return pending().await,
            #[allow(clippy::panic, reason = "that is what the script says")]
            Step::Panics(text) => panic!("{text}"),
            Step::Takes(time, then) => {
                sleep(time).await;
                step = *then;
            }
            Step::Drips(steps, pause, value) => {
                for _ in 0..steps {
                    sleep(pause).await;
                }
                return Ok(Output::json(value));
            }
        }
    }
}
