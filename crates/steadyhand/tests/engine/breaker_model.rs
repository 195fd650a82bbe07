//! The breaker's machine against a small reference model that remembers everything.

use proptest::prelude::*;
use steadyhand::guard::breaker::{
    Admission, Breaker, BreakerPolicy, BreakerState, LEASE_MS_MAX, Machine, Verdict,
};

/// What a breaker must do, written for reading: no packing, no atomics, ids that never repeat.
pub(crate) struct Model {
    policy: BreakerPolicy,
    mode: Mode,
    next_era: u64,
    pub(crate) seen: Transitions,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Closed { era: u64, failures: u32 },
    Open { until_ms: u64 },
    Trial { era: u64, lease_until_ms: u64 },
    TrialWanted,
}

/// A call the model let pass, and the era it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    era: u64,
}

impl Ticket {
    /// For calls no model follows.
    pub(crate) fn unknown() -> Ticket {
        Ticket { era: 0 }
    }
}

/// How often the model went which way.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Transitions {
    pub(crate) closed_to_open: u64,
    pub(crate) open_to_trial: u64,
    pub(crate) trial_to_closed: u64,
    pub(crate) trial_to_open: u64,
    pub(crate) trial_handed_on: u64,
    pub(crate) lease_expired: u64,
    pub(crate) stale: u64,
}

impl Model {
    pub(crate) fn new(policy: BreakerPolicy) -> Model {
        Model {
            policy,
            mode: Mode::Closed {
                era: 0,
                failures: 0,
            },
            next_era: 1,
            seen: Transitions::default(),
        }
    }

    pub(crate) fn state(&self) -> BreakerState {
        match self.mode {
            Mode::Closed { .. } => BreakerState::Closed,
            Mode::Open { .. } => BreakerState::Open,
            Mode::Trial { .. } | Mode::TrialWanted => BreakerState::HalfOpen,
        }
    }

    pub(crate) fn admit(&mut self, now_ms: u64, lease_ms: u64) -> Option<Ticket> {
        match self.mode {
            Mode::Closed { era, .. } => return Some(Ticket { era }),
            Mode::Open { until_ms } if now_ms < until_ms => return None,
            Mode::Trial { lease_until_ms, .. } if now_ms < lease_until_ms => return None,
            Mode::Open { .. } => self.seen.open_to_trial += 1,
            Mode::Trial { .. } => self.seen.lease_expired += 1,
            Mode::TrialWanted => {}
        }
        let era = self.new_era();
        let lease_until_ms = now_ms + lease_ms;
        self.mode = Mode::Trial {
            era,
            lease_until_ms,
        };
        Some(Ticket { era })
    }

    pub(crate) fn settle(&mut self, ticket: Ticket, verdict: Verdict, now_ms: u64) {
        let until_ms = now_ms + self.policy.cooldown_ms;
        match self.mode {
            Mode::Closed { era, failures } if era == ticket.era => match verdict {
                Verdict::Healthy => self.mode = Mode::Closed { era, failures: 0 },
                Verdict::Neutral => {}
                Verdict::Unhealthy if failures + 1 < self.policy.failures => {
                    self.mode = Mode::Closed {
                        era,
                        failures: failures + 1,
                    };
                }
                Verdict::Unhealthy => {
                    self.seen.closed_to_open += 1;
                    self.mode = Mode::Open { until_ms };
                }
            },
            Mode::Trial { era, .. } if era == ticket.era => match verdict {
                Verdict::Healthy => {
                    self.seen.trial_to_closed += 1;
                    self.close();
                }
                Verdict::Neutral => {
                    self.seen.trial_handed_on += 1;
                    self.mode = Mode::TrialWanted;
                }
                Verdict::Unhealthy => {
                    self.seen.trial_to_open += 1;
                    self.mode = Mode::Open { until_ms };
                }
            },
            Mode::Closed { .. } | Mode::Open { .. } | Mode::Trial { .. } | Mode::TrialWanted => {
                self.seen.stale += 1;
            }
        }
    }

    pub(crate) fn close(&mut self) {
        let era = self.new_era();
        self.mode = Mode::Closed { era, failures: 0 };
    }

    fn new_era(&mut self) -> u64 {
        self.next_era += 1;
        self.next_era
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass { lease_ms: u64 },
    Settle { which: usize, verdict: Verdict },
    Wait { ms: u64 },
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdict = prop_oneof![
        1 => Just(Verdict::Healthy),
        4 => Just(Verdict::Unhealthy),
        1 => Just(Verdict::Neutral),
    ];
    let step = prop_oneof![
        6 => (1u64..200).prop_map(|lease_ms| Step::Pass { lease_ms }),
        6 => (0usize..8, verdict).prop_map(|(which, verdict)| Step::Settle { which, verdict }),
        2 => (0u64..150).prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..200)
}

fn policy() -> impl Strategy<Value = BreakerPolicy> {
    (1u32..7, 1u64..100).prop_map(|(failures, cooldown_ms)| BreakerPolicy {
        failures,
        cooldown_ms,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r04_the_breaker_does_what_the_model_does(policy in policy(), steps in steps()) {
        let breaker = Breaker::new(policy);
        let mut model = Model::new(policy);
        let mut now_ms = 0;
        let mut passed = Vec::new();
        for step in steps {
            match step {
                Step::Pass { lease_ms } => {
                    let (admission, _) = breaker.admit(|| now_ms, lease_ms);
                    let ticket = model.admit(now_ms, lease_ms);
                    match (admission, ticket) {
                        (Admission::Pass { generation } | Admission::Trial { generation }, Some(ticket)) => {
                            passed.push((generation, ticket));
                        }
                        (Admission::Refuse { .. }, None) => {}
                        (admission, ticket) => prop_assert!(false, "{admission:?} but {ticket:?}"),
                    }
                }
                Step::Settle { which, verdict } if !passed.is_empty() => {
                    let (generation, ticket) = passed.remove(which % passed.len());
                    breaker.settle(generation, verdict, || now_ms, || 1);
                    model.settle(ticket, verdict, now_ms);
                }
                Step::Settle { .. } => {}
                Step::Wait { ms } => now_ms += ms,
                Step::Reset => {
                    breaker.reset();
                    model.close();
                }
            }
            prop_assert_eq!(breaker.state(), model.state());
        }
    }

    #[test]
    fn i15_a_clock_that_jumps_never_panics_and_never_makes_a_rest_longer(
        policy in policy(),
        steps in steps(),
        jumps in prop::collection::vec(-3_600_000i64..3_600_000, 1..200),
    ) {
        const LEASE_MS: u64 = 50;
        let mut machine = Machine::new();
        let mut now_ms: u64 = 4_000_000;
        let mut generations = vec![0];
        for (step, jump) in steps.into_iter().zip(jumps.into_iter().cycle()) {
            match step {
                Step::Pass { .. } => {
                    let (next, admission) = machine.admit(now_ms, LEASE_MS, policy);
                    machine = next;
                    match admission {
                        Admission::Pass { generation } | Admission::Trial { generation } => generations.push(generation),
                        Admission::Refuse { retry_after_ms } => {
                            prop_assert!(retry_after_ms <= policy.cooldown_ms.max(LEASE_MS_MAX));
                        }
                    }
                }
                Step::Settle { which, verdict } => {
                    let generation = generations[which % generations.len()];
                    machine = machine.settle(generation, verdict, now_ms, policy);
                }
                Step::Wait { .. } => now_ms = now_ms.saturating_add_signed(jump),
                Step::Reset => machine = machine.reset(),
            }
        }
        // Whatever happened, a healthy tool is closed again after one rest and one success.
        let (first, _) = machine.admit(now_ms, LEASE_MS, policy);
        now_ms += policy.cooldown_ms.max(LEASE_MS_MAX);
        let (second, admission) = first.admit(now_ms, LEASE_MS, policy);
        let (Admission::Pass { generation } | Admission::Trial { generation }) = admission else {
            return Err(TestCaseError::fail("still refused after a whole rest"));
        };
        let healed = second.settle(generation, Verdict::Healthy, now_ms, policy);
        prop_assert_eq!(healed.state(), BreakerState::Closed);
    }

    #[test]
    fn a_machine_survives_the_journey_through_one_word(policy in policy(), steps in steps()) {
        let mut machine = Machine::new();
        let mut now_ms = 0;
        let mut generation = 0;
        for step in steps {
            match step {
                Step::Pass { lease_ms } => {
                    let (next, admission) = machine.admit(now_ms, lease_ms, policy);
                    machine = next;
                    if let Admission::Pass { generation: g } | Admission::Trial { generation: g } = admission {
                        generation = g;
                    }
                }
                Step::Settle { verdict, .. } => machine = machine.settle(generation, verdict, now_ms, policy),
                Step::Wait { ms } => now_ms += ms,
                Step::Reset => machine = machine.reset(),
            }
            prop_assert_eq!(Machine::from(u64::from(machine)), machine);
        }
    }
}

#[test]
fn i08_it_opens_on_exactly_the_fifth_failure_in_a_row() {
    let breaker = Breaker::new(BreakerPolicy::default());
    for (count, verdict) in [
        (1, Verdict::Unhealthy),
        (2, Verdict::Unhealthy),
        (2, Verdict::Neutral),
        (0, Verdict::Healthy),
        (1, Verdict::Unhealthy),
        (2, Verdict::Unhealthy),
        (3, Verdict::Unhealthy),
        (3, Verdict::Neutral),
        (4, Verdict::Unhealthy),
    ] {
        breaker.settle(0, verdict, || 0, || 1);
        assert_eq!(
            (breaker.failures(), breaker.state()),
            (count, BreakerState::Closed)
        );
    }
    breaker.settle(0, Verdict::Unhealthy, || 0, || 1);
    assert_eq!(
        (breaker.failures(), breaker.state()),
        (5, BreakerState::Open)
    );
    assert_eq!(breaker.trips(), 1);
}
