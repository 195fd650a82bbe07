//! Angles and their hyperbolic relatives.

use std::f64::consts::LN_2;

use crate::broadcast::{each, keeping_zeros};
use crate::convert::{Pair, pair, simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::transcendental;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;

/// One function: on real numbers, where that is real at all; on complex ones; on big ones, if known.
struct Trig {
    name: &'static str,
    real: fn(f64) -> f64,
    /// Outside of this, the answer of a real number is complex.
    domain: fn(f64) -> bool,
    complex: fn(Complex) -> Complex,
    big: Option<fn(&Decimal, usize) -> Decimal>,
    takes_angle: bool,
}

impl Trig {
    fn apply(&self, env: &mut Env, value: &Value) -> Result<Value> {
        if let Value::Num(x) = value
            && (self.domain)(*x)
        {
            return Ok(Value::Num((self.real)(*x)));
        }
        let number = match value {
            Value::Unit(unit) if self.takes_angle => {
                let radians = unit.radians(self.name)?;
                simple(self.name, &radians, 0)?
            }
            value => simple(self.name, value, 0)?,
        };
        Ok(match number {
            Value::Complex(z) => (self.complex)(z).into(),
            Value::Big(n) => {
                env.purse
                    .pay(4 * transcendental::cost(env.settings.precision))?;
                let precision = env.settings.precision;
                match self.big {
                    Some(big) if (self.domain)(n.to_f64()) => Value::big(big(&n, precision)),
                    // Big numbers have no imaginary part.
                    Some(_) => Value::big(Decimal::Nan),
                    _ => {
                        return Err(MathError::unsupported(format!(
                            "Function {} is left out for BigNumber; use number(x)",
                            self.name
                        )));
                    }
                }
            }
            value => {
                let x = to_f64(&value);
                if (self.domain)(x) {
                    Value::Num((self.real)(x))
                } else {
                    (self.complex)(x.into()).into()
                }
            }
        })
    }
}

pub(crate) fn sine(env: &mut Env, value: &Value) -> Result<Value> {
    SIN.apply(env, value)
}

pub(crate) fn cosine(env: &mut Env, value: &Value) -> Result<Value> {
    COS.apply(env, value)
}

pub(crate) fn arctangent(env: &mut Env, value: &Value) -> Result<Value> {
    ATAN.apply(env, value)
}

fn always(_: f64) -> bool {
    true
}

fn within_one(x: f64) -> bool {
    (-1.0..=1.0).contains(&x)
}

fn beyond_one(x: f64) -> bool {
    x <= -1.0 || x >= 1.0
}

fn one_over(x: &Decimal, precision: usize) -> Decimal {
    Decimal::integer(1).divide(x, precision)
}

macro_rules! trig {
    ($($item:ident $name:literal $angle:literal $real:expr, $domain:expr, $complex:expr, $big:expr;)*) => {
        $(const $item: Trig = Trig { name: $name, real: $real, domain: $domain, complex: $complex, big: $big, takes_angle: $angle };)*
        pub(crate) const TABLE: &[Builtin] = &[
            $(Builtin::new($name, 1..=1, |env, args| each(env, &args[0], |env, value| $item.apply(env, value))),)*
            Builtin::new("atan2", 2..=2, atan2),
        ];
    };
}

trig! {
    SIN "sin" true f64::sin, always, Complex::sin, Some(transcendental::sin);
    COS "cos" true f64::cos, always, Complex::cos, Some(transcendental::cos);
    TAN "tan" true f64::tan, always, Complex::tan, Some(transcendental::tan);
    COT "cot" true |x| 1.0 / x.tan(), always, Complex::cot, Some(|x, p| one_over(&transcendental::tan(x, p + 5), p));
    SEC "sec" true |x| 1.0 / x.cos(), always, Complex::sec, Some(|x, p| one_over(&transcendental::cos(x, p + 5), p));
    CSC "csc" true |x| 1.0 / x.sin(), always, Complex::csc, Some(|x, p| one_over(&transcendental::sin(x, p + 5), p));
    ASIN "asin" false f64::asin, within_one, Complex::asin, Some(transcendental::asin);
    ACOS "acos" false f64::acos, within_one, Complex::acos, Some(transcendental::acos);
    ATAN "atan" false f64::atan, always, Complex::atan, Some(transcendental::atan);
    ACOT "acot" false |x| (1.0 / x).atan(), always, Complex::acot, Some(|x, p| transcendental::atan(&one_over(x, p + 5), p));
    ASEC "asec" false |x| (1.0 / x).acos(), beyond_one, Complex::asec, Some(|x, p| transcendental::acos(&one_over(x, p + 5), p));
    ACSC "acsc" false |x| (1.0 / x).asin(), beyond_one, Complex::acsc, Some(|x, p| transcendental::asin(&one_over(x, p + 5), p));
    SINH "sinh" false f64::sinh, always, Complex::sinh, Some(transcendental::sinh);
    COSH "cosh" false f64::cosh, always, Complex::cosh, Some(transcendental::cosh);
    TANH "tanh" false f64::tanh, always, Complex::tanh, Some(transcendental::tanh);
    COTH "coth" false |x| 1.0 / x.tanh(), always, Complex::coth, Some(|x, p| one_over(&transcendental::tanh(x, p + 5), p));
    SECH "sech" false |x| 1.0 / x.cosh(), always, Complex::sech, Some(|x, p| one_over(&transcendental::cosh(x, p + 5), p));
    CSCH "csch" false |x| 1.0 / x.sinh(), always, Complex::csch, Some(|x, p| one_over(&transcendental::sinh(x, p + 5), p));
    ASINH "asinh" false asinh, always, Complex::asinh, Some(big_asinh);
    ACOSH "acosh" false acosh, |x| x >= 1.0, Complex::acosh, Some(big_acosh);
    ATANH "atanh" false f64::atanh, within_one, Complex::atanh, Some(big_atanh);
    ACOTH "acoth" false |x| (1.0 / x).atanh(), beyond_one, Complex::acoth, Some(|x, p| big_atanh(&one_over(x, p + 5), p));
    ASECH "asech" false |x| acosh(1.0 / x), |x| x.is_sign_positive() && x <= 1.0, Complex::asech, Some(|x, p| big_acosh(&one_over(x, p + 5), p));
    ACSCH "acsch" false |x| asinh(1.0 / x), always, Complex::acsch, Some(|x, p| big_asinh(&one_over(x, p + 5), p));
}

/// Beyond, the square of a number is infinite.
const SQUARE_MAX: f64 = 1e150;

fn asinh(x: f64) -> f64 {
    match x.abs() > SQUARE_MAX {
        true => (x.abs().ln() + LN_2).copysign(x),
        false => x.asinh(),
    }
}

fn acosh(x: f64) -> f64 {
    match x > SQUARE_MAX {
        true => x.ln() + LN_2,
        false => x.acosh(),
    }
}

fn big_asinh(x: &Decimal, precision: usize) -> Decimal {
    let working = precision + 12;
    let root = x
        .multiply(x, 2 * working)
        .add(&Decimal::integer(1), 2 * working)
        .sqrt(working);
    if x.is_negative() {
        return big_asinh(&x.negated(), precision).negated();
    }
    transcendental::ln(&x.add(&root, working), precision)
}

fn big_acosh(x: &Decimal, precision: usize) -> Decimal {
    let working = precision + 12;
    let root = x
        .multiply(x, 2 * working)
        .subtract(&Decimal::integer(1), 2 * working)
        .sqrt(working);
    transcendental::ln(&x.add(&root, working), precision)
}

fn big_atanh(x: &Decimal, precision: usize) -> Decimal {
    let (working, one) = (precision + 12, Decimal::integer(1));
    let quotient = one
        .add(x, working)
        .divide(&one.subtract(x, working), working);
    transcendental::ln(&quotient, working).divide(&Decimal::integer(2), precision)
}

fn atan2(env: &mut Env, args: &[Value]) -> Result<Value> {
    keeping_zeros(env, "atan2", &args[0], &args[1], |env, y, x| {
        match pair(env, "atan2", y, x)? {
            Pair::Big(y, x) => {
                let precision = env.settings.precision;
                env.purse.pay(2 * transcendental::cost(precision))?;
                Ok(Value::big(transcendental::atan2(&y, &x, precision)))
            }
            Pair::Num(y, x) => Ok(Value::Num(y.atan2(x))),
            _ => Err(wrong_type("atan2", y, 0)),
        }
    })
}
