//! Mocks, builtins and internal handlers.

use serde_json::{Value, json};
use steadyhand::source::internal::InternalHandlers;
use steadyhand::source::{builtin, definition};
use steadyhand::{Effect, Tool, ToolError};
use tracing::Level;

use crate::logs;
use crate::support::{call, code, executor, failure, flat, ms, run};

fn from_definition(implementation: Value) -> Tool {
    let definition = json!({
        "name": "t",
        "description": "A tool from a definition",
        "schema": {"type": "object", "properties": {"q": {"type": "string"}}},
        "implementation": implementation,
    });
    definition::tool(&definition, &InternalHandlers::new()).expect("a good definition")
}

#[tokio::test(start_paused = true)]
async fn f09_a_mock_answers_at_once_with_its_response_and_logs_its_parameters() {
    let logs = logs::capture();
    let response = json!({"temperature": 21.5, "null": null});
    let tool = from_definition(json!({"type": "mock", "mock_response": response}));
    assert_eq!(tool.kind(), "mock");
    let executor = executor([tool]);
    executor.execute(call("t", json!({}))).await;
    for args in [json!({"q": "a"}), json!({"q": "b", "password": "hunter22"})] {
        let outcome = executor.execute(call("t", args)).await;
        assert_eq!(flat(&outcome)["result"], response);
        assert!(
            outcome.execution_time < ms(10),
            "{:?}",
            outcome.execution_time
        );
    }
    let lines = logs.of(Level::DEBUG, "mock called");
    assert_eq!(lines.len(), 3);
    assert!(lines[1].field("args").contains("\"q\":\"a\""), "{lines:?}");
    assert!(!logs.text().contains("hunter22"));
}

#[tokio::test(start_paused = true)]
async fn f09_a_mock_checks_its_parameters() {
    let tool = from_definition(json!({"type": "mock", "mock_response": 1}));
    assert_eq!(code(&run(tool, json!({"q": 5})).await), "VALIDATION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn f10_a_builtin_is_looked_up_by_its_handler() {
    let tool = from_definition(json!({"type": "builtin", "handler": "echo"}));
    let outcome = run(tool, json!({"q": "x"})).await;
    assert_eq!(flat(&outcome)["result"], json!({"echo": {"q": "x"}}));
}

#[tokio::test(start_paused = true)]
async fn f10_an_absent_builtin_is_a_tool_execution_error_that_is_not_repeated() {
    let tool = from_definition(json!({"type": "builtin", "handler": "telepathy"}));
    let outcome = run(tool, json!({})).await;
    assert_eq!(
        flat(&outcome)["error"],
        "Builtin handler 'telepathy' not found"
    );
    assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR");
    assert_eq!(failure(&outcome).effect, Effect::None);
    assert_eq!((failure(&outcome).retryable, outcome.attempts), (false, 1));
}

#[tokio::test(start_paused = true)]
async fn f10_the_builtins_give_uuids_and_the_time_in_any_zone() {
    let executor = executor(builtin::all());
    let uuids = executor
        .execute(call("uuid", json!({"count": 3, "version": "v7"})))
        .await;
    let uuids = flat(&uuids)["result"]["uuids"].clone();
    let mut texts: Vec<&str> = uuids
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        texts
            .iter()
            .all(|text| text.len() == 36 && text.as_bytes()[14] == b'7'),
        "{texts:?}"
    );
    texts.dedup();
    assert_eq!(texts.len(), 3);
    for (args, datetime, weekday) in [
        (
            json!({"at": "2026-01-31T12:00:00Z"}),
            "2026-01-31T12:00:00+00:00",
            "Saturday",
        ),
        (
            json!({"at": "2026-07-01T23:30:00Z", "timezone": "Europe/Oslo"}),
            "2026-07-02T01:30:00+02:00",
            "Thursday",
        ),
        (
            json!({"at": "2026-03-29T00:30:00Z", "timezone": "Europe/Oslo", "add_seconds": 3600}),
            "2026-03-29T03:30:00+02:00",
            "Sunday",
        ),
    ] {
        let outcome = executor.execute(call("datetime", args)).await;
        assert_eq!(flat(&outcome)["result"]["datetime"], datetime);
        assert_eq!(flat(&outcome)["result"]["weekday"], weekday);
    }
    for args in [
        json!({"timezone": "Mars/Olympus"}),
        json!({"at": "yesterday"}),
    ] {
        let outcome = executor.execute(call("datetime", args)).await;
        assert_eq!((code(&outcome), outcome.attempts), ("VALIDATION_ERROR", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn f12_echo_gives_back_its_parameters() {
    let executor = executor(builtin::all());
    for args in [json!({}), json!({"a": [1, {"b": null}], "æ": "ø"})] {
        let outcome = executor.execute(call("echo", args.clone())).await;
        assert_eq!(flat(&outcome)["result"], json!({"echo": args}));
    }
}

#[tokio::test(start_paused = true)]
async fn f13_an_internal_handler_is_looked_up_when_the_tool_is_called() {
    let handlers = InternalHandlers::new();
    let executor = executor([handlers.tool("find", "Finds", json!({"type": "object"}), "search")]);
    let absent = executor.execute(call("find", json!({}))).await;
    assert_eq!(
        flat(&absent)["error"],
        "Internal handler 'search' not found"
    );
    assert_eq!(code(&absent), "TOOL_EXECUTION_ERROR");
    assert_eq!((failure(&absent).retryable, absent.attempts), (false, 1));
    handlers.register("search", |args: Value| async move {
        Ok::<Value, ToolError>(json!([args]))
    });
    let found = executor.execute(call("find", json!({"q": 1}))).await;
    assert_eq!(flat(&found)["result"], json!([{"q": 1}]));
}
