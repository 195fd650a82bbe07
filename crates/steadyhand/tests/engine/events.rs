//! Watching: observers see what happens, and cannot delay, fail or deadlock a call.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{
    Call, CallContext, Effect, Event, FailureCode, NoArgs, ObserverQueue, Tool, ToolError,
    ToolExecutor, ToolManager, Watch,
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

/// An observer that stands still at the first event it sees until it is let go, and tells what it saw then.
struct StoodStill {
    watch: Watch,
    release: Sender<()>,
    seen: Receiver<Event>,
}

impl StoodStill {
    /// It stands still when this returns: whatever happens now waits in its queue.
    async fn before(executor: &ToolExecutor, queue: ObserverQueue) -> StoodStill {
        let (sender, seen) = channel();
        let (release, gate): (Sender<()>, Receiver<()>) = channel();
        let ends = Mutex::new((sender, gate));
        let watch = executor
            .observe_with_queue(
                move |event: &Event| {
                    let (sender, gate) = &*ends.lock().unwrap();
                    let _ = sender.send(event.clone());
                    // Let go once, it does not stop again.
                    let _ = gate.recv();
                },
                queue,
            )
            .unwrap();
        executor.execute(Call::new("nobody", json!({}))).await;
        let still = StoodStill {
            watch,
            release,
            seen,
        };
        assert_eq!(names(&still.seen, 1), ["started"]);
        still
    }

    /// Everything that was in its queue.
    fn let_go(self) -> Vec<Event> {
        drop(self.release);
        let begun = tokio::time::Instant::now();
        while !self.watch.is_up_to_date() {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
        self.seen.try_iter().collect()
    }
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::Finished { .. })
}

#[tokio::test]
async fn a_queue_is_as_long_as_was_asked_and_its_last_quarter_is_for_ends() {
    let executor = executor([script("t").answers(1).tool()]);
    let queue = ObserverQueue {
        events_max: 40,
        ..ObserverQueue::default()
    };
    let still = StoodStill::before(&executor, queue).await;
    for _ in 0..100 {
        executor.execute(Call::new("t", json!({}))).await;
    }
    // 3 events a call and the end of the first one, of which 40 found room.
    assert_eq!(still.watch.dropped(), 301 - 40);
    let seen = still.let_go();
    assert_eq!(seen.len(), 40);
    assert!(seen[30..].iter().all(is_end), "{seen:?}");
    assert!(seen[..30].iter().filter(|event| !is_end(event)).count() >= 18);
}

#[tokio::test]
async fn a_long_queue_misses_nothing() {
    let executor = executor([script("t").answers(1).tool()]);
    let queue = ObserverQueue {
        events_max: 20_000,
        ..ObserverQueue::default()
    };
    let still = StoodStill::before(&executor, queue).await;
    for _ in 0..3_000 {
        executor.execute(Call::new("t", json!({}))).await;
    }
    assert_eq!(still.watch.dropped(), 0);
    assert_eq!(still.let_go().len(), 9_001);
}

#[tokio::test]
async fn a_queue_holds_no_more_than_so_many_bytes_however_few_the_events() {
    const LARGE: usize = 900_000;
    let executor = executor([script("t").answers(1).tool()]);
    let queue = ObserverQueue {
        events_max: 20_000,
        ..ObserverQueue::default()
    };
    let still = StoodStill::before(&executor, queue).await;
    let numbers = vec![0; LARGE / size_of::<serde_json::Value>()];
    for _ in 0..120 {
        let outcome = executor
            .execute(Call::new("t", json!({"n": numbers})))
            .await;
        assert!(outcome.is_success());
    }
    assert!(still.watch.dropped() > 0);
    executor
        .execute(Call::new("t", json!({"n": "small"})))
        .await;
    let seen = still.let_go();
    let large = seen.iter().filter(|event| match event {
        Event::AttemptStarted { args, .. } | Event::Finished { args, .. } => {
            args.as_ref().is_some_and(|args| args["n"].is_array())
        }
        _ => false,
    });
    let large = large.count();
    assert!(
        (1..=64 * 1024 * 1024 / LARGE + 2).contains(&large),
        "{large}"
    );
    // What is small finds room beside it.
    let last: Vec<&Event> = seen.iter().rev().take(3).collect();
    let Event::Finished { args, .. } = last[0] else {
        panic!("not the end: {:?}", last[0]);
    };
    assert_eq!(args.as_deref(), Some(&json!({"n": "small"})));
    assert!(matches!(last[2], Event::Started { .. }));
}

#[tokio::test]
async fn an_observer_that_gathers_is_told_everything_in_order_once_someone_waits_for_it() {
    let executor = executor([script("t").answers(1).tool()]);
    let (sender, seen) = channel();
    let sender = Mutex::new(sender);
    let queue = ObserverQueue {
        gather: Duration::from_secs(3600),
        ..ObserverQueue::default()
    };
    let watch = executor
        .observe_with_queue(
            move |event: &Event| {
                let _ = sender.lock().unwrap().send(event.clone());
            },
            queue,
        )
        .unwrap();
    for _ in 0..50 {
        executor.execute(Call::new("t", json!({}))).await;
    }
    let begun = tokio::time::Instant::now();
    while !watch.is_up_to_date() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it slept on");
        std::thread::yield_now();
    }
    let told = names(&seen, 150);
    for call in told.chunks(3) {
        assert_eq!(call, ["started", "attempt_started", "finished"]);
    }
    assert_eq!(watch.dropped(), 0);
}

#[tokio::test]
async fn the_end_of_a_call_tells_who_asked_for_those_who_missed_its_start() {
    let executor = executor([script("t").answers(1).tool()]);
    let seen = watched(&executor);
    let call = Call::new("t", json!({}))
        .caller("voice")
        .traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .replay_of("c-0");
    executor.execute(call).await;
    names(&seen, 2);
    let end = next(&seen);
    let json = serde_json::to_value(&end).unwrap();
    let Event::Finished {
        caller,
        traceparent,
        replay_of,
        ..
    } = end
    else {
        panic!("not the end");
    };
    assert_eq!(caller.as_deref(), Some("voice"));
    assert!(traceparent.unwrap().starts_with("00-0af7"));
    assert_eq!(replay_of.as_deref(), Some("c-0"));
    // JSON has it once, at the start.
    assert!(json.get("caller").is_none() && json.get("replay_of").is_none());
}
