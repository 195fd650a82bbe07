//! A failure that was told before is told as it was: for whoever answers from a recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use steadyhand::testing::on_paused_clock;
use steadyhand::{Call, FailureCode, Output, Status, Tool, ToolError, ToolExecutor, ToolManager};

/// A failure as an open breaker gives it: no tool can say this by itself.
async fn circuit_open() -> steadyhand::Failure {
    let manager = ToolManager::new();
    let ill = Tool::function("ill", "Always fails", |_: serde_json::Value| async {
        Err::<Output, _>(ToolError::new("it broke"))
    });
    manager
        .add(
            ill.no_retry()
                .breaker(1, std::time::Duration::from_secs(60)),
        )
        .unwrap();
    let executor = ToolExecutor::new(manager);
    executor.execute(Call::new("ill", json!({}))).await;
    let outcome = executor.execute(Call::new("ill", json!({}))).await;
    outcome.failure().unwrap().clone()
}

#[test]
fn it_keeps_code_words_and_fallback_and_is_neither_repeated_nor_held_against_the_tool() {
    on_paused_clock(async {
        let failure = circuit_open().await;
        assert_eq!(failure.code, FailureCode::CircuitOpen);
        let (told, starts) = (failure.clone(), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&starts);
        let tool = Tool::function("told", "Tells it again", move |_: serde_json::Value| {
            counted.fetch_add(1, Ordering::Relaxed);
            let error = ToolError::told_again(told.clone(), Some(Output::json("instead")));
            async { Err::<Output, _>(error) }
        });
        let manager = ToolManager::new();
        let tool = tool
            .breaker(1, std::time::Duration::from_secs(60))
            .fallback_value(json!("of the policy"));
        manager.add(tool).unwrap();
        let executor = ToolExecutor::new(manager);
        for round in 1..=3 {
            let outcome = executor.execute(Call::new("told", json!({}))).await;
            assert_eq!(outcome.status(), Status::Error);
            assert_eq!(json!(outcome.failure()), json!(failure));
            assert_eq!(outcome.fallback.as_deref(), Some(&Output::json("instead")));
            assert_eq!(
                (outcome.attempts, starts.load(Ordering::Relaxed)),
                (1, round)
            );
        }
    });
}
