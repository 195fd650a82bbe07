//! Between kinds of values: what mathjs converts silently, and what it refuses.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::env::Env;
use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::digits::{Digits, write_javascript};
use crate::number::fraction::Fraction;
use crate::number::integer;
use crate::value::Value;

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

/// Brings two scalars to the kind that can hold both.
pub(crate) fn pair(env: &mut Env, function: &str, a: &Value, b: &Value) -> Result<Pair> {
    let (a, b) = (simple(function, a, 0)?, simple(function, b, 1)?);
    let pair = match (&a, &b) {
        (Value::Num(a), Value::Num(b)) => Pair::Num(*a, *b),
        (Value::Complex(a), other) => Pair::Complex(*a, to_complex(other)),
        (other, Value::Complex(b)) => Pair::Complex(to_complex(other), *b),
        (Value::Int(a), Value::Int(b)) => Pair::Int((**a).clone(), (**b).clone()),
        (Value::Int(_), Value::Num(b)) => Pair::Num(to_f64(&a), *b),
        (Value::Num(a), Value::Int(_)) => Pair::Num(*a, to_f64(&b)),
        (Value::Big(_), Value::Frac(_)) | (Value::Frac(_), Value::Big(_)) => {
            return Err(MathError::arguments(
                "Cannot implicitly convert a Fraction to BigNumber or vice versa. Use function bignumber(x) to convert to \
                 BigNumber or fraction(x) to convert to Fraction.",
            ));
        }
        (Value::Big(_), _) | (_, Value::Big(_)) => Pair::Big(silently_big(&a)?, silently_big(&b)?),
        (Value::Frac(_), _) | (_, Value::Frac(_)) => {
            Pair::Frac(silently_fraction(&a)?, silently_fraction(&b)?)
        }
        _ => return Err(wrong_type(function, &a, 0)),
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

/// Booleans and texts count as the numbers they say; anything that is no number is refused.
pub(crate) fn simple(function: &str, value: &Value, index: usize) -> Result<Value> {
    match value {
        Value::Num(_) | Value::Complex(_) | Value::Int(_) | Value::Big(_) | Value::Frac(_) => {
            Ok(value.clone())
        }
        Value::Bool(value) => Ok(Value::Num(f64::from(u8::from(*value)))),
        Value::Text(text) => read_number(text).map(Value::Num),
        _ => Err(wrong_type(function, value, index)),
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
        "NaN" => return Ok(f64::NAN),
        _ => {}
    }
    if trimmed.starts_with("0x") || trimmed.starts_with("0b") || trimmed.starts_with("0o") {
        return integer::read_based(trimmed).ok_or_else(unreadable);
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

fn silently_big(value: &Value) -> Result<Decimal> {
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
    let x = match simple(function, value, 0)? {
        Value::Complex(_) => f64::NAN,
        value => to_f64(&value),
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
