//! Complex numbers: arithmetic, powers, angles.

use std::f64::consts::PI;
use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

pub(crate) const I: Complex = Complex { re: 0.0, im: 1.0 };
pub(super) const ONE: Complex = Complex { re: 1.0, im: 0.0 };
const NAN: Complex = Complex {
    re: f64::NAN,
    im: f64::NAN,
};
const INFINITY: Complex = Complex {
    re: f64::INFINITY,
    im: f64::INFINITY,
};

impl From<f64> for Complex {
    fn from(re: f64) -> Self {
        Self { re, im: 0.0 }
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => NAN,
            (true, false) | (false, true) => INFINITY,
            (false, false) => Self {
                re: self.re + other.re,
                im: self.im + other.im,
            },
        }
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Complex {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            re: -self.re,
            im: -self.im,
        }
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self.is_infinite() || other.is_infinite() {
            return if self.is_zero() || other.is_zero() {
                NAN
            } else {
                INFINITY
            };
        }
        if self.im == 0.0 && other.im == 0.0 {
            return (self.re * other.re).into();
        }
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

impl Div for Complex {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        if (self.is_zero() && other.is_zero()) || (self.is_infinite() && other.is_infinite()) {
            return NAN;
        }
        if other.is_zero() || self.is_infinite() {
            return INFINITY;
        }
        if self.is_zero() || other.is_infinite() {
            return 0.0.into();
        }
        if other.im == 0.0 {
            return Self {
                re: self.re / other.re,
                im: self.im / other.re,
            };
        }
        // Scale by the larger part of the divisor, so that squares neither overflow nor vanish.
        if other.re.abs() < other.im.abs() {
            let ratio = other.re / other.im;
            let scale = other.re * ratio + other.im;
            Self {
                re: (self.re * ratio + self.im) / scale,
                im: (self.im * ratio - self.re) / scale,
            }
        } else {
            let ratio = other.im / other.re;
            let scale = other.im * ratio + other.re;
            Self {
                re: (self.re + self.im * ratio) / scale,
                im: (self.im - self.re * ratio) / scale,
            }
        }
    }
}

impl Complex {
    pub(crate) fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(crate) fn polar(radius: f64, angle: f64) -> Self {
        Self {
            re: radius * angle.cos(),
            im: radius * angle.sin(),
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }

    fn is_infinite(self) -> bool {
        // As in mathjs, a part that is no number counts as infinite.
        !(self.re.is_finite() && self.im.is_finite())
    }

    pub(crate) fn scale(self, factor: f64) -> Self {
        Self {
            re: self.re * factor,
            im: self.im * factor,
        }
    }

    pub(crate) fn conjugate(self) -> Self {
        Self {
            re: self.re,
            im: -self.im,
        }
    }

    pub(crate) fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    pub(crate) fn arg(self) -> f64 {
        self.im.atan2(self.re)
    }

    pub(crate) fn sqrt(self) -> Self {
        if self.im == 0.0 {
            return if self.re >= 0.0 {
                self.re.sqrt().into()
            } else {
                Self {
                    re: 0.0,
                    im: (-self.re).sqrt(),
                }
            };
        }
        let large = (0.5 * (self.abs() + self.re.abs())).sqrt();
        let small = self.im.abs() / (2.0 * large);
        if self.re >= 0.0 {
            Self {
                re: large,
                im: small.copysign(self.im),
            }
        } else {
            Self {
                re: small,
                im: large.copysign(self.im),
            }
        }
    }

    pub(crate) fn exp(self) -> Self {
        if self.im == 0.0 {
            self.re.exp().into()
        } else {
            Self::polar(self.re.exp(), self.im)
        }
    }

    pub(super) fn log_abs(self) -> f64 {
        let (a, b) = (self.re.abs(), self.im.abs());
        if self.re == 0.0 {
            return b.ln();
        }
        if self.im == 0.0 {
            return a.ln();
        }
        if a < 3000.0 && b < 3000.0 {
            return (a * a + b * b).ln() * 0.5;
        }
        self.abs().ln()
    }

    pub(crate) fn ln(self) -> Self {
        if self.im == 0.0 && self.re > 0.0 {
            return self.re.ln().into();
        }
        Self {
            re: self.log_abs(),
            im: self.arg(),
        }
    }

    pub(crate) fn pow(self, exponent: Self) -> Self {
        if exponent.is_zero() {
            return ONE;
        }
        if exponent.im == 0.0 {
            if self.im == 0.0 && self.re > 0.0 {
                // IEEE's 1 to the power of NaN is 1, JavaScript's is NaN.
                return match exponent.re.is_nan() {
                    true => f64::NAN.into(),
                    false => self.re.powf(exponent.re).into(),
                };
            }
            if self.re == 0.0 && exponent.re.fract() == 0.0 {
                // Whole powers of an imaginary number stay on the axes.
                let size = self.im.powf(exponent.re);
                return match exponent.re.rem_euclid(4.0) as u8 {
                    0 => size.into(),
                    1 => Self { re: 0.0, im: size },
                    2 => (-size).into(),
                    _ => Self { re: 0.0, im: -size },
                };
            }
        }
        if self.is_zero() && exponent.re > 0.0 {
            return 0.0.into();
        }
        let (log_abs, arg) = (self.log_abs(), self.arg());
        Self::polar(
            (exponent.re * log_abs - exponent.im * arg).exp(),
            exponent.im * log_abs + exponent.re * arg,
        )
    }

    /// All roots of the given whole order, counted up from the principal angle.
    pub(crate) fn roots(self, order: u32) -> Vec<Self> {
        let (radius, angle) = (self.abs().powf(1.0 / f64::from(order)), self.arg());
        (0..order)
            .map(|k| Self::polar(radius, (angle + 2.0 * PI * f64::from(k)) / f64::from(order)))
            .collect()
    }

    /// `2 + 3i`, `-i`, `4`; between a number and its i stands no space.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.replace('_', "");
        let (mut re, mut im, mut rest) = (0.0, 0.0, text.as_str());
        // Signs that stand before the next number; before the first there may be none.
        let (mut signs, mut minus) = (1, false);
        while let Some(c) = rest.chars().next() {
            if matches!(c, ' ' | '\t' | '\n') {
                rest = &rest[1..];
                continue;
            }
            if matches!(c, '+' | '-') {
                signs += 1;
                minus ^= c == '-';
                rest = &rest[1..];
                continue;
            }
            if signs == 0 {
                return None;
            }
            let (number, after) = split_number(rest);
            let size = if number.is_empty() {
                if !after.starts_with(['i', 'I']) {
                    return None;
                }
                None
            } else {
                Some(number.parse::<f64>().ok()?)
            };
            let sign = if minus { -1.0 } else { 1.0 };
            match after.strip_prefix(['i', 'I']) {
                Some(after) => {
                    // The number may also follow its i.
                    let (number, beyond) = split_number(after);
                    let (size, after) = match (size, number.parse::<f64>()) {
                        (None, Ok(size)) => (size, beyond),
                        (size, _) => (size.unwrap_or(1.0), after),
                    };
                    im += sign * size;
                    rest = after;
                }
                None => {
                    re += sign * size?;
                    rest = after;
                }
            }
            (signs, minus) = (0, false);
        }
        (signs == 0).then_some(Self { re, im })
    }
}

/// Digits with a point and an exponent, without a sign, and what follows.
fn split_number(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && (end > 0 || digits(1) > 1) {
        end = digits(end + 1);
    }
    if end > 0 && bytes.get(end) == Some(&b'e') {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            end = after;
        }
    }
    text.split_at(end)
}
