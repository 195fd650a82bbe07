//! The operators under their names: `add(1, 2, 3)`

use crate::error::Result;
use crate::ops::{arithmetic, power};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::{ANY_NUMBER, Builtin};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("add", 2..=ANY_NUMBER, |env, args| {
        fold(env, args, arithmetic::add)
    }),
    Builtin::new("addScalar", 2..=ANY_NUMBER, |env, args| {
        fold(env, args, arithmetic::add_scalar)
    }),
    Builtin::new("subtractScalar", 2..=2, |env, args| {
        arithmetic::subtract_scalar(env, &args[0], &args[1])
    }),
    Builtin::new("multiplyScalar", 2..=ANY_NUMBER, |env, args| {
        fold(env, args, arithmetic::multiply_scalar)
    }),
    Builtin::new("divideScalar", 2..=2, |env, args| {
        arithmetic::divide_scalar(env, &args[0], &args[1])
    }),
    Builtin::new("subtract", 2..=2, |env, args| {
        arithmetic::subtract(env, &args[0], &args[1])
    }),
    Builtin::new("multiply", 2..=ANY_NUMBER, |env, args| {
        fold(env, args, arithmetic::multiply)
    }),
    Builtin::new("divide", 2..=2, |env, args| {
        arithmetic::divide(env, &args[0], &args[1])
    }),
    Builtin::new("dotMultiply", 2..=2, |env, args| {
        arithmetic::dot_multiply(env, &args[0], &args[1])
    }),
    Builtin::new("dotDivide", 2..=2, |env, args| {
        arithmetic::dot_divide(env, &args[0], &args[1])
    }),
    Builtin::new("mod", 2..=2, |env, args| {
        arithmetic::modulo(env, &args[0], &args[1])
    }),
    Builtin::new("pow", 2..=2, |env, args| {
        power::pow(env, &args[0], &args[1])
    }),
    Builtin::new("dotPow", 2..=2, |env, args| {
        power::dot_pow(env, &args[0], &args[1])
    }),
    Builtin::new("unaryMinus", 1..=1, |env, args| {
        arithmetic::negate(env, &args[0])
    }),
    Builtin::new("unaryPlus", 1..=1, |env, args| {
        arithmetic::plus(env, &args[0])
    }),
];

pub(crate) fn fold(
    env: &mut Env,
    args: &[Value],
    apply: fn(&mut Env, &Value, &Value) -> Result<Value>,
) -> Result<Value> {
    let mut result = args[0].clone();
    for value in &args[1..] {
        result = apply(env, &result, value)?;
    }
    Ok(result)
}
