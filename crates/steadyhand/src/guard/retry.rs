//! Decides whether a failed attempt is repeated, and after which wait (SPEC D4, D7, R05). Pure.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Effect, Failure, FailureCode};

/// How often, how long apart, and after what.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included: 1 means no retry.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles from there.
    pub first_wait: Duration,
    /// Spreads each wait evenly over half to all of its length, so that callers do not march in step.
    pub jitter: bool,
    /// Failures worth a repetition.
    pub on: Vec<FailureCode>,
    /// Stops retrying when too many calls need it; off by default.
    pub budget: Option<BudgetPolicy>,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts: 4,
            first_wait: Duration::from_millis(100),
            jitter: false,
            on: vec![
                FailureCode::NetworkError,
                FailureCode::Timeout,
                FailureCode::RateLimitError,
                FailureCode::ToolExecutionError,
            ],
            budget: None,
        }
    }
}

impl RetryPolicy {
    /// One attempt, no more.
    pub fn none() -> RetryPolicy {
        RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        }
    }
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Repeat after this wait.
    Wait(Duration),
    /// Give up, for this reason.
    Stop(StopReason),
}

/// Why a failed attempt is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// All attempts are used up, or retrying is switched off.
    NoAttemptsLeft,
    /// A failure of this kind does not pass by itself.
    NotRetryable,
    /// The tool may have acted, and is not safe to repeat.
    MayHaveActed,
    /// The deadline cannot pay for the wait.
    NoTimeLeft,
    /// The tool's retry budget is used up.
    NoBudgetLeft,
}

/// The facts the decision rests on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// How often the tool was started.
    pub attempts: u32,
    /// How the last attempt failed.
    pub failure: &'a Failure,
    /// Whether the tool may be run again although it may have acted.
    pub safe_to_repeat: bool,
    /// What is left until the deadline.
    pub time_left: Duration,
}

impl RetryPolicy {
    /// The decision, but for the budget. `random` is in 0..1 and only used with jitter.
    pub fn next(&self, situation: Situation<'_>, random: f64) -> Next {
        let failure = situation.failure;
        if !failure.retryable || !self.on.contains(&failure.code) {
            return Next::Stop(StopReason::NotRetryable);
        }
        if !situation.safe_to_repeat && failure.effect != Effect::None {
            return Next::Stop(StopReason::MayHaveActed);
        }
        if situation.attempts >= self.attempts {
            return Next::Stop(StopReason::NoAttemptsLeft);
        }
        let wait = failure
            .retry_after
            .unwrap_or_else(|| self.backoff(situation.attempts, random));
        if wait >= situation.time_left {
            return Next::Stop(StopReason::NoTimeLeft);
        }
        Next::Wait(wait)
    }

    /// 100, 200, 400 ms … after the first, second, third attempt.
    fn backoff(&self, attempts: u32, random: f64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(20);
        let wait = self.first_wait.saturating_mul(1 << doublings);
        match self.jitter {
            true => wait.mul_f64(0.5 + 0.5 * random.clamp(0.0, 1.0)),
            false => wait,
        }
    }
}

/// A bucket of tokens: a retry takes one, a success puts a part of one back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetPolicy {
    /// Retries that may happen in a row before successes must pay for more.
    pub tokens: u32,
    /// Thousandths of a token that one success puts back.
    pub per_success_thousandths: u32,
}

impl Default for BudgetPolicy {
    fn default() -> BudgetPolicy {
        BudgetPolicy {
            tokens: 10,
            per_success_thousandths: 100,
        }
    }
}

/// The budget of one tool, in thousandths of a token.
#[derive(Debug)]
pub struct Budget {
    thousandths: AtomicU32,
    policy: BudgetPolicy,
}

const TOKEN: u32 = 1000;

impl Budget {
    /// A full bucket.
    pub fn new(policy: BudgetPolicy) -> Budget {
        Budget {
            thousandths: AtomicU32::new(policy.tokens.saturating_mul(TOKEN)),
            policy,
        }
    }

    /// Takes a token for a retry, if there is one.
    pub fn take(&self) -> bool {
        self.thousandths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(TOKEN)
            })
            .is_ok()
    }

    /// Puts back what one success is worth.
    pub fn put_back(&self) {
        let full = self.policy.tokens.saturating_mul(TOKEN);
        // A full bucket, the usual case, is not written to.
        let _ = self
            .thousandths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                let more = left.saturating_add(self.policy.per_success_thousandths);
                (left < full).then_some(more.min(full))
            });
    }
}
