//! Watching: observers see what happens, and cannot delay, fail or deadlock a call.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{
    Call, CallContext, Effect, Event, FailureCode, NoArgs, Tool, ToolError, ToolExecutor,
    ToolManager,
};

use crate::quiet::{ON_PURPOSE, about_panics_on_purpose};

fn executor(tools: impl IntoIterator<Item = Tool>) -> ToolExecutor {
    let manager = ToolManager::new();
    assert_eq!(manager.add_all(tools), []);
    ToolExecutor::new(manager)
}

/// What an observer saw, in order.
fn watched(executor: &ToolExecutor) -> Receiver<Event> {
    let (sender, seen) = channel();
    let sender = Mutex::new(sender);
    executor
        .observe(move |event: &Event| {
            let _ = sender.lock().unwrap().send(event.clone());
        })
        .unwrap();
    seen
}

/// Observers are threads: what they see comes soon, in real time.
fn next(seen: &Receiver<Event>) -> Event {
    seen.recv_timeout(Duration::from_secs(30))
        .expect("an event")
}

fn names(seen: &Receiver<Event>, until: usize) -> Vec<String> {
    (0..until)
        .map(|_| {
            let json = serde_json::to_value(next(seen)).unwrap();
            json["type"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_a_call_from_its_start_to_its_one_end() {
    let flaky = script("t").fails(ToolError::new("not yet")).answers(1);
    let executor = executor([flaky.tool()]);
    let seen = watched(&executor);
    let call = Call::new("t", json!({"password": "tiger-lily", "n": 1}));
    executor.execute(call).await;
    assert_eq!(
        names(&seen, 4),
        [
            "started",
            "attempt_started",
            "attempt_failed",
            "attempt_started"
        ]
    );
    let Event::Finished { args, outcome, .. } = next(&seen) else {
        panic!("not the end");
    };
    assert_eq!(
        args.as_deref(),
        Some(&json!({"password": "[redacted]", "n": 1}))
    );
    assert!(outcome.is_success());
    assert_eq!(outcome.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn i01_a_dropped_call_is_told_as_cancelled_with_its_effect() {
    let executor = executor([script("t").hangs().tool()]);
    let seen = watched(&executor);
    let call = executor.execute(Call::new("t", json!({})));
    let dropped = tokio::time::timeout(Duration::from_secs(1), call).await;
    assert!(dropped.is_err());
    assert_eq!(names(&seen, 2), ["started", "attempt_started"]);
    let Event::Finished { outcome, .. } = next(&seen) else {
        panic!("not the end");
    };
    let failure = outcome.failure().unwrap();
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::Cancelled, Effect::Unknown)
    );
}

#[tokio::test]
async fn whoever_calls_is_told_progress_in_its_order_before_the_outcome() {
    let reports = Tool::function(
        "reports",
        "Reports",
        |cx: CallContext, _: NoArgs| async move {
            for step in 1..=3 {
                cx.progress(f64::from(step), None, "on its way");
            }
            Ok::<_, ToolError>(1)
        },
    );
    let executor = executor([reports]);
    let told: Arc<Mutex<Vec<f64>>> = Arc::default();
    let keep = Arc::clone(&told);
    let call = Call::new("reports", json!({})).on_progress(move |done, total, message| {
        assert_eq!((total, message), (None, "on its way"));
        keep.lock().expect("no test panics here").push(done);
    });
    executor.execute(call).await;
    // No wait: it was told before the outcome was there.
    assert_eq!(*told.lock().expect("whole"), [1.0, 2.0, 3.0]);
}

#[tokio::test]
async fn progress_and_breaker_changes_are_told() {
    let reports = Tool::function(
        "reports",
        "Reports",
        |cx: CallContext, _: NoArgs| async move {
            cx.progress(1.0, Some(4.0), "a quarter");
            Ok::<_, ToolError>(1)
        },
    );
    let ill = script("ill").fails(ToolError::new("ill")).tool();
    let executor = executor([reports, ill.no_retry().breaker(1, Duration::from_secs(60))]);
    let seen = watched(&executor);
    executor.execute(Call::new("reports", json!({}))).await;
    assert_eq!(
        names(&seen, 4),
        ["started", "attempt_started", "progress", "finished"]
    );
    executor.execute(Call::new("ill", json!({}))).await;
    executor.tools().reset_breaker("ill");
    let told = names(&seen, 6);
    assert_eq!(
        told,
        [
            "started",
            "attempt_started",
            "attempt_failed",
            "breaker_changed",
            "finished",
            "breaker_changed"
        ]
    );
}

#[tokio::test]
async fn i16_i18_an_observer_that_panics_calls_back_or_blocks_harms_nobody() {
    about_panics_on_purpose();
    let executor = executor([script("t").answers(1).tool()]);
    executor
        .observe(|_: &Event| panic!("{ON_PURPOSE}: in an observer"))
        .unwrap();
    let tools = executor.tools().clone();
    executor
        .observe(move |_: &Event| {
            tools.metrics("t");
            tools.reset_breaker("t");
            tools.add(script("other").answers(1).tool()).unwrap();
        })
        .unwrap();
    let (release, gate): (Sender<()>, Receiver<()>) = channel();
    let gate = Arc::new(Mutex::new(gate));
    let blocked = executor
        .observe(move |_: &Event| {
            let _ = gate.lock().unwrap().recv();
        })
        .unwrap();
    // Far more than any queue holds: the blocked one loses events, the calls lose nothing.
    for _ in 0..3_000 {
        assert!(
            executor
                .execute(Call::new("t", json!({})))
                .await
                .is_success()
        );
    }
    assert!(blocked.dropped() > 0);
    drop(release);
}
