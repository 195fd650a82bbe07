//! Which is larger, and what counts as equal.

use std::cmp::Ordering;

use crate::broadcast::both;
use crate::convert::{Pair, pair, wrong_type};
use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::value::Value;
use crate::value::env::Env;

/// Equal up to rounding errors.
pub(crate) fn nearly_equal(a: f64, b: f64, relative: f64, absolute: f64) -> bool {
    if a == b {
        return true;
    }
    if !a.is_finite() || !b.is_finite() {
        return false;
    }
    (a - b).abs() <= (relative * a.abs().max(b.abs())).max(absolute)
}

pub(crate) fn nearly_equal_big(env: &Env, a: &Decimal, b: &Decimal) -> bool {
    if !a.is_finite() || !b.is_finite() {
        return a.compare(b) == Some(Ordering::Equal);
    }
    let precision = env.settings.precision;
    let difference = a.subtract(b, precision).abs();
    let larger = if a.abs().compare(&b.abs()) == Some(Ordering::Greater) {
        a.abs()
    } else {
        b.abs()
    };
    let relative = larger.multiply(
        &Decimal::from_f64(env.settings.relative_tolerance),
        precision,
    );
    let absolute = Decimal::from_f64(env.settings.absolute_tolerance);
    let bound = if relative.compare(&absolute) == Some(Ordering::Greater) {
        relative
    } else {
        absolute
    };
    difference.compare(&bound) != Some(Ordering::Greater)
}

/// Compares two scalars; `None` where one is not a number.
pub(crate) fn order(
    env: &mut Env,
    function: &str,
    a: &Value,
    b: &Value,
) -> Result<Option<Ordering>> {
    let (relative, absolute) = (
        env.settings.relative_tolerance,
        env.settings.absolute_tolerance,
    );
    if let (Value::Unit(a), Value::Unit(b)) = (a, b) {
        if !a.same_base(b) {
            return Err(MathError::units("Cannot compare units with different base"));
        }
        let nothing = Value::Num(1.0);
        let (a, b) = (
            a.value.as_ref().unwrap_or(&nothing),
            b.value.as_ref().unwrap_or(&nothing),
        );
        return order(env, function, a, b);
    }
    Ok(match pair(env, function, a, b)? {
        Pair::Num(a, b) if nearly_equal(a, b, relative, absolute) => Some(Ordering::Equal),
        Pair::Num(a, b) => a.partial_cmp(&b),
        Pair::Int(a, b) => Some(a.cmp(&b)),
        Pair::Frac(a, b) => Some(a.compare(&b)),
        Pair::Big(a, b) if nearly_equal_big(env, &a, &b) => Some(Ordering::Equal),
        Pair::Big(a, b) => a.compare(&b),
        Pair::Complex(..) => {
            return Err(MathError::arguments(format!(
                "No ordering relation is defined for complex numbers (function {function})"
            )));
        }
    })
}

pub(crate) fn equal_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<bool> {
    let (relative, absolute) = (
        env.settings.relative_tolerance,
        env.settings.absolute_tolerance,
    );
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => return Ok(nearly_equal(*a, *b, relative, absolute)),
        _ if a.is_nothing() || b.is_nothing() => return Err(wrong_type("equalScalar", a, 0)),
        (Value::Bool(a), Value::Bool(b)) => return Ok(a == b),
        (Value::Object(_), _) | (_, Value::Object(_)) => return Err(wrong_type("equal", a, 0)),
        (Value::Unit(_), Value::Unit(_)) => {
            return Ok(order(env, "equal", a, b)? == Some(Ordering::Equal));
        }
        _ => {}
    }
    match pair(env, "equal", a, b)? {
        Pair::Complex(a, b) => Ok(nearly_equal(a.re, b.re, relative, absolute)
            && nearly_equal(a.im, b.im, relative, absolute)),
        _ => Ok(order(env, "equal", a, b)? == Some(Ordering::Equal)),
    }
}

/// Null and undefined equal only themselves; inside a matrix they cannot be compared.
fn equal_nothing(a: &Value, b: &Value) -> Option<bool> {
    let is_matrix = matches!(a, Value::Matrix(_)) || matches!(b, Value::Matrix(_));
    let are_same = matches!(
        (a, b),
        (Value::Null, Value::Null) | (Value::Undefined, Value::Undefined)
    );
    ((a.is_nothing() || b.is_nothing()) && !is_matrix).then_some(are_same)
}

pub(crate) fn equal(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    if let Some(equal) = equal_nothing(a, b) {
        return Ok(Value::Bool(equal));
    }
    both(env, a, b, |env, a, b| {
        equal_scalar(env, a, b).map(Value::Bool)
    })
}

pub(crate) fn unequal(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    if let Some(equal) = equal_nothing(a, b) {
        return Ok(Value::Bool(!equal));
    }
    both(env, a, b, |env, a, b| {
        equal_scalar(env, a, b).map(|equal| Value::Bool(!equal))
    })
}

pub(crate) fn smaller(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        Ok(Value::Bool(
            order(env, "smaller", a, b)? == Some(Ordering::Less),
        ))
    })
}

pub(crate) fn larger(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        Ok(Value::Bool(
            order(env, "larger", a, b)? == Some(Ordering::Greater),
        ))
    })
}

pub(crate) fn smaller_eq(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        Ok(Value::Bool(
            order(env, "smallerEq", a, b)?.is_some_and(|order| order != Ordering::Greater),
        ))
    })
}

pub(crate) fn larger_eq(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        Ok(Value::Bool(
            order(env, "largerEq", a, b)?.is_some_and(|order| order != Ordering::Less),
        ))
    })
}

/// -1, 0 or 1
pub(crate) fn sign_of(order: Option<Ordering>) -> f64 {
    match order {
        Some(Ordering::Less) => -1.0,
        Some(Ordering::Equal) => 0.0,
        Some(Ordering::Greater) => 1.0,
        None => f64::NAN,
    }
}
