//! Rounding: to whole numbers, to decimals, in a unit.

use num_bigint::BigInt;

use crate::broadcast::{both, each};
use crate::convert::{simple, to_f64, whole, wrong_type};
use crate::env::Env;
use crate::error::{MathError, Result};
use crate::function::Builtin;
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::digits::Digits;
use crate::number::fraction::Fraction;
use crate::ops::compare::nearly_equal;
use crate::unit::Unit;
use crate::value::Value;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("ceil", 1..=3, |env, args| rounding(env, args, CEIL)),
    Builtin::new("fix", 1..=3, |env, args| rounding(env, args, FIX)),
    Builtin::new("floor", 1..=3, |env, args| rounding(env, args, FLOOR)),
    Builtin::new("round", 1..=3, |env, args| rounding(env, args, ROUND)),
];

/// One way to round, for every kind of number.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    name: &'static str,
    number: fn(f64, i64) -> f64,
    big: fn(&Decimal, i64) -> Decimal,
    /// How the fraction of two whole numbers is rounded.
    fraction: fn(&Fraction) -> BigInt,
}

pub(crate) const FLOOR: Way = Way {
    name: "floor",
    number: floor,
    big: Decimal::floor,
    fraction: Fraction::floor,
};
pub(crate) const CEIL: Way = Way {
    name: "ceil",
    number: ceil,
    big: Decimal::ceil,
    fraction: |n| -n.negated().floor(),
};
pub(crate) const FIX: Way = Way {
    name: "fix",
    number: |x, decimals| {
        if x > 0.0 {
            floor(x, decimals)
        } else {
            ceil(x, decimals)
        }
    },
    big: Decimal::truncate,
    fraction: |n| &n.numerator / &n.denominator,
};
pub(crate) const ROUND: Way = Way {
    name: "round",
    number: round_number,
    big: Decimal::round,
    fraction: |n| {
        // Half away from zero.
        let half = Fraction {
            numerator: 1.into(),
            denominator: 2.into(),
        };
        if n.numerator < BigInt::default() {
            -n.negated().add(&half).floor()
        } else {
            n.add(&half).floor()
        }
    },
};

fn floor(x: f64, decimals: i64) -> f64 {
    directed(x, decimals, f64::floor)
}

fn ceil(x: f64, decimals: i64) -> f64 {
    directed(x, decimals, f64::ceil)
}

/// A number a rounding error away from the next step counts as on it.
fn directed(x: f64, decimals: i64, direction: fn(f64) -> f64) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let nearest = round_number(x, decimals);
    if nearly_equal(x, nearest, 1e-12, 1e-15) {
        return nearest;
    }
    if decimals == 0 {
        return direction(x);
    }
    let text = Digits::of(x);
    let scaled = Digits {
        point: text.point + decimals,
        ..text
    }
    .fixed(0);
    let whole = direction(scaled.parse().unwrap_or(x));
    format!("{whole}e{}", -decimals).parse().unwrap_or(x)
}

pub(crate) fn round_number(x: f64, decimals: i64) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let digits = Digits::of(x);
    let count = digits.point + decimals;
    let rounded: f64 = digits.rounded(count).exponential(0).parse().unwrap_or(x);
    // What rounds to zero keeps its sign, as in JavaScript.
    rounded.abs().copysign(x)
}

/// Rounded to whole, numbers a hair below a half are first lifted onto it.
fn round_whole(x: f64) -> f64 {
    let lifted = round_number(x, 12);
    round_number(
        if nearly_equal(x, lifted, 1e-12, 1e-15) {
            lifted
        } else {
            x
        },
        0,
    )
}

fn rounding(env: &mut Env, args: &[Value], way: Way) -> Result<Value> {
    match args {
        [value] => round_all(env, value, &Value::Num(0.0), way),
        [value, Value::Unit(unit)] => in_unit(env, value, &Value::Num(0.0), unit, way),
        [value, decimals] => round_all(env, value, decimals, way),
        [value, decimals, Value::Unit(unit)] => in_unit(env, value, decimals, unit, way),
        _ => Err(wrong_type(way.name, &args[2], 2)),
    }
}

fn in_unit(env: &mut Env, value: &Value, decimals: &Value, unit: &Unit, way: Way) -> Result<Value> {
    let decimals = decimals.clone();
    each(env, value, |env, value| {
        let Value::Unit(quantity) = value else {
            return Err(wrong_type(way.name, value, 0));
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

fn round_all(env: &mut Env, value: &Value, decimals: &Value, way: Way) -> Result<Value> {
    match way.name {
        "floor" => both(env, value, decimals, |_, value, decimals| {
            round_scalar(value, decimals, FLOOR)
        }),
        "ceil" => both(env, value, decimals, |_, value, decimals| {
            round_scalar(value, decimals, CEIL)
        }),
        "fix" => both(env, value, decimals, |_, value, decimals| {
            round_scalar(value, decimals, FIX)
        }),
        _ => both(env, value, decimals, |_, value, decimals| {
            round_scalar(value, decimals, ROUND)
        }),
    }
}

pub(crate) fn round_scalar(value: &Value, decimals: &Value, way: Way) -> Result<Value> {
    let decimals = whole(way.name, decimals)?;
    if !(-15..=15).contains(&decimals) && way.name == "round" && matches!(value, Value::Num(_)) {
        return Err(MathError::value(format!(
            "Number of decimals in function {} must be in the range of -15 to 15",
            way.name
        )));
    }
    if decimals.unsigned_abs() > 1000 {
        return Err(MathError::value(format!(
            "Number of decimals in function {} is out of range",
            way.name
        )));
    }
    let number = |x: f64| {
        if decimals == 0 && way.name == "round" {
            round_whole(x)
        } else {
            (way.number)(x, decimals)
        }
    };
    Ok(match simple(way.name, value, 0)? {
        Value::Complex(z) => Complex::new(number(z.re), number(z.im)).into(),
        Value::Big(n) => Value::big((way.big)(&n, decimals)),
        Value::Int(n) => Value::Int(n),
        Value::Frac(n) if decimals == 0 => Value::frac(Fraction::integer((way.fraction)(&n))),
        Value::Frac(n) => {
            let scale = Fraction::integer(crate::number::decimal::ten_to(decimals.unsigned_abs()));
            let scaled = if decimals > 0 {
                n.multiply(&scale)
            } else {
                n.divide(&scale)?
            };
            let whole = Fraction::integer((way.fraction)(&scaled));
            Value::frac(if decimals > 0 {
                whole.divide(&scale)?
            } else {
                whole.multiply(&scale)
            })
        }
        value => Value::Num(number(to_f64(&value))),
    })
}
