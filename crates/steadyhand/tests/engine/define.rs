//! Defining tools in Rust: by attribute, as functions with context and state, as closures, by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadyhand::testing::script;
use steadyhand::{
    CallContext, Category, Effect, Handler, Invocation, NoArgs, Output, State, Status, Tool,
    ToolError, ToolExecutor, ToolManager, tool,
};
use tokio::time::Instant;

use crate::support::{ON_PURPOSE, call, code, content, executor, failure, flat, once, run, secs};

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number
    a: i64,
    b: i64,
    /// Written by a caller who is in doubt
    #[serde(default)]
    note: Option<String>,
}

/// Adds two numbers
///
/// and says so.
#[tool]
async fn sum(args: Sum) -> Result<i64, ToolError> {
    let _ = args.note;
    args.a
        .checked_add(args.b)
        .ok_or_else(|| ToolError::answer("too large"))
}

#[derive(Clone)]
struct Greeting(&'static str);

#[derive(Clone)]
struct Counter(Arc<AtomicU32>);

#[derive(Serialize)]
struct Told {
    greeting: &'static str,
    call_id: String,
    tool_name: String,
    attempt: u32,
    has_key: bool,
    until_s: u64,
    deadline_s: u64,
}

/// Says who is called
#[tool(name = "who-is-called")]
async fn tell(
    cx: CallContext,
    State(greeting): State<Greeting>,
    State(counter): State<Counter>,
    _: NoArgs,
) -> Result<Told, ToolError> {
    counter.0.fetch_add(1, Ordering::Relaxed);
    if cx.attempt() == 1 {
        return Err(ToolError::of(Category::Network, "first attempt"));
    }
    let now = Instant::now();
    Ok(Told {
        greeting: greeting.0,
        call_id: cx.call_id().to_owned(),
        tool_name: cx.tool_name().to_owned(),
        attempt: cx.attempt(),
        has_key: !cx.idempotency_key().is_empty(),
        until_s: (cx.until() - now).as_secs(),
        deadline_s: (cx.deadline() - now).as_millis().div_ceil(1000) as u64,
    })
}

mod elsewhere {
    /// Is defined in another module
    #[steadyhand::tool]
    pub(crate) async fn visible(_: steadyhand::NoArgs) -> Result<&'static str, std::io::Error> {
        Ok("seen")
    }
}

#[tokio::test(start_paused = true)]
async fn the_attribute_makes_a_tool_with_name_description_and_schema_of_the_function() {
    let tool = sum::tool();
    assert_eq!((tool.name(), tool.kind()), ("sum", "function"));
    assert_eq!(tool.description(), "Adds two numbers\n\nand says so.");
    let schema = tool.schema();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["a", "b"]));
    assert_eq!(schema["properties"]["a"]["description"], "The first number");
    assert_eq!(schema["properties"]["a"]["type"], "integer");
    let outcome = run(tool, json!({"a": 1, "b": 2.0})).await;
    assert_eq!(outcome.output().unwrap().value(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_function_stays_callable() {
    let args = Sum {
        a: 20,
        b: 22,
        note: None,
    };
    assert_eq!(sum(args).await.unwrap(), 42);
    assert_eq!(elsewhere::visible(NoArgs {}).await.unwrap(), "seen");
    let outcome = run(elsewhere::visible::tool(), json!({})).await;
    assert_eq!(content(&outcome), "seen");
}

#[tokio::test(start_paused = true)]
async fn context_and_state_reach_the_function_and_do_not_show_in_the_schema() {
    let counter = Counter(Arc::default());
    let tools = ToolManager::new()
        .with_state(Greeting("hello"))
        .with_state(counter.clone());
    tools.add(tell::tool()).unwrap();
    let schema = tools.find("who-is-called").unwrap().schema().to_string();
    for word in ["Context", "cx", "State", "greeting", "counter"] {
        assert!(!schema.contains(word), "{word} in {schema}");
    }
    let outcome = ToolExecutor::new(tools)
        .execute(call("who-is-called", json!({})).id("c-7"))
        .await;
    let expected = json!({
        "greeting": "hello", "call_id": "c-7", "tool_name": "who-is-called", "attempt": 2,
        "has_key": true, "until_s": 30, "deadline_s": 60,
    });
    assert_eq!(flat(&outcome)["result"], expected);
    assert_eq!(counter.0.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_context_can_be_made_for_a_test() {
    let greeting = State(Greeting("hi"));
    let counter = State(Counter(Arc::default()));
    let refused = tell(CallContext::for_test(), greeting, counter, NoArgs {}).await;
    assert_eq!(refused.err().unwrap().category(), Category::Network);
}

#[test]
fn missing_state_is_refused_when_the_tool_is_added_and_its_type_is_named() {
    let tools = ToolManager::new().with_state(Greeting("hello"));
    let refused = tools.add(tell::tool()).unwrap_err();
    assert_eq!(refused.name, "who-is-called");
    assert!(
        refused.fault.contains("Counter") && !refused.fault.contains("Greeting"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_closure_can_be_a_tool_and_keep_what_it_captured() {
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let tool = Tool::function("double", "Doubles a", move |args: Sum| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<i64, ToolError>(args.a * 2) }
    });
    let executor = executor([tool]);
    for a in 0..3 {
        let outcome = executor
            .execute(call("double", json!({"a": a, "b": 0})))
            .await;
        assert_eq!(outcome.output().unwrap().value(), a * 2);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_schema_can_be_written_by_hand_for_json_and_for_types() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let raw = |args: Value| async move { Ok::<Value, ToolError>(args) };
    let typed = |args: Sum| async move { Ok::<i64, ToolError>(args.a) };
    let outcome = run(
        Tool::with_schema("t", "d", schema.clone(), raw),
        json!({"a": 1, "z": 2}),
    )
    .await;
    assert_eq!(outcome.output().unwrap().value(), &json!({"a": 1, "z": 2}));
    // The schema lets through what the type does not take: still bad arguments, said before it runs.
    let outcome = run(Tool::with_schema("t", "d", schema, typed), json!({"a": 1})).await;
    assert_eq!(
        (code(&outcome), failure(&outcome).effect),
        ("VALIDATION_ERROR", Effect::None)
    );
    assert!(
        failure(&outcome).message.contains('b'),
        "{}",
        failure(&outcome)
    );
}

#[tokio::test(start_paused = true)]
async fn errors_of_any_type_and_outputs_of_any_type_will_do() {
    let parse = |_: NoArgs| async { "x".parse::<i32>() };
    let outcome = run(Tool::function("t", "d", parse).no_retry(), json!({})).await;
    assert_eq!(failure(&outcome).message, "invalid digit found in string");
    let own = |_: NoArgs| async {
        Ok::<Output, ToolError>(Output::text_with_artifact("for the model", json!([1])))
    };
    let outcome = run(Tool::function("t", "d", own), json!({})).await;
    assert_eq!(content(&outcome), "for the model");
    assert_eq!(outcome.message().artifact, Some(json!([1])));
}

#[tokio::test(start_paused = true)]
async fn a_blocking_function_runs_on_a_thread_of_its_own() {
    let here = std::thread::current().id();
    let tool = Tool::blocking("t", "Blocks", move |args: Sum| {
        Ok::<Value, ToolError>(json!([
            args.a + args.b,
            std::thread::current().id() == here
        ]))
    });
    let outcome = run(tool, json!({"a": 1, "b": 2})).await;
    assert_eq!(outcome.output().unwrap().value(), &json!([3, false]));
}

#[tokio::test(start_paused = true)]
async fn a_blocking_function_that_fails_or_panics_gives_an_outcome() {
    let tool = Tool::blocking("t", "Blocks", |args: Sum| {
        if args.a == 0 {
            std::panic::panic_any(format!("{ON_PURPOSE} on a thread"));
        }
        Err::<(), ToolError>(ToolError::answer("no"))
    });
    let executor = executor([tool.no_retry()]);
    for (a, text) in [(0, "on purpose on a thread"), (1, "no")] {
        let outcome = executor.execute(call("t", json!({"a": a, "b": 0}))).await;
        assert!(
            failure(&outcome).message.contains(text),
            "{}",
            failure(&outcome)
        );
    }
}

/// A handler written by hand, as sources write them.
struct ByHand;

impl Handler for ByHand {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { Ok(Output::json(invocation.args["q"].clone())) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_be_written_by_hand() {
    let tool = Tool::new("t", "d", json!({"type": "object"}), Arc::new(ByHand)).of_kind("http");
    assert_eq!(tool.kind(), "http");
    assert_eq!(
        run(tool, json!({"q": "x"})).await.output().unwrap().value(),
        "x"
    );
}

#[test]
fn policies_set_on_a_tool_override_the_managers_and_leave_the_rest() {
    let tools = ToolManager::new();
    let strict = sum::tool()
        .timeout(secs(5))
        .limit(3, 4)
        .breaker(2, secs(9))
        .not_safe_to_repeat();
    tools.add(strict).unwrap();
    let policy = tools.policy("sum").unwrap();
    assert_eq!((policy.timeout, policy.deadline), (secs(5), secs(60)));
    assert_eq!((policy.limit.concurrent, policy.limit.queue), (3, 4));
    assert_eq!(
        policy
            .breaker
            .map(|breaker| (breaker.failures, breaker.cooldown_ms)),
        Some((2, 9_000))
    );
    assert!(!policy.safe_to_repeat && policy.retry.attempts == 4);
    assert!(tools.policy("nowhere").is_none());
}

#[tokio::test(start_paused = true)]
async fn scripted_tools_drip_as_slowly_as_they_are_told() {
    let tool = script("t").drips(10, secs(1), "done");
    let executor = executor([tool.tool()]);
    let outcome = executor.execute(once("t")).await;
    assert_eq!(
        (outcome.status(), outcome.execution_time),
        (Status::Success, secs(10))
    );
    let outcome = executor.execute(once("t").timeout(secs(9))).await;
    assert_eq!(
        (outcome.status(), tool.starts(), tool.ends()),
        (Status::Timeout, 2, 1)
    );
}
