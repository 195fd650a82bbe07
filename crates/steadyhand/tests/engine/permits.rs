//! Who may use what, and what stands before a tool: refused before anything is counted, and answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{
    Asked, Call, Category, Effect, FailureCode, Gate, Permit, ToolError, ToolExecutor, ToolManager,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Allows what begins with this, so many times.
struct Only {
    start: &'static str,
    left: AtomicUsize,
    refused: AtomicUsize,
}

impl Only {
    fn those(start: &'static str, times: usize) -> Arc<Only> {
        Arc::new(Only {
            start,
            left: AtomicUsize::new(times),
            refused: AtomicUsize::new(0),
        })
    }
}

impl Permit for Only {
    fn allows(&self, tool: &str) -> bool {
        tool.starts_with(self.start)
    }

    fn refusal(&self, tool: &str) -> String {
        self.refused.fetch_add(1, Ordering::Relaxed);
        format!("'{tool}' is not for you")
    }

    fn admit(&self, _: &Asked<'_>) -> Result<(), ToolError> {
        let took = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        let used_up = |_| ToolError::of(Category::Overloaded, "that was all for today");
        took.map(drop).map_err(used_up)
    }
}

#[tokio::test]
async fn a_tool_that_is_not_allowed_is_refused_once_under_each_of_its_names_and_never_suggested() {
    let manager = ToolManager::new();
    let secret = script("door_open").answers("opened");
    manager
        .add(secret.tool().alias("door_alias"))
        .expect("added");
    let open = script("weather_now").answers("rain");
    manager.add(open.tool().alias("sky")).expect("added");
    let executor = ToolExecutor::new(manager.clone());
    let permit = Only::those("weather", 100);
    for (name, code) in [
        ("weather_now", None),
        ("sky", None),
        ("door_open", Some(FailureCode::AuthenticationError)),
        ("door_alias", Some(FailureCode::AuthenticationError)),
        ("door_opem", Some(FailureCode::AuthenticationError)),
        ("weather_nov", Some(FailureCode::ToolNotFound)),
    ] {
        for key in [None, Some(name.to_owned())] {
            let mut call = Call::new(name, json!({})).permit(permit.clone());
            call.idempotency_key = key;
            let outcome = executor.execute(call).await;
            assert_eq!(
                outcome.failure().map(|failure| failure.code),
                code,
                "{name}"
            );
            if let Some(failure) = outcome.failure() {
                assert_eq!(failure.effect, Effect::None);
                assert!(
                    failure
                        .suggestions
                        .iter()
                        .all(|name| name.starts_with("weather"))
                );
            }
        }
    }
    assert_eq!(permit.refused.load(Ordering::Relaxed), 6);
    assert_eq!(secret.starts(), 0);
    let metrics = manager.metrics("door_open").expect("its counters");
    assert_eq!((metrics.total_executions, metrics.rejected), (0, 4));
}

#[tokio::test]
async fn what_goes_beyond_a_budget_has_an_outcome_and_does_not_run() {
    let manager = ToolManager::new();
    let weather = script("weather").answers("rain");
    manager.add(weather.tool()).expect("added");
    let executor = ToolExecutor::new(manager);
    let permit = Only::those("weather", 2);
    let calls = (0..5).map(|_| Call::new("weather", json!({})).permit(permit.clone()));
    let outcomes = executor.execute_batch(calls.collect()).await;
    let failed = outcomes.iter().filter_map(|outcome| outcome.failure());
    let codes: Vec<FailureCode> = failed.map(|failure| failure.code).collect();
    assert_eq!(codes, [FailureCode::Overloaded; 3]);
    assert_eq!(weather.starts(), 2);
}

/// Opens after a while, or not.
struct Opens {
    after: Duration,
    with: fn() -> Result<(), ToolError>,
}

impl Gate for Opens {
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        assert_eq!(asked.tool_name, "door");
        assert_eq!(asked.args, &json!({"n": 1}));
        Box::pin(async move {
            sleep(self.after).await;
            (self.with)()
        })
    }
}

fn gated(gate: Opens, deadline: Duration) -> ToolExecutor {
    let manager = ToolManager::new();
    let tool = script("door")
        .answers("open")
        .taking(Duration::from_secs(8))
        .tool();
    let tool = tool.adjusted(move |policy| policy.deadline = deadline);
    manager.add(tool.gated_by(Arc::new(gate))).expect("added");
    ToolExecutor::new(manager)
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_call_begins_behind_the_gate() {
    let gate = Opens {
        after: Duration::from_secs(3600),
        with: || Ok(()),
    };
    let executor = gated(gate, Duration::from_secs(10));
    let began = Instant::now();
    let outcome = executor.execute(Call::new("door", json!({"n": 1}))).await;
    assert!(outcome.failure().is_none(), "{outcome:?}");
    assert_eq!(began.elapsed(), Duration::from_secs(3608));
    assert_eq!(outcome.execution_time, Duration::from_secs(3608));
    assert_eq!(outcome.running_time(), Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn a_no_and_no_answer_at_all_are_two_outcomes_and_cancelling_is_a_third() {
    let minute = Duration::from_secs(60);
    let denied = || Err(ToolError::of(Category::Denied, "not now"));
    let expired = || Err(ToolError::of(Category::Expired, "nobody came"));
    let panics = || -> Result<(), ToolError> { panic!("{}", crate::quiet::ON_PURPOSE) };
    crate::quiet::about_panics_on_purpose();
    for (with, code) in [
        (
            denied as fn() -> Result<(), ToolError>,
            FailureCode::ApprovalDenied,
        ),
        (expired, FailureCode::ApprovalExpired),
        (panics, FailureCode::ToolExecutionError),
    ] {
        let executor = gated(
            Opens {
                after: minute,
                with,
            },
            minute,
        );
        let outcome = executor.execute(Call::new("door", json!({"n": 1}))).await;
        let failure = outcome.failure().expect("a failure");
        assert_eq!((failure.code, failure.effect), (code, Effect::None));
        assert_eq!(outcome.attempts, 0);
    }
    let executor = gated(
        Opens {
            after: minute,
            with: || Ok(()),
        },
        minute,
    );
    let token = CancellationToken::new();
    let call = Call::new("door", json!({"n": 1})).cancellation(token.clone());
    let cancelling = async {
        sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let (outcome, ()) = tokio::join!(executor.execute(call), cancelling);
    let failure = outcome.failure().expect("a failure");
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::Cancelled, Effect::None)
    );
}

/// Everything is allowed; calls count for this caller.
struct Of(&'static str);

impl Permit for Of {
    fn allows(&self, _: &str) -> bool {
        true
    }

    fn refusal(&self, tool: &str) -> String {
        format!("'{tool}' is not for you")
    }

    fn owner(&self) -> Option<&str> {
        Some(self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn s02_calls_of_one_caller_that_wait_for_a_tool_leave_room_and_turns_for_others() {
    let manager = ToolManager::new();
    let slow = script("slow")
        .answers("done")
        .taking(Duration::from_secs(1));
    manager.add(slow.tool().limit(2, 100)).expect("added");
    let executor = ToolExecutor::new(manager);
    let call = |caller: &'static str| {
        let call = Call::new("slow", json!({})).permit(Arc::new(Of(caller)));
        call.caller(caller).deadline(Duration::from_secs(600))
    };
    let began = Instant::now();
    let run = |caller: &'static str, after_ms: u64| {
        let (executor, call) = (executor.clone(), call(caller));
        tokio::spawn(async move {
            sleep(Duration::from_millis(after_ms)).await;
            let outcome = executor.execute(call).await;
            (outcome, began.elapsed())
        })
    };
    let greedy: Vec<_> = (0..300).map(|_| run("greedy", 0)).collect();
    let others: Vec<_> = (0..20).map(|_| run("other", 100)).collect();
    sleep(Duration::from_millis(200)).await;
    let waiting = executor.tools().metrics("slow").expect("known").queued;
    assert_eq!(waiting, 100);
    for other in others {
        let (outcome, took) = other.await.expect("no panic");
        assert!(outcome.is_success(), "{:?}", outcome.result);
        // In turn with those of the other: not behind a hundred of them.
        assert!(took < Duration::from_secs(30), "{took:?}");
    }
    let mut refused = 0;
    for greedy in greedy {
        let (outcome, _) = greedy.await.expect("no panic");
        if let Some(failure) = outcome.failure() {
            assert_eq!(failure.code, FailureCode::Overloaded, "{failure}");
            assert_eq!(failure.effect, Effect::None);
            refused += 1;
        }
    }
    // Two ran, a hundred waited, and twenty of those made room.
    assert_eq!(refused, 300 - 2 - 100 + 20);
    assert_eq!(slow.seen().len(), 300 - refused + 20);
}
