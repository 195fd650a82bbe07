//! Calls with the same key happen once.

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Effect, Outcome, Status, ToolError};
use tokio::time::{sleep, timeout};

use crate::support::{call, code, executor, failure, keyed, ms, secs};

#[tokio::test(start_paused = true)]
async fn r07_a_repeated_key_joins_the_call_that_runs() {
    let tool = script("t").answers("paid").taking(secs(2));
    let executor = executor([tool.tool()]);
    let second = async {
        sleep(ms(500)).await;
        executor
            .execute(keyed("k", json!({"b": 2, "a": 1})).id("second"))
            .await
    };
    let first = executor.execute(keyed("k", json!({"a": 1, "b": 2})).id("first"));
    let (first, second) = tokio::join!(first, second);
    assert_eq!(tool.starts(), 1);
    let seen = |outcome: &Outcome| {
        (
            outcome.call_id.clone(),
            outcome.replayed,
            outcome.execution_time,
        )
    };
    assert_eq!(seen(&first), ("first".to_owned(), false, secs(2)));
    assert_eq!(seen(&second), ("second".to_owned(), true, ms(1500)));
    assert_eq!(first.result, second.result);
    assert_eq!(tool.seen()[0].idempotency_key, "k");
    let metrics = executor.tools().metrics("t").unwrap();
    assert_eq!((metrics.total_executions, metrics.joined), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn r07_a_repeated_key_gets_the_stored_outcome_of_success_and_of_failure() {
    let tool = script("t")
        .answers("paid")
        .fails(ToolError::new("who knows"));
    let executor = executor([tool.tool().no_retry()]);
    for (key, success) in [("good", true), ("bad", false)] {
        let first = executor.execute(keyed(key, json!({}))).await;
        let again = executor.execute(keyed(key, json!({}))).await;
        assert_eq!(
            (first.is_success(), first.replayed, again.replayed),
            (success, false, true)
        );
        assert_eq!(first.result, again.result);
    }
    assert_eq!(tool.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn r07_a_repeated_key_with_other_arguments_is_refused() {
    let tool = script("t").answers("paid");
    let executor = executor([tool.tool(), script("other").tool()]);
    executor.execute(keyed("k", json!({"amount": 1}))).await;
    for call in [
        keyed("k", json!({"amount": 2})),
        call("other", json!({"amount": 1})).idempotency_key("k"),
    ] {
        let outcome = executor.execute(call).await;
        assert_eq!(code(&outcome), "IDEMPOTENCY_CONFLICT");
        assert_eq!(
            (failure(&outcome).retryable, failure(&outcome).effect),
            (false, Effect::None)
        );
    }
    assert_eq!(tool.starts(), 1);
    assert_eq!(
        executor.tools().metrics("other").unwrap().total_executions,
        0
    );
}

#[tokio::test(start_paused = true)]
async fn r07_a_key_whose_call_had_no_effect_can_be_used_again() {
    let tool = script("t")
        .fails(ToolError::new("no").never_started())
        .answers("now");
    let executor = executor([tool.tool().no_retry()]);
    assert!(!executor.execute(keyed("k", json!({}))).await.is_success());
    let again = executor.execute(keyed("k", json!({}))).await;
    assert_eq!((again.is_success(), again.replayed), (true, false));
}

#[tokio::test(start_paused = true)]
async fn r07_a_call_with_a_key_goes_on_when_its_caller_leaves() {
    let tool = script("t").answers("paid").taking(secs(5));
    let executor = executor([tool.tool()]);
    let left = timeout(secs(1), executor.execute(keyed("k", json!({})))).await;
    assert!(left.is_err(), "the caller left");
    let back = executor.execute(keyed("k", json!({}))).await;
    assert_eq!(
        (back.is_success(), back.replayed, tool.starts()),
        (true, true, 1)
    );
    assert_eq!(back.execution_time, secs(4));
}

#[tokio::test(start_paused = true)]
async fn r07_who_joins_is_bound_by_his_own_patience() {
    let tool = script("t").answers("paid").taking(secs(5));
    let executor = executor([tool.tool()]);
    let hasty = async {
        sleep(secs(1)).await;
        executor
            .execute(keyed("k", json!({})).deadline(secs(1)))
            .await
    };
    let (first, hasty) = tokio::join!(executor.execute(keyed("k", json!({}))), hasty);
    assert!(first.is_success());
    assert_eq!(
        (hasty.status(), hasty.execution_time),
        (Status::Timeout, secs(1))
    );
    assert_eq!(failure(&hasty).effect, Effect::Unknown);
}

#[tokio::test(start_paused = true)]
async fn r07_all_attempts_of_a_call_share_a_key_and_no_other_call_has_it() {
    let tool = script("t").fails(ToolError::new("ill"));
    let executor = executor([tool.tool()]);
    // The same id, as models send it.
    executor.execute_batch(vec![call("t", json!({})); 2]).await;
    let mut keys: Vec<String> = tool
        .seen()
        .into_iter()
        .map(|seen| seen.idempotency_key)
        .collect();
    assert_eq!(keys.len(), 8);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 2);
}
