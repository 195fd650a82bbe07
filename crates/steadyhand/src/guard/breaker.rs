//! Stops calling a tool that keeps failing: closed, open, half-open (SPEC R04, D8, D9, D11).
//!
//! A pure machine ([`Machine`]) in one atomic word ([`Breaker`]). Time is handed in as milliseconds
//! of a monotonic clock. Every change of state starts a new generation, and an outcome from another
//! generation changes nothing: a slow call from before the trip cannot close or re-open anything.

use serde::Serialize;

use crate::sync::{AtomicU64, Ordering};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Consecutive failed calls that open it.
    pub failures: u32,
    /// How long it rests before a trial, in milliseconds.
    pub cooldown_ms: u64,
}

impl Default for BreakerPolicy {
    fn default() -> BreakerPolicy {
        BreakerPolicy {
            failures: 5,
            cooldown_ms: 60_000,
        }
    }
}

/// The state as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused.
    Open,
    /// One trial call decides.
    HalfOpen,
}

/// What a finished call says about the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The tool answered.
    Healthy,
    /// The tool is ill.
    Unhealthy,
    /// Says nothing about the tool.
    Neutral,
}

/// The answer to "may this call pass?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may; hand the generation back with the verdict.
    Pass {
        /// The generation the call belongs to.
        generation: u32,
    },
    /// It may, as the one trial of a half-open breaker.
    Trial {
        /// The generation the call belongs to.
        generation: u32,
    },
    /// It may not.
    Refuse {
        /// When the next trial may start, in milliseconds from now.
        retry_after_ms: u64,
    },
}

/// A change of state that the caller of this method made, and nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub from: BreakerState,
    /// After.
    pub to: BreakerState,
}

/// No trial holds its slot for longer, however patient its caller is.
pub const LEASE_MS_MAX: u64 = 3_600_000;

/// The machine: no clock, no lock, no side effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    generation: u32,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed { failures: u64 },
    Open { until_ms: u64 },
    HalfOpen { lease_until_ms: u64 },
}

impl Machine {
    /// Closed, nothing counted.
    pub fn new() -> Machine {
        Machine {
            generation: 0,
            phase: Phase::Closed { failures: 0 },
        }
    }

    /// Where it stands.
    pub fn state(self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Asks to pass at `now_ms`. A trial must be settled within `lease_ms`, or another may start.
    pub fn admit(self, now_ms: u64, lease_ms: u64, policy: BreakerPolicy) -> (Machine, Admission) {
        let lease_ms = lease_ms.min(LEASE_MS_MAX);
        let (until_ms, longest_ms) = match self.phase {
            Phase::Closed { .. } => {
                let generation = self.generation;
                return (self, Admission::Pass { generation });
            }
            Phase::Open { until_ms } => (until_ms, policy.cooldown_ms),
            Phase::HalfOpen { lease_until_ms } => (lease_until_ms, LEASE_MS_MAX),
        };
        if now_ms >= until_ms {
            let trial = self.moved_to(Phase::HalfOpen {
                lease_until_ms: clamp(now_ms.saturating_add(lease_ms)),
            });
            let generation = trial.generation;
            return (trial, Admission::Trial { generation });
        }
        // A clock that jumped back must not make the rest longer than it was meant to be.
        let until_ms = until_ms.min(now_ms.saturating_add(longest_ms));
        let phase = match self.phase {
            Phase::Open { .. } => Phase::Open { until_ms },
            _ => Phase::HalfOpen {
                lease_until_ms: until_ms,
            },
        };
        let retry_after_ms = until_ms - now_ms;
        (
            Machine { phase, ..self },
            Admission::Refuse { retry_after_ms },
        )
    }

    /// Takes the verdict of a call that was admitted in `generation`.
    pub fn settle(
        self,
        generation: u32,
        verdict: Verdict,
        now_ms: u64,
        policy: BreakerPolicy,
    ) -> Machine {
        if generation != self.generation {
            return self;
        }
        let open = Phase::Open {
            until_ms: clamp(now_ms.saturating_add(policy.cooldown_ms)),
        };
        match (self.phase, verdict) {
            (Phase::Closed { .. }, Verdict::Healthy) => Machine {
                phase: Phase::Closed { failures: 0 },
                ..self
            },
            (Phase::Closed { failures }, Verdict::Unhealthy) => {
                let failures = failures + 1;
                if failures >= u64::from(policy.failures) {
                    return self.moved_to(open);
                }
                Machine {
                    phase: Phase::Closed { failures },
                    ..self
                }
            }
            (Phase::HalfOpen { .. }, Verdict::Healthy) => {
                self.moved_to(Phase::Closed { failures: 0 })
            }
            (Phase::HalfOpen { .. }, Verdict::Unhealthy) => self.moved_to(open),
            // The trial proved nothing: the next call may be the trial, at once.
            (Phase::HalfOpen { .. }, Verdict::Neutral) => {
                self.moved_to(Phase::HalfOpen { lease_until_ms: 0 })
            }
            (Phase::Closed { .. }, Verdict::Neutral) | (Phase::Open { .. }, _) => self,
        }
    }

    /// Closed by hand.
    pub fn reset(self) -> Machine {
        self.moved_to(Phase::Closed { failures: 0 })
    }

    /// The rest of an open breaker is over, by hand: the next call is the trial.
    pub fn rested(self) -> Machine {
        match self.phase {
            Phase::Open { .. } => Machine {
                phase: Phase::Open { until_ms: 0 },
                ..self
            },
            Phase::Closed { .. } | Phase::HalfOpen { .. } => self,
        }
    }

    fn moved_to(self, phase: Phase) -> Machine {
        Machine {
            generation: (self.generation + 1) & GENERATION_MAX,
            phase,
        }
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

// One word: two bits of state, twenty of generation, forty-two of payload (139 years of milliseconds).
const PAYLOAD_BITS: u32 = 42;
const PAYLOAD_MAX: u64 = (1 << PAYLOAD_BITS) - 1;
const GENERATION_MAX: u32 = (1 << 20) - 1;

fn clamp(ms: u64) -> u64 {
    ms.min(PAYLOAD_MAX)
}

impl From<Machine> for u64 {
    fn from(machine: Machine) -> u64 {
        let (tag, payload) = match machine.phase {
            Phase::Closed { failures } => (0, failures),
            Phase::Open { until_ms } => (1, until_ms),
            Phase::HalfOpen { lease_until_ms } => (2, lease_until_ms),
        };
        (tag << 62) | (u64::from(machine.generation) << PAYLOAD_BITS) | clamp(payload)
    }
}

impl From<u64> for Machine {
    fn from(word: u64) -> Machine {
        let payload = word & PAYLOAD_MAX;
        let phase = match word >> 62 {
            0 => Phase::Closed { failures: payload },
            1 => Phase::Open { until_ms: payload },
            _ => Phase::HalfOpen {
                lease_until_ms: payload,
            },
        };
        Machine {
            generation: (word >> PAYLOAD_BITS) as u32 & GENERATION_MAX,
            phase,
        }
    }
}

/// The machine shared by all calls of one tool. A call through a closed breaker writes nothing.
#[derive(Debug)]
pub struct Breaker {
    word: AtomicU64,
    /// Failed calls in a row, kept for people to see after the breaker has opened.
    failures: AtomicU64,
    last_failure_ms: AtomicU64,
    trips: AtomicU64,
    policy: BreakerPolicy,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(policy: BreakerPolicy) -> Breaker {
        Breaker {
            word: AtomicU64::new(Machine::new().into()),
            failures: AtomicU64::new(0),
            last_failure_ms: AtomicU64::new(0),
            trips: AtomicU64::new(0),
            policy,
        }
    }

    /// Asks to pass. The clock is read only when the breaker is not closed.
    pub fn admit(
        &self,
        now_ms: impl FnOnce() -> u64,
        lease_ms: u64,
    ) -> (Admission, Option<Change>) {
        let machine = self.machine();
        if let Phase::Closed { .. } = machine.phase {
            let generation = machine.generation;
            return (Admission::Pass { generation }, None);
        }
        let now_ms = now_ms();
        let mut admission = Admission::Refuse { retry_after_ms: 0 };
        let change = self.update(|machine| {
            let (next, answer) = machine.admit(now_ms, lease_ms, self.policy);
            admission = answer;
            next
        });
        (admission, change)
    }

    /// Whether a call admitted in `generation` may still start: nothing has moved, or it is closed again.
    pub fn still_passes(&self, generation: u32) -> bool {
        let machine = self.machine();
        machine.generation == generation || machine.state() == BreakerState::Closed
    }

    /// Takes the verdict of a call. `wall_ms` is what people will read as the time of a failure.
    pub fn settle(
        &self,
        generation: u32,
        verdict: Verdict,
        now_ms: impl FnOnce() -> u64,
        wall_ms: impl FnOnce() -> u64,
    ) -> Option<Change> {
        let now_ms = match verdict {
            Verdict::Healthy => {
                let machine = self.machine();
                // The common case: nothing to count, nothing to reset, nothing to write.
                if machine.phase == (Phase::Closed { failures: 0 }) {
                    return None;
                }
                0
            }
            Verdict::Unhealthy => {
                self.last_failure_ms.store(wall_ms(), Ordering::Relaxed);
                now_ms()
            }
            Verdict::Neutral => 0,
        };
        let change =
            self.update(|machine| machine.settle(generation, verdict, now_ms, self.policy));
        if let Some(Change {
            from,
            to: BreakerState::Open,
        }) = change
        {
            self.trips.fetch_add(1, Ordering::Relaxed);
            match from {
                BreakerState::Closed => {
                    let failures = u64::from(self.policy.failures.max(1));
                    self.failures.store(failures, Ordering::Relaxed);
                }
                BreakerState::Open | BreakerState::HalfOpen => {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        change
    }

    /// Closes it by hand.
    pub fn reset(&self) -> Option<Change> {
        self.update(Machine::reset)
    }

    /// Ends the rest of an open breaker by hand: the next call is the trial.
    pub fn rested(&self) {
        self.update(Machine::rested);
    }

    /// How long an open breaker still rests.
    pub fn rest_ms(&self, now_ms: u64) -> Option<u64> {
        match self.machine().phase {
            Phase::Open { until_ms } => {
                let rest_ms = until_ms.saturating_sub(now_ms);
                Some(rest_ms.min(self.policy.cooldown_ms))
            }
            Phase::Closed { .. } | Phase::HalfOpen { .. } => None,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> BreakerState {
        self.machine().state()
    }

    /// Failed calls in a row.
    pub fn failures(&self) -> u64 {
        match self.machine().phase {
            Phase::Closed { failures } => failures,
            Phase::Open { .. } | Phase::HalfOpen { .. } => self.failures.load(Ordering::Relaxed),
        }
    }

    /// When a call last failed, in milliseconds since 1970; `None` if never.
    pub fn last_failure_ms(&self) -> Option<u64> {
        Some(self.last_failure_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0)
    }

    /// How often it opened.
    pub fn trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    fn machine(&self) -> Machine {
        Machine::from(self.word.load(Ordering::Acquire))
    }

    /// Moves the machine on; whoever wins the exchange reports the change, after it happened.
    fn update(&self, mut step: impl FnMut(Machine) -> Machine) -> Option<Change> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let before = Machine::from(word);
            let after = step(before);
            if before == after {
                return None;
            }
            match self.word.compare_exchange_weak(
                word,
                after.into(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let change = Change {
                        from: before.state(),
                        to: after.state(),
                    };
                    return (change.from != change.to).then_some(change);
                }
                Err(current) => word = current,
            }
        }
    }
}
