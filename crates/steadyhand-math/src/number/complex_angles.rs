//! Angles of complex numbers, circular and hyperbolic.

use std::f64::consts::{FRAC_PI_2, PI};

use super::complex::{Complex, ONE};

impl Complex {
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
        if self.im == 0.0 {
            return match self.re {
                re if re > 1.0 => re.acosh().into(),
                re if re < -1.0 => Self {
                    re: (-re).acosh(),
                    im: PI,
                },
                re => Self {
                    re: 0.0,
                    im: re.acos(),
                },
            };
        }
        (self + (self - ONE).sqrt() * (self + ONE).sqrt()).ln()
    }

    pub(crate) fn atanh(self) -> Self {
        let (a, b) = (self.re, self.im);
        if b == 0.0 && a.abs() > 1.0 {
            return Self {
                re: ((a + 1.0) / (a - 1.0)).ln() / 2.0,
                im: -FRAC_PI_2.copysign(a),
            };
        }
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
        Self {
            re: quotient.log_abs() / 2.0,
            im: quotient.arg() / 2.0,
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
                im: f64::INFINITY,
            };
        }
        self.reciprocal().acosh()
    }
}
