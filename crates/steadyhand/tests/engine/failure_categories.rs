//! Which category an error is put into, and by what.

use std::io;

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Category, Effect, FailureCode, ToolError};

use crate::support::{ON_PURPOSE, call, code, executor, failure, run, run_once, secs};

#[tokio::test(start_paused = true)]
async fn r07_errors_are_categorised_by_type_first() {
    use FailureCode::{
        AuthenticationError, NetworkError, RateLimitError, Timeout, ToolExecutionError,
        ValidationError,
    };
    let io = |kind| ToolError::from(io::Error::from(kind));
    let http = |status| ToolError::from_http_status(status, "said the server");
    let rpc = |code| ToolError::from_json_rpc(code, "said the server");
    for (error, code, retryable, effect) in [
        (
            io(io::ErrorKind::ConnectionRefused),
            NetworkError,
            true,
            Effect::None,
        ),
        (
            io(io::ErrorKind::ConnectionReset),
            NetworkError,
            true,
            Effect::Unknown,
        ),
        (
            io(io::ErrorKind::BrokenPipe),
            NetworkError,
            true,
            Effect::Unknown,
        ),
        (io(io::ErrorKind::TimedOut), Timeout, true, Effect::Unknown),
        (
            io(io::ErrorKind::NotFound),
            ToolExecutionError,
            true,
            Effect::Done,
        ),
        (http(400), ToolExecutionError, false, Effect::Done),
        (http(401), AuthenticationError, false, Effect::None),
        (http(403), AuthenticationError, false, Effect::None),
        (http(404), ToolExecutionError, false, Effect::Done),
        (http(408), Timeout, true, Effect::Unknown),
        (http(429), RateLimitError, true, Effect::None),
        (http(500), ToolExecutionError, true, Effect::Unknown),
        (http(503), NetworkError, true, Effect::Unknown),
        (http(504), Timeout, true, Effect::Unknown),
        (rpc(-32602), ValidationError, false, Effect::None),
        (rpc(-32601), ToolExecutionError, false, Effect::None),
        (rpc(-32603), ToolExecutionError, true, Effect::Unknown),
        (rpc(-32001), Timeout, true, Effect::Unknown),
        (
            ToolError::answer("no"),
            ToolExecutionError,
            false,
            Effect::Done,
        ),
        (
            ToolError::new("odd"),
            ToolExecutionError,
            true,
            Effect::Done,
        ),
    ] {
        let said = format!("{error:?}");
        let outcome = run_once(script("t").fails(error).tool()).await;
        let failure = failure(&outcome);
        let read = (failure.code, failure.retryable, failure.effect);
        assert_eq!(read, (code, retryable, effect), "{said}");
        assert!(
            !failure.message.is_empty() && !failure.user_message.is_empty(),
            "{said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn r07_a_cause_deep_in_the_chain_is_found() {
    #[derive(Debug, thiserror::Error)]
    #[error("could not fetch the weather")]
    struct Outer(#[source] Middle);
    #[derive(Debug, thiserror::Error)]
    #[error("transport")]
    struct Middle(#[source] io::Error);
    let refused = || Outer(Middle(io::ErrorKind::ConnectionRefused.into()));
    let outcome = run_once(script("t").fails(refused().into()).tool()).await;
    assert_eq!(
        (code(&outcome), failure(&outcome).effect),
        ("NETWORK_ERROR", Effect::None)
    );
    assert_eq!(failure(&outcome).message, "could not fetch the weather");
}

#[tokio::test(start_paused = true)]
async fn r07_words_decide_only_where_types_say_nothing_and_prove_nothing() {
    const NETWORK: (&str, Effect) = ("NETWORK_ERROR", Effect::Unknown);
    const TIMEOUT: (&str, Effect) = ("TIMEOUT", Effect::Unknown);
    const RATE: (&str, Effect) = ("RATE_LIMIT_ERROR", Effect::Done);
    const LOGIN: (&str, Effect) = ("AUTHENTICATION_ERROR", Effect::Done);
    const INVALID: (&str, Effect) = ("VALIDATION_ERROR", Effect::Done);
    const OTHER: (&str, Effect) = ("TOOL_EXECUTION_ERROR", Effect::Done);
    for (text, expected) in [
        ("connect ECONNREFUSED 127.0.0.1:80", NETWORK),
        ("socket hang up", NETWORK),
        ("Network error", NETWORK),
        ("network failure: no carrier", NETWORK),
        ("TypeError: fetch failed", NETWORK),
        ("Request timed out", TIMEOUT),
        ("Timeout", TIMEOUT),
        ("timeout!", TIMEOUT),
        ("Request timeout", TIMEOUT),
        ("timeout of 5000ms exceeded", TIMEOUT),
        ("Timeout while waiting for the printer", TIMEOUT),
        ("504 Gateway Time-out", TIMEOUT),
        ("Rate limit exceeded", RATE),
        ("rate limit", RATE),
        ("Rate limit: 60 per hour", RATE),
        ("429 Too Many Requests", RATE),
        ("401 Unauthorized", LOGIN),
        ("unauthorized", LOGIN),
        ("Invalid API key", LOGIN),
        ("authentication is required", LOGIN),
        ("Invalid input: city is no place", INVALID),
        ("ValueError: invalid literal for int()", INVALID),
        ("field 'city' is required", INVALID),
        ("missing required argument", INVALID),
        ("the timeout parameter is unknown", OTHER),
        ("set timeout to 5 to speed it up", OTHER),
        ("no author found", OTHER),
        ("network printer is out of paper", OTHER),
        ("rate limit setting is on", OTHER),
        ("the parcel was invalidated", OTHER),
    ] {
        let outcome = run_once(script("t").fails(ToolError::new(text)).tool()).await;
        let read = (code(&outcome), failure(&outcome).effect);
        assert_eq!(read, expected, "{text}");
        let typed = ToolError::of(Category::Validation, text);
        let outcome = run_once(script("t").fails(typed).tool()).await;
        assert_eq!(code(&outcome), "VALIDATION_ERROR", "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn r07_words_that_name_bad_input_are_neither_retried_nor_counted_by_the_breaker() {
    let tool = script("t").fails(ToolError::new("Invalid input: no such city"));
    let executor = executor([tool.tool().breaker(1, secs(60))]);
    for starts in 1..=3 {
        let outcome = executor.execute(call("t", json!({}))).await;
        assert_eq!(code(&outcome), "VALIDATION_ERROR");
        assert_eq!(tool.starts(), starts, "one start for each call");
    }
}

#[tokio::test(start_paused = true)]
async fn r07_a_tools_own_classifier_comes_first_and_its_panic_harms_nothing() {
    let tool = |classify: fn(&ToolError) -> Option<Category>| {
        let words = ToolError::new("connection refused");
        script("t")
            .fails(words)
            .tool()
            .no_retry()
            .classify_errors(classify)
    };
    for (tool, code) in [
        (
            tool(|_| Some(Category::Authentication)),
            "AUTHENTICATION_ERROR",
        ),
        (tool(|_| None), "NETWORK_ERROR"),
        (tool(|_| std::panic::panic_any(ON_PURPOSE)), "NETWORK_ERROR"),
    ] {
        assert_eq!(crate::support::code(&run(tool, json!({})).await), code);
    }
}

#[tokio::test(start_paused = true)]
async fn r07_a_classifier_that_says_unknown_is_believed() {
    let words = ToolError::new("connection refused by the bouncer");
    let tool = script("t").fails(words).tool().no_retry();
    let outcome = run(tool.classify_errors(|_| Some(Category::Unknown)), json!({})).await;
    assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR");
}
