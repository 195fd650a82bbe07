//! When the breaker of a tool opens, what it counts, and how it closes again.

use serde_json::json;
use steadyhand::testing::{Script, script};
use steadyhand::{BreakerState, Category, Effect, Health, Outcome, ToolError, ToolExecutor};
use tokio::time::{advance, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::logs;
use crate::support::{
    ON_PURPOSE, call, code, executor, failing, failure, ms, once, run_once, secs, state, trip,
};

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
