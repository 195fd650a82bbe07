//! and, or, xor, not.

use crate::broadcast::{both, each};
use crate::convert::{Pair, pair, simple, truthy, wrong_type};
use crate::error::Result;
use crate::value::Value;
use crate::value::env::Env;

pub(crate) fn and(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    // mathjs gives zeros, not booleans, for a matrix beside a scalar that is false.
    let is_beside_false = match (a, b) {
        (Value::Matrix(_), Value::Matrix(_)) => false,
        (Value::Matrix(_), scalar) => truthy("and", scalar).is_ok_and(|is_true| !is_true),
        _ => false,
    };
    if is_beside_false {
        return both(env, a, b, |env, a, b| {
            sides(env, "and", a, b)?;
            Ok(Value::Num(0.0))
        });
    }
    both(env, a, b, |env, a, b| {
        let (a, b) = sides(env, "and", a, b)?;
        Ok(Value::Bool(a && b))
    })
}

pub(crate) fn or(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        let (a, b) = sides(env, "or", a, b)?;
        Ok(Value::Bool(a || b))
    })
}

pub(crate) fn xor(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |env, a, b| {
        let (a, b) = sides(env, "xor", a, b)?;
        Ok(Value::Bool(a != b))
    })
}

pub(crate) fn not(env: &mut Env, value: &Value) -> Result<Value> {
    each(env, value, |_, value| {
        let value = match value {
            Value::Null | Value::Undefined | Value::Unit(_) => value.clone(),
            other => simple("not", other, 0)?,
        };
        Ok(Value::Bool(!truthy("not", &value)?))
    })
}

/// Both operands as true or false: two numbers of one kind, or two quantities.
fn sides(env: &mut Env, function: &str, a: &Value, b: &Value) -> Result<(bool, bool)> {
    if let (Value::Unit(_), Value::Unit(_)) = (a, b) {
        return Ok((truthy(function, a)?, truthy(function, b)?));
    }
    let (a, b) = match pair(env, function, a, b)? {
        Pair::Num(a, b) => (Value::Num(a), Value::Num(b)),
        Pair::Complex(a, b) => (a.into(), b.into()),
        Pair::Int(a, b) => (Value::int(a), Value::int(b)),
        Pair::Big(a, b) => (Value::big(a), Value::big(b)),
        Pair::Frac(..) => return Err(wrong_type(function, a, 0)),
    };
    Ok((truthy(function, &a)?, truthy(function, &b)?))
}

/// The left operand alone: it must go together with a boolean, which complex numbers, fractions and quantities do not.
pub(crate) fn side(env: &mut Env, function: &str, value: &Value) -> Result<bool> {
    if let Value::Unit(_) = value {
        return Err(wrong_type(function, value, 0));
    }
    Ok(sides(env, function, value, &Value::Bool(true))?.0)
}
