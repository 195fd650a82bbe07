//! Trends: what is counted of calls as they are written.

use std::time::Duration;

use steadyhand::testing::script;
use steadyhand::{RetryPolicy, ToolError};
use steadyhand_store::history::{Counts, Trends, Window};

use super::{Place, call, echo};

fn sum(trends: &Trends, of: impl Fn(&Counts) -> u64) -> u64 {
    trends.buckets.iter().map(|bucket| of(&bucket.counts)).sum()
}

async fn some_calls() -> Place {
    let retry = RetryPolicy {
        attempts: 2,
        ..RetryPolicy::default()
    };
    let flaky = script("flaky")
        .fails(ToolError::new("not yet"))
        .answers(1)
        .tool();
    let ill = script("ill").fails(ToolError::new("ill")).tool().no_retry();
    let hangs = script("hangs").hangs().tool().no_retry();
    let slow = script("slow")
        .answers(1)
        .taking(Duration::from_millis(200))
        .tool();
    let place = Place::new([
        echo(),
        flaky.retry(retry),
        ill.breaker(3, Duration::from_secs(60)),
        hangs,
        slow,
    ]);
    for number in 0..20 {
        place.run(call(&format!("e{number}"), "echo")).await;
    }
    place.run(call("f", "flaky")).await;
    for number in 0..5 {
        place.run(call(&format!("i{number}"), "ill")).await;
    }
    place
        .run(call("h", "hangs").timeout(Duration::from_millis(10)))
        .await;
    place.run(call("s", "slow")).await;
    place.run(call("n", "nobody")).await;
    place.flush();
    place
}

#[tokio::test]
async fn r08_trends_count_what_happened_for_all_tools_and_for_each() {
    let place = some_calls().await;
    for (window, buckets, minutes) in [
        (Window::Hour, 60, 1),
        (Window::Day, 96, 15),
        (Window::Week, 84, 120),
    ] {
        let all = place.history.trends(None, window).unwrap();
        assert_eq!(
            (all.buckets.len(), all.bucket_ms),
            (buckets, minutes * 60_000)
        );
        assert_eq!(sum(&all, |counts| counts.calls), 29);
        assert_eq!(all.total.calls, 29);
        assert_eq!(all.total.errors, 3, "the breaker refused the rest");
        assert_eq!(
            all.total.rejected, 3,
            "two by the breaker, one with no such tool"
        );
        assert_eq!(
            (all.total.timeouts, all.total.retries, all.total.trips),
            (1, 1, 1)
        );
        assert_eq!(all.previous, Counts::default());
        let starts: Vec<u64> = all.buckets.iter().map(|bucket| bucket.start_ms).collect();
        assert!(
            starts
                .windows(2)
                .all(|pair| pair[1] - pair[0] == all.bucket_ms)
        );
        let ill = place.history.trends(Some("ill"), window).unwrap();
        assert_eq!(
            (ill.total.calls, ill.total.errors, ill.total.trips),
            (5, 3, 1)
        );
        let slow = place.history.trends(Some("slow"), window).unwrap();
        let (p50, p95) = (slow.total.p50.unwrap(), slow.total.p95.unwrap());
        assert!(p50 >= 200.0 && p50 == p95, "{p50} {p95}");
        let nobody = place.history.trends(Some("nobody"), window).unwrap();
        assert_eq!(nobody.total, Counts::default());
    }
}

#[tokio::test]
async fn r08_trends_go_on_over_a_restart_and_a_second_batch() {
    let place = some_calls().await;
    let folder = place.folder;
    drop((place.history, place.executor));
    let options = steadyhand_store::history::HistoryOptions::new(folder.path().join("calls.db"));
    let history = steadyhand_store::history::History::open(options);
    let executor = super::executor([echo()]);
    history.attach(&executor).unwrap();
    executor.execute(call("again", "echo")).await;
    assert!(history.flush(crate::support::PATIENCE));
    let echo = history.trends(Some("echo"), Window::Day).unwrap();
    assert_eq!(echo.total.calls, 21);
    assert!(echo.total.p95.is_some());
}

#[test]
fn a_window_is_written_as_people_say_it() {
    for (text, window) in [
        ("1h", Window::Hour),
        ("1d", Window::Day),
        ("7d", Window::Week),
    ] {
        assert_eq!(text.parse::<Window>().unwrap(), window);
        assert_eq!(serde_json::to_value(window).unwrap(), text);
    }
    assert!("2h".parse::<Window>().unwrap_err().contains("1h, 1d or 7d"));
}
