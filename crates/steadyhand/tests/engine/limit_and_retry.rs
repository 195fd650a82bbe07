//! The limit and the retry decision against small reference models.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use steadyhand::guard::limit::{Limit, LimitPolicy, Place, Refused};
use steadyhand::guard::retry::{Budget, BudgetPolicy, Next, RetryPolicy, Situation, StopReason};
use steadyhand::{Effect, Failure, FailureCode};

#[derive(Debug, Clone)]
enum Step {
    Arrive,
    Leave(usize),
    GiveUp(usize),
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Place<'a>, Refused>> + 'a>>;

fn poll<'a>(waiting: &mut Waiting<'a>) -> Poll<Result<Place<'a>, Refused>> {
    waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d18_places_are_given_in_order_and_the_queue_has_an_end(
        concurrent in 1usize..4,
        queue in 0usize..4,
        steps in prop::collection::vec(prop_oneof![
            4 => Just(Step::Arrive),
            2 => (0usize..8).prop_map(Step::Leave),
            1 => (0usize..8).prop_map(Step::GiveUp),
        ], 1..100),
    ) {
        let limit = Limit::new(LimitPolicy { concurrent, queue });
        let mut running: Vec<(u32, Place<'_>)> = Vec::new();
        let mut waiting: VecDeque<(u32, Waiting<'_>)> = VecDeque::new();
        // The model: who has a place, who waits, in order.
        let (mut model_running, mut model_waiting): (Vec<u32>, VecDeque<u32>) = Default::default();
        for (id, step) in (0u32..).zip(steps) {
            match step {
                Step::Arrive => {
                    let mut arriving: Waiting<'_> = Box::pin(limit.enter());
                    let free = model_running.len() < concurrent;
                    match poll(&mut arriving) {
                        Poll::Ready(Ok(place)) => {
                            prop_assert!(free, "let in although {} run", model_running.len());
                            running.push((id, place));
                            model_running.push(id);
                        }
                        Poll::Ready(Err(Refused)) => {
                            prop_assert!(!free && model_waiting.len() == queue);
                        }
                        Poll::Pending => {
                            prop_assert!(!free && model_waiting.len() < queue);
                            waiting.push_back((id, arriving));
                            model_waiting.push_back(id);
                        }
                    }
                }
                Step::Leave(which) if !running.is_empty() => {
                    let (left, place) = running.swap_remove(which % running.len());
                    drop(place);
                    model_running.retain(|id| *id != left);
                }
                Step::GiveUp(which) if !waiting.is_empty() => {
                    let (gone, future) = waiting.remove(which % waiting.len()).unwrap();
                    drop(future);
                    model_waiting.retain(|id| *id != gone);
                }
                Step::Leave(_) | Step::GiveUp(_) => {}
            }
            // Whoever has waited longest gets the free place.
            while model_running.len() < concurrent && !model_waiting.is_empty() {
                let next = model_waiting.pop_front().unwrap();
                let (id, mut future) = waiting.pop_front().unwrap();
                prop_assert_eq!(id, next);
                let Poll::Ready(Ok(place)) = poll(&mut future) else {
                    return Err(TestCaseError::fail("a place is free and the first in the queue does not get it"));
                };
                running.push((id, place));
                model_running.push(id);
            }
            prop_assert_eq!(limit.running(), model_running.len());
            prop_assert_eq!(limit.waiting(), model_waiting.len());
        }
        drop((running, waiting));
        prop_assert_eq!((limit.running(), limit.waiting()), (0, 0));
    }

    #[test]
    fn d04_d07_the_retry_decision_is_what_the_rules_say(
        attempts in 1u32..6,
        code in prop::sample::select(FailureCode::ALL.to_vec()),
        effect in prop::sample::select(vec![Effect::None, Effect::Unknown, Effect::Done]),
        safe_to_repeat in any::<bool>(),
        time_left_ms in 0u64..2_000,
        retry_after_ms in prop::option::of(1u64..3_000),
    ) {
        let failure = failure(code, effect, retry_after_ms);
        let time_left = Duration::from_millis(time_left_ms);
        let situation = Situation { attempts, failure: &failure, safe_to_repeat, time_left };
        let next = RetryPolicy::default().next(situation, 0.0);

        let passes = ["NETWORK_ERROR", "TIMEOUT", "RATE_LIMIT_ERROR", "TOOL_EXECUTION_ERROR"];
        let wait_ms = retry_after_ms.unwrap_or(match attempts { 1 => 100, 2 => 200, _ => 400 });
        let expected = if !passes.contains(&code.as_str()) {
            Next::Stop(StopReason::NotRetryable)
        } else if !safe_to_repeat && effect != Effect::None {
            Next::Stop(StopReason::MayHaveActed)
        } else if attempts >= 4 {
            Next::Stop(StopReason::NoAttemptsLeft)
        } else if wait_ms >= time_left_ms {
            Next::Stop(StopReason::NoTimeLeft)
        } else {
            Next::Wait(Duration::from_millis(wait_ms))
        };
        prop_assert_eq!(next, expected);
    }

    #[test]
    fn jitter_stays_between_half_and_all_of_the_wait(random in 0.0f64..1.0, attempts in 1u32..4) {
        let policy = RetryPolicy { jitter: true, ..RetryPolicy::default() };
        let failure = failure(FailureCode::NetworkError, Effect::Unknown, None);
        let situation = Situation { attempts, failure: &failure, safe_to_repeat: true, time_left: Duration::MAX };
        let whole = Duration::from_millis(100 << (attempts - 1));
        let Next::Wait(wait) = policy.next(situation, random) else {
            return Err(TestCaseError::fail("no retry"));
        };
        prop_assert!(whole / 2 <= wait && wait <= whole, "{wait:?} of {whole:?}");
    }

    #[test]
    fn a_budget_never_pays_more_than_it_has_and_never_holds_more_than_it_may(
        tokens in 0u32..5,
        per_success_thousandths in 0u32..1500,
        takes in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let budget = Budget::new(BudgetPolicy { tokens, per_success_thousandths });
        let mut model = u64::from(tokens) * 1000;
        for take in takes {
            if take {
                prop_assert_eq!(budget.take(), model >= 1000);
                if model >= 1000 {
                    model -= 1000;
                }
            } else {
                budget.put_back();
                model = (model + u64::from(per_success_thousandths)).min(u64::from(tokens) * 1000);
            }
        }
    }
}

/// Threads that come, wait, give up and leave: never more than may, and at the end nobody.
#[test]
fn d18_under_many_threads_nobody_is_lost_and_nobody_is_too_many() {
    const THREADS: u64 = 4;
    const VISITS: u32 = 10_000;
    let limit = Limit::new(LimitPolicy {
        concurrent: 2,
        queue: 3,
    });
    let inside = AtomicUsize::new(0);
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (limit, inside, served) = (&limit, &inside, &served);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..VISITS {
                    let mut arriving: Waiting<'_> = Box::pin(limit.enter());
                    // Polls without a waker: whoever is handed a place finds it at the next look.
                    for _ in 0..random.u32(1..60) {
                        match poll(&mut arriving) {
                            Poll::Pending => std::thread::yield_now(),
                            Poll::Ready(Err(Refused)) => break,
                            Poll::Ready(Ok(place)) => {
                                assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                                served.fetch_add(1, Ordering::Relaxed);
                                std::thread::yield_now();
                                inside.fetch_sub(1, Ordering::SeqCst);
                                drop(place);
                                break;
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!((limit.running(), limit.waiting()), (0, 0));
    assert!(served.load(Ordering::Relaxed) > 1_000);
    // And every place can still be had.
    let both = (limit.try_enter(), limit.try_enter());
    assert!(both.0.is_some() && both.1.is_some() && limit.try_enter().is_none());
}

fn failure(code: FailureCode, effect: Effect, retry_after_ms: Option<u64>) -> Failure {
    let mut json = serde_json::json!({
        "code": code, "message": "m", "userMessage": "u", "retryable": code.is_retryable(),
        "effect": effect, "problems": [],
    });
    if let Some(ms) = retry_after_ms {
        json["retryAfterMs"] = ms.into();
    }
    serde_json::from_value(json).unwrap()
}
