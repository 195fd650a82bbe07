//! Big numbers: decimal floating point with 64 significant digits by default, rounding half up.

use std::cmp::Ordering;
use std::sync::LazyLock;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::digits::{Digits, Style};

/// `mantissa × 10^exponent`, or one of the three that are no number.
#[derive(Debug, Clone)]
pub(crate) enum Decimal {
    Finite { mantissa: BigInt, exponent: i64 },
    Infinite { negative: bool },
    Nan,
}

/// Beyond these exponents a result is infinite, or zero; a bound for what writing it out can cost.
const EXPONENT_MAX: i64 = 9_000_000_000_000_000;

/// The powers of ten that numbers of the usual precision need, made once.
static TENS: LazyLock<Vec<BigInt>> = LazyLock::new(|| {
    std::iter::successors(Some(BigInt::one()), |power| Some(power * 10u8))
        .take(160)
        .collect()
});

pub(crate) fn ten_to(power: u64) -> BigInt {
    match usize::try_from(power)
        .ok()
        .and_then(|power| TENS.get(power))
    {
        Some(power) => power.clone(),
        None => BigInt::from(10u8).pow(u32::try_from(power).unwrap_or(u32::MAX)),
    }
}

fn reaches(n: &BigInt, power: u64) -> bool {
    match usize::try_from(power)
        .ok()
        .and_then(|power| TENS.get(power))
    {
        Some(power) => n.magnitude() >= power.magnitude(),
        None => n.magnitude() >= ten_to(power).magnitude(),
    }
}

pub(crate) fn digit_count(n: &BigInt) -> u64 {
    if n.is_zero() {
        return 1;
    }
    // log10(2) from below, then at most one step up.
    let estimate = ((n.bits() - 1) as f64 * std::f64::consts::LOG10_2) as u64;
    if reaches(n, estimate + 1) {
        estimate + 2
    } else if reaches(n, estimate) {
        estimate + 1
    } else {
        estimate
    }
}

impl Decimal {
    pub(crate) fn new(mantissa: BigInt, exponent: i64) -> Self {
        Self::Finite { mantissa, exponent }
    }

    pub(crate) fn integer(n: i64) -> Self {
        Self::new(BigInt::from(n), 0)
    }

    pub(crate) fn zero() -> Self {
        Self::integer(0)
    }

    pub(crate) fn from_f64(x: f64) -> Self {
        if x.is_nan() {
            return Self::Nan;
        }
        if x.is_infinite() {
            return Self::Infinite { negative: x < 0.0 };
        }
        if x.fract() == 0.0 && x.abs() < 1e15 {
            return Self::integer(x as i64);
        }
        Self::read(&format!("{x:e}")).unwrap_or(Self::Nan)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        match text {
            "Infinity" | "+Infinity" => return Some(Self::Infinite { negative: false }),
            "-Infinity" => return Some(Self::Infinite { negative: true }),
            "NaN" => return Some(Self::Nan),
            _ => {}
        }
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.trim_start_matches(['-', '+']);
        let plain = digits
            .bytes()
            .chain(fraction.bytes())
            .all(|byte| byte.is_ascii_digit());
        if !plain || digits.len() + fraction.len() == 0 || whole.len() > digits.len() + 1 {
            return None;
        }
        let exponent: i64 = exponent
            .strip_prefix('+')
            .unwrap_or(exponent)
            .parse()
            .ok()?;
        let mantissa: BigInt = format!("{digits}{fraction}").parse().ok()?;
        let mantissa = if whole.starts_with('-') {
            -mantissa
        } else {
            mantissa
        };
        Some(Self::new(
            mantissa,
            exponent.checked_sub(fraction.len() as i64)?,
        ))
    }

    pub(crate) fn to_f64(&self) -> f64 {
        match self {
            Self::Nan => f64::NAN,
            Self::Infinite { negative: false } => f64::INFINITY,
            Self::Infinite { negative: true } => f64::NEG_INFINITY,
            Self::Finite { mantissa, exponent } => {
                format!("{mantissa}e{exponent}").parse().unwrap_or(f64::NAN)
            }
        }
    }

    /// Rounded half up to `precision` significant digits, without trailing zeros.
    pub(crate) fn rounded(self, precision: usize) -> Self {
        let Self::Finite {
            mut mantissa,
            mut exponent,
        } = self
        else {
            return self;
        };
        let extra = digit_count(&mantissa).saturating_sub(precision as u64);
        if extra > 0 {
            mantissa = divide_rounding(&mantissa, &ten_to(extra));
            exponent += extra as i64;
        }
        if mantissa.is_zero() {
            return Self::zero();
        }
        // Only an even number can end in zeros; a long tail of them goes in one cut, not digit by digit.
        if !mantissa.bit(0) {
            let text = mantissa.magnitude().to_str_radix(10);
            let zeros = text.len() - text.trim_end_matches('0').len();
            if zeros > 0 {
                mantissa /= ten_to(zeros as u64);
                exponent += zeros as i64;
            }
        }
        let top = exponent.saturating_add(digit_count(&mantissa) as i64);
        if top > EXPONENT_MAX {
            return Self::Infinite {
                negative: mantissa.is_negative(),
            };
        }
        if top < -EXPONENT_MAX {
            return Self::zero();
        }
        Self::new(mantissa, exponent)
    }

    pub(crate) fn is_zero(&self) -> bool {
        matches!(self, Self::Finite { mantissa, .. } if mantissa.is_zero())
    }

    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Self::Finite { mantissa, .. } => mantissa.is_negative(),
            Self::Infinite { negative } => *negative,
            Self::Nan => false,
        }
    }

    pub(crate) fn is_finite(&self) -> bool {
        matches!(self, Self::Finite { .. })
    }

    pub(crate) fn is_integer(&self) -> bool {
        match self {
            Self::Finite { mantissa, exponent } => {
                *exponent >= 0
                    || mantissa.is_zero()
                    || (exponent.unsigned_abs() <= digit_count(mantissa)
                        && mantissa.is_multiple_of(&ten_to(exponent.unsigned_abs())))
            }
            _ => false,
        }
    }

    /// The whole number it is, if it is one of at most `digits_max` digits.
    pub(crate) fn to_bigint(&self, digits_max: usize) -> Option<BigInt> {
        let Self::Finite { mantissa, exponent } = self else {
            return None;
        };
        if *exponent >= 0 {
            let size = digit_count(mantissa) as i64 + exponent;
            return (size <= digits_max as i64).then(|| mantissa * ten_to(*exponent as u64));
        }
        self.is_integer().then(|| {
            if mantissa.is_zero() {
                BigInt::zero()
            } else {
                mantissa / ten_to(exponent.unsigned_abs())
            }
        })
    }

    pub(crate) fn to_i64(&self) -> Option<i64> {
        self.to_bigint(20)?.to_i64()
    }

    /// The power of ten of the first digit.
    pub(crate) fn magnitude(&self) -> i64 {
        match self {
            Self::Finite { mantissa, exponent } if !mantissa.is_zero() => {
                exponent + digit_count(mantissa) as i64 - 1
            }
            _ => 0,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Finite { mantissa, exponent } => Self::new(-mantissa, *exponent),
            Self::Infinite { negative } => Self::Infinite {
                negative: !negative,
            },
            Self::Nan => Self::Nan,
        }
    }

    pub(crate) fn abs(&self) -> Self {
        if self.is_negative() {
            self.negated()
        } else {
            self.clone()
        }
    }

    pub(crate) fn add(&self, other: &Self, precision: usize) -> Self {
        match (self, other) {
            (
                Self::Finite {
                    mantissa: a,
                    exponent: x,
                },
                Self::Finite {
                    mantissa: b,
                    exponent: y,
                },
            ) => {
                // The far smaller one cannot change the rounded sum; aligning it would cost its distance in digits.
                let far = precision as i64 + 8;
                if !a.is_zero() && !b.is_zero() {
                    let gap = self.magnitude() - other.magnitude();
                    if gap > far + digit_count(a) as i64 {
                        return self.clone().rounded(precision);
                    }
                    if -gap > far + digit_count(b) as i64 {
                        return other.clone().rounded(precision);
                    }
                } else if a.is_zero() {
                    return other.clone().rounded(precision);
                } else {
                    return self.clone().rounded(precision);
                }
                let exponent = *x.min(y);
                let a = a * ten_to((x - exponent) as u64);
                let b = b * ten_to((y - exponent) as u64);
                Self::new(a + b, exponent).rounded(precision)
            }
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            (Self::Infinite { negative: a }, Self::Infinite { negative: b }) if a != b => Self::Nan,
            (Self::Infinite { negative }, _) | (_, Self::Infinite { negative }) => Self::Infinite {
                negative: *negative,
            },
        }
    }

    pub(crate) fn subtract(&self, other: &Self, precision: usize) -> Self {
        self.add(&other.negated(), precision)
    }

    pub(crate) fn multiply(&self, other: &Self, precision: usize) -> Self {
        match (self, other) {
            (
                Self::Finite {
                    mantissa: a,
                    exponent: x,
                },
                Self::Finite {
                    mantissa: b,
                    exponent: y,
                },
            ) => Self::new(a * b, x.saturating_add(*y)).rounded(precision),
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            _ if self.is_zero() || other.is_zero() => Self::Nan,
            _ => Self::Infinite {
                negative: self.is_negative() != other.is_negative(),
            },
        }
    }

    pub(crate) fn divide(&self, other: &Self, precision: usize) -> Self {
        match (self, other) {
            (
                Self::Finite {
                    mantissa: a,
                    exponent: x,
                },
                Self::Finite {
                    mantissa: b,
                    exponent: y,
                },
            ) => {
                if b.is_zero() {
                    return if a.is_zero() {
                        Self::Nan
                    } else {
                        Self::Infinite {
                            negative: a.is_negative(),
                        }
                    };
                }
                if a.is_zero() {
                    return Self::zero();
                }
                let shift = (precision as u64 + 3 + digit_count(b)).saturating_sub(digit_count(a));
                let (quotient, rest) = (a * ten_to(shift)).div_rem(b);
                // A digit that says "and a bit more" keeps the half-way rounding honest.
                let sticky = if rest.is_zero() {
                    BigInt::zero()
                } else {
                    BigInt::from(if a.sign() == b.sign() { 1 } else { -1 })
                };
                Self::new(quotient * 10 + sticky, x - y - shift as i64 - 1).rounded(precision)
            }
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            (Self::Infinite { .. }, Self::Infinite { .. }) => Self::Nan,
            (Self::Infinite { .. }, _) => Self::Infinite {
                negative: self.is_negative() != other.is_negative(),
            },
            (_, Self::Infinite { .. }) => Self::zero(),
        }
    }

    /// Rounded towards minus infinity to `decimals` digits after the point.
    pub(crate) fn floor(&self, decimals: i64) -> Self {
        self.cut(decimals, |mantissa, unit| mantissa.div_floor(unit))
    }

    pub(crate) fn ceil(&self, decimals: i64) -> Self {
        self.negated().floor(decimals).negated()
    }

    pub(crate) fn round(&self, decimals: i64) -> Self {
        self.cut(decimals, divide_rounding)
    }

    fn cut(&self, decimals: i64, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Self {
        let Self::Finite { mantissa, exponent } = self else {
            return self.clone();
        };
        let extra = -decimals - exponent;
        if extra <= 0 {
            return self.clone();
        }
        // Past all its digits only the sign matters.
        let extra_digits = extra.min(digit_count(mantissa) as i64 + 1);
        Self::new(
            divide(mantissa, &ten_to(extra_digits as u64)),
            exponent + extra,
        )
        .rounded(usize::MAX)
    }

    pub(crate) fn sqrt(&self, precision: usize) -> Self {
        match self {
            Self::Finite { mantissa, .. } if mantissa.is_negative() => Self::Nan,
            Self::Finite { mantissa, exponent } => {
                let mut shift = (2 * precision as i64 + 4 - digit_count(mantissa) as i64).max(0);
                if (exponent - shift) % 2 != 0 {
                    shift += 1;
                }
                let scaled = mantissa * ten_to(shift as u64);
                let root = scaled.sqrt();
                let sticky = if &root * &root == scaled {
                    BigInt::zero()
                } else {
                    BigInt::one()
                };
                Self::new(root * 10 + sticky, (exponent - shift) / 2 - 1).rounded(precision)
            }
            Self::Infinite { negative: true } | Self::Nan => Self::Nan,
            Self::Infinite { negative: false } => self.clone(),
        }
    }

    /// To a whole power, by squaring.
    pub(crate) fn power(&self, n: u64, precision: usize) -> Self {
        let (mut result, mut base, mut n) = (Self::integer(1), self.clone(), n);
        let working = precision + 10;
        while n > 0 {
            if n & 1 == 1 {
                result = result.multiply(&base, working);
            }
            n >>= 1;
            if n > 0 {
                base = base.multiply(&base, working);
            }
        }
        result.rounded(precision)
    }

    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Nan, _) | (_, Self::Nan) => None,
            (
                Self::Finite {
                    mantissa: a,
                    exponent: x,
                },
                Self::Finite {
                    mantissa: b,
                    exponent: y,
                },
            ) => {
                if a.sign() != b.sign() || a.sign() == Sign::NoSign {
                    return Some(a.sign().cmp(&b.sign()));
                }
                let by_size = self.magnitude().cmp(&other.magnitude());
                if by_size != Ordering::Equal {
                    return Some(if a.is_negative() {
                        by_size.reverse()
                    } else {
                        by_size
                    });
                }
                let exponent = *x.min(y);
                Some((a * ten_to((x - exponent) as u64)).cmp(&(b * ten_to((y - exponent) as u64))))
            }
            _ => self.to_f64_sign().partial_cmp(&other.to_f64_sign()),
        }
    }

    fn to_f64_sign(&self) -> f64 {
        match self {
            Self::Infinite { negative: true } => f64::NEG_INFINITY,
            Self::Infinite { negative: false } => f64::INFINITY,
            _ => 0.0,
        }
    }

    pub(crate) fn digits(&self) -> Option<Digits> {
        let Self::Finite { mantissa, exponent } = self else {
            return None;
        };
        Some(Digits::read(&format!("{mantissa}e{exponent}")))
    }

    pub(crate) fn write(&self, style: &Style) -> String {
        match self {
            Self::Nan => "NaN".into(),
            Self::Infinite { negative: true } => "-Infinity".into(),
            Self::Infinite { negative: false } => "Infinity".into(),
            Self::Finite { .. } => self
                .digits()
                .map(|digits| digits.write(style))
                .unwrap_or_default(),
        }
    }
}

/// The quotient rounded half away from zero.
fn divide_rounding(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, rest) = a.div_rem(b);
    if rest.abs() * 2u8 >= b.abs() {
        if a.is_negative() == b.is_negative() {
            quotient + 1
        } else {
            quotient - 1
        }
    } else {
        quotient
    }
}
