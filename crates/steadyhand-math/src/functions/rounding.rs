//! Rounding: to whole numbers, to decimals, in a unit.

use crate::broadcast::{Scalar2, both, each};
use crate::convert::{Pair, fraction_as_big, pair, simple, to_f64, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::ops::rounding::Rounding;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::unit::Unit;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("ceil", 1..=3, |env, args| {
        rounding(env, args, Rounding::Ceil)
    }),
    Builtin::new("fix", 1..=3, |env, args| rounding(env, args, Rounding::Fix)),
    Builtin::new("floor", 1..=3, |env, args| {
        rounding(env, args, Rounding::Floor)
    }),
    Builtin::new("round", 1..=3, |env, args| {
        rounding(env, args, Rounding::Round)
    }),
];

fn rounding(env: &mut Env, args: &[Value], way: Rounding) -> Result<Value> {
    match args {
        [value] => round_all(env, value, &Value::Undefined, way),
        [value, Value::Unit(unit)] => in_unit(env, value, &Value::Num(0.0), unit, way),
        [value, decimals] => round_all(env, value, decimals, way),
        [value, decimals, Value::Unit(unit)] => in_unit(env, value, decimals, unit, way),
        _ => Err(wrong_type(way.name(), &args[2], 2)),
    }
}

fn in_unit(
    env: &mut Env,
    value: &Value,
    decimals: &Value,
    unit: &Unit,
    way: Rounding,
) -> Result<Value> {
    let decimals = decimals.clone();
    each(env, value, |env, value| {
        let Value::Unit(quantity) = value else {
            return Err(wrong_type(way.name(), value, 0));
        };
        let number = quantity.number_in(env, unit)?;
        let rounded = round_all(env, &number, &decimals, way)?;
        let bare = Unit {
            value: None,
            ..unit.clone()
        };
        Ok(Value::unit(bare.with_value(env, &rounded)?))
    })
}

fn round_all(env: &mut Env, value: &Value, decimals: &Value, way: Rounding) -> Result<Value> {
    let apply: Scalar2 = match way {
        Rounding::Floor => {
            |env, value, decimals| round_scalar(env, value, decimals, Rounding::Floor)
        }
        Rounding::Ceil => |env, value, decimals| round_scalar(env, value, decimals, Rounding::Ceil),
        Rounding::Fix => |env, value, decimals| round_scalar(env, value, decimals, Rounding::Fix),
        Rounding::Round => {
            |env, value, decimals| round_scalar(env, value, decimals, Rounding::Round)
        }
    };
    both(env, value, decimals, apply)
}

pub(crate) fn round_scalar(
    env: &mut Env,
    value: &Value,
    decimals: &Value,
    way: Rounding,
) -> Result<Value> {
    if let Value::Frac(_) = decimals {
        return Err(fraction_as_big());
    }
    let given = match decimals {
        Value::Undefined => None,
        decimals => Some(whole(way.name(), decimals)?),
    };
    let places = given.unwrap_or(0);
    if places.unsigned_abs() > 1000 {
        return Err(MathError::value(format!(
            "Number of decimals in function {} is out of range",
            way.name()
        )));
    }
    // A big number of decimals makes the rounded number big too.
    let value = match (value, decimals) {
        (Value::Num(x), Value::Big(_)) if way == Rounding::Round => {
            Value::big(Decimal::from_f64(*x))
        }
        (Value::Num(_) | Value::Text(_) | Value::Bool(_), Value::Big(_)) => {
            match pair(env, "add", value, decimals)? {
                Pair::Big(value, _) => Value::big(value),
                _ => return Err(wrong_type(way.name(), value, 0)),
            }
        }
        (value, _) => simple(way.name(), value, 0)?,
    };
    Ok(match value {
        Value::Complex(z) => {
            Complex::new(way.complex(z.re, given)?, way.complex(z.im, given)?).into()
        }
        Value::Big(n) => Value::big(way.big(env, &n, places)?),
        Value::Int(n) => Value::Int(n),
        Value::Frac(n) if places == 0 => Value::frac(Fraction::integer(way.fraction(&n))),
        Value::Frac(_) if places < 0 => {
            return Err(MathError::value(format!(
                "Number of decimals in function {} must not be negative",
                way.name()
            )));
        }
        Value::Frac(n) => {
            let scale = Fraction::integer(crate::number::decimal::ten_to(places.unsigned_abs()));
            let whole = Fraction::integer(way.fraction(&n.multiply(&scale)));
            Value::frac(whole.divide(&scale)?)
        }
        value => Value::Num(way.number(to_f64(&value), places)?),
    })
}
