//! The concurrent breaker under every interleaving: the same source file, on loom's atomics.

use loom::sync::Arc;
use loom::thread;

use crate::breaker_on_loom::{Admission, Breaker, BreakerPolicy, BreakerState, Verdict};

const POLICY: BreakerPolicy = BreakerPolicy {
    failures: 2,
    cooldown_ms: 10,
};

fn passes(breaker: &Breaker, now_ms: u64) -> Option<u32> {
    match breaker.admit(|| now_ms, 100).0 {
        Admission::Pass { generation } | Admission::Trial { generation } => Some(generation),
        Admission::Refuse { .. } => None,
    }
}

fn open(breaker: &Breaker) {
    for _ in 0..POLICY.failures {
        breaker.settle(0, Verdict::Unhealthy, || 0, || 1);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn i07_of_two_calls_after_the_rest_exactly_one_is_the_trial() {
    loom::model(|| {
        let breaker = Arc::new(Breaker::new(POLICY));
        open(&breaker);
        let other = Arc::clone(&breaker);
        let first = thread::spawn(move || passes(&other, 10).is_some());
        let second = passes(&breaker, 10).is_some();
        assert!(first.join().unwrap() ^ second);
    });
}

#[test]
fn no_failure_is_lost_and_a_trip_is_told_once() {
    loom::model(|| {
        let breaker = Arc::new(Breaker::new(POLICY));
        let other = Arc::clone(&breaker);
        let fail = |breaker: &Breaker| {
            let change = breaker.settle(0, Verdict::Unhealthy, || 0, || 1);
            u32::from(change.is_some())
        };
        let first = thread::spawn(move || fail(&other));
        let told = fail(&breaker) + first.join().unwrap();
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(told, 1);
    });
}

#[test]
fn i10_a_result_from_before_the_trip_changes_nothing() {
    loom::model(|| {
        let breaker = Arc::new(Breaker::new(POLICY));
        let old = passes(&breaker, 0).unwrap();
        open(&breaker);
        let late = Arc::clone(&breaker);
        let late = thread::spawn(move || late.settle(old, Verdict::Healthy, || 10, || 1));
        let trial = passes(&breaker, 10).unwrap();
        assert_eq!(late.join().unwrap(), None);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        breaker.settle(trial, Verdict::Healthy, || 10, || 1);
        assert_eq!(breaker.state(), BreakerState::Closed);
    });
}

#[test]
fn a_trial_that_is_dropped_while_another_call_asks_is_handed_on_never_lost() {
    loom::model(|| {
        let breaker = Arc::new(Breaker::new(POLICY));
        open(&breaker);
        let trial = passes(&breaker, 10).unwrap();
        let dropped = Arc::clone(&breaker);
        let dropped = thread::spawn(move || dropped.settle(trial, Verdict::Neutral, || 10, || 1));
        let second = passes(&breaker, 10);
        dropped.join().unwrap();
        // Either it got the slot, or the slot is free now.
        assert!(second.is_some() ^ passes(&breaker, 10).is_some());
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
    });
}

#[test]
fn a_reset_by_hand_wins_over_a_failing_trial_or_comes_after_it() {
    loom::model(|| {
        let breaker = Arc::new(Breaker::new(POLICY));
        open(&breaker);
        let trial = passes(&breaker, 10).unwrap();
        let by_hand = Arc::clone(&breaker);
        let by_hand = thread::spawn(move || by_hand.reset());
        breaker.settle(trial, Verdict::Unhealthy, || 10, || 1);
        by_hand.join().unwrap();
        assert_eq!(breaker.state(), BreakerState::Closed);
    });
}
