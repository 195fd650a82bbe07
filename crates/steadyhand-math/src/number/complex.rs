//! Complex numbers: arithmetic, powers, angles.

use std::f64::consts::{FRAC_PI_2, PI};
use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

pub(crate) const I: Complex = Complex { re: 0.0, im: 1.0 };
const ONE: Complex = Complex { re: 1.0, im: 0.0 };
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
        !(self.re.is_nan() || self.im.is_nan()) && (self.re.is_infinite() || self.im.is_infinite())
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

    pub(crate) fn inverse(self) -> Self {
        if self.is_zero() { INFINITY } else { ONE / self }
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

    fn log_abs(self) -> f64 {
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
                return self.re.powf(exponent.re).into();
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

    pub(crate) fn sin(self) -> Self {
        Self {
            re: self.re.sin() * self.im.cosh(),
            im: self.re.cos() * self.im.sinh(),
        }
    }

    pub(crate) fn cos(self) -> Self {
        Self {
            re: self.re.cos() * self.im.cosh(),
            im: -self.re.sin() * self.im.sinh(),
        }
    }

    pub(crate) fn tan(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = a.cos() + b.cosh();
        Self {
            re: a.sin() / d,
            im: b.sinh() / d,
        }
    }

    pub(crate) fn cot(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = a.cos() - b.cosh();
        Self {
            re: -a.sin() / d,
            im: b.sinh() / d,
        }
    }

    pub(crate) fn sec(self) -> Self {
        let d = 0.5 * (2.0 * self.im).cosh() + 0.5 * (2.0 * self.re).cos();
        Self {
            re: self.re.cos() * self.im.cosh() / d,
            im: self.re.sin() * self.im.sinh() / d,
        }
    }

    pub(crate) fn csc(self) -> Self {
        let d = 0.5 * (2.0 * self.im).cosh() - 0.5 * (2.0 * self.re).cos();
        Self {
            re: self.re.sin() * self.im.cosh() / d,
            im: -self.re.cos() * self.im.sinh() / d,
        }
    }

    /// log(i·z + √(1 − z²)), which both arcsine and arccosine are made of.
    fn log_of_circle(self) -> Self {
        let (a, b) = (self.re, self.im);
        let root = Self {
            re: b * b - a * a + 1.0,
            im: -2.0 * a * b,
        }
        .sqrt();
        Self {
            re: root.re - b,
            im: root.im + a,
        }
        .ln()
    }

    pub(crate) fn asin(self) -> Self {
        let log = self.log_of_circle();
        Self {
            re: log.im,
            im: -log.re,
        }
    }

    pub(crate) fn acos(self) -> Self {
        let log = self.log_of_circle();
        Self {
            re: FRAC_PI_2 - log.im,
            im: log.re,
        }
    }

    pub(crate) fn atan(self) -> Self {
        let (a, b) = (self.re, self.im);
        if a == 0.0 && b.abs() == 1.0 {
            return Self {
                re: 0.0,
                im: b * f64::INFINITY,
            };
        }
        let d = a * a + (1.0 - b) * (1.0 - b);
        let log = Self {
            re: (1.0 - b * b - a * a) / d,
            im: -2.0 * a / d,
        }
        .ln();
        Self {
            re: -0.5 * log.im,
            im: 0.5 * log.re,
        }
    }

    pub(crate) fn acot(self) -> Self {
        if self.im == 0.0 {
            return 1f64.atan2(self.re).into();
        }
        self.reciprocal().atan()
    }

    pub(crate) fn asec(self) -> Self {
        if self.is_zero() {
            return Self {
                re: 0.0,
                im: f64::INFINITY,
            };
        }
        self.reciprocal().acos()
    }

    pub(crate) fn acsc(self) -> Self {
        if self.is_zero() {
            return Self {
                re: FRAC_PI_2,
                im: f64::INFINITY,
            };
        }
        self.reciprocal().asin()
    }

    fn reciprocal(self) -> Self {
        let d = self.re * self.re + self.im * self.im;
        Self {
            re: self.re / d,
            im: -self.im / d,
        }
    }

    pub(crate) fn sinh(self) -> Self {
        Self {
            re: self.re.sinh() * self.im.cos(),
            im: self.re.cosh() * self.im.sin(),
        }
    }

    pub(crate) fn cosh(self) -> Self {
        Self {
            re: self.re.cosh() * self.im.cos(),
            im: self.re.sinh() * self.im.sin(),
        }
    }

    pub(crate) fn tanh(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = a.cosh() + b.cos();
        Self {
            re: a.sinh() / d,
            im: b.sin() / d,
        }
    }

    pub(crate) fn coth(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = a.cosh() - b.cos();
        Self {
            re: a.sinh() / d,
            im: -b.sin() / d,
        }
    }

    pub(crate) fn csch(self) -> Self {
        let d = (2.0 * self.im).cos() - (2.0 * self.re).cosh();
        Self {
            re: -2.0 * self.re.sinh() * self.im.cos() / d,
            im: 2.0 * self.re.cosh() * self.im.sin() / d,
        }
    }

    pub(crate) fn sech(self) -> Self {
        let d = (2.0 * self.im).cos() + (2.0 * self.re).cosh();
        Self {
            re: 2.0 * self.re.cosh() * self.im.cos() / d,
            im: -2.0 * self.re.sinh() * self.im.sin() / d,
        }
    }

    pub(crate) fn asinh(self) -> Self {
        if self.im == 0.0 {
            return self.re.asinh().into();
        }
        (self + (self * self + ONE).sqrt()).ln()
    }

    pub(crate) fn acosh(self) -> Self {
        // acos turned by a right angle, onto the side whose real part is not negative.
        let acos = self.acos();
        if acos.im <= 0.0 {
            Self {
                re: -acos.im,
                im: acos.re,
            }
        } else {
            Self {
                re: acos.im,
                im: -acos.re,
            }
        }
    }

    pub(crate) fn atanh(self) -> Self {
        let (a, b) = (self.re, self.im);
        let no_imaginary = a > 1.0 && b == 0.0;
        let (one_minus, one_plus) = (1.0 - a, 1.0 + a);
        let d = one_minus * one_minus + b * b;
        let quotient = if d == 0.0 {
            Self {
                re: if a == -1.0 { 0.0 } else { a / 0.0 },
                im: if b == 0.0 { 0.0 } else { b / 0.0 },
            }
        } else {
            Self {
                re: (one_plus * one_minus - b * b) / d,
                im: (b * one_minus + one_plus * b) / d,
            }
        };
        let im = quotient.arg() / 2.0;
        Self {
            re: quotient.log_abs() / 2.0,
            im: if no_imaginary { -im } else { im },
        }
    }

    pub(crate) fn acoth(self) -> Self {
        if self.is_zero() {
            return Self {
                re: 0.0,
                im: FRAC_PI_2,
            };
        }
        self.reciprocal().atanh()
    }

    pub(crate) fn acsch(self) -> Self {
        if self.im == 0.0 {
            return if self.re == 0.0 {
                Self {
                    re: f64::INFINITY,
                    im: 0.0,
                }
            } else {
                (1.0 / self.re).asinh().into()
            };
        }
        self.reciprocal().asinh()
    }

    pub(crate) fn asech(self) -> Self {
        if self.is_zero() {
            return Self {
                re: f64::INFINITY,
                im: 0.0,
            };
        }
        self.reciprocal().acosh()
    }

    /// All roots of the given whole order, counted up from the principal angle.
    pub(crate) fn roots(self, order: u32) -> Vec<Self> {
        let (radius, angle) = (self.abs().powf(1.0 / f64::from(order)), self.arg());
        (0..order)
            .map(|k| Self::polar(radius, (angle + 2.0 * PI * f64::from(k)) / f64::from(order)))
            .collect()
    }

    /// `2 + 3i`, `-i`, `4`
    pub(crate) fn read(text: &str) -> Option<Self> {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (mut re, mut im, mut rest) = (0.0, 0.0, compact.as_str());
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let mut end = rest.len();
            for (at, c) in rest.char_indices().skip(1) {
                let after_exponent = matches!(rest.as_bytes()[at - 1], b'e' | b'E');
                if matches!(c, '+' | '-') && !after_exponent {
                    end = at;
                    break;
                }
            }
            let (term, next) = rest.split_at(end);
            match term.strip_suffix(['i', 'I']) {
                Some("" | "+") => im += 1.0,
                Some("-") => im -= 1.0,
                Some(number) => im += number.parse::<f64>().ok()?,
                None => re += term.parse::<f64>().ok()?,
            }
            rest = next;
        }
        Some(Self { re, im })
    }
}
