//! I12: a call's future may be dropped at every await point; nothing stays behind.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{
    BreakerState, Call, Category, Fallback, Output, Tool, ToolError, ToolExecutor, ToolManager,
};
use tokio::time::sleep;

/// More polls than any of these calls needs.
const POLLS_MAX: usize = 400;

#[test]
fn i12_a_slow_call_dropped_anywhere_leaves_nothing_behind() {
    check(|| {
        script("t")
            .answers(1)
            .taking(Duration::from_millis(50))
            .tool()
    });
}

#[test]
fn i12_a_call_that_is_retried_leaves_nothing_behind() {
    check(|| {
        let flaky = script("t")
            .fails(ToolError::new("once"))
            .taking(Duration::from_millis(20))
            .fails(ToolError::new("twice"))
            .answers(1)
            .taking(Duration::from_millis(20));
        flaky.tool()
    });
}

#[test]
fn i12_a_hanging_call_leaves_nothing_behind() {
    check(|| {
        script("t")
            .hangs()
            .tool()
            .timeout(Duration::from_millis(300))
    });
}

#[test]
fn i12_a_call_with_a_slow_fallback_leaves_nothing_behind() {
    check(|| {
        let fallback = Fallback::function(|_, _| async {
            sleep(Duration::from_millis(50)).await;
            Ok(Output::json(2))
        });
        let broken = script("t").fails(ToolError::of(Category::Authentication, "no"));
        broken.tool().fallback(fallback)
    });
}

#[test]
fn i12_a_call_that_waits_in_the_queue_leaves_nothing_behind() {
    for polls in 0..POLLS_MAX {
        let finished = on_paused_clock(async move {
            let slow = script("t").answers(1).taking(Duration::from_millis(200));
            let executor = executor(slow.tool().limit(1, 4));
            let first = tokio::spawn({
                let executor = executor.clone();
                async move { executor.execute(Call::new("t", json!({}))).await }
            });
            sleep(Duration::from_millis(1)).await;
            let finished = drop_after(&executor, polls).await;
            assert!(first.await.unwrap().is_success());
            nothing_is_left(&executor).await;
            finished
        });
        if finished {
            assert!(polls > 2);
            return;
        }
    }
    panic!("the call never ended");
}

#[test]
fn i12_a_trial_dropped_anywhere_gives_its_slot_to_the_next_call() {
    for polls in 0..POLLS_MAX {
        let finished = on_paused_clock(async move {
            let ill_then_slow = script("t")
                .fails(ToolError::new("ill"))
                .fails(ToolError::new("ill"))
                .answers(1)
                .taking(Duration::from_millis(50));
            let executor = executor(
                ill_then_slow
                    .tool()
                    .no_retry()
                    .breaker(2, Duration::from_secs(5)),
            );
            for _ in 0..2 {
                executor.execute(Call::new("t", json!({}))).await;
            }
            assert_eq!(state(&executor), BreakerState::Open);
            sleep(Duration::from_secs(5)).await;
            let finished = drop_after(&executor, polls).await;
            // Whatever became of the trial: the next call may try, at once.
            let next = executor.execute(Call::new("t", json!({}))).await;
            assert!(next.is_success(), "after {polls} polls: {next:?}");
            assert_eq!(state(&executor), BreakerState::Closed);
            nothing_is_left(&executor).await;
            finished
        });
        if finished {
            assert!(polls > 1);
            return;
        }
    }
    panic!("the trial never ended");
}

#[test]
fn i12_a_call_with_a_key_goes_on_without_its_caller_and_tells_the_next_one() {
    on_paused_clock(async {
        let slow = script("t").answers("paid").taking(Duration::from_secs(1));
        let executor = executor(slow.tool().not_safe_to_repeat());
        let call = || Call::new("t", json!({})).idempotency_key("order 7");
        let mut first: Running<'_> = Box::pin(executor.execute(call()));
        assert!(poll_once(&mut first).await.is_pending());
        drop(first);
        let second = executor.execute(call()).await;
        assert!(second.replayed);
        assert_eq!(second.output().unwrap().value(), "paid");
        assert_eq!(slow.starts(), 1);
        nothing_is_left(&executor).await;
    });
}

/// Polls a call of the tool n times and drops it, for every n until it has ended by itself.
fn check(tool: impl Fn() -> Tool) {
    for polls in 0..POLLS_MAX {
        let finished = on_paused_clock(async {
            let executor = executor(tool());
            let finished = drop_after(&executor, polls).await;
            nothing_is_left(&executor).await;
            finished
        });
        if finished {
            assert!(polls > 1, "it never waited, so there was nothing to drop");
            return;
        }
    }
    panic!("the call never ended");
}

type Running<'a> = Pin<Box<dyn Future<Output = steadyhand::Outcome> + Send + 'a>>;

/// True if the call ended before it was dropped.
async fn drop_after(executor: &ToolExecutor, polls: usize) -> bool {
    let before = executor.tools().metrics("t").unwrap();
    let mut running: Running<'_> = Box::pin(executor.execute(Call::new("t", json!({}))));
    for _ in 0..polls {
        if poll_once(&mut running).await.is_ready() {
            return true;
        }
        sleep(Duration::from_millis(5)).await;
    }
    drop(running);
    let after = executor.tools().metrics("t").unwrap();
    // A future that was never polled is no call yet.
    assert_eq!(
        after.cancelled - before.cancelled,
        u64::from(polls > 0),
        "after {polls} polls"
    );
    false
}

async fn poll_once(running: &mut Running<'_>) -> Poll<steadyhand::Outcome> {
    poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await
}

async fn nothing_is_left(executor: &ToolExecutor) {
    let metrics = executor.tools().metrics("t").unwrap();
    assert_eq!((metrics.in_flight, metrics.queued), (0, 0));
}

fn executor(tool: Tool) -> ToolExecutor {
    let tools = ToolManager::new();
    tools.add(tool).unwrap();
    ToolExecutor::new(tools)
}

fn state(executor: &ToolExecutor) -> BreakerState {
    executor.tools().breaker("t").unwrap().state
}
