//! Questions about values.

use num_bigint::BigInt;
use num_traits::Signed;

use crate::broadcast::each;
use crate::convert::{read_number, to_f64, wrong_type};
use crate::error::Result;
use crate::number::decimal::Decimal;
use crate::ops::compare::{equal_scalar, nearly_equal, nearly_equal_big};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("clone", 1..=1, |_, args| Ok(args[0].clone())),
    Builtin::new("typeOf", 1..=1, |_, args| {
        Ok(Value::text(args[0].type_name()))
    }),
    Builtin::new("isNaN", 1..=1, |env, args| ask(env, &args[0], is_nan)),
    Builtin::new("isFinite", 1..=1, |env, args| ask(env, &args[0], is_finite)),
    Builtin::new("isBounded", 1..=1, is_bounded),
    Builtin::new("isInteger", 1..=1, |env, args| {
        each(env, &args[0], |env, value| {
            is_integer(env, value).map(Value::Bool)
        })
    }),
    Builtin::new("isNegative", 1..=1, |env, args| {
        ask(env, &args[0], |value| sign(value).map(|sign| sign < 0.0))
    }),
    Builtin::new("isPositive", 1..=1, |env, args| {
        ask(env, &args[0], |value| sign(value).map(|sign| sign > 0.0))
    }),
    Builtin::new("isZero", 1..=1, |env, args| {
        each(env, &args[0], |env, value| {
            is_zero(env, value).map(Value::Bool)
        })
    }),
    Builtin::new("isNumeric", 1..=1, |env, args| {
        ask(env, &args[0], |value| match value {
            Value::Object(_) | Value::Function(_) => Err(wrong_type("isNumeric", value, 0)),
            other => Ok(is_numeric(other)),
        })
    }),
    Builtin::new("hasNumericValue", 1..=1, |env, args| {
        // Inside a matrix a text is no number.
        match &args[0] {
            Value::Matrix(_) => ask(env, &args[0], |value| Ok(is_numeric(value))),
            scalar => has_numeric_value(scalar).map(Value::Bool),
        }
    }),
    Builtin::new("isPrime", 1..=1, is_prime),
];

fn ask(env: &mut Env, value: &Value, question: fn(&Value) -> Result<bool>) -> Result<Value> {
    each(env, value, |_, value| question(value).map(Value::Bool))
}

pub(crate) fn is_nan(value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Num(x) => x.is_nan(),
        Value::Big(n) => matches!(**n, Decimal::Nan),
        Value::Complex(z) => z.re.is_nan() || z.im.is_nan(),
        Value::Int(_) | Value::Frac(_) | Value::Bool(_) => false,
        Value::Unit(unit) => unit.value.as_ref().map_or(Ok(false), is_nan)?,
        Value::Text(text) => read_number(text)?.is_nan(),
        other => return Err(wrong_type("isNaN", other, 0)),
    })
}

fn is_finite(value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Num(x) => x.is_finite(),
        Value::Big(n) => n.is_finite(),
        Value::Complex(z) => z.re.is_finite() && z.im.is_finite(),
        Value::Unit(unit) => unit.value.as_ref().map_or(Ok(false), is_finite)?,
        Value::Text(text) => read_number(text)?.is_finite(),
        Value::Int(_) | Value::Frac(_) | Value::Bool(_) => true,
        Value::Null | Value::Undefined => false,
        other => return Err(wrong_type("isFinite", other, 0)),
    })
}

fn is_bounded(env: &mut Env, args: &[Value]) -> Result<Value> {
    match &args[0] {
        Value::Matrix(matrix) => {
            env.purse.pay(matrix.cells.len() as u64)?;
            let all: Result<Vec<bool>> = matrix.cells.iter().map(is_finite).collect();
            Ok(Value::Bool(all?.into_iter().all(|finite| finite)))
        }
        scalar => is_finite(scalar).map(Value::Bool),
    }
}

fn is_integer(env: &Env, value: &Value) -> Result<bool> {
    Ok(match value {
        // Within rounding errors of a whole number.
        Value::Num(x) => x.is_finite() && nearly_equal(*x, x.round(), 1e-12, 1e-15),
        Value::Big(n) => n.is_finite() && nearly_equal_big(env, n, &n.round(0)),
        Value::Int(_) | Value::Bool(_) => true,
        Value::Frac(n) => n.is_integer(),
        Value::Text(text) => read_number(text)?.fract() == 0.0,
        other => return Err(wrong_type("isInteger", other, 0)),
    })
}

fn sign(value: &Value) -> Result<f64> {
    Ok(match value {
        Value::Num(x) if nearly_equal(*x, 0.0, 1e-12, 1e-15) => 0.0,
        Value::Num(x) => *x,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Big(n) => {
            if matches!(**n, Decimal::Nan) {
                f64::NAN
            } else if n.is_zero() {
                0.0
            } else if n.is_negative() {
                -1.0
            } else {
                1.0
            }
        }
        Value::Int(n) => to_f64(&Value::int(n.signum())),
        Value::Frac(n) => to_f64(&Value::int(n.numerator.signum())),
        Value::Unit(unit) => unit.value.as_ref().map_or(Ok(0.0), sign)?,
        Value::Text(text) => sign(&Value::Num(read_number(text)?))?,
        other => return Err(wrong_type("isPositive", other, 0)),
    })
}

/// Within rounding errors of zero.
fn is_zero(env: &mut Env, value: &Value) -> Result<bool> {
    match value {
        Value::Big(_) | Value::Complex(_) | Value::Frac(_) => {
            equal_scalar(env, value, &Value::Num(0.0))
        }
        Value::Unit(unit) => match &unit.value {
            Some(value) => is_zero(env, value),
            None => Ok(true),
        },
        other => sign(other).map(|sign| sign == 0.0),
    }
}

fn is_numeric(value: &Value) -> bool {
    matches!(
        value,
        Value::Num(_) | Value::Big(_) | Value::Int(_) | Value::Frac(_) | Value::Bool(_)
    )
}

fn has_numeric_value(value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Text(text) => {
            !text.trim().is_empty() && read_number(text).is_ok_and(|x| !x.is_nan())
        }
        Value::Object(_) | Value::Function(_) => {
            return Err(wrong_type("hasNumericValue", value, 0));
        }
        other => is_numeric(other),
    })
}

fn is_prime(env: &mut Env, args: &[Value]) -> Result<Value> {
    each(env, &args[0], |env, value| {
        let digits = env.purse.limits.big_digits.min(60);
        let n = match value {
            Value::Int(n) => (**n).clone(),
            Value::Num(x) => match crate::number::integer::exact(*x) {
                Some(n) => n,
                None => return Ok(Value::Bool(false)),
            },
            Value::Text(text) => match crate::number::integer::exact(read_number(text)?) {
                Some(n) => n,
                None => return Ok(Value::Bool(false)),
            },
            Value::Big(_) | Value::Bool(_) => {
                match crate::convert::to_big(value).to_bigint(digits) {
                    Some(n) => n,
                    None => return Ok(Value::Bool(false)),
                }
            }
            other => return Err(wrong_type("isPrime", other, 0)),
        };
        probably_prime(env, &n).map(Value::Bool)
    })
}

/// Miller and Rabin's test; with these bases it is certain far beyond what a number can hold exactly.
fn probably_prime(env: &mut Env, n: &BigInt) -> Result<bool> {
    const BASES: [u32; 13] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41];
    let two = BigInt::from(2);
    if *n < two {
        return Ok(false);
    }
    for base in BASES {
        let base = BigInt::from(base);
        if *n == base {
            return Ok(true);
        }
        if (n % &base) == BigInt::default() {
            return Ok(false);
        }
    }
    let one = BigInt::from(1);
    let below = n - &one;
    let twos = below.trailing_zeros().unwrap_or(0);
    let odd = &below >> twos;
    'bases: for base in BASES {
        env.purse.pay(n.bits() * n.bits() / 512 + 8)?;
        let mut x = BigInt::from(base).modpow(&odd, n);
        if x == one || x == below {
            continue;
        }
        for _ in 1..twos {
            x = x.modpow(&two, n);
            if x == below {
                continue 'bases;
            }
        }
        return Ok(false);
    }
    Ok(true)
}
