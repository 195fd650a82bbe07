//! The parts of complex numbers.

use crate::broadcast::each;
use crate::convert::{simple, to_complex};
use crate::error::Result;
use crate::number::decimal::Decimal;
use crate::number::transcendental;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::unit::Unit;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("arg", 1..=1, |env, args| each(env, &args[0], arg)),
    Builtin::new("conj", 1..=1, |env, args| each(env, &args[0], conj)),
    Builtin::new("re", 1..=1, |env, args| each(env, &args[0], re)),
    Builtin::new("im", 1..=1, |env, args| each(env, &args[0], im)),
];

fn arg(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match simple("arg", value, 0)? {
        Value::Big(n) => {
            env.purse
                .pay(transcendental::cost(env.settings.precision))?;
            Value::big(transcendental::atan2(
                &Decimal::zero(),
                &n,
                env.settings.precision,
            ))
        }
        number => Value::Num(to_complex(&number).arg()),
    })
}

pub(crate) fn conj(env: &mut Env, value: &Value) -> Result<Value> {
    if let Value::Unit(unit) = value {
        let number = unit.number(env)?;
        let bare = Unit::without_value(unit.parts.clone());
        let number = conj(env, &number)?;
        return Ok(Value::unit(bare.with_value(env, &number)?));
    }
    Ok(match simple("conj", value, 0)? {
        Value::Complex(z) => z.conjugate().into(),
        real => real,
    })
}

fn re(_: &mut Env, value: &Value) -> Result<Value> {
    Ok(match simple("re", value, 0)? {
        Value::Complex(z) => Value::Num(z.re),
        real => real,
    })
}

fn im(_: &mut Env, value: &Value) -> Result<Value> {
    Ok(match simple("im", value, 0)? {
        Value::Complex(z) => Value::Num(z.im),
        Value::Big(_) => Value::big(crate::number::decimal::Decimal::zero()),
        Value::Frac(_) => Value::frac(crate::number::fraction::Fraction::integer(0)),
        _ => Value::Num(0.0),
    })
}
