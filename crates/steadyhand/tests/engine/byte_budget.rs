//! Memory that is accounted for.

use steadyhand::{BudgetExceeded, ByteBudget};

#[test]
fn s01_bytes_that_are_reserved_come_back_when_they_are_dropped() {
    let budget = ByteBudget::new("server 'weather'", 1_000);
    let held = budget.reserve(600).unwrap();
    assert_eq!((held.bytes(), budget.used()), (600, 600));
    let refused = budget.reserve(401).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the memory for server 'weather' is used up: 600 of 1000 bytes are in use, 401 more are needed"
    );
    assert_eq!((budget.used(), budget.refused()), (600, 1));
    drop(held);
    assert_eq!((budget.used(), budget.peak()), (0, 600));
    assert!(budget.reserve(1_000).is_ok());
}

#[test]
fn s01_a_part_of_a_budget_counts_in_the_whole_and_a_refusal_changes_neither() {
    let process = ByteBudget::new("the process", 1_000);
    let (one, other) = (process.part("one", 800), process.part("other", 800));
    let held = one.reserve(700).unwrap();
    let BudgetExceeded { budget, used, .. } = other.reserve(400).unwrap_err();
    assert_eq!((&*budget, used), ("the process", 700));
    assert_eq!((other.used(), process.used()), (0, 700));
    let beside = other.reserve(300).unwrap();
    drop(held);
    assert_eq!((one.used(), process.used()), (0, 300));
    drop(beside);
    assert_eq!((other.used(), process.used()), (0, 0));
}

#[test]
fn s01_a_reservation_grows_and_shrinks() {
    let budget = ByteBudget::new("a stream", 100);
    let mut held = budget.nothing();
    held.grow(60).unwrap();
    assert!(held.grow(60).is_err());
    assert_eq!((held.bytes(), budget.used()), (60, 60));
    held.shrink_to(10);
    held.shrink_to(50);
    assert_eq!((held.bytes(), budget.used()), (10, 10));
    budget.set_bytes_max(5);
    assert!(
        held.grow(1).is_err(),
        "more is in use than the new limit allows"
    );
    assert!(held.grow(0).is_ok());
    assert!(budget.reserve(usize::MAX).is_err(), "no overflow");
}

#[test]
fn s01_many_threads_never_exceed_a_budget() {
    let process = ByteBudget::new("the process", 10_000);
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let part = process.part(format!("caller {worker}"), 3_000);
            scope.spawn(move || {
                for turn in 0..2_000usize {
                    let held = part.reserve(turn % 1_500);
                    assert!(part.used() <= 3_000);
                    drop(held);
                }
            });
        }
    });
    assert!(process.peak() <= 10_000);
    assert_eq!(process.used(), 0);
}
