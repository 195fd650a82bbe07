//! When a failed attempt is repeated, how often, and after which wait.

use std::io;

use serde_json::json;
use steadyhand::testing::{Script, script};
use steadyhand::{BudgetPolicy, Category, Effect, FailureCode, RetryPolicy, ToolError};

use crate::support::{
    ON_PURPOSE, call, code, executor, failing, failure, ms, run, run_once, secs, structured, waits,
};

// D7: safe to repeat or not
fn io_error(kind: io::ErrorKind) -> ToolError {
    ToolError::from(io::Error::from(kind))
}

// D4: retries
#[tokio::test(start_paused = true)]
async fn d04_four_attempts_at_most_after_waits_of_100_200_and_400_ms() {
    let tool = script("t").fails(ToolError::new("ill"));
    let outcome = run(tool.tool(), json!({})).await;
    assert_eq!(waits(&tool), [100, 200, 400]);
    assert_eq!((outcome.attempts, outcome.execution_time), (4, ms(700)));
    let attempts: Vec<u32> = tool.seen().iter().map(|seen| seen.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn d04_the_first_success_ends_it() {
    for failures in 0..4 {
        let tool = failing("t", failures);
        let outcome = run(tool.tool(), json!({})).await;
        assert!(outcome.is_success());
        assert_eq!(waits(&tool), [100, 200, 400][..failures]);
    }
}

#[tokio::test(start_paused = true)]
async fn d04_a_retry_after_wins_over_the_computed_wait() {
    let limited = |wait| ToolError::of(Category::RateLimit, "slow down").retry_after(wait);
    let tool = script("t")
        .fails(limited(secs(7)))
        .fails(limited(ms(5)))
        .fails(ToolError::new("x"));
    run(tool.tool(), json!({})).await;
    assert_eq!(waits(&tool), [7_000, 5, 400]);
}

#[tokio::test(start_paused = true)]
async fn d04_a_retry_after_beyond_the_deadline_is_not_waited_for_and_is_handed_on() {
    let limited = ToolError::of(Category::RateLimit, "slow down").retry_after(secs(90));
    let tool = script("t").fails(limited);
    let outcome = run(tool.tool(), json!({})).await;
    assert_eq!((tool.starts(), outcome.execution_time), (1, ms(0)));
    assert_eq!(structured(&outcome)["error"]["retryAfterMs"], 90_000);
}

#[tokio::test(start_paused = true)]
async fn d07_a_tool_that_must_not_run_twice_is_repeated_only_if_it_never_started() {
    let unsafe_tool = || script("t");
    for (case, tool, starts, effect) in [
        (
            "connection refused",
            unsafe_tool().fails(io_error(io::ErrorKind::ConnectionRefused)),
            4,
            Effect::None,
        ),
        (
            "an explicit 429",
            unsafe_tool().fails(ToolError::from_http_status(429, "busy")),
            4,
            Effect::None,
        ),
        (
            "not sent",
            unsafe_tool().fails(ToolError::new("no").never_started()),
            4,
            Effect::None,
        ),
        (
            "connection reset",
            unsafe_tool().fails(io_error(io::ErrorKind::ConnectionReset)),
            1,
            Effect::Unknown,
        ),
        (
            "server error",
            unsafe_tool().fails(ToolError::from_http_status(500, "oh")),
            1,
            Effect::Unknown,
        ),
        (
            "unavailable",
            unsafe_tool().fails(ToolError::from_http_status(503, "oh")),
            1,
            Effect::Unknown,
        ),
        (
            "unknown",
            unsafe_tool().fails(ToolError::new("odd")),
            1,
            Effect::Done,
        ),
        (
            "only words",
            unsafe_tool().fails(ToolError::new("connection refused")),
            1,
            Effect::Unknown,
        ),
        (
            "only words",
            unsafe_tool().fails(ToolError::new("too many requests")),
            1,
            Effect::Done,
        ),
        (
            "panic",
            unsafe_tool().panics(ON_PURPOSE),
            1,
            Effect::Unknown,
        ),
        ("time-out", unsafe_tool().hangs(), 1, Effect::Unknown),
        (
            "done, then failed",
            unsafe_tool().fails(ToolError::new("no").effect(Effect::Done)),
            1,
            Effect::Done,
        ),
    ] {
        let outcome = run(tool.tool().not_safe_to_repeat(), json!({})).await;
        assert_eq!(
            (tool.starts(), failure(&outcome).effect),
            (starts, effect),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d07_a_safe_tool_is_repeated_after_each_retryable_failure() {
    for tool in [
        script("t").fails(io_error(io::ErrorKind::ConnectionReset)),
        script("t").fails(ToolError::from_http_status(500, "oh")),
        script("t").fails(ToolError::new("odd")),
        script("t").panics(ON_PURPOSE),
    ] {
        run(tool.tool(), json!({})).await;
        assert_eq!(tool.starts(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn d07_an_unsafe_tool_stops_at_the_first_attempt_that_may_have_acted() {
    let refused = io_error(io::ErrorKind::ConnectionRefused);
    let tool = script("t")
        .fails(refused)
        .fails(ToolError::new("odd"))
        .answers("never");
    let outcome = run(tool.tool().not_safe_to_repeat(), json!({})).await;
    assert_eq!((tool.starts(), failure(&outcome).effect), (2, Effect::Done));
}

#[tokio::test(start_paused = true)]
async fn d07_the_effect_of_a_call_is_the_most_doubtful_of_its_attempts() {
    let refused = || io_error(io::ErrorKind::ConnectionRefused);
    let reset = || io_error(io::ErrorKind::ConnectionReset);
    for (first, effect) in [
        (ToolError::new("odd"), Effect::Done),
        (reset(), Effect::Unknown),
    ] {
        let tool = script("t").fails(first).fails(refused());
        let outcome = run(tool.tool(), json!({})).await;
        assert_eq!((outcome.attempts, code(&outcome)), (4, "NETWORK_ERROR"));
        assert_eq!(failure(&outcome).effect, effect);
    }
    // What one attempt may have done is not undone by another that came to its end.
    let tool = script("t").fails(reset()).fails(ToolError::new("odd"));
    let outcome = run(tool.tool(), json!({})).await;
    assert_eq!(failure(&outcome).effect, Effect::Unknown);
}

#[tokio::test(start_paused = true)]
async fn r05_some_failures_are_never_repeated() {
    for error in [
        ToolError::of(Category::Authentication, "no"),
        ToolError::of(Category::Validation, "no"),
        ToolError::answer("no"),
        ToolError::of(Category::Network, "no").declared_final(),
        ToolError::from_http_status(404, "no"),
    ] {
        let tool = script("t").fails(error);
        let outcome = run(tool.tool(), json!({})).await;
        assert_eq!(
            (tool.starts(), outcome.execution_time),
            (1, ms(0)),
            "{outcome:?}"
        );
        assert!(!failure(&outcome).retryable);
    }
}

#[tokio::test(start_paused = true)]
async fn r05_it_can_be_switched_off_per_tool_and_per_call() {
    let ill = || script("t").fails(ToolError::new("ill"));
    let (by_tool, by_call, neither) = (ill(), ill(), ill());
    run(by_tool.tool().no_retry(), json!({})).await;
    run_once(by_call.tool()).await;
    run(neither.tool(), json!({})).await;
    assert_eq!(
        [&by_tool, &by_call, &neither].map(Script::starts),
        [1, 1, 4]
    );
}

#[tokio::test(start_paused = true)]
async fn r05_how_often_how_long_apart_and_after_what_can_be_set() {
    let policy = RetryPolicy {
        attempts: 3,
        first_wait: ms(10),
        on: vec![FailureCode::NetworkError],
        ..RetryPolicy::default()
    };
    let network = script("t").fails(ToolError::of(Category::Network, "gone"));
    run(network.tool().retry(policy.clone()), json!({})).await;
    assert_eq!(waits(&network), [10, 20]);
    let unknown = script("t").fails(ToolError::new("odd"));
    run(unknown.tool().retry(policy), json!({})).await;
    assert_eq!(unknown.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn r05_jitter_spreads_a_wait_over_half_to_all_of_it() {
    let policy = RetryPolicy {
        jitter: true,
        ..RetryPolicy::default()
    };
    let mut first_waits = Vec::new();
    for _ in 0..50 {
        let tool = script("t").fails(ToolError::new("ill"));
        run(tool.tool().retry(policy.clone()), json!({})).await;
        for (wait, longest) in waits(&tool).into_iter().zip([100, 200, 400]) {
            // One millisecond more: the resolution of the timer.
            assert!(
                (longest / 2..=longest + 1).contains(&wait),
                "{wait} of {longest}"
            );
        }
        first_waits.push(waits(&tool)[0]);
    }
    first_waits.sort_unstable();
    first_waits.dedup();
    assert!(first_waits.len() > 5, "{first_waits:?}");
}

#[tokio::test(start_paused = true)]
async fn r05_a_budget_ends_retries_when_too_many_calls_need_them() {
    let budget = BudgetPolicy {
        tokens: 4,
        per_success_thousandths: 500,
    };
    let policy = RetryPolicy {
        budget: Some(budget),
        ..RetryPolicy::default()
    };
    let tool = script("t").fails(ToolError::new("ill"));
    let executor = executor([tool.tool().retry(policy).no_breaker()]);
    let mut attempts = Vec::new();
    for _ in 0..3 {
        attempts.push(executor.execute(call("t", json!({}))).await.attempts);
    }
    assert_eq!(attempts, [4, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn r06_a_timeout_is_repeated_like_other_failures_of_a_safe_tool() {
    let tool = script("t").hangs().answers("late but fine");
    let outcome = run(tool.tool().timeout(secs(1)), json!({})).await;
    assert!(outcome.is_success());
    assert_eq!((outcome.attempts, outcome.execution_time), (2, ms(1100)));
}
