//! The rules alone, with the time passed in: raised, acknowledged, silenced, over by itself with a reason.

use std::time::Duration;

use steadyhand_server::alerts::{
    Alert, AlertState, Change, ChangeKind, Ended, Machine, Now, Rule, Watched,
};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A machine and its clock.
struct Bench {
    machine: Machine,
    began: Instant,
    passed: Duration,
}

impl Bench {
    fn with(rules: &[&str]) -> Bench {
        let rules = rules.iter().map(|rule| Rule::parse(rule).expect("a rule"));
        Bench {
            machine: Machine::new(rules.collect()),
            began: Instant::now(),
            passed: Duration::ZERO,
        }
    }

    fn now(&self) -> Now {
        Now {
            instant: self.began + self.passed,
            wall_ms: 1_000_000 + self.passed.as_millis() as u64,
        }
    }

    fn after(&mut self, span: Duration) -> Vec<Change> {
        self.passed += span;
        self.machine.tick(self.now())
    }

    fn calls(&mut self, tool: &str, count: usize, ended: Ended, took: Duration) {
        for _ in 0..count {
            self.machine.call_ended(tool, ended, took, self.now());
        }
    }
}

fn only(changes: Vec<Change>) -> (ChangeKind, Alert, bool) {
    let [change] = <[Change; 1]>::try_from(changes).expect("one change");
    (change.kind, change.alert, change.is_silenced)
}

#[test]
fn r12_a_failure_rate_over_its_limit_is_raised_and_over_by_itself_with_the_reason() {
    let mut bench = Bench::with(&["error_rate > 5% for 5m"]);
    bench.calls("flaky", 19, Ended::Well, SECOND);
    bench.calls("flaky", 1, Ended::Failed, SECOND);
    // Exactly the limit is not over it.
    assert_eq!(bench.after(SECOND), []);
    bench.calls("flaky", 1, Ended::Failed, SECOND);
    let (kind, alert, _) = only(bench.after(SECOND));
    assert_eq!(kind, ChangeKind::Raised);
    assert_eq!(
        (alert.state, alert.subject.as_str()),
        (AlertState::Raised, "flaky")
    );
    assert_eq!(
        alert.message,
        "flaky: 2 of 21 calls failed in the last 5m (9.5 %)"
    );
    // Once, not at every look.
    assert_eq!(bench.after(SECOND), []);
    // A little better is not over: 2 of 42 is 4.8 %, and 4 % is wanted.
    bench.calls("flaky", 21, Ended::Well, SECOND);
    assert_eq!(bench.after(SECOND), []);
    bench.calls("flaky", 10, Ended::Well, SECOND);
    let (kind, alert, _) = only(bench.after(SECOND));
    assert_eq!(
        (kind, alert.state),
        (ChangeKind::Cleared, AlertState::Cleared)
    );
    assert_eq!(
        alert.cleared_because.as_deref(),
        Some("3.8 % in the last 5m, at most 4.0 % wanted")
    );
    assert!(alert.cleared_ms > Some(alert.raised_ms));
}

#[test]
fn r12_one_failed_call_of_one_is_no_alert_and_old_calls_do_not_count() {
    let mut bench = Bench::with(&["error_rate > 5% for 5m"]);
    bench.calls("rare", 9, Ended::Failed, SECOND);
    assert_eq!(bench.after(SECOND), []);
    // They are forgotten before others come.
    bench.after(6 * MINUTE);
    bench.calls("rare", 9, Ended::Failed, SECOND);
    assert_eq!(bench.after(SECOND), []);
    bench.calls("rare", 1, Ended::Failed, SECOND);
    assert_eq!(only(bench.after(SECOND)).0, ChangeKind::Raised);
    // Nobody calls it any more: that is the end of it, and it says so.
    assert_eq!(bench.after(MINUTE), []);
    let (kind, alert, _) = only(bench.after(5 * MINUTE));
    assert_eq!(kind, ChangeKind::Cleared);
    assert_eq!(
        alert.cleared_because.as_deref(),
        Some("nothing of the kind in the last 5m")
    );
}

#[test]
fn r12_slow_on_average_and_slow_at_the_95th_are_two_things() {
    let mut bench = Bench::with(&["average > 5s for 5m", "p95 > 5s for 5m"]);
    bench.calls("report", 18, Ended::Well, SECOND);
    bench.calls("report", 2, Ended::Well, 10 * SECOND);
    let (_, alert, _) = only(bench.after(SECOND));
    assert_eq!(alert.watched, "p95");
    assert!(
        alert.value > Some(9_000.0) && alert.value < Some(12_000.0),
        "{alert:?}"
    );
    bench.calls("report", 20, Ended::Failed, 30 * SECOND);
    let (_, alert, _) = only(bench.after(SECOND));
    assert_eq!(alert.watched, "average");
    assert_eq!(
        alert.message,
        "report: 40 calls in the last 5m took 15s 950ms on average"
    );
}

#[test]
fn r12_a_breaker_a_server_and_a_changed_tool_are_raised_at_once_and_end_with_what_ended_them() {
    let mut bench = Bench::with(&["breaker_open", "server_down", "tools_changed"]);
    let now = bench.now();
    let raised = bench
        .machine
        .state(Watched::BreakerOpen, "ill", Ok("open".to_owned()), now);
    assert_eq!(only(raised).0, ChangeKind::Raised);
    let again = bench
        .machine
        .state(Watched::BreakerOpen, "ill", Ok("open".to_owned()), now);
    assert_eq!(again, []);
    let raised = bench.machine.state(
        Watched::ServerDown,
        "github",
        Ok("no answer".to_owned()),
        now,
    );
    assert_eq!(only(raised).1.message, "no answer");
    let raised = bench.machine.state(
        Watched::ToolsChanged,
        "github__search",
        Ok("other words".to_owned()),
        now,
    );
    assert_eq!(only(raised).1.subject, "github__search");
    let now = bench.now();
    let over = bench.machine.state(
        Watched::BreakerOpen,
        "ill",
        Err("closed again".to_owned()),
        now,
    );
    assert_eq!(
        only(over).1.cleared_because.as_deref(),
        Some("closed again")
    );
    let over = bench.machine.state(
        Watched::ServerDown,
        "github",
        Err("it runs".to_owned()),
        now,
    );
    assert_eq!(only(over).1.cleared_because.as_deref(), Some("it runs"));
    assert_eq!(bench.after(59 * MINUTE), []);
    let over = only(bench.after(MINUTE));
    assert_eq!(
        (over.0, over.1.watched.as_str()),
        (ChangeKind::Cleared, "tools_changed")
    );
    // An end that nobody waits for is nothing.
    let now = bench.now();
    assert_eq!(
        bench
            .machine
            .state(Watched::ServerDown, "other", Err("it runs".to_owned()), now),
        []
    );
}

#[test]
fn r12_invalid_arguments_invalid_answers_and_full_queues_are_counted_apart() {
    let mut bench = Bench::with(&[
        "validation_failures > 2 for 1m",
        "invalid_responses > 0 for 1m",
        "queue_full > 0 for 1m",
        "error_rate > 0% for 1m",
    ]);
    bench.calls("picky", 2, Ended::Invalid, SECOND);
    assert_eq!(bench.after(SECOND), []);
    bench.calls("picky", 1, Ended::Invalid, SECOND);
    assert_eq!(only(bench.after(SECOND)).1.watched, "validation_failures");
    let now = bench.now();
    bench.machine.response_invalid("anthropic", now);
    let (_, alert, _) = only(bench.after(SECOND));
    assert_eq!(
        (alert.watched.as_str(), alert.subject.as_str()),
        ("invalid_responses", "anthropic")
    );
    bench.calls("busy", 1, Ended::NoRoom, SECOND);
    assert_eq!(only(bench.after(SECOND)).1.watched, "queue_full");
}

#[test]
fn r12_calls_that_wait_for_a_person_are_told_after_a_while_and_until_nobody_waits() {
    let mut bench = Bench::with(&["approval_waiting > 30s"]);
    let since = bench.now().instant;
    bench
        .machine
        .approvals_wait(vec![("door".to_owned(), since), ("door".to_owned(), since)]);
    assert_eq!(bench.after(30 * SECOND), []);
    let (kind, alert, _) = only(bench.after(SECOND));
    assert_eq!(kind, ChangeKind::Raised);
    assert_eq!(
        alert.message,
        "2 of door wait for a yes or no, the oldest for 31s"
    );
    bench.machine.approvals_wait(Vec::new());
    let (kind, alert, _) = only(bench.after(SECOND));
    assert_eq!(kind, ChangeKind::Cleared);
    assert_eq!(
        alert.cleared_because.as_deref(),
        Some("nobody is waited for any more")
    );
}

#[test]
fn r12_an_alert_is_acknowledged_and_silenced_also_when_it_comes_again() {
    let mut bench = Bench::with(&["breaker_open"]);
    let now = bench.now();
    let raise = |bench: &mut Bench| {
        let now = bench.now();
        only(
            bench
                .machine
                .state(Watched::BreakerOpen, "ill", Ok("open".to_owned()), now),
        )
    };
    let over = |bench: &mut Bench| {
        let now = bench.now();
        only(
            bench
                .machine
                .state(Watched::BreakerOpen, "ill", Err("closed".to_owned()), now),
        )
    };
    let (_, first, _) = raise(&mut bench);
    let known = bench
        .machine
        .acknowledge(&first.id, "ann", now)
        .expect("it is there");
    assert_eq!(
        (known.state, known.acknowledged_by.as_deref()),
        (AlertState::Acknowledged, Some("ann"))
    );
    // The first one who said so is the one who did.
    let known = bench
        .machine
        .acknowledge(&first.id, "bob", now)
        .expect("it is there");
    assert_eq!(known.acknowledged_by.as_deref(), Some("ann"));
    let silenced = bench
        .machine
        .silence(&first.id, 10 * MINUTE, now)
        .expect("it is there");
    assert_eq!(silenced.silenced_until_ms, Some(1_600_000));
    assert!(over(&mut bench).2, "nobody is told");
    bench.after(5 * MINUTE);
    let (_, second, is_silenced) = raise(&mut bench);
    assert!(is_silenced && second.id != first.id && second.state == AlertState::Raised);
    over(&mut bench);
    bench.after(6 * MINUTE);
    assert!(!raise(&mut bench).2, "that time is over");
    let now = bench.now();
    assert_eq!(bench.machine.acknowledge(&first.id, "ann", now), None);
    assert_eq!(bench.machine.silence("a99", MINUTE, now), None);
    let states: Vec<AlertState> = bench
        .machine
        .alerts()
        .iter()
        .map(|alert| alert.state)
        .collect();
    assert_eq!(
        states,
        [AlertState::Raised, AlertState::Cleared, AlertState::Cleared]
    );
}

#[test]
fn r12_with_other_rules_their_alerts_end_and_the_others_go_on() {
    let mut bench = Bench::with(&["error_rate > 5% for 5m", "breaker_open"]);
    bench.calls("flaky", 9, Ended::Failed, SECOND);
    let now = bench.now();
    bench
        .machine
        .state(Watched::BreakerOpen, "ill", Ok("open".to_owned()), now);
    let rules =
        ["breaker_open", "error_rate > 5% for 5m"].map(|rule| Rule::parse(rule).expect("a rule"));
    assert_eq!(bench.machine.replace_rules(rules.into(), now), []);
    bench.calls("flaky", 1, Ended::Failed, SECOND);
    assert_eq!(only(bench.after(SECOND)).1.subject, "flaky");
    let rules =
        ["breaker_open", "error_rate > 50% for 5m"].map(|rule| Rule::parse(rule).expect("a rule"));
    let over = only(bench.machine.replace_rules(rules.into(), now));
    assert_eq!(
        over.1.cleared_because.as_deref(),
        Some("its rule is no longer in force")
    );
    let subjects: Vec<String> = bench
        .machine
        .alerts()
        .into_iter()
        .map(|alert| alert.subject)
        .collect();
    assert_eq!(subjects, ["ill", "flaky"]);
}

#[test]
fn rules_are_read_as_they_are_written_and_mistakes_say_what_is_meant() {
    for (written, shown) in [
        ("error_rate > 20% for 10m", "error_rate > 20.0 % for 10m"),
        ("error_rate", "error_rate > 5.0 % for 5m"),
        ("average > 500ms", "average > 500ms for 5m"),
        ("p95 > 2s for 1h", "p95 > 2s for 1h"),
        ("breaker_open", "breaker_open"),
        ("approval_waiting > 1m", "approval_waiting > 1m"),
        ("queue_full > 3 for 1m", "queue_full > 3 for 1m"),
    ] {
        assert_eq!(Rule::parse(written).expect(written).to_string(), shown);
    }
    for (written, why) in [
        ("", "nothing that can be watched"),
        ("breaker_opened", "there are: error_rate"),
        ("error_rate > 20", "is no share"),
        ("error_rate >", "> has nothing after it"),
        ("average > 5", "is no duration"),
        ("average > 5s for", "for has nothing after it"),
        ("average > 5s for 0s", "more than nothing"),
        ("average > 5s for 2days", "at most a day"),
        ("average > 5s soon", "\"soon\" is not understood"),
        ("breaker_open > 3", "nothing to compare"),
    ] {
        let told = Rule::parse(written).expect_err(written);
        assert!(told.contains(why), "{written}: {told}");
    }
}
