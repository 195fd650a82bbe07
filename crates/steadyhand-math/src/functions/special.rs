//! Special functions.

use crate::broadcast::each;
use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::number::special;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("erf", 1..=1, |env, args| each(env, &args[0], erf)),
    Builtin::new("zeta", 1..=1, |env, args| each(env, &args[0], zeta)),
];

fn erf(_: &mut Env, value: &Value) -> Result<Value> {
    match simple("erf", value, 0)? {
        Value::Complex(_) => Err(wrong_type("erf", value, 0)),
        value => Ok(Value::Num(special::erf(to_f64(&value)))),
    }
}

fn zeta(_: &mut Env, value: &Value) -> Result<Value> {
    match simple("zeta", value, 0)? {
        Value::Complex(z) => special::zeta_complex(z)
            .map(Value::from)
            .ok_or_else(|| MathError::limit("zeta is known here for imaginary parts up to 300")),
        value => Ok(Value::Num(special::zeta(to_f64(&value)))),
    }
}
