//! What answers when the tool cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Category, Fallback, Output, Status, ToolError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, content, executor, failure, flat, ill, ms, once, run, secs, structured,
    trip,
};

#[tokio::test(start_paused = true)]
async fn r11_the_outcome_stays_a_failure_and_carries_the_fallbacks_answer_in_all_views() {
    let outcome = run(ill().fallback_value(json!({"stale": true})), json!({})).await;
    assert_eq!(
        (outcome.status(), outcome.is_success()),
        (Status::Error, false)
    );
    let view = structured(&outcome);
    assert_eq!(
        (&view["output"], &view["fallbackUsed"]),
        (&json!({"stale": true}), &json!(true))
    );
    assert_eq!(view["error"]["message"], "ill");
    let expected = json!({
        "success": false, "result": {"stale": true}, "error": "ill", "effect": "done", "tool_name": "t",
        "execution_time_ms": 0.0, "fallback_used": true,
    });
    assert_eq!(flat(&outcome), expected);
    let text = content(&outcome);
    let (answer, note) = text.split_once('\n').expect("two lines");
    assert_eq!(answer, "{\"stale\":true}");
    assert!(
        note.contains("t failed: ill") && !note.contains('\n'),
        "{note}"
    );
    assert!(outcome.message().is_error);
}

#[tokio::test(start_paused = true)]
async fn r11_it_answers_after_the_last_retry_a_timeout_and_a_panic() {
    for (tool, attempts, status) in [
        (
            script("t").fails(ToolError::new("ill")).tool(),
            4,
            Status::Error,
        ),
        (
            script("t").fails(ToolError::answer("no")).tool(),
            1,
            Status::Error,
        ),
        (
            script("t")
                .fails(ToolError::of(Category::Authentication, "no"))
                .tool(),
            1,
            Status::Error,
        ),
        (script("t").hangs().tool().no_retry(), 1, Status::Timeout),
        (
            script("t").panics(ON_PURPOSE).tool().no_retry(),
            1,
            Status::Error,
        ),
    ] {
        let outcome = run(tool.fallback_value(json!("backup")), json!({})).await;
        assert_eq!(outcome.output().unwrap().value(), "backup");
        assert_eq!((outcome.attempts, outcome.status()), (attempts, status));
    }
}

#[tokio::test(start_paused = true)]
async fn r11_it_answers_when_the_breaker_is_open_unless_told_not_to() {
    for (fallback, answers) in [
        (Fallback::value("backup"), true),
        (Fallback::value("backup").not_when_open(), false),
    ] {
        let executor = executor([ill().fallback(fallback)]);
        trip(&executor, "t").await;
        let outcome = executor.execute(once("t")).await;
        assert_eq!(code(&outcome), "CIRCUIT_OPEN");
        assert_eq!(outcome.fallback.is_some(), answers);
    }
}

#[tokio::test(start_paused = true)]
async fn r11_it_never_answers_for_bad_arguments_unknown_tools_or_cancelled_calls() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let fallback = Fallback::function(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok(Output::json("backup")) }
    });
    let executor = executor([script("t").schema(schema).hangs().tool().fallback(fallback)]);
    let token = CancellationToken::new();
    let stop = async {
        sleep(secs(1)).await;
        token.cancel();
    };
    let cancelled = executor.execute(once("t").cancellation(token.clone()));
    let (cancelled, ()) = tokio::join!(cancelled, stop);
    let invalid = executor.execute(call("t", json!({"n": "x"}))).await;
    let unknown = executor.execute(once("nowhere")).await;
    for outcome in [cancelled, invalid, unknown] {
        assert!(outcome.output().is_none(), "{outcome:?}");
        assert_eq!(structured(&outcome).get("fallbackUsed"), None);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn r11_it_can_be_a_function_that_sees_arguments_and_failure_or_another_tool() {
    let function = Fallback::function(|args, failure| async move {
        Ok(Output::json(json!([
            args,
            failure.code.as_str(),
            failure.message
        ])))
    });
    let outcome = run(ill().fallback(function), json!({"q": 1})).await;
    assert_eq!(
        outcome.output().unwrap().value(),
        &json!([{"q": 1}, "TOOL_EXECUTION_ERROR", "ill"])
    );

    let other = script("other").answers("from the other");
    let with = Fallback::tool_with("other", |args| json!({"again": args["q"]}));
    for (fallback, args) in [
        (Fallback::tool("other"), json!({"q": 1})),
        (with, json!({"again": 1})),
    ] {
        let executor = executor([ill().fallback(fallback), other.tool()]);
        let outcome = executor.execute(call("t", json!({"q": 1}))).await;
        assert_eq!(outcome.output().unwrap().value(), "from the other");
        assert_eq!(other.seen().last().unwrap().args, args);
    }
}

#[tokio::test(start_paused = true)]
async fn r11_a_fallback_that_fails_panics_or_hangs_leaves_the_bare_error() {
    let hanging = Fallback::function(|_, _| std::future::pending());
    for (case, fallback, took) in [
        (
            "fails",
            Fallback::function(|_, _| async { Err(ToolError::new("me too")) }),
            ms(0),
        ),
        (
            "panics",
            Fallback::function(|_, _| async { std::panic::panic_any(ON_PURPOSE) }),
            ms(0),
        ),
        (
            "panics early",
            Fallback::tool_with("t", |_| std::panic::panic_any(ON_PURPOSE)),
            ms(0),
        ),
        ("hangs", hanging.timeout(secs(2)), secs(2)),
        ("is unknown", Fallback::tool("nowhere"), ms(0)),
        ("is itself", Fallback::tool("t"), ms(0)),
    ] {
        let logs = logs::capture();
        let outcome = run(ill().fallback(fallback), json!({})).await;
        assert_eq!(failure(&outcome).message, "ill", "{case}");
        assert_eq!(
            (outcome.output(), outcome.execution_time),
            (None, took),
            "{case}"
        );
        assert_eq!(
            logs.of(Level::WARN, "the fallback failed too").len(),
            1,
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn r11_a_fallback_has_its_share_of_the_deadline() {
    let slow = Fallback::function(|_, _| async {
        sleep(secs(4)).await;
        Ok(Output::json("backup"))
    });
    let tool = script("t")
        .hangs()
        .tool()
        .no_retry()
        .timeout(secs(60))
        .fallback(slow);
    let outcome = run(tool, json!({})).await;
    assert_eq!(outcome.output().map(Output::value), Some(&json!("backup")));
    assert!(
        outcome.execution_time <= secs(60),
        "{:?}",
        outcome.execution_time
    );
}

#[tokio::test(start_paused = true)]
async fn r11_the_answer_of_a_fallback_is_bounded_too() {
    let tool = ill()
        .output_bytes_max(500)
        .fallback_value(json!("x".repeat(5_000)));
    let outcome = run(tool, json!({})).await;
    assert!(outcome.fallback.as_ref().unwrap().value().to_string().len() <= 500);
    assert_eq!(structured(&outcome)["truncated"]["fullBytes"], 5_002);
}
