//! Fractions of whole numbers, always in lowest terms.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::decimal::{Decimal, ten_to};
use super::integer;
use crate::error::{MathError, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) numerator: BigInt,
    /// Positive.
    pub(crate) denominator: BigInt,
}

/// Denominators up to here are looked for when a float becomes a fraction.
const DENOMINATOR_MAX: f64 = 1e7;

impl Fraction {
    pub(crate) fn new(numerator: BigInt, denominator: BigInt) -> Result<Self> {
        if denominator.is_zero() {
            return Err(MathError::value("Division by Zero"));
        }
        let divisor = numerator.gcd(&denominator);
        let divisor = if denominator.is_negative() {
            -divisor
        } else {
            divisor
        };
        Ok(Self {
            numerator: numerator / &divisor,
            denominator: denominator / divisor,
        })
    }

    pub(crate) fn integer(n: impl Into<BigInt>) -> Self {
        Self {
            numerator: n.into(),
            denominator: BigInt::one(),
        }
    }

    /// The simplest fraction that is this float; failing that, the nearest with a modest denominator.
    pub(crate) fn from_f64(x: f64) -> Result<Self> {
        if !x.is_finite() {
            return Err(MathError::value(format!(
                "{x} cannot be written as a fraction"
            )));
        }
        if x.fract() == 0.0 {
            return Ok(Self::integer(integer::exact(x).unwrap_or_default()));
        }
        let scale = if x.abs() >= 1.0 {
            10f64.powf((1.0 + x.abs().log10()).floor())
        } else {
            1.0
        };
        let target = x.abs() / scale;
        // Walk down the Stern–Brocot tree between 0/1 and 1/1.
        let (mut a, mut b, mut c, mut d) = (0.0, 1.0, 1.0, 1.0);
        let (mut n, mut m) = (0.0, 1.0);
        while b <= DENOMINATOR_MAX && d <= DENOMINATOR_MAX {
            let middle = (a + c) / (b + d);
            if target == middle {
                if b + d <= DENOMINATOR_MAX {
                    (n, m) = (a + c, b + d);
                } else if d > b {
                    (n, m) = (c, d);
                } else {
                    (n, m) = (a, b);
                }
                break;
            }
            if target > middle {
                (a, b) = (a + c, b + d);
            } else {
                (c, d) = (a + c, b + d);
            }
            (n, m) = if b > DENOMINATOR_MAX { (c, d) } else { (a, b) };
        }
        let whole = |x: f64| Decimal::from_f64(x).to_bigint(400).unwrap_or_default();
        Self::new(whole((n * scale).copysign(x)), whole(m))
    }

    /// `1/3`, `0.25`, `0.(3)`, `2 1/2`
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((numerator, denominator)) = text.split_once(['/', ':']) {
            let denominator: BigInt = denominator.trim().parse().ok()?;
            let (whole, numerator) = numerator
                .trim()
                .split_once(' ')
                .unwrap_or(("0", numerator.trim()));
            let (whole, numerator): (BigInt, BigInt) =
                (whole.parse().ok()?, numerator.trim().parse().ok()?);
            let part = if whole.is_negative() {
                -numerator
            } else {
                numerator
            };
            return Self::new(whole * &denominator + part, denominator).ok();
        }
        let (text, repeating) = match text.split_once('(') {
            Some((text, rest)) => (text, rest.strip_suffix(')')?),
            None => (text, ""),
        };
        if text.contains(['e', 'E']) {
            return None;
        }
        let Decimal::Finite { mantissa, exponent } = Decimal::read(text)? else {
            return None;
        };
        let base = Self::scaled(mantissa, exponent)?;
        if repeating.is_empty() {
            return Some(base);
        }
        let nines = ten_to(repeating.len() as u64) - 1;
        let tail = Self::new(
            repeating.parse().ok()?,
            nines * ten_to(exponent.unsigned_abs()),
        )
        .ok()?;
        Some(if text.starts_with('-') {
            base.subtract(&tail)
        } else {
            base.add(&tail)
        })
    }

    /// So many times a power of ten that is not too far from one.
    pub(crate) fn scaled(mantissa: BigInt, exponent: i64) -> Option<Self> {
        if exponent.abs() > 400 {
            return None;
        }
        let scale = ten_to(exponent.unsigned_abs());
        if exponent >= 0 {
            Some(Self::integer(mantissa * scale))
        } else {
            Self::new(mantissa, scale).ok()
        }
    }

    fn make(numerator: BigInt, denominator: BigInt) -> Self {
        // Products and sums of proper fractions never have a zero below.
        Self::new(numerator, denominator).unwrap_or_else(|_| Self::integer(0))
    }

    pub(crate) fn to_f64(&self) -> f64 {
        match (self.numerator.to_f64(), self.denominator.to_f64()) {
            (Some(n), Some(d)) if n.is_finite() && d.is_finite() => n / d,
            _ => self.to_decimal(20).to_f64(),
        }
    }

    pub(crate) fn to_decimal(&self, precision: usize) -> Decimal {
        Decimal::new(self.numerator.clone(), 0)
            .divide(&Decimal::new(self.denominator.clone(), 0), precision)
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.denominator.is_one()
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        Self::make(
            &self.numerator * &other.denominator + &other.numerator * &self.denominator,
            &self.denominator * &other.denominator,
        )
    }

    pub(crate) fn negated(&self) -> Self {
        Self {
            numerator: -&self.numerator,
            denominator: self.denominator.clone(),
        }
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        self.add(&other.negated())
    }

    pub(crate) fn multiply(&self, other: &Self) -> Self {
        Self::make(
            &self.numerator * &other.numerator,
            &self.denominator * &other.denominator,
        )
    }

    pub(crate) fn divide(&self, other: &Self) -> Result<Self> {
        Self::new(
            &self.numerator * &other.denominator,
            &self.denominator * &other.numerator,
        )
    }

    pub(crate) fn floor(&self) -> BigInt {
        self.numerator.div_floor(&self.denominator)
    }

    pub(crate) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }

    /// The exponent that makes this of the base, where it is a fraction itself and the factors are small.
    pub(crate) fn log(&self, base: &Self) -> Option<Self> {
        let (own, of_base) = (self.factors()?, base.factors()?);
        let mut ratio: Option<Self> = None;
        for prime in own.keys().chain(of_base.keys()) {
            let above = own.get(prime).copied().unwrap_or(0);
            let below = *of_base.get(prime)?;
            let here = Self::new(above.into(), below.into()).ok()?;
            match &ratio {
                Some(ratio) if *ratio != here => return None,
                _ => ratio = Some(here),
            }
        }
        ratio
    }

    /// How often each prime divides it; `None` where it is not positive or has large factors.
    fn factors(&self) -> Option<std::collections::BTreeMap<u64, i64>> {
        let mut factors = std::collections::BTreeMap::new();
        for (number, sign) in [(&self.numerator, 1), (&self.denominator, -1)] {
            let mut rest = number.to_u64().filter(|n| *n > 0)?;
            let mut prime = 2;
            while prime * prime <= rest && prime < 100_000 {
                while rest.is_multiple_of(prime) {
                    rest /= prime;
                    *factors.entry(prime).or_insert(0) += sign;
                }
                prime += 1;
            }
            if prime * prime <= rest {
                return None;
            }
            if rest > 1 {
                *factors.entry(rest).or_insert(0) += sign;
            }
        }
        Some(factors)
    }

    pub(crate) fn digits(&self) -> u64 {
        (self.numerator.bits().max(self.denominator.bits()) as f64 * std::f64::consts::LOG10_2)
            as u64
            + 1
    }

    /// As decimals, with the repeating part in parentheses: `0.(3)`.
    pub(crate) fn write_decimal(&self) -> String {
        let sign = if self.numerator.is_negative() {
            "-"
        } else {
            ""
        };
        let (whole, mut rest) = self.numerator.abs().div_rem(&self.denominator);
        let mut text = format!("{sign}{whole}");
        if rest.is_zero() {
            return text;
        }
        text.push('.');
        let mut seen: Vec<BigInt> = Vec::new();
        let mut digits = String::new();
        while !rest.is_zero() && digits.len() < 200 {
            if let Some(start) = seen.iter().position(|earlier| *earlier == rest) {
                let (once, again) = digits.split_at(start);
                return format!("{text}{once}({again})");
            }
            seen.push(rest.clone());
            let (digit, next) = (rest * 10u8).div_rem(&self.denominator);
            digits.push_str(&digit.to_string());
            rest = next;
        }
        text + &digits
    }
}
