//! Operators on the bits of whole numbers: 32 bits for numbers, any length for big ones.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::broadcast::{both, each};
use crate::convert::{Pair, pair, simple, wrong_type};
use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::refusals::unsupported;
use crate::value::Value;
use crate::value::env::Env;

/// What JavaScript's bit operators see of a number: its lowest 32 bits.
fn low_bits(x: f64) -> i32 {
    if !x.is_finite() {
        return 0;
    }
    x.trunc().rem_euclid(4_294_967_296.0) as u32 as i32
}

fn combine(
    env: &mut Env,
    name: &'static str,
    a: &Value,
    b: &Value,
    small: fn(i32, i32) -> f64,
    large: fn(BigInt, BigInt) -> Result<BigInt>,
) -> Result<Value> {
    let not_whole = || MathError::value(format!("Integers expected in function {name}"));
    match pair(env, name, a, b)? {
        Pair::Num(a, b) => {
            if a.fract() != 0.0 || b.fract() != 0.0 {
                return Err(not_whole());
            }
            Ok(Value::Num(small(low_bits(a), low_bits(b))))
        }
        Pair::Int(a, b) => Ok(Value::int(large(a, b)?)),
        Pair::Big(a, b) => {
            let digits = env.purse.limits.big_digits.min(1000);
            let (a, b) = (
                a.to_bigint(digits).ok_or_else(not_whole)?,
                b.to_bigint(digits).ok_or_else(not_whole)?,
            );
            env.purse.pay_digits(digits as u64)?;
            Ok(Value::big(
                Decimal::new(large(a, b)?, 0).rounded(usize::MAX),
            ))
        }
        Pair::Frac(..) | Pair::Complex(..) => Err(wrong_type(name, a, 0)),
    }
}

/// Shifts to the left, or to the right where the distance is negative; no number gets longer than about a thousand digits
/// that way.
fn shifted_left(n: &BigInt, distance: &BigInt) -> Result<BigInt> {
    if distance.is_negative() {
        return Ok(shifted_right_by(n, &-distance));
    }
    let distance = distance
        .to_u32()
        .filter(|distance| *distance <= 3300)
        .ok_or_else(|| MathError::limit("Shift too far: at most 3300 bits are allowed"))?;
    Ok(n << distance)
}

fn shifted_right(n: &BigInt, distance: &BigInt) -> Result<BigInt> {
    if distance.is_negative() {
        shifted_left(n, &-distance)
    } else {
        Ok(shifted_right_by(n, distance))
    }
}

/// Past all its bits only the sign is left.
fn shifted_right_by(n: &BigInt, distance: &BigInt) -> BigInt {
    match distance.to_u64().filter(|distance| *distance <= n.bits()) {
        Some(distance) => n >> distance,
        None if n.is_negative() => BigInt::from(-1),
        None => BigInt::default(),
    }
}

/// Big numbers are not shifted by less than nothing.
fn shifted_by_negative(env: &mut Env, name: &str, a: &Value, b: &Value) -> Result<Option<Value>> {
    if let (Value::Bool(_), Value::Int(distance)) = (a, b)
        && distance.is_negative()
    {
        return Err(unsupported(name, "true and false by a negative distance"));
    }
    let is_big = matches!(a, Value::Big(_)) || matches!(b, Value::Big(_));
    Ok(match is_big {
        true => match pair(env, name, a, b)? {
            Pair::Big(n, distance)
                if n.is_integer() && distance.is_integer() && distance.is_negative() =>
            {
                Some(Value::big(Decimal::Nan))
            }
            _ => None,
        },
        false => None,
    })
}

pub(crate) fn bit_and(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    // Nothing has a bit in common with zero, whatever it is.
    if matches!(a, Value::Bool(false)) || matches!(a, Value::Num(0.0)) {
        return Ok(Value::Num(0.0));
    }
    both(env, a, b, |env, a, b| {
        combine(
            env,
            "bitAnd",
            a,
            b,
            |a, b| f64::from(a & b),
            |a, b| Ok(a & b),
        )
    })
}

pub(crate) fn bit_or(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    if let Value::Bool(true) = a {
        // mathjs stops at true, which is wrong unless the other has no further bits.
        let other = pair(env, "bitOr", a, b)?;
        return match other {
            Pair::Num(_, b) if b == 0.0 || b == 1.0 => Ok(Value::Num(1.0)),
            _ => Err(MathError::value(
                "true has no bits to combine in function bitOr: write 1",
            )),
        };
    }
    both(env, a, b, |env, a, b| {
        combine(
            env,
            "bitOr",
            a,
            b,
            |a, b| f64::from(a | b),
            |a, b| Ok(a | b),
        )
    })
}

pub(crate) fn bit_xor(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        combine(
            env,
            "bitXor",
            a,
            b,
            |a, b| f64::from(a ^ b),
            |a, b| Ok(a ^ b),
        )
    })
}

pub(crate) fn shift_left(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        let small = |a: i32, b: i32| f64::from(a.wrapping_shl(b as u32));
        if let Some(none) = shifted_by_negative(env, "leftShift", a, b)? {
            return Ok(none);
        }
        combine(env, "leftShift", a, b, small, |a, b| shifted_left(&a, &b))
    })
}

pub(crate) fn shift_right(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        let small = |a: i32, b: i32| f64::from(a.wrapping_shr(b as u32));
        if let Some(none) = shifted_by_negative(env, "rightArithShift", a, b)? {
            return Ok(none);
        }
        combine(env, "rightArithShift", a, b, small, |a, b| {
            shifted_right(&a, &b)
        })
    })
}

pub(crate) fn shift_right_logical(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        let small = |a: i32, b: i32| f64::from((a as u32).wrapping_shr(b as u32));
        combine(env, "rightLogShift", a, b, small, |a, b| {
            shifted_right(&a, &b)
        })
    })
}

pub(crate) fn bit_not(env: &mut Env, value: &Value) -> Result<Value> {
    each(env, value, |env, value| match simple("bitNot", value, 0)? {
        Value::Num(x) if x.fract() == 0.0 => Ok(Value::Num(f64::from(!low_bits(x)))),
        Value::Int(n) => Ok(Value::int(!&*n)),
        Value::Big(n) if n.is_integer() => {
            let minus_one = Decimal::integer(-1);
            Ok(Value::big(minus_one.subtract(&n, env.settings.precision)))
        }
        Value::Num(_) | Value::Big(_) => {
            Err(MathError::value("Integer expected in function bitNot"))
        }
        other => Err(wrong_type("bitNot", &other, 0)),
    })
}
