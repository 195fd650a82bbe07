//! What all tests here share: an executor over some tools, short calls, views as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{
    BreakerState, Call, Content, Failure, Outcome, Tool, ToolError, ToolExecutor, ToolManager,
};

pub(crate) use crate::quiet::ON_PURPOSE;
use crate::quiet::about_panics_on_purpose;

/// An executor over these tools, none of which may be refused.
pub(crate) fn executor(tools: impl IntoIterator<Item = Tool>) -> ToolExecutor {
    about_panics_on_purpose();
    let manager = ToolManager::new();
    let refused = manager.add_all(tools);
    assert!(refused.is_empty(), "{refused:?}");
    ToolExecutor::new(manager)
}

/// A call whose id is its tool's name.
pub(crate) fn call(name: &str, args: Value) -> Call {
    Call::new(name, args).id(name)
}

/// A call without arguments and without retries.
pub(crate) fn once(name: &str) -> Call {
    call(name, json!({})).no_retry()
}

/// Runs one call of one tool.
pub(crate) async fn run(tool: Tool, args: Value) -> Outcome {
    let name = tool.name().to_owned();
    executor([tool]).execute(call(&name, args)).await
}

/// Runs one call of one tool, once.
pub(crate) async fn run_once(tool: Tool) -> Outcome {
    let name = tool.name().to_owned();
    executor([tool]).execute(once(&name)).await
}

/// The failure of an outcome that must have one.
pub(crate) fn failure(outcome: &Outcome) -> &Failure {
    outcome.failure().expect("the call failed")
}

/// The code of a failure, or none.
pub(crate) fn code(outcome: &Outcome) -> &'static str {
    outcome
        .failure()
        .map_or("", |failure| failure.code.as_str())
}

pub(crate) fn flat(outcome: &Outcome) -> Value {
    serde_json::to_value(outcome.flat()).expect("a view is JSON")
}

pub(crate) fn structured(outcome: &Outcome) -> Value {
    serde_json::to_value(outcome.structured()).expect("a view is JSON")
}

/// What a model reads.
pub(crate) fn content(outcome: &Outcome) -> String {
    match outcome.message().content {
        Content::Text(text) => text,
        Content::Blocks(blocks) => panic!("text was expected, not {blocks:?}"),
    }
}

/// A tool that fails so often, then answers `"fine"`.
pub(crate) fn failing(name: &str, times: usize) -> Script {
    let failing = (0..times).fold(script(name), |script, _| {
        script.fails(ToolError::new("ill"))
    });
    failing.answers("fine")
}

/// Fails five calls in a row, which opens the breaker.
pub(crate) async fn trip(executor: &ToolExecutor, name: &str) {
    for _ in 0..5 {
        executor.execute(once(name)).await;
    }
    assert_eq!(state(executor, name), BreakerState::Open);
}

pub(crate) fn state(executor: &ToolExecutor, name: &str) -> BreakerState {
    executor
        .tools()
        .breaker(name)
        .expect("it has a breaker")
        .state
}

/// The times between the starts of a scripted tool, in milliseconds.
pub(crate) fn waits(script: &Script) -> Vec<u64> {
    let seen = script.seen();
    let apart = |pair: &[steadyhand::testing::Seen]| (pair[1].at - pair[0].at).as_millis() as u64;
    seen.windows(2).map(apart).collect()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A scripted tool that takes what the schema allows.
pub(crate) fn taking(schema: Value) -> Script {
    script("t").schema(schema).answers("ran")
}

pub(crate) fn keyed(key: &str, args: Value) -> Call {
    call("t", args).idempotency_key(key)
}

pub(crate) fn ill() -> Tool {
    script("t").fails(ToolError::new("ill")).tool().no_retry()
}
