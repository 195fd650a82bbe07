//! and, or, xor, not.

use crate::broadcast::{both, each};
use crate::convert::{truthy, wrong_type};
use crate::env::Env;
use crate::error::Result;
use crate::value::Value;

pub(crate) fn and(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |_, a, b| {
        Ok(Value::Bool(side("and", a)? && side("and", b)?))
    })
}

pub(crate) fn or(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |_, a, b| {
        Ok(Value::Bool(side("or", a)? || side("or", b)?))
    })
}

pub(crate) fn xor(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |_, a, b| {
        Ok(Value::Bool(side("xor", a)? != side("xor", b)?))
    })
}

pub(crate) fn not(env: &mut Env, value: &Value) -> Result<Value> {
    each(env, value, |_, value| Ok(Value::Bool(!side("not", value)?)))
}

/// An operand: unlike a condition, it must be something that counts.
pub(crate) fn side(function: &str, value: &Value) -> Result<bool> {
    if value.is_nothing() {
        return Err(wrong_type(function, value, 0));
    }
    truthy(function, value)
}
