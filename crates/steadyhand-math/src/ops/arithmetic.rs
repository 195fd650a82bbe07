//! Sums, products, quotients and remainders.

use num_integer::Integer;
use num_traits::{Signed, Zero};

use crate::broadcast::{both, each, keeping_zeros};
use crate::convert::{Pair, pair, simple, to_f64, unit_factor, wrong_type};
use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::ops::linear;
use crate::ops::rounding::Rounding;
use crate::refusals::unsupported;
use crate::value::Value;
use crate::value::env::Env;

pub(crate) fn add(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, add_scalar)
}

pub(crate) fn subtract(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, subtract_scalar)
}

pub(crate) fn dot_multiply(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    multiply_cells(env, "dotMultiply", a, b)
}

/// The same from both sides.
fn multiply_cells(env: &mut Env, function: &str, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (scalar, Value::Matrix(_)) if !matches!(scalar, Value::Matrix(_)) => {
            keeping_zeros(env, function, b, a, |env, b, a| multiply_scalar(env, a, b))
        }
        _ => keeping_zeros(env, function, a, b, multiply_scalar),
    }
}

pub(crate) fn dot_divide(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    keeping_zeros(env, "dotDivide", a, b, divide_scalar)
}

pub(crate) fn modulo(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    keeping_zeros(env, "mod", a, b, modulo_scalar)
}

/// The product of linear algebra where both are matrices.
pub(crate) fn multiply(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Matrix(a), Value::Matrix(b)) => linear::multiply(env, a, b),
        _ => multiply_cells(env, "multiply", a, b),
    }
}

pub(crate) fn divide(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match b {
        Value::Matrix(divisor) => {
            let inverse = linear::inverse(env, divisor)?;
            multiply(env, a, &inverse.into())
        }
        _ => keeping_zeros(env, "divide", a, b, divide_scalar),
    }
}

pub(crate) fn add_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => return Ok(Value::Num(a + b)),
        (Value::Unit(a), Value::Unit(b)) => return a.plus(env, b, 1.0),
        _ => {}
    }
    Ok(match pair(env, "add", a, b)? {
        Pair::Num(a, b) => Value::Num(a + b),
        Pair::Complex(a, b) => (a + b).into(),
        Pair::Int(a, b) => Value::int(a + b),
        Pair::Big(a, b) => Value::big(a.add(&b, env.settings.precision)),
        Pair::Frac(a, b) => Value::frac(a.add(&b)),
    })
}

pub(crate) fn subtract_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => return Ok(Value::Num(a - b)),
        (Value::Unit(a), Value::Unit(b)) => return a.plus(env, b, -1.0),
        _ => {}
    }
    Ok(match pair(env, "subtract", a, b)? {
        Pair::Num(a, b) => Value::Num(a - b),
        Pair::Complex(a, b) => (a - b).into(),
        Pair::Int(a, b) => Value::int(a - b),
        Pair::Big(a, b) => Value::big(a.subtract(&b, env.settings.precision)),
        Pair::Frac(a, b) => Value::frac(a.subtract(&b)),
    })
}

pub(crate) fn multiply_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => return Ok(Value::Num(a * b)),
        (Value::Unit(a), Value::Unit(b)) => return a.times(env, b, 1.0),
        (Value::Unit(unit), factor) => {
            return unit.scaled(env, &unit_factor("multiply", factor)?, 1.0);
        }
        (factor, Value::Unit(unit)) => {
            return unit.scaled(env, &unit_factor("multiply", factor)?, 1.0);
        }
        _ => {}
    }
    Ok(match pair(env, "multiply", a, b)? {
        Pair::Num(a, b) => Value::Num(a * b),
        Pair::Complex(a, b) => (a * b).into(),
        Pair::Int(a, b) => Value::int(a * b),
        Pair::Big(a, b) => Value::big(a.multiply(&b, env.settings.precision)),
        Pair::Frac(a, b) => Value::frac(a.multiply(&b)),
    })
}

pub(crate) fn divide_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => return Ok(Value::Num(a / b)),
        (Value::Unit(a), Value::Unit(b)) => return a.times(env, b, -1.0),
        (Value::Unit(unit), divisor) => {
            return unit.scaled(env, &unit_factor("divide", divisor)?, -1.0);
        }
        (numerator, Value::Unit(unit)) => {
            return unit.under(env, &unit_factor("divide", numerator)?);
        }
        _ => {}
    }
    Ok(match pair(env, "divide", a, b)? {
        Pair::Num(a, b) => Value::Num(a / b),
        Pair::Complex(a, b) => (a / b).into(),
        Pair::Int(a, b) => {
            if b.is_zero() {
                return Err(MathError::value("Division by zero"));
            }
            // As JavaScript divides them: what is left over falls away.
            Value::int(a / b)
        }
        Pair::Big(a, b) => Value::big(a.divide(&b, env.settings.precision)),
        Pair::Frac(a, b) => Value::frac(a.divide(&b)?),
    })
}

pub(crate) fn modulo_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Num(a), Value::Num(b)) = (a, b) {
        return modulo_number(*a, *b).map(Value::Num);
    }
    Ok(match pair(env, "mod", a, b)? {
        Pair::Num(a, b) => Value::Num(modulo_number(a, b)?),
        Pair::Complex(..) => {
            return Err(wrong_type(
                "mod",
                if matches!(a, Value::Complex(_)) { a } else { b },
                0,
            ));
        }
        Pair::Int(a, b) => Value::int(if b.is_zero() { a } else { a.mod_floor(&b) }),
        Pair::Big(a, b) => Value::big(modulo_big(&a, &b, env.settings.precision)),
        Pair::Frac(a, b) => Value::frac(if b.numerator.is_zero() {
            a
        } else {
            let times = a.divide(&b)?.floor();
            a.subtract(&b.multiply(&Fraction::integer(times)))
        }),
    })
}

/// Whole numbers up to here are exact.
pub(crate) const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

fn modulo_number(a: f64, b: f64) -> Result<f64> {
    let remainder = modulo_by_floor(a, b);
    if a.abs().max((a / b).abs()) <= EXACT_MAX || !(a / b).is_finite() {
        return Ok(remainder);
    }
    // Far out the quotient is rounded: what is left must be what is really left.
    let exact = match a % b {
        rest if rest != 0.0 && (rest < 0.0) != (b < 0.0) => rest + b,
        rest => rest,
    };
    if remainder != exact {
        return Err(unsupported(
            "mod",
            "numbers above 2^53, which are not exact; use bignumber",
        ));
    }
    Ok(remainder)
}

/// The remainder as floats compute it.
pub(crate) fn modulo_by_floor(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a;
    }
    a - b * Rounding::Floor.whole(a / b)
}

fn modulo_big(a: &Decimal, b: &Decimal, precision: usize) -> Decimal {
    if b.is_zero() {
        return a.clone();
    }
    let times = a.divide(b, precision).floor(0);
    a.subtract(&b.multiply(&times, precision), precision)
}

pub(crate) fn negate(env: &mut Env, value: &Value) -> Result<Value> {
    if let Value::Num(x) = value {
        return Ok(Value::Num(-x));
    }
    each(env, value, negate_scalar)
}

#[allow(
    clippy::only_used_in_recursion,
    reason = "every scalar function has this signature"
)]
pub(crate) fn negate_scalar(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Num(x) => Value::Num(-x),
        Value::Complex(z) => (-*z).into(),
        Value::Int(n) => Value::int(-&**n),
        Value::Big(n) => Value::big(n.negated()),
        Value::Frac(n) => Value::frac(n.negated()),
        Value::Unit(unit) => {
            let value = unit.value.clone().unwrap_or(Value::Num(1.0));
            let negated = negate_scalar(env, &value)?;
            Value::unit(crate::value::unit::Unit {
                value: Some(negated),
                ..(**unit).clone()
            })
        }
        other => {
            let number = simple("unaryMinus", other, 0)?;
            negate_scalar(env, &number)?
        }
    })
}

/// `+x`: booleans and texts become numbers.
pub(crate) fn plus(env: &mut Env, value: &Value) -> Result<Value> {
    each(env, value, |_, value| match value {
        Value::Unit(_) => Ok(value.clone()),
        other => simple("unaryPlus", other, 0),
    })
}

/// Its size, without its sign.
#[allow(
    clippy::only_used_in_recursion,
    reason = "every scalar function has this signature"
)]
pub(crate) fn abs(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Num(x) => Value::Num(x.abs()),
        Value::Complex(z) => Value::Num(z.abs()),
        Value::Int(n) => Value::int(n.abs()),
        Value::Big(n) => Value::big(n.abs()),
        Value::Frac(n) => Value::frac(Fraction {
            numerator: n.numerator.abs(),
            denominator: n.denominator.clone(),
        }),
        Value::Unit(unit) => Value::unit(unit.abs(env)?),
        other => Value::Num(to_f64(&simple("abs", other, 0)?).abs()),
    })
}
