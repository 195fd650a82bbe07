//! SPEC section 0, the decisions, as far as the engine goes: D3, D4, D6 to D14 and D18.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{
    BreakerState, Category, Effect, Fallback, Health, Outcome, Output, Policy, Status, Tool,
    ToolError, ToolExecutor, ToolManager,
};
use tokio::time::{Instant, advance, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, content, executor, failing, failure, flat, ms, once, run, run_once,
    secs, state, structured, trip, waits,
};

// D3: the same name twice

#[tokio::test(start_paused = true)]
async fn d03_the_newer_tool_of_a_name_replaces_the_older_with_a_warning_and_keeps_its_place() {
    let logs = logs::capture();
    let executor = executor(["a", "b", "c"].map(|name| script(name).answers("old").tool()));
    executor.execute(once("b")).await;
    assert!(
        logs.of(
            Level::WARN,
            "a tool of this name is replaced by a newer one"
        )
        .is_empty()
    );
    executor
        .tools()
        .add(script("b").answers("new").tool())
        .unwrap();
    let line = logs.only(
        Level::WARN,
        "a tool of this name is replaced by a newer one",
    );
    assert_eq!(line.field("tool"), "b");
    assert_eq!(
        executor.execute(once("b")).await.output().unwrap().value(),
        "new"
    );
    let names: Vec<String> = executor
        .tools()
        .list()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(executor.tools().metrics("b").unwrap().success_count, 2);
}

#[test]
fn d03_a_refused_newer_tool_leaves_the_older_in_place() {
    let tools = ToolManager::new();
    tools.add(script("t").tool()).unwrap();
    tools.add(script("t").schema(json!(5)).tool()).unwrap_err();
    assert_eq!(
        tools.find("t").unwrap().schema(),
        &json!({"type": "object"})
    );
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

// D6: extra parameters

#[tokio::test(start_paused = true)]
async fn d06_strict_enforces_the_schema_to_the_letter() {
    let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    let tool = script("t").schema(schema);
    let outcome = run(tool.tool().strict(), json!({"a": 1, "extra": 2})).await;
    assert_eq!((code(&outcome), tool.starts()), ("VALIDATION_ERROR", 0));
    assert!(
        failure(&outcome).message.contains("'extra'"),
        "{}",
        failure(&outcome)
    );
    assert!(
        run(tool.tool().strict(), json!({"a": 1}))
            .await
            .is_success()
    );
}

#[tokio::test(start_paused = true)]
async fn d06_dropping_what_is_extra_does_not_hide_what_is_wrong() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let outcome = run(
        script("t").schema(schema).tool(),
        json!({"a": "x", "extra": 2}),
    )
    .await;
    let message = &failure(&outcome).message;
    assert!(
        message.contains("missing 'b'") && message.contains("'a' must be integer"),
        "{message}"
    );
    assert!(!message.contains("extra"), "{message}");
}

// D7: safe to repeat or not

fn io_error(kind: io::ErrorKind) -> ToolError {
    ToolError::from(io::Error::from(kind))
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

// D8, D11: what the breaker counts

fn neutral_errors() -> Vec<(&'static str, ToolError)> {
    vec![
        (
            "authentication",
            ToolError::of(Category::Authentication, "no"),
        ),
        ("validation", ToolError::of(Category::Validation, "no")),
        ("overloaded", ToolError::of(Category::Overloaded, "no")),
        ("answer", ToolError::answer("no")),
        (
            "final network error",
            ToolError::of(Category::Network, "no").declared_final(),
        ),
        ("400", ToolError::from_http_status(400, "no")),
        ("404", ToolError::from_http_status(404, "no")),
        ("409", ToolError::from_http_status(409, "no")),
        ("-32602", ToolError::from_json_rpc(-32602, "no")),
    ]
}

fn four_failures() -> Script {
    (0..4).fold(script("t"), |script, _| script.fails(ToolError::new("ill")))
}

#[tokio::test(start_paused = true)]
async fn d08_unhealthy_outcomes_count_once_per_call_after_its_retries() {
    let error = |error| script("t").fails(error);
    for tool in [
        error(ToolError::of(Category::Network, "no")),
        error(ToolError::of(Category::Timeout, "no")),
        error(ToolError::of(Category::RateLimit, "no")),
        error(ToolError::new("odd")),
        error(ToolError::from_http_status(408, "no")),
        error(ToolError::from_http_status(425, "no")),
        error(ToolError::from_http_status(429, "no")),
        error(ToolError::from_http_status(500, "no")),
        script("t").panics(ON_PURPOSE),
    ] {
        let executor = executor([tool.tool()]);
        let outcome = executor.execute(call("t", json!({}))).await;
        assert_eq!(outcome.attempts, 4);
        assert_eq!(failure(&outcome).health(), Health::Unhealthy);
        assert_eq!(
            executor.tools().breaker("t").unwrap().failures,
            1,
            "{outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d08_neutral_outcomes_neither_count_nor_reset_the_count() {
    for (case, error) in neutral_errors() {
        let tool = four_failures().fails(error).fails(ToolError::new("ill"));
        let executor = executor([tool.tool()]);
        for _ in 0..5 {
            executor.execute(once("t")).await;
        }
        assert_eq!(state(&executor, "t"), BreakerState::Closed, "{case}");
        assert_eq!(executor.tools().breaker("t").unwrap().failures, 4, "{case}");
        executor.execute(once("t")).await;
        assert_eq!(state(&executor, "t"), BreakerState::Open, "{case}");
        assert_eq!(
            executor.tools().metrics("t").unwrap().error_count,
            6,
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d08_our_own_refusals_bad_arguments_and_cancellation_are_neutral_too() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = four_failures().schema(schema).hangs();
    let executor = executor([tool.tool().limit(1, 0).timeout(secs(100))]);
    for _ in 0..4 {
        executor.execute(once("t")).await;
    }
    let token = CancellationToken::new();
    let meanwhile = async {
        sleep(ms(1)).await;
        let overloaded = executor.execute(once("t")).await;
        let invalid = executor.execute(call("t", json!({"n": "x"}))).await;
        token.cancel();
        [overloaded, invalid]
    };
    let cancelled = executor.execute(once("t").cancellation(token.clone()));
    let (cancelled, [overloaded, invalid]) = tokio::join!(cancelled, meanwhile);
    let late = executor.execute(once("t").deadline(ms(0))).await;
    assert!(timeout(ms(1), executor.execute(once("t"))).await.is_err());
    let codes = [&overloaded, &invalid, &cancelled, &late].map(code);
    assert_eq!(
        codes,
        ["OVERLOADED", "VALIDATION_ERROR", "CANCELLED", "TIMEOUT"]
    );
    assert_eq!(executor.tools().breaker("t").unwrap().failures, 4);
    executor.execute(once("t")).await;
    assert_eq!(state(&executor, "t"), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn d08_only_three_of_the_4xx_speak_ill_of_the_tool() {
    for status in 400..500 {
        let error = ToolError::from_http_status(status, "no");
        let outcome = run_once(script("t").fails(error).tool()).await;
        let expected = match status {
            408 | 425 | 429 => Health::Unhealthy,
            _ => Health::Neutral,
        };
        assert_eq!(failure(&outcome).health(), expected, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn d11_a_neutral_trial_does_not_close_and_the_next_call_is_the_trial() {
    for (case, error) in neutral_errors() {
        let tool = four_failures()
            .fails(ToolError::new("ill"))
            .fails(error)
            .answers("well");
        let executor = executor([tool.tool()]);
        trip(&executor, "t").await;
        advance(secs(60)).await;
        executor.execute(once("t")).await;
        assert_ne!(state(&executor, "t"), BreakerState::Closed, "{case}");
        assert!(executor.execute(once("t")).await.is_success(), "{case}");
        assert_eq!(state(&executor, "t"), BreakerState::Closed, "{case}");
        assert_eq!(executor.tools().breaker("t").unwrap().trips, 1, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn d11_a_neutral_trial_moves_the_breaker_nowhere() {
    let tool = four_failures()
        .fails(ToolError::new("ill"))
        .fails(ToolError::answer("no"));
    let executor = executor([tool.tool()]);
    trip(&executor, "t").await;
    advance(secs(60)).await;
    executor.execute(once("t")).await;
    assert_eq!(state(&executor, "t"), BreakerState::HalfOpen);
}

// D9: half-open

/// A breaker whose rest is over, before the trial; the trial does the script's last step.
async fn rested(tool: impl FnOnce(Script) -> Script) -> (ToolExecutor, Script) {
    let tool = tool(four_failures().fails(ToolError::new("ill")));
    let executor = executor([tool.tool().no_retry().limit(300, 0)]);
    trip(&executor, "t").await;
    advance(secs(60)).await;
    (executor, tool)
}

#[tokio::test(start_paused = true)]
async fn d09_of_many_calls_at_once_one_is_the_trial_and_the_others_are_answered_at_once() {
    let (executor, tool) = rested(|script| script.answers("well").taking(secs(1))).await;
    let outcomes = executor.execute_batch(vec![once("t"); 200]).await;
    let (tried, refused): (Vec<&Outcome>, Vec<&Outcome>) =
        outcomes.iter().partition(|outcome| outcome.is_success());
    assert_eq!((tried.len(), refused.len(), tool.starts()), (1, 199, 6));
    for outcome in refused {
        assert_eq!(
            (code(outcome), outcome.execution_time),
            ("CIRCUIT_OPEN", ms(0))
        );
    }
    assert_eq!(state(&executor, "t"), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn d09_a_trial_that_is_dropped_or_cancelled_gives_the_slot_back() {
    let (executor, tool) = rested(|script| script.hangs().hangs().answers("well")).await;
    assert!(
        timeout(secs(1), executor.execute(once("t"))).await.is_err(),
        "dropped"
    );
    let token = CancellationToken::new();
    let stop = async {
        sleep(secs(1)).await;
        token.cancel();
    };
    let (outcome, ()) = tokio::join!(
        executor.execute(once("t").cancellation(token.clone())),
        stop
    );
    assert_eq!((code(&outcome), tool.starts()), ("CANCELLED", 7));
    assert!(executor.execute(once("t")).await.is_success());
    assert_eq!(state(&executor, "t"), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn d09_a_trial_that_hangs_past_its_timeout_opens_again_and_the_next_trial_comes() {
    let (executor, tool) = rested(|script| script.hangs().answers("well")).await;
    assert_eq!(code(&executor.execute(once("t")).await), "TIMEOUT");
    assert_eq!(state(&executor, "t"), BreakerState::Open);
    advance(secs(60)).await;
    assert!(executor.execute(once("t")).await.is_success());
    assert_eq!(tool.starts(), 7);
}

#[tokio::test(start_paused = true)]
async fn d09_a_success_from_before_the_trip_changes_nothing() {
    let slow_first = script("t").answers("late").taking(secs(10));
    let tool = (0..5).fold(slow_first, |script, _| script.fails(ToolError::new("ill")));
    let executor = executor([tool.tool()]);
    let five = async {
        sleep(ms(1)).await;
        trip(&executor, "t").await;
    };
    let (late, ()) = tokio::join!(executor.execute(once("t")), five);
    assert!(late.is_success());
    let view = executor.tools().breaker("t").unwrap();
    assert_eq!((view.state, view.failures), (BreakerState::Open, 5));
}

#[tokio::test(start_paused = true)]
async fn d09_a_failure_from_before_the_trip_does_not_end_the_trial() {
    let slow_first = script("t").fails(ToolError::new("late")).taking(secs(70));
    let tool = (0..5).fold(slow_first, |script, _| script.fails(ToolError::new("ill")));
    let tool = tool.answers("well").taking(secs(20));
    let patient = tool.tool().timeout(secs(200)).deadline(secs(200));
    let executor = executor([patient]);
    let trial = async {
        sleep(ms(1)).await;
        trip(&executor, "t").await;
        sleep(secs(61)).await;
        let look = async {
            sleep(secs(15)).await;
            state(&executor, "t")
        };
        tokio::join!(executor.execute(once("t")), look)
    };
    let (late, (tried, at_76)) = tokio::join!(executor.execute(once("t")), trial);
    assert_eq!((late.is_success(), tried.is_success()), (false, true));
    assert_eq!(at_76, BreakerState::HalfOpen);
    assert_eq!(state(&executor, "t"), BreakerState::Closed);
}

// D10: the deadline

#[tokio::test(start_paused = true)]
async fn d10_a_call_ends_after_sixty_seconds_and_the_last_attempt_gets_what_is_left() {
    let tool = script("t").hangs();
    let outcome = run(tool.tool(), json!({})).await;
    assert_eq!(waits(&tool), [30_100]);
    assert_eq!(
        (outcome.status(), outcome.execution_time),
        (Status::Timeout, secs(60))
    );
}

#[tokio::test(start_paused = true)]
async fn d10_tool_and_call_can_set_another_deadline() {
    for (tool_deadline, call_deadline, expected) in [
        (None, Some(secs(5)), secs(5)),
        (Some(secs(40)), None, secs(40)),
        (Some(secs(40)), Some(secs(7)), secs(7)),
        (Some(secs(7)), Some(secs(40)), secs(40)),
    ] {
        let mut tool = script("t").hangs().tool();
        if let Some(deadline) = tool_deadline {
            tool = tool.deadline(deadline);
        }
        let mut call = call("t", json!({}));
        call.deadline = call_deadline;
        let outcome = executor([tool]).execute(call).await;
        assert_eq!(outcome.execution_time, expected);
        assert_eq!(outcome.status(), Status::Timeout);
    }
}

#[tokio::test(start_paused = true)]
async fn d10_no_wait_is_begun_that_the_deadline_cannot_pay_for() {
    for (deadline, starts, took) in [(100, 1, 0), (101, 2, 100), (300, 2, 100), (301, 3, 300)] {
        let tool = script("t").fails(ToolError::new("ill"));
        let call = call("t", json!({})).deadline(ms(deadline));
        let outcome = executor([tool.tool()]).execute(call).await;
        assert_eq!(
            (tool.starts(), outcome.execution_time),
            (starts, ms(took)),
            "{deadline}"
        );
        assert_eq!(failure(&outcome).message, "ill");
    }
}

#[tokio::test(start_paused = true)]
async fn d10_no_attempt_starts_when_the_wait_for_it_ended_after_the_deadline() {
    // The timer ticks in milliseconds: a wait of 100.2 ms ends at 101, past a deadline of 100.5.
    let late = ToolError::new("ill").retry_after(std::time::Duration::from_micros(100_200));
    let tool = script("t").fails(late).answers("too late");
    let call = call("t", json!({})).deadline(std::time::Duration::from_micros(100_500));
    let outcome = executor([tool.tool()]).execute(call).await;
    assert_eq!(tool.starts(), 1, "{outcome:?}");
    assert_eq!(failure(&outcome).message, "ill");
}

#[tokio::test(start_paused = true)]
async fn d10_no_attempt_starts_when_its_turn_comes_at_the_deadline() {
    let tool = script("t").answers(1).taking(secs(1));
    let executor = executor([tool.tool().limit(1, 5)]);
    let second = async {
        sleep(ms(1)).await;
        executor.execute(once("t").deadline(ms(999))).await
    };
    let (first, second) = tokio::join!(executor.execute(once("t")), second);
    assert!(first.is_success());
    assert_eq!(
        (second.status(), failure(&second).effect),
        (Status::Timeout, Effect::None)
    );
    assert_eq!((second.attempts, tool.starts()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn d10_waiting_for_a_place_is_bounded_by_the_deadline_and_runs_nothing() {
    let tool = script("t").answers(1).taking(secs(20));
    let executor = executor([tool.tool().limit(1, 5)]);
    let second = async {
        sleep(ms(1)).await;
        executor
            .execute(call("t", json!({})).deadline(secs(2)))
            .await
    };
    let (_, second) = tokio::join!(executor.execute(once("t")), second);
    assert_eq!(
        (second.status(), second.execution_time),
        (Status::Timeout, secs(2))
    );
    assert_eq!(
        (second.attempts, failure(&second).effect),
        (0, Effect::None)
    );
    assert_eq!(failure(&second).health(), Health::Neutral);
    assert_eq!(executor.tools().metrics("t").unwrap().rejected, 1);
}

#[tokio::test(start_paused = true)]
async fn d10_limits_beyond_all_time_are_no_reason_to_panic() {
    let never = std::time::Duration::MAX;
    let fallback = || Fallback::function(|_, _| async { Ok(Output::json("backup")) });
    let ill = || script("t").fails(ToolError::new("ill")).tool().no_retry();
    for (case, tool, call) in [
        (
            "the tool's time limit",
            script("t").tool().timeout(never),
            once("t"),
        ),
        (
            "the call's time limit",
            script("t").tool(),
            once("t").timeout(never),
        ),
        ("a rest", ill().breaker(1, never), once("t")),
        (
            "a retry after",
            script("t")
                .fails(ToolError::new("ill").retry_after(never))
                .tool(),
            call("t", json!({})),
        ),
        (
            "the fallback's time limit",
            ill().fallback(fallback().timeout(never)),
            once("t"),
        ),
        (
            "the tool's deadline",
            script("t").tool().deadline(never),
            once("t"),
        ),
        (
            "the call's deadline",
            script("t").tool(),
            once("t").deadline(never),
        ),
        (
            "all",
            ill().fallback(fallback().timeout(never)),
            once("t").deadline(never).timeout(never),
        ),
    ] {
        let executor = executor([tool]);
        let ended = tokio::spawn(async move { executor.execute(call).await }).await;
        assert!(ended.is_ok(), "{case}: no outcome");
    }
}

#[tokio::test(start_paused = true)]
async fn d10_a_deadline_of_nothing_runs_nothing() {
    let tool = script("t").answers(1);
    let outcome = executor([tool.tool()])
        .execute(once("t").deadline(ms(0)))
        .await;
    assert_eq!((outcome.status(), tool.starts()), (Status::Timeout, 0));
    assert_eq!(failure(&outcome).effect, Effect::None);
}

// D12: coercion

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "read by serde")]
struct Inner {
    x: i64,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "read by serde")]
struct Slips {
    count: Option<i64>,
    ratio: Option<f64>,
    flag: Option<bool>,
    inner: Option<Inner>,
    list: Option<Vec<i64>>,
    text: Option<String>,
}

fn slips() -> Script {
    let schema = json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "inner": {"type": "object", "properties": {"x": {"type": "integer"}}},
            "list": {"type": "array", "items": {"type": "integer"}},
            "text": {"type": "string"},
            "either": {"type": ["string", "integer"]},
            "needed": {"type": "integer"},
        },
        "required": [],
    });
    script("t").schema(schema).answers("ran")
}

fn common_slips() -> Vec<(Value, Value)> {
    vec![
        (json!({"count": "5"}), json!({"count": 5})),
        (json!({"count": "-5"}), json!({"count": -5})),
        (json!({"ratio": "2.5"}), json!({"ratio": 2.5})),
        (json!({"flag": "true"}), json!({"flag": true})),
        (json!({"inner": "{\"x\": 1}"}), json!({"inner": {"x": 1}})),
        (json!({"inner": {"x": "1"}}), json!({"inner": {"x": 1}})),
        (
            json!({"inner": "{\"x\": \"1\"}"}),
            json!({"inner": {"x": 1}}),
        ),
        (json!({"list": "[1, 2]"}), json!({"list": [1, 2]})),
        (json!({"list": [1, "2"]}), json!({"list": [1, 2]})),
        (json!({"count": null, "flag": true}), json!({"flag": true})),
    ]
}

#[tokio::test(start_paused = true)]
async fn d12_by_default_nothing_is_mended() {
    for (sent, _) in common_slips() {
        let tool = slips();
        let outcome = run(tool.tool(), sent.clone()).await;
        assert_eq!(
            (code(&outcome), tool.starts()),
            ("VALIDATION_ERROR", 0),
            "{sent}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d12_coerce_mends_common_slips_and_reports_each() {
    for (sent, mended) in common_slips() {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), sent.clone()).await;
        assert!(outcome.is_success(), "{sent}: {outcome:?}");
        assert_eq!(tool.seen()[0].args, mended, "{sent}");
        let reported = structured(&outcome)["coerced"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert!(!reported.is_empty(), "{sent}");
        for report in reported {
            let at = report["at"].as_str().unwrap();
            assert!(at.starts_with('/') && !report["message"].as_str().unwrap().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d12_coerce_touches_no_string_and_guesses_nothing() {
    for sent in [
        json!({"text": 5}),
        json!({"text": true}),
        json!({"text": {"a": 1}}),
        json!({"count": "five"}),
        json!({"count": "5.5"}),
        json!({"count": ""}),
        json!({"count": 5.5}),
        json!({"flag": "yes"}),
        json!({"flag": 1}),
        json!({"inner": "[1]"}),
        json!({"list": "{}"}),
        json!({"ratio": "NaN"}),
        json!({"ratio": "inf"}),
    ] {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), sent.clone()).await;
        assert_eq!(
            (code(&outcome), tool.starts()),
            ("VALIDATION_ERROR", 0),
            "{sent}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d12_coerce_leaves_what_fits_alone() {
    for sent in [
        json!({"text": "5"}),
        json!({"text": "{\"x\": 1}"}),
        json!({"text": "null"}),
        json!({"either": "5"}),
        json!({"count": 5.0}),
        json!({"unknown": "5"}),
    ] {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), sent.clone()).await;
        assert_eq!(tool.seen()[0].args, sent);
        assert_eq!(structured(&outcome).get("coerced"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn d12_a_number_is_mended_exactly_or_not_at_all() {
    for (text, exact) in [
        ("9223372036854775807", json!(i64::MAX)),
        ("18446744073709551615", json!(u64::MAX)),
        (
            "12345678901234567891",
            json!(12_345_678_901_234_567_891_u64),
        ),
        ("123456789012345678901234567890", Value::Null),
    ] {
        let tool = slips();
        let outcome = run(tool.tool().coerce(), json!({"count": text})).await;
        match tool.seen().first() {
            Some(seen) => assert_eq!(seen.args["count"], exact, "{text}"),
            None => assert_eq!(code(&outcome), "VALIDATION_ERROR", "{text}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d12_a_typed_function_gets_its_slips_mended_too() {
    async fn read(_: Slips) -> Result<(), ToolError> {
        Ok(())
    }
    for sent in [
        json!({"count": "5"}),
        json!({"ratio": "0.5"}),
        json!({"flag": "false"}),
        json!({"inner": "{\"x\": 1}"}),
        json!({"inner": {"x": "1"}}),
        json!({"list": "[1]"}),
    ] {
        let outcome = run(Tool::function("t", "d", read).coerce(), sent.clone()).await;
        assert!(outcome.is_success(), "{sent}: {}", failure(&outcome));
        assert_eq!(outcome.coerced.len(), 1, "{sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn d12_arguments_that_came_as_a_json_string_are_read_and_it_is_reported() {
    let sent = Value::String("{\"count\": 5}".to_owned());
    let tool = slips();
    let outcome = run(tool.tool().coerce(), sent.clone()).await;
    assert_eq!(tool.seen()[0].args, json!({"count": 5}));
    assert!(
        !outcome.coerced.is_empty(),
        "a coercion that nobody is told of"
    );
    assert_eq!(code(&run(slips().tool(), sent).await), "VALIDATION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn d12_it_can_be_switched_on_for_all() {
    let tools = ToolManager::new().with_defaults(Policy {
        coerce: true,
        ..Policy::default()
    });
    tools.add(slips().tool()).unwrap();
    let outcome = ToolExecutor::new(tools)
        .execute(call("t", json!({"count": "5"})))
        .await;
    assert!(outcome.is_success());
}

#[tokio::test(start_paused = true)]
async fn d12_arguments_reach_the_tool_unchanged_otherwise() {
    let sent = json!({
        "count": 5.0, "text": " 5 ", "æ": ["ø", null, {"deep": [[]]}], "big": u64::MAX, "z": 1, "a": 2
    });
    for call in [
        call("t", sent.clone()),
        steadyhand::Call::new("t", sent.to_string()),
    ] {
        let tool = slips();
        executor([tool.tool()]).execute(call).await;
        assert_eq!(tool.seen()[0].args.to_string(), sent.to_string());
    }
}

// D13: which text goes where

#[tokio::test(start_paused = true)]
async fn d13_flat_and_message_carry_the_tools_own_words_and_user_message_the_friendly_ones() {
    let own = "HTTP 502: <b>bad gateway</b>\nsecond line ❌";
    let error = ToolError::of(Category::Network, own);
    let outcome = run_once(script("t").fails(error).tool()).await;
    assert_eq!(flat(&outcome)["error"], own);
    let effect = "It may have run; check before trying again (this tool is safe to repeat).";
    assert_eq!(content(&outcome), format!("Error: {own}\n{effect}"));
    assert_eq!(structured(&outcome)["error"]["message"], own);
    assert_ne!(failure(&outcome).user_message, own);
    let friendly = ToolError::new("raw").user_message("Please try again.");
    let outcome = run_once(script("t").fails(friendly).tool()).await;
    assert_eq!(
        failure(&outcome).user_message,
        "Please try again. It ran, and failed."
    );
}

#[tokio::test(start_paused = true)]
async fn d13_secrets_are_hidden_in_what_a_tool_says() {
    let args = json!({
        "password": "hunter22",
        "pin": 987_654,
        "credentials": {"user": "ann", "value": "hunter33"},
        "api_keys": ["hunter44"],
        "headers": [{"authorization": "hunter55"}],
    });
    let secrets = [
        "hunter22",
        "987654",
        "hunter33",
        "hunter44",
        "hunter55",
        "sk-abcdef1234567890",
    ];
    let mut shown_secrets = Vec::new();
    for secret in secrets {
        let said = format!("login with {secret} was not possible");
        for tool in [
            script("t").fails(ToolError::new(said.clone())),
            script("t").fails(ToolError::new("x").user_message(said.clone())),
            script("t").panics(format!("{ON_PURPOSE}: {said}")),
        ] {
            let outcome = run(tool.tool().no_retry(), args.clone()).await;
            let shown = format!("{}{}", structured(&outcome), content(&outcome));
            if shown.contains(secret) {
                shown_secrets.push(secret);
            }
        }
    }
    assert!(shown_secrets.is_empty(), "{shown_secrets:?}");
}

#[tokio::test(start_paused = true)]
async fn d13_secrets_among_good_arguments_do_not_come_back_with_the_faults_of_bad_ones() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "password": {"type": "string"},
            "login": {"type": "object"},
        },
        "required": ["n"],
    });
    let args = json!({
        "n": "x",
        "password": "hunter22",
        "login": {"user": "ann", "password": "hunter33"},
    });
    let outcome = run(script("t").schema(schema).tool(), args).await;
    let shown = format!("{}{}", structured(&outcome), content(&outcome));
    for secret in ["hunter22", "hunter33"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_a_faulty_secret_is_not_shown() {
    let schema = json!({"type": "object", "properties": {
        "password": {"type": "string", "minLength": 20},
        "pin": {"type": "integer", "maximum": 10},
        "api_key": {"enum": ["a", "b"]},
    }});
    let args = json!({"password": "hunter22", "pin": 987_654, "api_key": "hunter33"});
    let outcome = run(script("t").schema(schema).tool(), args).await;
    let shown = format!("{}{}", structured(&outcome), content(&outcome));
    for secret in ["hunter22", "987654", "hunter33"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_what_a_tool_says_has_a_bounded_size() {
    let outcome = run_once(
        script("t")
            .fails(ToolError::new("ø".repeat(1_000_000)))
            .tool(),
    )
    .await;
    assert!(content(&outcome).len() < 20_000);
    assert!(failure(&outcome).message.contains("2000000 bytes"));
}

// D14: no description

#[test]
fn d14_a_tool_of_our_own_without_description_is_refused() {
    let mute = Tool::with_schema("t", "", json!({}), |_: Value| async {
        Ok::<(), ToolError>(())
    });
    let refused = ToolManager::new().add(mute).unwrap_err();
    assert!(refused.fault.contains("description"), "{refused}");
}

// D18: limits by default

#[tokio::test(start_paused = true)]
async fn d18_256_run_at_once_1024_wait_and_one_more_is_refused() {
    let tool = script("t").answers(1).taking(secs(1));
    let executor = executor([tool.tool()]);
    let started = Instant::now();
    let calls = vec![call("t", json!({})).deadline(secs(600)); 256 + 1024 + 1];
    let outcomes = executor.execute_batch(calls).await;
    let refused: Vec<usize> = (0..outcomes.len())
        .filter(|place| !outcomes[*place].is_success())
        .collect();
    assert_eq!(refused, [1280]);
    assert_eq!(
        (code(&outcomes[1280]), outcomes[1280].execution_time),
        ("OVERLOADED", ms(0))
    );
    assert_eq!(failure(&outcomes[1280]).effect, Effect::None);
    for second in 0..5 {
        let at = started + secs(second);
        assert_eq!(
            tool.seen().iter().filter(|seen| seen.at == at).count(),
            256,
            "{second}"
        );
    }
    assert_eq!(executor.tools().metrics("t").unwrap().rejected, 1);
}

#[tokio::test(start_paused = true)]
async fn d18_a_place_is_given_back_while_a_call_waits_for_its_next_attempt() {
    let limited = ToolError::new("later").retry_after(secs(10));
    let tool = script("t").fails(limited).answers(1);
    let executor = executor([tool.tool().limit(1, 0)]);
    let second = async {
        sleep(secs(1)).await;
        executor.execute(once("t")).await
    };
    let (first, second) = tokio::join!(executor.execute(call("t", json!({}))), second);
    assert!(first.is_success() && second.is_success());
}

#[tokio::test(start_paused = true)]
async fn d18_a_call_that_leaves_the_queue_leaves_no_trace() {
    let executor = executor([script("t").answers(1).taking(secs(5)).tool().limit(1, 1)]);
    let second = async {
        sleep(ms(1)).await;
        assert!(timeout(secs(1), executor.execute(once("t"))).await.is_err());
        let metrics = executor.tools().metrics("t").unwrap();
        assert_eq!(
            (metrics.queued, metrics.in_flight, metrics.cancelled),
            (0, 1, 1)
        );
        executor.execute(once("t")).await
    };
    let (first, third) = tokio::join!(executor.execute(once("t")), second);
    assert!(first.is_success() && third.is_success());
}

#[tokio::test]
async fn d18_a_batch_of_blocking_calls_runs_concurrently_too() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let wait = Arc::clone(&gate);
    let tool = Tool::blocking("t", "Waits until the gate is open", move |_: Nothing| {
        let (open, bell) = &*wait;
        let open = open.lock().unwrap();
        drop(bell.wait_while(open, |open| !*open).unwrap());
        Ok::<(), ToolError>(())
    });
    let executor = executor([tool.no_retry()]);
    // The batch is polled first: all its calls are started or refused before the gate opens.
    let open = async {
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    };
    let (outcomes, ()) = tokio::join!(executor.execute_batch(vec![once("t"); 100]), open);
    let refused = outcomes
        .iter()
        .filter(|outcome| !outcome.is_success())
        .count();
    assert_eq!(
        refused,
        0,
        "{:?}",
        outcomes.iter().find_map(Outcome::failure)
    );
}

#[tokio::test(start_paused = true)]
async fn d18_a_fallback_holds_no_place() {
    let slow = Fallback::function(|_, _| async {
        sleep(secs(4)).await;
        Ok(Output::json("backup"))
    });
    let tool = script("t").fails(ToolError::answer("no")).answers(1);
    let executor = executor([tool.tool().limit(1, 0).fallback(slow)]);
    let second = async {
        sleep(secs(1)).await;
        executor.execute(once("t")).await
    };
    let (first, second) = tokio::join!(executor.execute(once("t")), second);
    assert!(first.fallback.is_some() && second.is_success());
}
