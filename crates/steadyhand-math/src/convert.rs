//! Between kinds of values: what mathjs converts silently, and what it refuses.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::digits::{Digits, write_javascript};
use crate::number::fraction::Fraction;
use crate::number::integer;
use crate::signatures;
use crate::value::Value;
use crate::value::env::Env;

/// Two numbers of one kind, ready to be combined.
pub(crate) enum Pair {
    Num(f64, f64),
    Complex(Complex, Complex),
    Int(BigInt, BigInt),
    Big(Decimal, Decimal),
    Frac(Fraction, Fraction),
}

pub(crate) fn wrong_type(function: &str, value: &Value, index: usize) -> MathError {
    MathError::arguments(format!(
        "Unexpected type of argument in function {function} (actual: {}, index: {index})",
        value.type_name()
    ))
}

/// Brings two scalars to the kind that this function computes them in.
pub(crate) fn pair(env: &mut Env, function: &str, a: &Value, b: &Value) -> Result<Pair> {
    let pair = match (a, b) {
        (Value::Num(a), Value::Num(b)) => Pair::Num(*a, *b),
        _ => {
            let Some((left, right)) = signatures::pair_targets(function, a, b) else {
                return Err(mismatched_pair(function, a, b));
            };
            let (a, b) = (converted(a, left)?, converted(b, right)?);
            match (a, b) {
                (Value::Num(a), Value::Num(b)) => Pair::Num(a, b),
                (Value::Complex(a), Value::Complex(b)) => Pair::Complex(a, b),
                (Value::Int(a), Value::Int(b)) => {
                    Pair::Int(Arc::unwrap_or_clone(a), Arc::unwrap_or_clone(b))
                }
                (Value::Big(a), Value::Big(b)) => {
                    Pair::Big(Arc::unwrap_or_clone(a), Arc::unwrap_or_clone(b))
                }
                (Value::Frac(a), Value::Frac(b)) => {
                    Pair::Frac(Arc::unwrap_or_clone(a), Arc::unwrap_or_clone(b))
                }
                // Comparisons take a fraction beside a big number.
                (Value::Big(a), Value::Frac(b)) => {
                    let b = b.to_decimal(env.settings.precision);
                    Pair::Big(Arc::unwrap_or_clone(a), b)
                }
                (Value::Frac(a), Value::Big(b)) => {
                    let a = a.to_decimal(env.settings.precision);
                    Pair::Big(a, Arc::unwrap_or_clone(b))
                }
                (a, b) => return Err(mismatched_pair(function, &a, &b)),
            }
        }
    };
    let digits = match &pair {
        Pair::Num(..) | Pair::Complex(..) => 0,
        Pair::Int(a, b) => (a.bits() + b.bits()) * 3 / 10,
        Pair::Frac(a, b) => a.digits() + b.digits(),
        Pair::Big(..) => env.settings.precision as u64,
    };
    if digits > 0 {
        env.purse.pay_digits(digits)?;
    }
    Ok(pair)
}

/// Names the argument that is no number, or the second where both are.
fn mismatched_pair(function: &str, a: &Value, b: &Value) -> MathError {
    if simple(function, a, 0).is_err() {
        wrong_type(function, a, 0)
    } else {
        wrong_type(function, b, 1)
    }
}

/// A scalar as the kind of number that this function takes at this position; anything else is refused.
pub(crate) fn simple(function: &str, value: &Value, index: usize) -> Result<Value> {
    if let Value::Num(_) = value {
        return Ok(value.clone());
    }
    match signatures::scalar_target(function, value, index) {
        Some(target) => converted(value, target),
        None => Err(wrong_type(function, value, index)),
    }
}

/// Characters of a text that becomes a number silently.
const TEXT_DIGITS_MAX: usize = 1000;

/// One of the silent conversions, with the letters of `signatures`; those that would lose digits are refused.
fn converted(value: &Value, target: u8) -> Result<Value> {
    // Reading digits takes the square of their number.
    if let (Value::Text(text), b'b' | b'i' | b'f') = (value, target)
        && text.len() > TEXT_DIGITS_MAX
    {
        return Err(MathError::limit(format!(
            "Text too long for a number: {} characters, at most {TEXT_DIGITS_MAX} are allowed",
            text.len()
        )));
    }
    let text_as =
        |kind: &str, text: &str| MathError::value(format!("Cannot convert \"{text}\" to {kind}"));
    Ok(match (value, target) {
        (Value::Num(_), b'n')
        | (Value::Complex(_), b'c')
        | (Value::Int(_), b'i')
        | (Value::Big(_), b'b')
        | (Value::Frac(_), b'f') => value.clone(),
        // Two booleans are compared as the numbers they are.
        (Value::Bool(value), b'n' | b't') => Value::Num(f64::from(u8::from(*value))),
        (Value::Bool(value), b'b') => Value::big(Decimal::integer(i64::from(*value))),
        (Value::Bool(value), b'i') => Value::int(BigInt::from(u8::from(*value))),
        (Value::Bool(value), b'f') => Value::frac(Fraction::integer(u8::from(*value))),
        (Value::Text(text), b'n') => Value::Num(read_number(text)?),
        (Value::Text(text), b'b') => {
            Value::big(Decimal::read(text).ok_or_else(|| text_as("BigNumber", text))?)
        }
        (Value::Text(text), b'i') => {
            Value::int(integer::read_whole(text).ok_or_else(|| text_as("BigInt", text))?)
        }
        (Value::Text(text), b'f') => {
            Value::frac(Fraction::read(text).ok_or_else(|| text_as("Fraction", text))?)
        }
        (Value::Text(text), b'c') => {
            Value::Complex(Complex::read(text).ok_or_else(|| text_as("Complex", text))?)
        }
        (Value::Int(n), b'n') => Value::Num(safely_number(n)?),
        (Value::Num(_) | Value::Int(_), b'b') => Value::big(silently_big(value)?),
        (Value::Num(_) | Value::Int(_), b'f') => Value::frac(silently_fraction(value)?),
        (Value::Frac(_), b'b') => return Err(fraction_as_big()),
        (other, _) => Value::Complex(to_complex(other)),
    })
}

pub(crate) fn fraction_as_big() -> MathError {
    MathError::arguments(
        "Cannot implicitly convert a Fraction to BigNumber or vice versa. Use function bignumber(x) to convert to \
         BigNumber or fraction(x) to convert to Fraction.",
    )
}

/// The number a big integer is, where a number can hold it exactly.
fn safely_number(n: &BigInt) -> Result<f64> {
    const SAFE: i64 = 9_007_199_254_740_991;
    match n.to_i64() {
        Some(n) if n.abs() <= SAFE => Ok(n as f64),
        _ => Err(MathError::arguments(format!(
            "Cannot implicitly convert bigint to number: value exceeds the max safe integer value (value: {n})"
        ))),
    }
}

/// What a quantity can be multiplied with or divided by: any number but a big integer, which becomes a number.
pub(crate) fn unit_factor(function: &str, value: &Value) -> Result<Value> {
    match value {
        Value::Text(_) | Value::Bool(_) => converted(value, b'n'),
        Value::Int(n) => safely_number(n).map(Value::Num),
        Value::Num(_) | Value::Complex(_) | Value::Big(_) | Value::Frac(_) => Ok(value.clone()),
        _ => Err(wrong_type(function, value, 1)),
    }
}

/// A text as JavaScript's `Number(text)` reads it.
pub(crate) fn read_number(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let unreadable = || MathError::value(format!("Cannot convert \"{text}\" to a number"));
    match trimmed {
        "" => return Ok(0.0),
        "Infinity" | "+Infinity" => return Ok(f64::INFINITY),
        "-Infinity" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    if trimmed.starts_with("0x") || trimmed.starts_with("0b") || trimmed.starts_with("0o") {
        let is_plain = trimmed[2..].bytes().all(|byte| byte.is_ascii_hexdigit());
        let read = integer::read_based(trimmed).filter(|_| is_plain);
        return read.ok_or_else(unreadable);
    }
    // Rust also reads "inf" and "nan"; JavaScript does not.
    if trimmed
        .bytes()
        .any(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'e' | b'E'))
    {
        return Err(unreadable());
    }
    trimmed.parse().map_err(|_| unreadable())
}

pub(crate) fn to_f64(value: &Value) -> f64 {
    match value {
        Value::Num(x) => *x,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Int(n) => n.to_f64().unwrap_or(f64::NAN),
        Value::Big(n) => n.to_f64(),
        Value::Frac(n) => n.to_f64(),
        _ => f64::NAN,
    }
}

pub(crate) fn to_complex(value: &Value) -> Complex {
    match value {
        Value::Complex(z) => *z,
        other => to_f64(other).into(),
    }
}

pub(crate) fn silently_big(value: &Value) -> Result<Decimal> {
    if let Value::Num(x) = value
        && x.is_finite()
        // Short whole numbers, the usual ones, need no count of their digits.
        && !(x.fract() == 0.0 && x.abs() < 1e15)
        && Digits::of(*x).digits.len() > 15
    {
        return Err(MathError::arguments(format!(
            "Cannot implicitly convert a number with >15 significant digits to BigNumber (value: {}). Use function \
             bignumber(x) to convert to BigNumber.",
            write_javascript(*x)
        )));
    }
    Ok(to_big(value))
}

pub(crate) fn to_big(value: &Value) -> Decimal {
    match value {
        Value::Big(n) => (**n).clone(),
        Value::Int(n) => Decimal::new((**n).clone(), 0),
        Value::Frac(n) => n.to_decimal(64),
        other => Decimal::from_f64(to_f64(other)),
    }
}

fn silently_fraction(value: &Value) -> Result<Fraction> {
    match value {
        Value::Frac(n) => Ok((**n).clone()),
        Value::Int(n) => Ok(Fraction::integer((**n).clone())),
        Value::Num(x) => {
            let fraction = Fraction::from_f64(*x)?;
            if fraction.to_f64() != *x {
                return Err(MathError::arguments(format!(
                    "Cannot implicitly convert a number to a Fraction when there will be a loss of precision (value: {}). Use \
                     function fraction(x) to convert to Fraction.",
                    write_javascript(*x)
                )));
            }
            Ok(fraction)
        }
        other => Err(wrong_type("fraction", other, 0)),
    }
}

/// A whole number within the range of lengths and positions.
pub(crate) fn whole(function: &str, value: &Value) -> Result<i64> {
    let x = match value {
        Value::Text(text) => read_number(text)?,
        Value::Int(n) => safely_number(n)?,
        Value::Num(_) | Value::Bool(_) | Value::Big(_) | Value::Frac(_) => to_f64(value),
        _ => return Err(wrong_type(function, value, 0)),
    };
    if x.fract() != 0.0 || !x.is_finite() || x.abs() > 9e15 {
        return Err(MathError::value(format!(
            "Integer number expected in function {function} (value: {})",
            write_javascript(x)
        )));
    }
    Ok(x as i64)
}

/// A length: a whole number that is not negative.
pub(crate) fn length(function: &str, value: &Value) -> Result<usize> {
    usize::try_from(whole(function, value)?)
        .map_err(|_| MathError::value(format!("Positive integer expected in function {function}")))
}

/// Whether a value counts as true.
pub(crate) fn truthy(function: &str, value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Bool(value) => *value,
        Value::Num(x) => *x != 0.0 && !x.is_nan(),
        Value::Complex(z) => !z.is_zero(),
        Value::Big(n) => !n.is_zero() && !matches!(**n, Decimal::Nan),
        Value::Int(n) => **n != BigInt::default(),
        Value::Frac(n) => n.numerator != BigInt::default(),
        Value::Null | Value::Undefined => false,
        Value::Text(text) => read_number(text)? != 0.0,
        Value::Unit(unit) => match &unit.value {
            Some(value) => truthy(function, value)?,
            None => false,
        },
        _ => return Err(wrong_type(function, value, 0)),
    })
}
