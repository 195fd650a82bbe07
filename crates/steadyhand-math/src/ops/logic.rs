//! and, or, xor, not.

use crate::broadcast::{both, each};
use crate::convert::truthy;
use crate::env::Env;
use crate::error::Result;
use crate::value::Value;

pub(crate) fn and(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |_, a, b| {
        Ok(Value::Bool(truthy("and", a)? && truthy("and", b)?))
    })
}

pub(crate) fn or(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |_, a, b| {
        Ok(Value::Bool(truthy("or", a)? || truthy("or", b)?))
    })
}

pub(crate) fn xor(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    both(env, a, b, |_, a, b| {
        Ok(Value::Bool(truthy("xor", a)? != truthy("xor", b)?))
    })
}

pub(crate) fn not(env: &mut Env, value: &Value) -> Result<Value> {
    each(env, value, |_, value| {
        Ok(Value::Bool(!truthy("not", value)?))
    })
}
