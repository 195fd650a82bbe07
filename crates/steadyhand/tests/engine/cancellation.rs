//! Calls that are cancelled: before they start, while they run, between attempts.

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Effect, Status, ToolError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::{call, code, executor, failure, secs};

#[tokio::test(start_paused = true)]
async fn r07_cancellation_is_an_outcome_that_says_whether_the_tool_was_started() {
    let token = CancellationToken::new();
    let tool = script("t").hangs();
    let executor = executor([tool.tool()]);
    let stop = async {
        sleep(secs(3)).await;
        token.cancel();
    };
    let running = executor.execute(call("t", json!({})).cancellation(token.clone()));
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(
        (code(&outcome), outcome.status()),
        ("CANCELLED", Status::Error)
    );
    assert_eq!(outcome.execution_time, secs(3));
    assert_eq!(
        (failure(&outcome).effect, failure(&outcome).retryable),
        (Effect::Unknown, false)
    );
}

#[tokio::test(start_paused = true)]
async fn r07_a_call_cancelled_before_it_starts_runs_nothing() {
    let token = CancellationToken::new();
    token.cancel();
    for tool in [script("t").answers(1), script("t").hangs()] {
        let cancelled = call("t", json!({})).cancellation(token.clone());
        let outcome = executor([tool.tool()]).execute(cancelled).await;
        assert_eq!((code(&outcome), tool.starts()), ("CANCELLED", 0));
        assert_eq!(failure(&outcome).effect, Effect::None);
    }
}

#[tokio::test(start_paused = true)]
async fn r07_cancellation_while_waiting_for_the_next_attempt_ends_the_call_at_once() {
    let token = CancellationToken::new();
    let tool = script("t").fails(ToolError::new("ill").retry_after(secs(20)));
    let executor = executor([tool.tool()]);
    let stop = async {
        sleep(secs(2)).await;
        token.cancel();
    };
    let running = executor.execute(call("t", json!({})).cancellation(token.clone()));
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(
        (code(&outcome), outcome.execution_time),
        ("CANCELLED", secs(2))
    );
    assert_eq!((failure(&outcome).effect, tool.starts()), (Effect::Done, 1));
}
