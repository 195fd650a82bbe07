//! A call is found, run and answered; unknown tools, failures and panics too.

use serde_json::{Value, json};
use steadyhand::source::definition;
use steadyhand::source::internal::InternalHandlers;
use steadyhand::testing::script;
use steadyhand::{Effect, Tool, ToolError};
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, content, executor, failure, flat, ms, once, run, run_once, secs,
};

#[tokio::test(start_paused = true)]
async fn f01_a_valid_call_is_executed_and_gives_the_flat_view() {
    let tool = script("answer").answers(json!({"n": 42})).taking(ms(250));
    let outcome = run(tool.tool(), json!({"any": "thing"})).await;
    let expected = json!({
        "success": true, "result": {"n": 42}, "tool_name": "answer", "execution_time_ms": 250.0
    });
    assert_eq!(flat(&outcome), expected);
    assert_eq!(tool.seen()[0].args, json!({"any": "thing"}));
}

#[tokio::test(start_paused = true)]
async fn f01_each_implementation_type_runs_its_own_way() {
    let internal = InternalHandlers::new();
    internal.register("greet", |args: Value| async move {
        Ok::<Value, ToolError>(json!(format!("hello {}", args["q"])))
    });
    for (kind, implementation, expected) in [
        (
            "mock",
            json!({"type": "mock", "mock_response": [1, 2]}),
            json!([1, 2]),
        ),
        (
            "builtin",
            json!({"type": "builtin", "handler": "echo"}),
            json!({"echo": {"q": "x"}}),
        ),
        (
            "internal",
            json!({"type": "internal", "handler": "greet"}),
            json!("hello \"x\""),
        ),
    ] {
        let definition = json!({"name": "t", "description": "d", "implementation": implementation});
        let tool = definition::tool(&definition, &internal).unwrap();
        assert_eq!(tool.kind(), kind);
        let outcome = run(tool, json!({"q": "x"})).await;
        assert_eq!(flat(&outcome)["result"], expected, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn f02_an_unknown_tool_is_named_and_nothing_else_is_said_in_the_text() {
    let outcome = executor([]).execute(once("nowhere")).await;
    let expected = json!({
        "success": false,
        "error": "Tool 'nowhere' not found",
        "effect": "none",
        "tool_name": "nowhere",
        "execution_time_ms": 0.0,
    });
    assert_eq!(flat(&outcome), expected);
    assert_eq!(code(&outcome), "TOOL_NOT_FOUND");
    assert!(!failure(&outcome).retryable);
    assert_eq!(failure(&outcome).effect, Effect::None);
}

#[tokio::test(start_paused = true)]
async fn f02_near_names_go_into_their_own_field() {
    let tools = ["get_weather", "get_time", "send_mail"];
    let executor = executor(tools.map(|name| script(name).tool()));
    for (asked, suggested) in [
        ("getWeather", "get_weather"),
        ("get_wether", "get_weather"),
        ("GET-TIME", "get_time"),
        ("sendmail", "send_mail"),
    ] {
        let outcome = executor.execute(once(asked)).await;
        assert_eq!(flat(&outcome)["error"], format!("Tool '{asked}' not found"));
        assert_eq!(flat(&outcome)["suggestions"][0], suggested, "{asked}");
    }
    assert_eq!(
        flat(&executor.execute(once("zzz")).await).get("suggestions"),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn f02_no_name_makes_anything_panic() {
    let executor = executor([script("t").tool()]);
    for name in ["'", "\"", "\0", "🔧", "t ", &"x".repeat(10_000)] {
        let outcome = executor.execute(once(name)).await;
        assert_eq!(
            failure(&outcome).message,
            format!("Tool '{name}' not found")
        );
    }
    // No name at all asks for no tool: that is no call.
    for name in ["", " "] {
        let outcome = executor.execute(once(name)).await;
        assert_eq!(code(&outcome), "VALIDATION_ERROR");
    }
}

#[tokio::test(start_paused = true)]
async fn f04_a_failure_is_caught_and_its_message_is_the_error() {
    let outcome = run_once(script("t").fails(ToolError::new("disk on fire")).tool()).await;
    assert_eq!(flat(&outcome)["error"], "disk on fire");
    assert_eq!(flat(&outcome)["success"], false);
    assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn f04_a_panic_is_caught_wherever_the_tool_raises_it() {
    let early = |_: Value| {
        assert!(ON_PURPOSE.is_empty(), "{ON_PURPOSE} before the future");
        async { Ok::<Value, ToolError>(Value::Null) }
    };
    let silent = |_: Value| async {
        std::panic::panic_any(7_u8);
        #[allow(unreachable_code, reason = "gives the block its type")]
        Ok::<Value, ToolError>(Value::Null)
    };
    let any = json!({"type": "object"});
    for (tool, text) in [
        (
            script("t").panics("on purpose in the future").tool(),
            "on purpose in the future",
        ),
        (
            script("t")
                .panics("on purpose later")
                .taking(secs(1))
                .tool(),
            "on purpose later",
        ),
        (
            Tool::with_schema("t", "d", any.clone(), early),
            "on purpose before the future",
        ),
        (Tool::with_schema("t", "d", any, silent), "panic"),
    ] {
        let outcome = run_once(tool).await;
        let error = failure(&outcome);
        assert!(error.message.contains(text), "{error}");
        assert_eq!(error.code.as_str(), "TOOL_EXECUTION_ERROR");
        assert_eq!(error.effect, Effect::Unknown);
        assert_eq!(outcome.attempts, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn v01_a_tool_asked_for_by_name_runs_with_the_arguments_and_its_result_comes_back() {
    let tools = ["a", "b", "c"].map(|name| script(name).answers(format!("I am {name}")));
    let executor = executor(tools.iter().map(|tool| tool.tool()));
    let outcome = executor
        .execute(call("b", json!({"x": [1, "two", null]})))
        .await;
    assert_eq!(outcome.output().unwrap().value(), "I am b");
    assert_eq!(tools.each_ref().map(|tool| tool.starts()), [0, 1, 0]);
    assert_eq!(tools[1].seen()[0].args, json!({"x": [1, "two", null]}));
}

#[tokio::test(start_paused = true)]
async fn v03_an_unknown_tool_is_warned_about_and_the_model_reads_which() {
    let logs = logs::capture();
    let outcome = executor([]).execute(call("teleport", json!({}))).await;
    assert_eq!(
        content(&outcome),
        "Error: Unknown tool \"teleport\"\nIt was not run."
    );
    assert!(outcome.message().is_error);
    assert_eq!(
        logs.only(Level::WARN, "unknown tool").field("tool"),
        "teleport"
    );
}
