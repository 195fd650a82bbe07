//! Batches: one outcome per call, in the order of the calls.

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Call, Effect, FailureCode, Outcome, Status, ToolError, ToolExecutor};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::{ON_PURPOSE, code, executor, keyed, ms, once};

#[tokio::test(start_paused = true)]
async fn r10_a_call_that_names_no_tool_or_is_none_at_all_fails_alone_and_is_not_run() {
    let executor = executor([script("works").answers("fine").tool()]);
    let calls = vec![
        Call::new("works", json!({})),
        Call::new("", json!({})).id("empty"),
        Call::new(" \n", json!({})).idempotency_key("blank"),
        Call::malformed("5", "works", "it is a number, and must be an object"),
        Call::new("works", json!({})),
    ];
    let outcomes = executor.execute_batch(calls).await;
    assert_eq!(outcomes[0].status(), Status::Success);
    assert_eq!(outcomes[4].status(), Status::Success);
    let words = ["it names no tool", "it names no tool", "it is a number"];
    for (outcome, words) in outcomes[1..4].iter().zip(words) {
        let failure = outcome.failure().expect("a failure");
        assert_eq!(failure.code, FailureCode::ValidationError);
        assert_eq!(failure.effect, Effect::None);
        assert!(!failure.retryable);
        assert!(failure.message.contains(words), "{}", failure.message);
        assert_eq!(outcome.attempts, 0);
    }
    assert_eq!(outcomes[1].call_id, "empty");
}

#[tokio::test(start_paused = true)]
async fn r10_a_batch_gives_one_outcome_per_call_in_call_order_whatever_happens() {
    let token = CancellationToken::new();
    let tools = [
        script("works").answers("fine").taking(ms(300)).tool(),
        script("fails").fails(ToolError::new("no")).tool(),
        script("panics").panics(ON_PURPOSE).tool(),
        script("hangs").hangs().tool(),
        script("strict")
            .schema(json!({"type": "object", "required": ["a"]}))
            .tool(),
    ];
    let executor = executor(tools);
    let calls = [
        ("hangs", "1", "TIMEOUT"),
        ("works", "2", ""),
        ("nowhere", "3", "TOOL_NOT_FOUND"),
        ("panics", "4", "TOOL_EXECUTION_ERROR"),
        ("strict", "same", "VALIDATION_ERROR"),
        ("works", "same", ""),
        ("fails", "same", "TOOL_EXECUTION_ERROR"),
        ("hangs", "8", "CANCELLED"),
    ];
    let batch = calls.map(|(name, id, expected)| {
        let call = Call::new(name, json!({})).id(id);
        match expected {
            "CANCELLED" => call.cancellation(token.clone()),
            _ => call,
        }
    });
    let stop = async {
        sleep(ms(50)).await;
        token.cancel();
    };
    let (outcomes, ()) = tokio::join!(executor.execute_batch(batch.to_vec()), stop);
    let ended: Vec<(&str, &str, &str)> = outcomes
        .iter()
        .map(|outcome| {
            (
                outcome.tool_name.as_str(),
                outcome.call_id.as_str(),
                code(outcome),
            )
        })
        .collect();
    assert_eq!(ended, calls);
    assert!(executor.execute_batch(Vec::new()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r10_all_calls_of_a_batch_run_at_the_same_time() {
    let executor = executor([script("t").answers(1).taking(ms(200)).tool()]);
    let started = tokio::time::Instant::now();
    let outcomes = executor.execute_batch(vec![once("t"); 200]).await;
    assert!(outcomes.iter().all(Outcome::is_success));
    assert_eq!(started.elapsed(), ms(200));
}

#[tokio::test(start_paused = true)]
async fn r10_calls_of_a_batch_with_one_key_run_once() {
    let tool = script("t").answers(1).taking(ms(200));
    let executor = executor([tool.tool()]);
    let outcomes = executor.execute_batch(vec![keyed("k", json!({})); 5]).await;
    assert!(outcomes.iter().all(Outcome::is_success));
    assert_eq!((outcomes.len(), tool.starts()), (5, 1));
}

/// The executor can be shared by threads and tasks.
#[test]
fn r10_an_executor_can_go_anywhere() {
    fn anywhere<T: Send + Sync + Clone + 'static>() {}
    anywhere::<ToolExecutor>();
}
