//! How many attempts run at once, how many wait, and who is refused.

use std::sync::{Arc, Condvar, Mutex};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Effect, Fallback, Outcome, Output, Tool, ToolError};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{call, code, executor, failure, ms, once, secs};

#[tokio::test(start_paused = true)]
async fn d18_256_run_at_once_1024_wait_and_one_more_is_refused() {
    let tool = script("t").answers(1).taking(secs(1));
    let executor = executor([tool.tool()]);
    let started = Instant::now();
    let calls = vec![call("t", json!({})).deadline(secs(600)); 256 + 1024 + 1];
    let outcomes = executor.execute_batch(calls).await;
    let refused: Vec<usize> = (0..outcomes.len())
        .filter(|place| !outcomes[*place].is_success())
        .collect();
    assert_eq!(refused, [1280]);
    assert_eq!(
        (code(&outcomes[1280]), outcomes[1280].execution_time),
        ("OVERLOADED", ms(0))
    );
    assert_eq!(failure(&outcomes[1280]).effect, Effect::None);
    for second in 0..5 {
        let at = started + secs(second);
        assert_eq!(
            tool.seen().iter().filter(|seen| seen.at == at).count(),
            256,
            "{second}"
        );
    }
    assert_eq!(executor.tools().metrics("t").unwrap().rejected, 1);
}

#[tokio::test(start_paused = true)]
async fn d18_a_place_is_given_back_while_a_call_waits_for_its_next_attempt() {
    let limited = ToolError::new("later").retry_after(secs(10));
    let tool = script("t").fails(limited).answers(1);
    let executor = executor([tool.tool().limit(1, 0)]);
    let second = async {
        sleep(secs(1)).await;
        executor.execute(once("t")).await
    };
    let (first, second) = tokio::join!(executor.execute(call("t", json!({}))), second);
    assert!(first.is_success() && second.is_success());
}

#[tokio::test(start_paused = true)]
async fn d18_a_call_that_leaves_the_queue_leaves_no_trace() {
    let executor = executor([script("t").answers(1).taking(secs(5)).tool().limit(1, 1)]);
    let second = async {
        sleep(ms(1)).await;
        assert!(timeout(secs(1), executor.execute(once("t"))).await.is_err());
        let metrics = executor.tools().metrics("t").unwrap();
        assert_eq!(
            (metrics.queued, metrics.in_flight, metrics.cancelled),
            (0, 1, 1)
        );
        executor.execute(once("t")).await
    };
    let (first, third) = tokio::join!(executor.execute(once("t")), second);
    assert!(first.is_success() && third.is_success());
}

#[tokio::test]
async fn d18_a_batch_of_blocking_calls_runs_concurrently_too() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let wait = Arc::clone(&gate);
    let tool = Tool::blocking("t", "Waits until the gate is open", move |_: Nothing| {
        let (open, bell) = &*wait;
        let open = open.lock().unwrap();
        drop(bell.wait_while(open, |open| !*open).unwrap());
        Ok::<(), ToolError>(())
    });
    let executor = executor([tool.no_retry()]);
    // The batch is polled first: all its calls are started or refused before the gate opens.
    let open = async {
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    };
    let (outcomes, ()) = tokio::join!(executor.execute_batch(vec![once("t"); 100]), open);
    let refused = outcomes
        .iter()
        .filter(|outcome| !outcome.is_success())
        .count();
    assert_eq!(
        refused,
        0,
        "{:?}",
        outcomes.iter().find_map(Outcome::failure)
    );
}

#[tokio::test(start_paused = true)]
async fn d18_a_fallback_holds_no_place() {
    let slow = Fallback::function(|_, _| async {
        sleep(secs(4)).await;
        Ok(Output::json("backup"))
    });
    let tool = script("t").fails(ToolError::answer("no")).answers(1);
    let executor = executor([tool.tool().limit(1, 0).fallback(slow)]);
    let second = async {
        sleep(secs(1)).await;
        executor.execute(once("t")).await
    };
    let (first, second) = tokio::join!(executor.execute(once("t")), second);
    assert!(first.fallback.is_some() && second.is_success());
}
