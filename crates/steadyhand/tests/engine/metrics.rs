//! What is counted of calls.

use std::time::Duration;

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{BreakerState, Category, FailureCode, ToolError};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{call, code, executor, keyed, ms, once, secs};

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
