//! Tools that come later than their calls, arguments that are prepared, limits that signs of life move.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use steadyhand::{
    Arrivals, Call, Category, Effect, FailureCode, Handler, Invocation, Output, Tool, ToolError,
    ToolExecutor, ToolManager,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

struct Starting(watch::Receiver<Option<Result<(), &'static str>>>);

impl Arrivals for Starting {
    fn arriving(&self, name: &str) -> Option<BoxFuture<'static, Result<(), ToolError>>> {
        if !name.starts_with("home__") {
            return None;
        }
        let mut state = self.0.clone();
        let settled = async move {
            match state.wait_for(Option::is_some).await.map(|state| *state) {
                Ok(Some(Err(reason))) => Err(ToolError::of(Category::Network, reason)
                    .never_started()
                    .declared_final()),
                _ => Ok(()),
            }
        };
        Some(settled.boxed())
    }
}

fn light() -> Tool {
    Tool::function(
        "home__light",
        "Switches a light",
        |args: Value| async move { Ok::<_, ToolError>(args) },
    )
}

#[tokio::test(start_paused = true)]
async fn v16_a_call_waits_for_a_tool_that_is_on_its_way() {
    let tools = ToolManager::new();
    let (settle, state) = watch::channel(None);
    tools.expect(Starting(state));
    let executor = ToolExecutor::new(tools.clone());
    let early = tokio::spawn({
        let executor = executor.clone();
        async move { executor.execute(Call::new("home__light", json!({}))).await }
    });
    let unrelated = executor.execute(Call::new("nothing", json!({}))).await;
    assert_eq!(
        unrelated.failure().map(|failure| failure.code),
        Some(FailureCode::ToolNotFound)
    );
    sleep(Duration::from_secs(3)).await;
    assert!(!early.is_finished());
    tools.add(light()).expect("a tool");
    settle.send_replace(Some(Ok(())));
    assert!(early.await.expect("an outcome").is_success());
}

#[tokio::test(start_paused = true)]
async fn v16_a_tool_that_does_not_come_is_answered_with_the_reason_and_no_effect() {
    let tools = ToolManager::new();
    let (settle, state) = watch::channel(None);
    tools.expect(Starting(state));
    let executor = ToolExecutor::new(tools);
    let started = Instant::now();
    let call = Call::new("home__light", json!({})).deadline(Duration::from_secs(5));
    let outcome = executor.execute(call).await;
    let failure = outcome.failure().expect("a failure");
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::Timeout, Effect::None)
    );
    assert_eq!(started.elapsed(), Duration::from_secs(5));

    settle.send_replace(Some(Err("the server exited with code 1")));
    let keyed = Call::new("home__light", json!({})).idempotency_key("k");
    for call in [Call::new("home__light", json!({})), keyed] {
        let outcome = executor.execute(call).await;
        let failure = outcome.failure().expect("a failure");
        assert_eq!(failure.code, FailureCode::NetworkError);
        assert_eq!(failure.effect, Effect::None);
        assert_eq!(failure.message, "the server exited with code 1");
    }
}

#[tokio::test]
async fn d05_arguments_are_prepared_before_they_are_checked() {
    let schema = json!({"type": "object", "required": ["deviceName"], "additionalProperties": false,
        "properties": {"deviceName": {"type": "string"}}});
    let tool = light().redefined("light", "Switches a light", Some(schema));
    let tool = tool.prepared_by(|args| {
        if let Some(name) = args["device_name"].take().as_str() {
            *args = json!({ "deviceName": name });
        }
    });
    let tools = ToolManager::new();
    tools.add(tool).expect("a tool");
    let call = Call::new("light", json!({"device_name": "Switch One"}));
    let outcome = ToolExecutor::new(tools).execute(call).await;
    assert_eq!(
        outcome.output().map(Output::value),
        Some(&json!({"deviceName": "Switch One"}))
    );
}

/// Works for so many seconds, and says each second that it is alive.
struct Lively(u64);

impl Handler for Lively {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        async move {
            for _ in 0..self.0 {
                sleep(Duration::from_secs(1)).await;
                invocation.still_alive();
            }
            Ok(Output::json("done"))
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn v07_signs_of_life_renew_the_time_limit_up_to_the_deadline() {
    let tools = ToolManager::new();
    for (name, seconds) in [("patient", 10), ("endless", 1_000)] {
        let handler = Arc::new(Lively(seconds));
        let tool = Tool::new(name, "Takes its time", json!({"type": "object"}), handler);
        let tool = tool
            .timeout(Duration::from_secs(3))
            .deadline(Duration::from_secs(20));
        tools.add(tool).expect("a tool");
    }
    let executor = ToolExecutor::new(tools);
    let patient = executor.execute(Call::new("patient", json!({}))).await;
    assert!(patient.is_success(), "{patient:?}");
    let started = Instant::now();
    let endless = executor
        .execute(Call::new("endless", json!({})).no_retry())
        .await;
    assert_eq!(
        endless.failure().map(|failure| failure.code),
        Some(FailureCode::Timeout)
    );
    assert_eq!(started.elapsed(), Duration::from_secs(20));
}
