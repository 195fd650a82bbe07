//! Time limits of attempts and deadlines of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{
    CallContext, Effect, Fallback, Health, Output, Policy, Status, Tool, ToolError, ToolManager,
};
use tokio::time::{Instant, sleep};
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, executor, failure, ms, once, run, run_once, secs, waits,
};

/// Says when it is dropped.
struct Alarm(Arc<AtomicBool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A tool that hangs, and tells when the work it left elsewhere was told to stop.
fn delegating(stopped: tokio::sync::mpsc::UnboundedSender<Instant>) -> Tool {
    let any = json!({"type": "object"});
    Tool::with_schema("t", "d", any, move |cx: CallContext, _: Value| {
        let (token, stopped) = (cx.cancellation().clone(), stopped.clone());
        tokio::spawn(async move {
            token.cancelled().await;
            let _ = stopped.send(Instant::now());
        });
        async { std::future::pending::<Result<(), ToolError>>().await }
    })
}

#[tokio::test(start_paused = true)]
async fn d10_a_call_ends_after_sixty_seconds_and_the_last_attempt_gets_what_is_left() {
    let tool = script("t").hangs();
    let outcome = run(tool.tool(), json!({})).await;
    assert_eq!(waits(&tool), [30_100]);
    assert_eq!(
        (outcome.status(), outcome.execution_time),
        (Status::Timeout, secs(60))
    );
}

#[tokio::test(start_paused = true)]
async fn d10_tool_and_call_can_set_another_deadline() {
    for (tool_deadline, call_deadline, expected) in [
        (None, Some(secs(5)), secs(5)),
        (Some(secs(40)), None, secs(40)),
        (Some(secs(40)), Some(secs(7)), secs(7)),
        (Some(secs(7)), Some(secs(40)), secs(40)),
    ] {
        let mut tool = script("t").hangs().tool();
        if let Some(deadline) = tool_deadline {
            tool = tool.deadline(deadline);
        }
        let mut call = call("t", json!({}));
        call.deadline = call_deadline;
        let outcome = executor([tool]).execute(call).await;
        assert_eq!(outcome.execution_time, expected);
        assert_eq!(outcome.status(), Status::Timeout);
    }
}

#[tokio::test(start_paused = true)]
async fn d10_no_wait_is_begun_that_the_deadline_cannot_pay_for() {
    for (deadline, starts, took) in [(100, 1, 0), (101, 2, 100), (300, 2, 100), (301, 3, 300)] {
        let tool = script("t").fails(ToolError::new("ill"));
        let call = call("t", json!({})).deadline(ms(deadline));
        let outcome = executor([tool.tool()]).execute(call).await;
        assert_eq!(
            (tool.starts(), outcome.execution_time),
            (starts, ms(took)),
            "{deadline}"
        );
        assert_eq!(failure(&outcome).message, "ill");
    }
}

#[tokio::test(start_paused = true)]
async fn d10_no_attempt_starts_when_the_wait_for_it_ended_after_the_deadline() {
    // The timer ticks in milliseconds: a wait of 100.2 ms ends at 101, past a deadline of 100.5.
    let late = ToolError::new("ill").retry_after(std::time::Duration::from_micros(100_200));
    let tool = script("t").fails(late).answers("too late");
    let call = call("t", json!({})).deadline(std::time::Duration::from_micros(100_500));
    let outcome = executor([tool.tool()]).execute(call).await;
    assert_eq!(tool.starts(), 1, "{outcome:?}");
    assert_eq!(failure(&outcome).message, "ill");
}

#[tokio::test(start_paused = true)]
async fn d10_no_attempt_starts_when_its_turn_comes_at_the_deadline() {
    let tool = script("t").answers(1).taking(secs(1));
    let executor = executor([tool.tool().limit(1, 5)]);
    let second = async {
        sleep(ms(1)).await;
        executor.execute(once("t").deadline(ms(999))).await
    };
    let (first, second) = tokio::join!(executor.execute(once("t")), second);
    assert!(first.is_success());
    assert_eq!(
        (second.status(), failure(&second).effect),
        (Status::Timeout, Effect::None)
    );
    assert_eq!((second.attempts, tool.starts()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn d10_waiting_for_a_place_is_bounded_by_the_deadline_and_runs_nothing() {
    let tool = script("t").answers(1).taking(secs(20));
    let executor = executor([tool.tool().limit(1, 5)]);
    let second = async {
        sleep(ms(1)).await;
        executor
            .execute(call("t", json!({})).deadline(secs(2)))
            .await
    };
    let (_, second) = tokio::join!(executor.execute(once("t")), second);
    assert_eq!(
        (second.status(), second.execution_time),
        (Status::Timeout, secs(2))
    );
    assert_eq!(
        (second.attempts, failure(&second).effect),
        (0, Effect::None)
    );
    assert_eq!(failure(&second).health(), Health::Neutral);
    assert_eq!(executor.tools().metrics("t").unwrap().rejected, 1);
}

#[tokio::test(start_paused = true)]
async fn d10_limits_beyond_all_time_are_no_reason_to_panic() {
    let never = std::time::Duration::MAX;
    let fallback = || Fallback::function(|_, _| async { Ok(Output::json("backup")) });
    let ill = || script("t").fails(ToolError::new("ill")).tool().no_retry();
    for (case, tool, call) in [
        (
            "the tool's time limit",
            script("t").tool().timeout(never),
            once("t"),
        ),
        (
            "the call's time limit",
            script("t").tool(),
            once("t").timeout(never),
        ),
        ("a rest", ill().breaker(1, never), once("t")),
        (
            "a retry after",
            script("t")
                .fails(ToolError::new("ill").retry_after(never))
                .tool(),
            call("t", json!({})),
        ),
        (
            "the fallback's time limit",
            ill().fallback(fallback().timeout(never)),
            once("t"),
        ),
        (
            "the tool's deadline",
            script("t").tool().deadline(never),
            once("t"),
        ),
        (
            "the call's deadline",
            script("t").tool(),
            once("t").deadline(never),
        ),
        (
            "all",
            ill().fallback(fallback().timeout(never)),
            once("t").deadline(never).timeout(never),
        ),
    ] {
        let executor = executor([tool]);
        let ended = tokio::spawn(async move { executor.execute(call).await }).await;
        assert!(ended.is_ok(), "{case}: no outcome");
    }
}

#[tokio::test(start_paused = true)]
async fn d10_a_deadline_of_nothing_runs_nothing() {
    let tool = script("t").answers(1);
    let outcome = executor([tool.tool()])
        .execute(once("t").deadline(ms(0)))
        .await;
    assert_eq!((outcome.status(), tool.starts()), (Status::Timeout, 0));
    assert_eq!(failure(&outcome).effect, Effect::None);
}

#[tokio::test(start_paused = true)]
async fn v07_the_limit_is_thirty_seconds_unless_tool_or_call_say_otherwise() {
    for (tool_limit, call_limit, expected) in [
        (None, None, secs(30)),
        (Some(secs(2)), None, secs(2)),
        (None, Some(ms(150)), ms(150)),
        (Some(secs(2)), Some(secs(9)), secs(9)),
    ] {
        let mut tool = script("t").hangs().tool();
        if let Some(limit) = tool_limit {
            tool = tool.timeout(limit);
        }
        let call = steadyhand::Call {
            timeout: call_limit,
            ..once("t")
        };
        let outcome = executor([tool]).execute(call).await;
        assert_eq!(outcome.execution_time, expected);
        assert_eq!(
            (outcome.status(), code(&outcome)),
            (Status::Timeout, "TIMEOUT")
        );
        assert_eq!(failure(&outcome).effect, Effect::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn v07_the_manager_can_set_another_limit_for_all() {
    let policy = Policy {
        timeout: secs(3),
        ..Policy::default()
    };
    let tools = ToolManager::new().with_defaults(policy);
    tools.add(script("t").hangs().tool()).unwrap();
    let outcome = steadyhand::ToolExecutor::new(tools)
        .execute(once("t"))
        .await;
    assert_eq!(outcome.execution_time, secs(3));
}

#[tokio::test(start_paused = true)]
async fn v07_a_tool_that_ends_just_in_time_succeeds() {
    for (takes, status) in [(29_999, Status::Success), (30_001, Status::Timeout)] {
        let outcome = run_once(script("t").answers(1).taking(ms(takes)).tool()).await;
        assert_eq!(outcome.status(), status, "{takes} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn v07_on_expiry_the_work_is_dropped() {
    let dropped = Arc::new(AtomicBool::new(false));
    let went_on = Arc::new(AtomicU32::new(0));
    let (flag, count) = (Arc::clone(&dropped), Arc::clone(&went_on));
    let tool = Tool::with_schema("t", "d", json!({"type": "object"}), move |_: Value| {
        let (alarm, count) = (Alarm(Arc::clone(&flag)), Arc::clone(&count));
        async move {
            let _alarm = alarm;
            tokio::time::sleep(secs(40)).await;
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<(), ToolError>(())
        }
    });
    let outcome = run_once(tool).await;
    assert_eq!(outcome.status(), Status::Timeout);
    assert!(dropped.load(Ordering::Relaxed));
    tokio::time::sleep(secs(100)).await;
    assert_eq!(went_on.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn v07_on_expiry_work_in_other_tasks_is_told_to_stop() {
    let (sender, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let started = Instant::now();
    run_once(delegating(sender)).await;
    assert_eq!(stopped.recv().await.unwrap() - started, secs(30));
}

#[tokio::test(start_paused = true)]
async fn v07_it_is_told_at_once_and_not_when_the_next_attempt_begins() {
    let (sender, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let started = Instant::now();
    run(delegating(sender).timeout(secs(1)), json!({})).await;
    assert_eq!(stopped.recv().await.unwrap() - started, secs(1));
}

#[tokio::test(start_paused = true)]
async fn v07_a_panic_while_the_work_is_dropped_is_contained() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::panic_any(format!("{ON_PURPOSE} in drop"));
            }
        }
    }
    let logs = logs::capture();
    let tool = Tool::with_schema("t", "d", json!({"type": "object"}), |_: Value| {
        let bomb = Bomb;
        async move {
            let _bomb = bomb;
            std::future::pending::<Result<(), ToolError>>().await
        }
    });
    let executor = executor([tool.limit(1, 0)]);
    for _ in 0..2 {
        // Twice: the first must have left its place.
        let outcome = executor.execute(once("t")).await;
        assert_eq!(outcome.status(), Status::Timeout);
    }
    let dropped = tokio::time::timeout(secs(1), executor.execute(once("t"))).await;
    assert!(dropped.is_err(), "the caller gave up");
    let metrics = executor.tools().metrics("t").unwrap();
    assert_eq!(
        (metrics.in_flight, metrics.timeout_count, metrics.cancelled),
        (0, 2, 1)
    );
    let lines = logs.of(Level::WARN, "a tool panicked while it was being dropped");
    assert_eq!(lines.len(), 3);
}
