//! What a caller waits for beside the tool: an approval, a tool that is on its way. And what stays known of a tool that
//! is not run any more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{
    Arrivals, Asked, BreakerState, Call, CallProgress, Category, Effect, Event, Gate, Tool,
    ToolError, ToolExecutor, ToolManager,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::logs;
use crate::support::{call, code, executor, failure, once, secs, structured, trip};

/// Somebody who takes their time.
struct Person {
    after: Duration,
    says: Result<(), Category>,
}

impl Gate for Person {
    fn pass<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            if !self.after.is_zero() {
                sleep(self.after).await;
            }
            match self.says {
                Ok(()) => asked.approved_by("ada"),
                Err(category) => return Err(ToolError::of(category, "no")),
            }
            Ok(())
        })
    }
}

fn gated(tool: Tool, after: Duration, says: Result<(), Category>) -> Tool {
    tool.gated_by(Arc::new(Person { after, says }))
}

#[tokio::test(start_paused = true)]
async fn t02_the_time_of_a_call_covers_its_approval_and_no_counter_or_warning_does() {
    let logs = logs::capture();
    let door = script("door").answers("open").taking(secs(1) / 2);
    let executor = executor([gated(door.tool(), secs(300), Ok(()))]);
    let began = Instant::now();
    let outcome = executor.execute(call("door", json!({}))).await;
    assert_eq!(outcome.execution_time, began.elapsed());
    assert_eq!(outcome.execution_time, Duration::from_millis(300_500));
    let view = structured(&outcome);
    assert_eq!(view["executionTime"], 300_500.0);
    assert_eq!(view["approvalTime"], 300_000.0);
    let metrics = executor.tools().metrics("door").expect("its counters");
    assert_eq!(metrics.avg_execution_time, 500.0);
    assert!(metrics.p99 < 600.0, "{}", metrics.p99);
    assert!(logs.of(Level::WARN, "slow call").is_empty());
}

#[tokio::test(start_paused = true)]
async fn t02_a_call_that_is_not_approved_says_how_long_its_caller_waited() {
    for says in [Category::Denied, Category::Expired] {
        let door = script("door").answers("open");
        let executor = executor([gated(door.tool(), secs(120), Err(says))]);
        let outcome = executor.execute(call("door", json!({}))).await;
        assert_eq!(outcome.execution_time, secs(120));
        assert_eq!((outcome.approval_time, door.starts()), (secs(120), 0));
        assert_eq!(failure(&outcome).effect, Effect::None);
    }
    // Withdrawn while somebody thinks about it, by its token or by whoever drops it.
    let seen: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let executor = executor([gated(
        script("door").answers("open").tool(),
        secs(120),
        Ok(()),
    )]);
    let told = Arc::clone(&seen);
    let watch = executor
        .observe(move |event: &Event| {
            if let Event::Finished { outcome, .. } = event {
                assert_eq!(outcome.failure().expect("withdrawn").effect, Effect::None);
                told.lock().expect("whole").push(outcome.approval_time);
            }
        })
        .expect("a thread");
    let token = CancellationToken::new();
    let waiting = executor.execute(call("door", json!({})).cancellation(token.clone()));
    let (outcome, ()) = tokio::join!(waiting, async {
        sleep(secs(7)).await;
        token.cancel();
    });
    assert_eq!(outcome.execution_time, secs(7));
    let dropped = tokio::time::timeout(secs(9), executor.execute(call("door", json!({})))).await;
    assert!(dropped.is_err());
    while !watch.is_up_to_date() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*seen.lock().expect("whole"), [secs(7), secs(9)]);
}

#[tokio::test(start_paused = true)]
async fn t02_an_approval_nobody_waits_for_is_no_wait() {
    let executor = executor([gated(
        script("door").answers("open").tool(),
        Duration::ZERO,
        Ok(()),
    )]);
    let outcome = executor.execute(call("door", json!({}))).await;
    assert_eq!(outcome.approval_time, Duration::ZERO);
    assert!(structured(&outcome).get("approvalTime").is_none());
}

#[tokio::test(start_paused = true)]
async fn t02_those_who_watch_are_told_who_approved_a_call_before_its_tool_starts() {
    let door = script("door").answers("open");
    let executor = executor([gated(door.tool(), secs(90), Ok(()))]);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let told = Arc::clone(&seen);
    let watch = executor
        .observe(move |event: &Event| {
            let event = serde_json::to_value(event).expect("JSON");
            told.lock().expect("whole").push(event);
        })
        .expect("a thread");
    let progress: Arc<CallProgress> = Arc::default();
    let mut asked = call("door", json!({"password": "hunter22222"}));
    asked.progress = Some(Arc::clone(&progress));
    let looking = async {
        sleep(secs(60)).await;
        assert!(progress.waits_for_approval());
        assert_eq!(
            (progress.approval_time(), progress.attempts()),
            (secs(60), 0)
        );
    };
    tokio::join!(executor.execute(asked), looking);
    assert!(!progress.waits_for_approval());
    assert_eq!(
        (progress.approval_time(), progress.attempts()),
        (secs(90), 1)
    );
    while !watch.is_up_to_date() {
        tokio::task::yield_now().await;
    }
    let seen = seen.lock().expect("whole");
    let types: Vec<&str> = seen.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(
        types,
        [
            "started",
            "approval_asked",
            "approved",
            "attempt_started",
            "finished"
        ]
    );
    assert_eq!(
        seen[2],
        json!({"type": "approved", "call_id": "door", "tool_name": "door", "elapsed_ms": 90_000.0,
            "waited_ms": 90_000.0, "by": "ada"})
    );
    assert_eq!(seen[3]["elapsed_ms"], 90_000.0);
}

/// A tool that comes after a while.
struct Late(Duration);

impl Arrivals for Late {
    fn arriving(&self, name: &str) -> Option<BoxFuture<'static, Result<(), ToolError>>> {
        let after = self.0;
        (name == "late").then(|| sleep(after).map(Ok).boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn t02_the_time_of_a_call_covers_the_start_of_its_server_wherever_it_was_waited_for() {
    let tools = ToolManager::new();
    tools.expect(Late(secs(20)));
    let executor = ToolExecutor::new(tools.clone());
    // Within the call: it has all of its attempt's time after the tool has come.
    let late = script("late").answers("here").taking(secs(25));
    let adding = async {
        sleep(secs(19)).await;
        tools.add(late.tool()).expect("a tool");
    };
    let (outcome, ()) = tokio::join!(executor.execute(once("late")), adding);
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(outcome.execution_time, secs(45));
    // Before it, by whoever makes it.
    let began = Instant::now();
    sleep(secs(4)).await;
    let gone = Call::new("nothing", json!({})).waiting_since(began);
    let outcome = executor.execute(gone).await;
    assert_eq!(outcome.execution_time, secs(4));
    let began = Instant::now();
    sleep(secs(4)).await;
    let hurried = once("late").deadline(secs(10)).waiting_since(began);
    let outcome = executor.execute(hurried).await;
    assert_eq!(
        (code(&outcome), outcome.execution_time),
        ("TIMEOUT", secs(10))
    );
}

#[tokio::test(start_paused = true)]
async fn t02_a_wait_that_used_up_the_deadline_is_not_waited_for_again() {
    let tools = ToolManager::new();
    tools.expect(Late(secs(60)));
    let executor = ToolExecutor::new(tools);
    let began = Instant::now();
    sleep(secs(4)).await;
    let late = once("late").deadline(secs(4)).waiting_since(began);
    let outcome = executor.execute(late).await;
    assert_eq!(
        (code(&outcome), outcome.execution_time),
        ("TIMEOUT", secs(4))
    );
    assert_eq!(failure(&outcome).effect, Effect::None);
}

#[tokio::test(start_paused = true)]
async fn t03_an_open_breaker_keeps_what_the_tool_last_said_whatever_is_refused_after_it() {
    let ill = script("report");
    let ill = (0..5).fold(ill, |it, _| it.fails(ToolError::new("KeyError: quarter")));
    let executor = executor([ill.answers("fine").tool()]);
    trip(&executor, "report").await;
    for _ in 0..3 {
        let refused = executor.execute(once("report").id("refused")).await;
        assert_eq!(code(&refused), "CIRCUIT_OPEN");
        let message = &failure(&refused).message;
        assert_eq!(
            message,
            "the breaker of 'report' is open after 5 failures in a row, the last one: KeyError: quarter"
        );
    }
    let breaker = executor.tools().breaker("report").expect("it has one");
    let last = breaker.last_error.clone().expect("what it said");
    assert_eq!(last.message, "KeyError: quarter");
    assert_eq!(
        (last.call_id.as_str(), breaker.state),
        ("report", BreakerState::Open)
    );
    let view = serde_json::to_value(&breaker).expect("JSON");
    assert_eq!(view["lastError"]["code"], "TOOL_EXECUTION_ERROR");
    let metrics = executor.tools().metrics("report").expect("its counters");
    assert_eq!(metrics.breaker, Some(breaker));
}

#[tokio::test(start_paused = true)]
async fn t03_what_a_breaker_keeps_is_bounded_without_secrets_and_only_what_it_counts() {
    let long = format!("the key hunter22222 is wrong {}", "x".repeat(10_000));
    let ill = script("t")
        .fails(ToolError::answer("no such customer"))
        .fails(ToolError::new(long));
    let executor = executor([ill.answers("fine").tool()]);
    let args = json!({"password": "hunter22222"});
    let last = || {
        executor
            .tools()
            .breaker("t")
            .expect("it has one")
            .last_error
    };
    executor.execute(call("t", args.clone()).no_retry()).await;
    assert_eq!(last(), None);
    executor.execute(call("t", args.clone()).no_retry()).await;
    let kept = last().expect("what it said").message;
    assert!(
        kept.starts_with("the key [redacted] is wrong") && kept.len() < 500,
        "{kept}"
    );
    // A call that works does not take it away: a person may still want to know.
    executor.execute(call("t", args).no_retry()).await;
    assert_eq!(last().expect("still there").message, kept);
}

#[tokio::test(start_paused = true)]
async fn d20_the_outcome_names_arguments_that_were_dropped() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}},
        "additionalProperties": false});
    let weather = script("weather")
        .schema(schema)
        .answers("rain")
        .answers("rain");
    let executor = executor([weather.tool()]);
    let args = json!({"city": "Oslo", "unit": "C", "lang": "no"});
    let outcome = executor.execute(call("weather", args)).await;
    assert!(outcome.is_success());
    assert_eq!(
        structured(&outcome)["droppedArguments"],
        json!(["unit", "lang"])
    );
    assert_eq!(weather.seen()[0].args, json!({"city": "Oslo"}));
    let outcome = executor
        .execute(call("weather", json!({"city": "Oslo"})))
        .await;
    assert!(structured(&outcome).get("droppedArguments").is_none());
    // They are text from outside.
    let many: serde_json::Map<String, Value> = (0..5000)
        .map(|n| (format!("{n}{}", "y".repeat(100)), json!(1)))
        .collect();
    let outcome = executor.execute(call("weather", Value::Object(many))).await;
    assert_eq!(outcome.dropped_arguments.len(), 100);
}
