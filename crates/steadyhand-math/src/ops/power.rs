//! Powers.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::broadcast::keeping_zeros;
use crate::convert::{Pair, fraction_as_big, pair, unit_factor, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::transcendental;
use crate::ops::linear;
use crate::refusals::unsupported;
use crate::value::Value;
use crate::value::env::Env;

pub(crate) fn pow(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Matrix(matrix), exponent) if !matches!(exponent, Value::Matrix(_)) => {
            let exponent = whole("pow", exponent)
                .map_err(|_| MathError::value("For A^b, b must be an integer"))?;
            linear::power(env, matrix, exponent).map(Value::matrix)
        }
        (Value::Matrix(_), _) | (_, Value::Matrix(_)) => Err(MathError::arguments(
            "Unexpected type of argument in function pow (a matrix cannot be an exponent; use .^)",
        )),
        _ => pow_scalar(env, a, b),
    }
}

pub(crate) fn dot_pow(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    keeping_zeros(env, "dotPow", a, b, pow_scalar)
}

pub(crate) fn pow_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => return Ok(pow_number(*a, *b)),
        (Value::Unit(unit), exponent) => {
            let exponent = match exponent {
                Value::Complex(_) => return Err(wrong_type("pow", exponent, 1)),
                Value::Frac(_) => return Err(fraction_as_big()),
                other => unit_factor("pow", other)?,
            };
            return unit.pow(env, &exponent);
        }
        _ => {}
    }
    match pair(env, "pow", a, b)? {
        Pair::Num(a, b) => Ok(pow_number(a, b)),
        Pair::Complex(a, b) => Ok(a.pow(b).into()),
        Pair::Int(a, b) => pow_integer(env, &a, &b),
        Pair::Big(a, b) => pow_big(env, &a, &b),
        Pair::Frac(a, b) => pow_fraction(env, &a, &b),
    }
}

/// A square is rounded once.
fn power_of_floats(a: f64, b: f64) -> f64 {
    match b == 2.0 {
        true => a * a,
        false => a.powf(b),
    }
}

fn pow_number(a: f64, b: f64) -> Value {
    if (a * a < 1.0 && b == f64::INFINITY) || (a * a > 1.0 && b == f64::NEG_INFINITY) {
        return Value::Num(0.0);
    }
    if a >= 0.0 || (b.is_finite() && b.fract() == 0.0) {
        // JavaScript has no 1^∞, where IEEE says 1.
        return Value::Num(if (a == 1.0 && b.is_infinite()) || b.is_nan() {
            f64::NAN
        } else {
            power_of_floats(a, b)
        });
    }
    Complex::from(a).pow(b.into()).into()
}

fn pow_integer(env: &mut Env, a: &BigInt, b: &BigInt) -> Result<Value> {
    if b.is_negative() {
        return Err(MathError::value(
            "A bigint cannot be raised to a negative power; use number(x), bignumber(x) or fraction(x)",
        ));
    }
    let exponent = b.to_u64().unwrap_or(u64::MAX);
    let size = a.to_f64().map_or(f64::INFINITY, |a| a.abs().log10());
    let log10 = if size.is_finite() {
        size
    } else {
        a.bits() as f64 * std::f64::consts::LOG10_2
    };
    let digits = ((log10 * exponent as f64) as u64).saturating_add(1);
    if a.bits() > 1 {
        env.purse.pay_digits(digits)?;
    }
    match u32::try_from(exponent) {
        Ok(exponent) => Ok(Value::int(a.pow(exponent))),
        // Only 0, 1 and -1 get here; what counts is whether the exponent is even.
        Err(_) => Ok(Value::int(a.pow(if exponent.is_multiple_of(2) {
            2
        } else {
            1
        }))),
    }
}

fn pow_big(env: &mut Env, a: &Decimal, b: &Decimal) -> Result<Value> {
    let precision = env.settings.precision;
    if !a.is_finite() || !b.is_finite() {
        let is_positive = a.compare(&Decimal::zero()).is_some_and(Ordering::is_ge);
        if !is_positive && !b.is_integer() {
            return Ok(Complex::new(f64::NAN, f64::NAN).into());
        }
        let (a, b) = (a.to_f64(), b.to_f64());
        // JavaScript has no 1^∞ and no 1^NaN, where IEEE says 1.
        let power = if b.is_nan() || (a.abs() == 1.0 && b.is_infinite()) {
            f64::NAN
        } else {
            a.powf(b)
        };
        return Ok(Value::big(Decimal::from_f64(power)));
    }
    if let Some(exponent) = b.to_i64()
        && exponent.unsigned_abs() < 1 << 53
    {
        env.purse.pay_digits(precision as u64)?;
        let power = a.power(exponent.unsigned_abs(), precision + 5);
        let result = if exponent < 0 {
            Decimal::integer(1).divide(&power, precision)
        } else {
            power.rounded(precision)
        };
        return Ok(Value::big(result));
    }
    if a.is_negative() {
        if b.is_integer() {
            return Err(unsupported("pow", "an exponent that large"));
        }
        return Ok(Complex::from(a.to_f64()).pow(b.to_f64().into()).into());
    }
    env.purse.pay(transcendental::cost(precision))?;
    Ok(Value::big(transcendental::power(a, b, precision)))
}

/// The power of a fraction to a fraction, where both parts have a whole root of that order.
fn exact_root(env: &mut Env, a: &Fraction, b: &Fraction) -> Result<Option<Fraction>> {
    let order = b.denominator.to_u32().filter(|order| *order <= 1000);
    let (Some(order), false) = (order, a.numerator.is_negative()) else {
        return Ok(None);
    };
    env.purse.pay_digits(a.digits())?;
    let root = |n: &BigInt| {
        let root = n.nth_root(order);
        (root.pow(order) == *n).then_some(root)
    };
    let (Some(above), Some(below)) = (root(&a.numerator), root(&a.denominator)) else {
        return Ok(None);
    };
    let root = Fraction::new(above, below)?;
    match pow_fraction(env, &root, &Fraction::integer(b.numerator.clone()))? {
        Value::Frac(power) => Ok(Some((*power).clone())),
        _ => Ok(None),
    }
}

fn pow_fraction(env: &mut Env, a: &Fraction, b: &Fraction) -> Result<Value> {
    if !b.is_integer() {
        return match exact_root(env, a, b)? {
            Some(root) => Ok(Value::frac(root)),
            None => Ok(pow_number(a.to_f64(), b.to_f64())),
        };
    }
    let exponent = b.numerator.to_i64().unwrap_or(i64::MAX);
    env.purse
        .pay_digits(a.digits().saturating_mul(exponent.unsigned_abs()))?;
    let size = exponent.unsigned_abs() as u32;
    let (above, below) = (a.numerator.pow(size), a.denominator.pow(size));
    if exponent < 0 {
        if above.is_zero() {
            return Err(MathError::value("Division by Zero"));
        }
        return Ok(Value::frac(Fraction::new(below, above)?));
    }
    Ok(Value::frac(Fraction::new(above, below)?))
}
