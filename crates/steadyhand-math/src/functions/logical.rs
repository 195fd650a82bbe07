//! Logical operators under their names; `and` and `or` stop when the answer is known.

use crate::broadcast::both;
use crate::error::{MathError, Result};
use crate::ops::logic;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::node::Node;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("xor", 2..=2, |env, args| {
        logic::xor(env, &args[0], &args[1])
    }),
    Builtin::new("not", 1..=1, |env, args| logic::not(env, &args[0])),
    Builtin::new("nullish", 2..=2, |env, args| {
        nullish(env, &args[0], &args[1])
    }),
];

pub(crate) fn and(env: &mut Env, args: &[Node]) -> Result<Value> {
    stop_early(env, "and", args, false, logic::and)
}

pub(crate) fn or(env: &mut Env, args: &[Node]) -> Result<Value> {
    stop_early(env, "or", args, true, logic::or)
}

fn stop_early(
    env: &mut Env,
    name: &str,
    args: &[Node],
    known: bool,
    apply: fn(&mut Env, &Value, &Value) -> Result<Value>,
) -> Result<Value> {
    let [a, b] = args else {
        return Err(MathError::arguments(format!(
            "Unexpected number of arguments in function {name} (expected: 2, actual: {})",
            args.len()
        )));
    };
    let left = env.eval(a)?;
    if !matches!(left, Value::Matrix(_)) && logic::side(env, name, &left)? == known {
        return Ok(Value::Bool(known));
    }
    let right = env.eval(b)?;
    apply(env, &left, &right)
}

/// `a ?? b`: b where a is null or undefined.
pub(crate) fn nullish(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Matrix(left), Value::Matrix(right)) = (a, b)
        && left.size != right.size
    {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch. Matrix A ({}) must match Matrix B ({})",
            left.size_text(),
            right.size_text()
        )));
    }
    if matches!(a, Value::Matrix(_)) {
        return both(env, a, b, |_, a, b| {
            Ok(if a.is_nothing() { b.clone() } else { a.clone() })
        });
    }
    Ok(if a.is_nothing() { b.clone() } else { a.clone() })
}
