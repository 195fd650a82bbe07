//! The ways to round, for every kind of number.

use num_bigint::BigInt;

use super::compare::{nearly_equal, nearly_equal_big};
use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::number::digits::Digits;
use crate::number::fraction::Fraction;
use crate::value::env::Env;

/// One way to round, for every kind of number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Floor,
    Ceil,
    Fix,
    Round,
}

/// As many decimals as the tolerance of comparisons has: what differs only beyond them is a rounding error.
const TOLERANCE_DECIMALS: i64 = 12;

impl Rounding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::Fix => "fix",
            Self::Round => "round",
        }
    }

    /// Towards which side a number of this sign is rounded by `fix`.
    fn of_sign(self, is_positive: bool) -> Self {
        match self {
            Self::Fix if is_positive => Self::Floor,
            Self::Fix => Self::Ceil,
            other => other,
        }
    }

    fn plain(self, x: f64) -> f64 {
        match self.of_sign(x > 0.0) {
            Self::Floor => x.floor(),
            Self::Round => round_number(x, 0),
            Self::Ceil | Self::Fix => x.ceil(),
        }
    }

    /// To whole; a number a rounding error away from the next step counts as on it.
    pub(crate) fn whole(self, x: f64) -> f64 {
        if self == Self::Round {
            return round_tolerant(x, 0);
        }
        let (own, nearest) = (self.plain(x), round_tolerant(x, 0));
        let near = |y: f64| nearly_equal(x, y, 1e-12, 1e-15);
        if own != nearest && near(nearest) && !near(own) {
            nearest
        } else {
            own
        }
    }

    pub(crate) fn number(self, x: f64, decimals: i64) -> Result<f64> {
        if decimals == 0 {
            return Ok(self.whole(x));
        }
        if !(0..=15).contains(&decimals) {
            return Err(MathError::value(format!(
                "Number of decimals in function {} must be an integer from 0 to 15 inclusive",
                self.name()
            )));
        }
        if self == Self::Round {
            return Ok(round_tolerant(x, decimals));
        }
        let shift = 10f64.powi(decimals as i32);
        Ok(self.whole(x * shift) / shift)
    }

    /// `decimals` are none where they were not given: then nothing counts as a rounding error.
    pub(crate) fn complex(self, x: f64, decimals: Option<i64>) -> Result<f64> {
        match (self, decimals) {
            (Self::Fix, Some(decimals)) => self.number(x, decimals),
            _ => {
                let decimals = decimals.unwrap_or(0);
                let places = 10f64.powi(decimals as i32);
                let rounded = match self {
                    Self::Round => round_half_up(x * places),
                    _ => self.plain(x * places),
                };
                Ok(rounded / places)
            }
        }
    }

    pub(crate) fn big(self, env: &Env, x: &Decimal, decimals: i64) -> Result<Decimal> {
        if self == Self::Round {
            if decimals < 0 {
                return Err(MathError::value(
                    "Number of decimals in function round must not be negative",
                ));
            }
            if decimals >= TOLERANCE_DECIMALS {
                return Ok(x.round(decimals));
            }
            let tolerant = x.round(TOLERANCE_DECIMALS);
            let chosen = if nearly_equal_big(env, x, &tolerant) {
                tolerant
            } else {
                x.clone()
            };
            return Ok(chosen.round(decimals));
        }
        let own = match self.of_sign(!x.is_negative()) {
            Self::Floor => x.floor(decimals),
            _ => x.ceil(decimals),
        };
        let nearest = x.round(decimals);
        let near = |other: &Decimal| nearly_equal_big(env, x, other);
        Ok(if near(&nearest) && !near(&own) {
            nearest
        } else {
            own
        })
    }

    pub(crate) fn fraction(self, n: &Fraction) -> BigInt {
        let is_positive = n.numerator >= BigInt::default();
        match self.of_sign(is_positive) {
            Self::Floor => n.floor(),
            Self::Round => {
                // Halves go up, also below zero.
                let half = Fraction {
                    numerator: 1.into(),
                    denominator: 2.into(),
                };
                n.add(&half).floor()
            }
            Self::Ceil | Self::Fix => -n.negated().floor(),
        }
    }
}

/// As JavaScript rounds: halves go up, also below zero.
fn round_half_up(x: f64) -> f64 {
    let below = x.floor();
    if x - below >= 0.5 { below + 1.0 } else { below }
}

pub(crate) fn round_number(x: f64, decimals: i64) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let digits = Digits::of(x);
    let count = digits.point + decimals;
    let rounded: f64 = digits.rounded(count).exponential(0).parse().unwrap_or(x);
    // What rounds to zero keeps its sign, as in JavaScript.
    rounded.abs().copysign(x)
}

/// Numbers a hair below a half are first lifted onto it.
fn round_tolerant(x: f64, decimals: i64) -> f64 {
    let lifted = round_number(x, TOLERANCE_DECIMALS);
    let is_lifted = decimals < TOLERANCE_DECIMALS && nearly_equal(x, lifted, 1e-12, 1e-15);
    round_number(if is_lifted { lifted } else { x }, decimals)
}
