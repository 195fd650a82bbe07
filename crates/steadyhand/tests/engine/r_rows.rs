//! SPEC section 4, resilience: rows R04 to R11.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::testing::{Script, script};
use steadyhand::{
    BreakerState, BudgetPolicy, Call, Category, Effect, FailureCode, Fallback, Outcome, Output,
    RetryPolicy, Status, Tool, ToolError, ToolExecutor,
};
use tokio::time::{advance, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, content, executor, failing, failure, flat, ms, once, run, run_once,
    secs, state, structured, trip, waits,
};

// R04: the breaker

#[tokio::test(start_paused = true)]
async fn r04_the_fifth_failure_in_a_row_opens_and_not_the_fourth() {
    let tool = failing("t", 100);
    let executor = executor([tool.tool()]);
    for failed in 1..=5 {
        executor.execute(once("t")).await;
        let expected = if failed < 5 {
            BreakerState::Closed
        } else {
            BreakerState::Open
        };
        assert_eq!(state(&executor, "t"), expected, "after {failed}");
        assert_eq!(executor.tools().breaker("t").unwrap().failures, failed);
    }
    let refused = executor.execute(call("t", json!({}))).await;
    assert_eq!(code(&refused), "CIRCUIT_OPEN");
    assert_eq!((refused.attempts, refused.execution_time), (0, ms(0)));
    assert_eq!(
        (failure(&refused).retryable, failure(&refused).effect),
        (false, Effect::None)
    );
    assert_eq!(failure(&refused).retry_after, Some(secs(60)));
    assert_eq!(tool.starts(), 5);
}

#[tokio::test(start_paused = true)]
async fn r04_a_success_between_failures_starts_the_count_anew() {
    let ill = || ToolError::new("ill");
    let four = (0..4).fold(script("t"), |script, _| script.fails(ill()));
    let tool = (0..4)
        .fold(four.answers(1), |script, _| script.fails(ill()))
        .fails(ill());
    let executor = executor([tool.tool()]);
    for _ in 0..9 {
        executor.execute(once("t")).await;
        assert_eq!(state(&executor, "t"), BreakerState::Closed);
    }
    executor.execute(once("t")).await;
    assert_eq!(state(&executor, "t"), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn r04_after_sixty_seconds_and_not_before_a_trial_passes_and_its_success_closes() {
    let tool = failing("t", 5);
    let executor = executor([tool.tool()]);
    trip(&executor, "t").await;
    advance(ms(59_999)).await;
    assert_eq!(code(&executor.execute(once("t")).await), "CIRCUIT_OPEN");
    advance(ms(1)).await;
    assert!(executor.execute(once("t")).await.is_success());
    assert_eq!(state(&executor, "t"), BreakerState::Closed);
    assert_eq!(executor.tools().breaker("t").unwrap().failures, 0);
    assert_eq!(tool.starts(), 6);
}

#[tokio::test(start_paused = true)]
async fn r04_a_failed_trial_opens_for_another_sixty_seconds() {
    let tool = failing("t", 6);
    let executor = executor([tool.tool()]);
    trip(&executor, "t").await;
    advance(secs(60)).await;
    executor.execute(once("t")).await;
    assert_eq!(state(&executor, "t"), BreakerState::Open);
    advance(ms(59_999)).await;
    assert_eq!(code(&executor.execute(once("t")).await), "CIRCUIT_OPEN");
    advance(ms(1)).await;
    assert!(executor.execute(once("t")).await.is_success());
    assert_eq!(executor.tools().breaker("t").unwrap().trips, 2);
}

#[tokio::test(start_paused = true)]
async fn r04_it_can_be_reset_by_hand() {
    let executor = executor([failing("t", 5).tool()]);
    trip(&executor, "t").await;
    assert!(executor.tools().reset_breaker("t"));
    assert!(!executor.tools().reset_breaker("nowhere"));
    assert_eq!(state(&executor, "t"), BreakerState::Closed);
    assert!(executor.execute(once("t")).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn r04_a_reset_that_changes_nothing_is_not_told_as_a_change() {
    let logs = logs::capture();
    let executor = executor([script("t").tool()]);
    executor.tools().reset_breaker("t");
    assert!(
        logs.of(Level::INFO, "breaker changed").is_empty(),
        "{:?}",
        logs.all()
    );
}

#[tokio::test(start_paused = true)]
async fn r04_the_states_are_visible() {
    let executor = executor([failing("t", 5).tool()]);
    let view = || serde_json::to_value(executor.tools().breaker("t")).unwrap();
    assert_eq!(
        view(),
        json!({"failures": 0, "lastFailure": null, "state": "closed", "trips": 0})
    );
    trip(&executor, "t").await;
    let open = view();
    assert!(
        open["lastFailure"]
            .as_u64()
            .is_some_and(|ms| ms > 1_700_000_000_000),
        "{open}"
    );
    assert_eq!(
        (&open["failures"], &open["state"]),
        (&json!(5), &json!("open"))
    );
    advance(secs(60)).await;
    executor.execute(once("t")).await;
    assert_eq!(view()["state"], "closed");
}

#[tokio::test(start_paused = true)]
async fn r04_while_the_trial_runs_the_state_is_half_open() {
    let five = (0..5).fold(script("t"), |script, _| script.fails(ToolError::new("ill")));
    let executor = executor([five.answers(1).taking(secs(1)).tool()]);
    trip(&executor, "t").await;
    advance(secs(60)).await;
    let look = async {
        sleep(ms(500)).await;
        serde_json::to_value(executor.tools().breaker("t").unwrap()).unwrap()
    };
    let (outcome, view) = tokio::join!(executor.execute(once("t")), look);
    assert!(outcome.is_success());
    assert_eq!(view["state"], "half-open");
}

#[tokio::test(start_paused = true)]
async fn r04_each_tool_has_its_own_and_its_own_settings() {
    let [ill, well, quick, none] = ["ill", "well", "quick", "none"].map(|name| failing(name, 100));
    let executor = executor([
        ill.tool(),
        well.tool(),
        quick.tool().breaker(2, secs(5)),
        none.tool().no_breaker(),
    ]);
    trip(&executor, "ill").await;
    assert_eq!(state(&executor, "well"), BreakerState::Closed);
    for _ in 0..3 {
        executor.execute(once("quick")).await;
    }
    assert_eq!(quick.starts(), 2);
    advance(secs(5)).await;
    executor.execute(once("quick")).await;
    assert_eq!(quick.starts(), 3);
    for _ in 0..10 {
        executor.execute(once("none")).await;
    }
    assert_eq!(none.starts(), 10);
    assert!(executor.tools().breaker("none").is_none());
}

#[tokio::test(start_paused = true)]
async fn r04_many_failures_at_once_trip_it_once() {
    let executor = executor([script("t")
        .fails(ToolError::new("ill"))
        .taking(ms(10))
        .tool()]);
    executor.execute_batch(vec![once("t"); 50]).await;
    let view = executor.tools().breaker("t").unwrap();
    assert_eq!(
        (view.state, view.trips, view.failures),
        (BreakerState::Open, 1, 5)
    );
}

// R05: retries

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

// R06: time-out

#[tokio::test(start_paused = true)]
async fn r06_a_timeout_is_repeated_like_other_failures_of_a_safe_tool() {
    let tool = script("t").hangs().answers("late but fine");
    let outcome = run(tool.tool().timeout(secs(1)), json!({})).await;
    assert!(outcome.is_success());
    assert_eq!((outcome.attempts, outcome.execution_time), (2, ms(1100)));
}

// R07: categories

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

#[tokio::test(start_paused = true)]
async fn r07_cancellation_is_an_outcome_that_says_whether_the_tool_was_started() {
    let token = CancellationToken::new();
    let tool = script("t").hangs();
    let executor = executor([tool.tool()]);
    let stop = async {
        sleep(secs(3)).await;
        token.cancel();
    };
    let running = executor.execute(call("t", json!({})).cancellation(token.clone()));
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(
        (code(&outcome), outcome.status()),
        ("CANCELLED", Status::Error)
    );
    assert_eq!(outcome.execution_time, secs(3));
    assert_eq!(
        (failure(&outcome).effect, failure(&outcome).retryable),
        (Effect::Unknown, false)
    );
}

#[tokio::test(start_paused = true)]
async fn r07_a_call_cancelled_before_it_starts_runs_nothing() {
    let token = CancellationToken::new();
    token.cancel();
    for tool in [script("t").answers(1), script("t").hangs()] {
        let cancelled = call("t", json!({})).cancellation(token.clone());
        let outcome = executor([tool.tool()]).execute(cancelled).await;
        assert_eq!((code(&outcome), tool.starts()), ("CANCELLED", 0));
        assert_eq!(failure(&outcome).effect, Effect::None);
    }
}

#[tokio::test(start_paused = true)]
async fn r07_cancellation_while_waiting_for_the_next_attempt_ends_the_call_at_once() {
    let token = CancellationToken::new();
    let tool = script("t").fails(ToolError::new("ill").retry_after(secs(20)));
    let executor = executor([tool.tool()]);
    let stop = async {
        sleep(secs(2)).await;
        token.cancel();
    };
    let running = executor.execute(call("t", json!({})).cancellation(token.clone()));
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(
        (code(&outcome), outcome.execution_time),
        ("CANCELLED", secs(2))
    );
    assert_eq!((failure(&outcome).effect, tool.starts()), (Effect::Done, 1));
}

// R07: idempotency keys

fn keyed(key: &str, args: Value) -> Call {
    call("t", args).idempotency_key(key)
}

#[tokio::test(start_paused = true)]
async fn r07_a_repeated_key_joins_the_call_that_runs() {
    let tool = script("t").answers("paid").taking(secs(2));
    let executor = executor([tool.tool()]);
    let second = async {
        sleep(ms(500)).await;
        executor
            .execute(keyed("k", json!({"b": 2, "a": 1})).id("second"))
            .await
    };
    let first = executor.execute(keyed("k", json!({"a": 1, "b": 2})).id("first"));
    let (first, second) = tokio::join!(first, second);
    assert_eq!(tool.starts(), 1);
    let seen = |outcome: &Outcome| {
        (
            outcome.call_id.clone(),
            outcome.replayed,
            outcome.execution_time,
        )
    };
    assert_eq!(seen(&first), ("first".to_owned(), false, secs(2)));
    assert_eq!(seen(&second), ("second".to_owned(), true, ms(1500)));
    assert_eq!(first.result, second.result);
    assert_eq!(tool.seen()[0].idempotency_key, "k");
    let metrics = executor.tools().metrics("t").unwrap();
    assert_eq!((metrics.total_executions, metrics.joined), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn r07_a_repeated_key_gets_the_stored_outcome_of_success_and_of_failure() {
    let tool = script("t")
        .answers("paid")
        .fails(ToolError::new("who knows"));
    let executor = executor([tool.tool().no_retry()]);
    for (key, success) in [("good", true), ("bad", false)] {
        let first = executor.execute(keyed(key, json!({}))).await;
        let again = executor.execute(keyed(key, json!({}))).await;
        assert_eq!(
            (first.is_success(), first.replayed, again.replayed),
            (success, false, true)
        );
        assert_eq!(first.result, again.result);
    }
    assert_eq!(tool.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn r07_a_repeated_key_with_other_arguments_is_refused() {
    let tool = script("t").answers("paid");
    let executor = executor([tool.tool(), script("other").tool()]);
    executor.execute(keyed("k", json!({"amount": 1}))).await;
    for call in [
        keyed("k", json!({"amount": 2})),
        call("other", json!({"amount": 1})).idempotency_key("k"),
    ] {
        let outcome = executor.execute(call).await;
        assert_eq!(code(&outcome), "IDEMPOTENCY_CONFLICT");
        assert_eq!(
            (failure(&outcome).retryable, failure(&outcome).effect),
            (false, Effect::None)
        );
    }
    assert_eq!(tool.starts(), 1);
    assert_eq!(
        executor.tools().metrics("other").unwrap().total_executions,
        0
    );
}

#[tokio::test(start_paused = true)]
async fn r07_a_key_whose_call_had_no_effect_can_be_used_again() {
    let tool = script("t")
        .fails(ToolError::new("no").never_started())
        .answers("now");
    let executor = executor([tool.tool().no_retry()]);
    assert!(!executor.execute(keyed("k", json!({}))).await.is_success());
    let again = executor.execute(keyed("k", json!({}))).await;
    assert_eq!((again.is_success(), again.replayed), (true, false));
}

#[tokio::test(start_paused = true)]
async fn r07_a_call_with_a_key_goes_on_when_its_caller_leaves() {
    let tool = script("t").answers("paid").taking(secs(5));
    let executor = executor([tool.tool()]);
    let left = timeout(secs(1), executor.execute(keyed("k", json!({})))).await;
    assert!(left.is_err(), "the caller left");
    let back = executor.execute(keyed("k", json!({}))).await;
    assert_eq!(
        (back.is_success(), back.replayed, tool.starts()),
        (true, true, 1)
    );
    assert_eq!(back.execution_time, secs(4));
}

#[tokio::test(start_paused = true)]
async fn r07_who_joins_is_bound_by_his_own_patience() {
    let tool = script("t").answers("paid").taking(secs(5));
    let executor = executor([tool.tool()]);
    let hasty = async {
        sleep(secs(1)).await;
        executor
            .execute(keyed("k", json!({})).deadline(secs(1)))
            .await
    };
    let (first, hasty) = tokio::join!(executor.execute(keyed("k", json!({}))), hasty);
    assert!(first.is_success());
    assert_eq!(
        (hasty.status(), hasty.execution_time),
        (Status::Timeout, secs(1))
    );
    assert_eq!(failure(&hasty).effect, Effect::Unknown);
}

#[tokio::test(start_paused = true)]
async fn r07_all_attempts_of_a_call_share_a_key_and_no_other_call_has_it() {
    let tool = script("t").fails(ToolError::new("ill"));
    let executor = executor([tool.tool()]);
    // The same id, as models send it.
    executor.execute_batch(vec![call("t", json!({})); 2]).await;
    let mut keys: Vec<String> = tool
        .seen()
        .into_iter()
        .map(|seen| seen.idempotency_key)
        .collect();
    assert_eq!(keys.len(), 8);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 2);
}

// R08: metrics

#[tokio::test(start_paused = true)]
async fn r08_the_counts_are_exact_and_what_was_not_executed_is_counted_apart() {
    let tool = script("t")
        .schema(json!({"type": "object", "properties": {"bad": false}}))
        .answers(1)
        .taking(ms(100))
        .answers(1)
        .taking(ms(300))
        .fails(ToolError::new("ill"))
        .taking(ms(200))
        .hangs();
    let executor = executor([tool.tool().timeout(secs(1)).no_retry().limit(1, 0)]);
    for _ in 0..4 {
        executor.execute(once("t")).await;
    }
    for _ in 0..2 {
        executor.execute(call("t", json!({"bad": 1}))).await;
    }
    let token = CancellationToken::new();
    let cancel = async {
        sleep(ms(10)).await;
        // The only place is taken: refused.
        executor.execute(once("t")).await;
        token.cancel();
    };
    tokio::join!(
        executor.execute(once("t").cancellation(token.clone())),
        cancel
    );
    assert!(timeout(ms(10), executor.execute(once("t"))).await.is_err());
    executor.execute(once("t").deadline(ms(0))).await;

    let metrics = executor.tools().metrics("t").unwrap();
    let counts = [
        metrics.total_executions,
        metrics.success_count,
        metrics.error_count,
        metrics.timeout_count,
        metrics.invalid,
        metrics.cancelled,
        metrics.rejected,
        metrics.in_flight,
        metrics.queued,
    ];
    assert_eq!(counts, [4, 2, 1, 1, 2, 2, 2, 0, 0]);
    assert_eq!(metrics.failure_rate, 0.5);
    assert_eq!(metrics.avg_execution_time, 400.0);
    for (shown, exact) in [
        (metrics.p50, 200.0),
        (metrics.p95, 1000.0),
        (metrics.p99, 1000.0),
    ] {
        assert!(
            (exact..=exact * 1.125).contains(&shown),
            "{shown} for {exact}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn r08_a_tools_own_no_is_an_error_in_every_metric_and_leaves_the_breaker_alone() {
    // What an MCP `isError` and an HTTP 404 become (SPEC D8).
    let tool = script("t").fails(ToolError::answer("no such page"));
    let executor = executor([tool.tool()]);
    for _ in 0..6 {
        executor.execute(call("t", json!({}))).await;
    }
    let metrics = executor.tools().metrics("t").unwrap();
    let counts = [
        metrics.total_executions,
        metrics.success_count,
        metrics.error_count,
        metrics.errors_by_code[&FailureCode::ToolExecutionError],
        metrics.retries,
        metrics.rejected,
    ];
    assert_eq!(counts, [6, 0, 6, 6, 0, 0]);
    assert_eq!(metrics.failure_rate, 1.0);
    let breaker = metrics.breaker.unwrap();
    assert_eq!(
        (breaker.state, breaker.trips, breaker.failures),
        (BreakerState::Closed, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn r08_every_failed_call_is_counted_once_by_its_code() {
    let tool = script("t")
        .schema(json!({"type": "object", "properties": {"bad": false}}))
        .fails(ToolError::of(Category::Network, "gone"))
        .fails(ToolError::of(Category::RateLimit, "slower"))
        .hangs();
    let executor = executor([tool.tool().timeout(secs(1)).no_retry().limit(1, 0)]);
    for _ in 0..3 {
        executor.execute(once("t")).await;
    }
    executor.execute(call("t", json!({"bad": 1}))).await;
    let (_, refused) = tokio::join!(executor.execute(once("t")), executor.execute(once("t")));
    assert_eq!(code(&refused), "OVERLOADED");
    assert!(timeout(ms(10), executor.execute(once("t"))).await.is_err());
    executor.execute(call("nowhere", json!({}))).await;

    let metrics = executor.tools().metrics("t").unwrap();
    let counted: Vec<(&str, u64)> = metrics
        .errors_by_code
        .iter()
        .map(|(code, calls)| (code.as_str(), *calls))
        .collect();
    assert_eq!(
        counted,
        [
            ("NETWORK_ERROR", 1),
            ("TIMEOUT", 2),
            ("RATE_LIMIT_ERROR", 1),
            ("VALIDATION_ERROR", 1),
            ("CANCELLED", 1),
            ("OVERLOADED", 1),
        ]
    );
    let all: u64 = metrics.errors_by_code.values().sum();
    let apart = metrics.rejected + metrics.invalid + metrics.cancelled;
    assert_eq!(all, metrics.error_count + metrics.timeout_count + apart);
    assert_eq!(executor.tools().unknown_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn r08_the_spread_of_times_is_exact_at_powers_of_two() {
    let tool = script("t")
        .answers(1)
        .taking(ms(3))
        .answers(1)
        .taking(ms(5))
        .answers(1)
        .taking(secs(2));
    let executor = executor([tool.tool()]);
    for _ in 0..3 {
        executor.execute(once("t")).await;
    }
    let times = executor.tools().metrics("t").unwrap().times;
    let shorter =
        [20, 21, 22, 23, 30, 31].map(|bits| times.shorter_than(Duration::from_nanos(1 << bits)));
    assert_eq!(shorter, [0, 0, 1, 2, 2, 3]);
    assert_eq!((times.count(), times.sum), (3, ms(2008)));
    let both = times.and(&times);
    assert_eq!((both.count(), both.sum), (6, ms(4016)));
    assert_eq!(both.shorter_than(Duration::from_nanos(1 << 23)), 4);
}

#[tokio::test(start_paused = true)]
async fn r08_a_call_refused_for_its_key_is_counted_as_rejected() {
    let executor = executor([script("t").tool()]);
    executor.execute(keyed("k", json!({"a": 1}))).await;
    executor.execute(keyed("k", json!({"a": 2}))).await;
    let metrics = executor.tools().metrics("t").unwrap();
    assert_eq!((metrics.total_executions, metrics.rejected), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn r08_retries_fallbacks_and_trips_are_counted() {
    let tool = script("t").fails(ToolError::new("ill"));
    let executor = executor([tool.tool().fallback_value(json!("backup"))]);
    for _ in 0..7 {
        executor.execute(call("t", json!({}))).await;
    }
    let metrics = executor.tools().metrics("t").unwrap();
    let counts = [
        metrics.error_count,
        metrics.retries,
        metrics.fallbacks,
        metrics.rejected,
    ];
    assert_eq!(counts, [5, 15, 7, 2]);
    let breaker = metrics.breaker.unwrap();
    assert_eq!((breaker.trips, breaker.state), (1, BreakerState::Open));
}

#[tokio::test(start_paused = true)]
async fn r08_what_runs_and_what_waits_is_visible_now() {
    let executor = executor([script("t").answers(1).taking(secs(1)).tool().limit(2, 10)]);
    let look = async {
        sleep(ms(500)).await;
        let now = executor.tools().metrics("t").unwrap();
        (now.in_flight, now.queued, now.total_executions)
    };
    let (outcomes, now) = tokio::join!(executor.execute_batch(vec![once("t"); 5]), look);
    assert_eq!(outcomes.len(), 5);
    assert_eq!(now, (2, 3, 0));
    let later = executor.tools().metrics("t").unwrap();
    assert_eq!(
        (later.in_flight, later.queued, later.total_executions),
        (0, 0, 5)
    );
}

#[tokio::test(start_paused = true)]
async fn r08_they_are_exported_under_the_documents_names() {
    let executor = executor([script("t").answers(1).taking(ms(8)).tool()]);
    executor.execute(once("t")).await;
    let all = executor.tools().all_metrics();
    assert_eq!(all[0].0, "t");
    let json = serde_json::to_value(&all[0].1).unwrap();
    for (name, value) in [
        ("totalExecutions", json!(1)),
        ("successCount", json!(1)),
        ("errorCount", json!(0)),
        ("timeoutCount", json!(0)),
        ("avgExecutionTime", json!(8.0)),
        ("failureRate", json!(0.0)),
    ] {
        assert_eq!(json[name], value, "{name}");
    }
}

// R09: the structured view, and how large an output may be

#[tokio::test(start_paused = true)]
async fn r09_the_structured_view_is_whole_whatever_happened() {
    let tools = [
        script("works").answers(Value::Null).tool(),
        script("fails")
            .fails(ToolError::new("no"))
            .tool()
            .no_retry(),
        script("hangs").hangs().tool().no_retry(),
        script("covered")
            .fails(ToolError::new("no"))
            .tool()
            .no_retry()
            .fallback_value(json!(1)),
    ];
    let executor = executor(tools);
    for (name, status, output, error, fallback) in [
        ("works", "success", true, false, false),
        ("fails", "error", false, true, false),
        ("hangs", "timeout", false, true, false),
        ("covered", "error", true, true, true),
        ("nowhere", "error", false, true, false),
    ] {
        let view = structured(&executor.execute(call(name, json!({})).id("c-1")).await);
        assert_eq!(
            (&view["toolName"], &view["callId"]),
            (&json!(name), &json!("c-1"))
        );
        assert_eq!(view["status"], status);
        assert_eq!(view.get("output").is_some(), output, "{view}");
        assert_eq!(view.get("error").is_some(), error, "{view}");
        assert_eq!(
            view.get("fallbackUsed"),
            fallback.then_some(&json!(true)),
            "{view}"
        );
        assert!(view["executionTime"].is_f64(), "{view}");
        if let Some(error) = view.get("error") {
            for field in ["code", "message", "userMessage"] {
                assert!(
                    error[field].as_str().is_some_and(|text| !text.is_empty()),
                    "{view}"
                );
            }
            assert!(
                error["retryable"].is_boolean() && error["effect"].is_string(),
                "{view}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r09_a_large_output_is_cut_with_a_mark_and_its_full_size_is_said() {
    for (output, kept) in [
        (json!("æ".repeat(3000)), "æææ"),
        (
            json!({"small": 1, "large": "x".repeat(6000)}),
            "\"small\":1",
        ),
        (json!(vec!["item"; 1000]), "\"item\",\"item\""),
        (
            json!({"rows": vec![json!({"id": 7, "name": "æøå"}); 500], "n": 500}),
            "\"n\":500",
        ),
        (json!([["y".repeat(9000)]]), "yyy"),
    ] {
        let full = output.to_string().len();
        let tool = script("t").answers(output).tool().output_bytes_max(1000);
        let outcome = run(tool, json!({})).await;
        let cut = outcome.output().unwrap().value().to_string();
        assert!(cut.len() <= 1000, "{} bytes", cut.len());
        assert!(cut.contains(kept) && cut.contains("[cut: "), "{cut}");
        assert_eq!(
            structured(&outcome)["truncated"],
            json!({"fullBytes": full, "limitBytes": 1000})
        );
        assert!(content(&outcome).len() <= 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn r09_an_output_up_to_the_limit_is_left_alone() {
    for (length, cut) in [(998, false), (999, true)] {
        let tool = script("t")
            .answers("x".repeat(length))
            .tool()
            .output_bytes_max(1000);
        let outcome = run(tool, json!({})).await;
        assert_eq!(outcome.output().unwrap().cut().is_some(), cut, "{length}");
        assert_eq!(
            structured(&outcome).get("truncated").is_some(),
            cut,
            "{length}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn r09_characters_that_are_longer_in_json_do_not_break_the_limit() {
    let mut too_large = Vec::new();
    for text in ["\"".repeat(900), "\u{1}".repeat(5000), "\\".repeat(100_000)] {
        let tool = script("t")
            .answers(text.clone())
            .tool()
            .output_bytes_max(1000);
        let outcome = run(tool, json!({})).await;
        let cut = outcome.output().unwrap().value().to_string();
        if cut.len() > 1000 || !cut.contains("[cut: ") {
            too_large.push(format!("{} bytes of {:?}", cut.len(), &text[..1]));
        }
    }
    assert!(too_large.is_empty(), "{too_large:?}");
}

#[tokio::test(start_paused = true)]
async fn r09_five_megabytes_are_cut_by_default() {
    let outcome = run(script("t").answers("x".repeat(5_000_000)).tool(), json!({})).await;
    assert!(content(&outcome).len() <= 256 * 1024);
    assert_eq!(
        outcome.output().unwrap().cut().unwrap().full_bytes,
        5_000_002
    );
}

// R10: batches

#[tokio::test(start_paused = true)]
async fn r10_a_call_that_names_no_tool_or_is_none_at_all_fails_alone_and_is_not_run() {
    let executor = executor([script("works").answers("fine").tool()]);
    let calls = vec![
        Call::new("works", json!({})),
        Call::new("", json!({})).id("empty"),
        Call::new(" \n", json!({})).idempotency_key("blank"),
        Call::malformed("5", "works", "it is a number, and must be an object"),
        Call::new("works", json!({})),
    ];
    let outcomes = executor.execute_batch(calls).await;
    assert_eq!(outcomes[0].status(), Status::Success);
    assert_eq!(outcomes[4].status(), Status::Success);
    let words = ["it names no tool", "it names no tool", "it is a number"];
    for (outcome, words) in outcomes[1..4].iter().zip(words) {
        let failure = outcome.failure().expect("a failure");
        assert_eq!(failure.code, FailureCode::ValidationError);
        assert_eq!(failure.effect, Effect::None);
        assert!(!failure.retryable);
        assert!(failure.message.contains(words), "{}", failure.message);
        assert_eq!(outcome.attempts, 0);
    }
    assert_eq!(outcomes[1].call_id, "empty");
}

#[tokio::test(start_paused = true)]
async fn r10_a_batch_gives_one_outcome_per_call_in_call_order_whatever_happens() {
    let token = CancellationToken::new();
    let tools = [
        script("works").answers("fine").taking(ms(300)).tool(),
        script("fails").fails(ToolError::new("no")).tool(),
        script("panics").panics(ON_PURPOSE).tool(),
        script("hangs").hangs().tool(),
        script("strict")
            .schema(json!({"type": "object", "required": ["a"]}))
            .tool(),
    ];
    let executor = executor(tools);
    let calls = [
        ("hangs", "1", "TIMEOUT"),
        ("works", "2", ""),
        ("nowhere", "3", "TOOL_NOT_FOUND"),
        ("panics", "4", "TOOL_EXECUTION_ERROR"),
        ("strict", "same", "VALIDATION_ERROR"),
        ("works", "same", ""),
        ("fails", "same", "TOOL_EXECUTION_ERROR"),
        ("hangs", "8", "CANCELLED"),
    ];
    let batch = calls.map(|(name, id, expected)| {
        let call = Call::new(name, json!({})).id(id);
        match expected {
            "CANCELLED" => call.cancellation(token.clone()),
            _ => call,
        }
    });
    let stop = async {
        sleep(ms(50)).await;
        token.cancel();
    };
    let (outcomes, ()) = tokio::join!(executor.execute_batch(batch.to_vec()), stop);
    let ended: Vec<(&str, &str, &str)> = outcomes
        .iter()
        .map(|outcome| {
            (
                outcome.tool_name.as_str(),
                outcome.call_id.as_str(),
                code(outcome),
            )
        })
        .collect();
    assert_eq!(ended, calls);
    assert!(executor.execute_batch(Vec::new()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r10_all_calls_of_a_batch_run_at_the_same_time() {
    let executor = executor([script("t").answers(1).taking(ms(200)).tool()]);
    let started = tokio::time::Instant::now();
    let outcomes = executor.execute_batch(vec![once("t"); 200]).await;
    assert!(outcomes.iter().all(Outcome::is_success));
    assert_eq!(started.elapsed(), ms(200));
}

#[tokio::test(start_paused = true)]
async fn r10_calls_of_a_batch_with_one_key_run_once() {
    let tool = script("t").answers(1).taking(ms(200));
    let executor = executor([tool.tool()]);
    let outcomes = executor.execute_batch(vec![keyed("k", json!({})); 5]).await;
    assert!(outcomes.iter().all(Outcome::is_success));
    assert_eq!((outcomes.len(), tool.starts()), (5, 1));
}

// R11: fallbacks

fn ill() -> Tool {
    script("t").fails(ToolError::new("ill")).tool().no_retry()
}

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

/// The executor can be shared by threads and tasks.
#[test]
fn r10_an_executor_can_go_anywhere() {
    fn anywhere<T: Send + Sync + Clone + 'static>() {}
    anywhere::<ToolExecutor>();
}
