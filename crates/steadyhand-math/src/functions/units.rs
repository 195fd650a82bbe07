//! Conversions between units.

use std::sync::Arc;

use crate::broadcast::both;
use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::rounding::round_scalar;
use crate::ops::arithmetic::{add_scalar, subtract_scalar};
use crate::ops::compare::equal_scalar;
use crate::ops::rounding::Rounding;
use crate::refusals::unsupported;
use crate::unit::prefix::PrefixSet;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::Matrix;
use crate::value::unit::Unit;
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("to", 2..=2, |env, args| to(env, &args[0], &args[1])),
    Builtin::new("toBest", 1..=3, to_best),
    Builtin::new("toSI", 1..=1, to_si),
    Builtin::new("unit", 1..=2, unit),
    Builtin::new("createUnit", 1..=3, create_unit),
    Builtin::new("splitUnit", 2..=2, split_unit),
];

/// `5.4 cm to inch`; the target is a unit or the text of one.
pub(crate) fn to(env: &mut Env, value: &Value, target: &Value) -> Result<Value> {
    both(env, value, target, |env, value, target| {
        let Value::Unit(quantity) = value else {
            return Err(wrong_type("to", value, 0));
        };
        let target = as_unit(env, "to", target)?;
        Ok(Value::unit(quantity.to(env, &target)?))
    })
}

fn as_unit(env: &mut Env, function: &str, value: &Value) -> Result<Arc<Unit>> {
    match value {
        Value::Unit(unit) => Ok(unit.clone()),
        Value::Text(text) => Ok(Arc::new(Unit::read(env, text)?)),
        other => Err(wrong_type(function, other, 1)),
    }
}

fn to_si(env: &mut Env, args: &[Value]) -> Result<Value> {
    match &args[0] {
        Value::Unit(unit) => Ok(Value::unit(unit.to_si(env)?)),
        other => Err(wrong_type("toSI", other, 0)),
    }
}

fn to_best(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Unit(quantity) = &args[0] else {
        return Err(wrong_type("toBest", &args[0], 0));
    };
    let offset = match args.get(2) {
        Some(Value::Object(options)) => options.get("offset").map_or(1.2, to_f64),
        _ => 1.2,
    };
    if !offset.is_finite() {
        return Err(unsupported("toBest", "an offset that is no number"));
    }
    let Some(wanted) = args.get(1) else {
        let best = quantity.best(env, offset);
        return Ok(Value::unit(Unit {
            fixed_prefix: true,
            ..best
        }));
    };
    let mut candidates = Vec::new();
    match wanted {
        Value::Text(names) => {
            for name in names.split(',') {
                candidates.push(Unit::read(env, name.trim())?);
            }
        }
        Value::Unit(unit) => candidates.push((**unit).clone()),
        Value::Matrix(matrix) => {
            for cell in &matrix.cells {
                candidates.push((*as_unit(env, "toBest", cell)?).clone());
            }
        }
        other => return Err(wrong_type("toBest", other, 1)),
    }
    Ok(Value::unit(quantity.best_of(&candidates, offset)?))
}

fn unit(env: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Matrix(_)] => crate::broadcast::each(env, &args[0], |env, value| {
            unit(env, std::slice::from_ref(value))
        }),
        [Value::Text(text)] => Ok(Value::unit(Unit::read(env, text)?)),
        [Value::Unit(unit)] => Ok(Value::Unit(unit.clone())),
        [number] => {
            let number = simple("unit", number, 0)?;
            Ok(Value::unit(
                Unit::without_value(Vec::new()).with_value(env, &number)?,
            ))
        }
        [number, name] => {
            let name = as_unit(env, "unit", name)?;
            let number = simple("unit", number, 0)?;
            let bare = Unit {
                value: None,
                ..(*name).clone()
            };
            Ok(Value::unit(bare.with_value(env, &number)?))
        }
        _ => Err(MathError::arguments(
            "Too few arguments in function unit (expected: 1, actual: 0)",
        )),
    }
}

fn create_unit(env: &mut Env, args: &[Value]) -> Result<Value> {
    if let Value::Object(definitions) = &args[0] {
        let mut last = Value::Undefined;
        for (name, definition) in &definitions.entries {
            last = create_one(env, name, Some(definition))?;
        }
        return Ok(last);
    }
    let Value::Text(name) = &args[0] else {
        return Err(wrong_type("createUnit", &args[0], 0));
    };
    create_one(env, name, args.get(1))
}

fn create_one(env: &mut Env, name: &str, definition: Option<&Value>) -> Result<Value> {
    let empty = Object::default();
    let options = match definition {
        Some(Value::Object(options)) => options,
        _ => &empty,
    };
    let source = match definition {
        Some(Value::Object(options)) => options.get("definition"),
        other => other,
    };
    let measure = match source {
        None | Some(Value::Undefined | Value::Null) => None,
        Some(Value::Text(text)) if text.is_empty() => None,
        Some(Value::Text(text)) => {
            let (value, unit) = Unit::read_parts(env, text).map_err(|error| {
                MathError::units(format!(
                    "Could not create unit \"{name}\" from \"{text}\": {error}"
                ))
            })?;
            let unit = unit.with_value(env, &Value::Num(value.unwrap_or(1.0)))?;
            Some((unit.value.as_ref().map_or(1.0, to_f64), unit.dimensions))
        }
        Some(Value::Unit(unit)) => Some((unit.value.as_ref().map_or(1.0, to_f64), unit.dimensions)),
        Some(other) => return Err(wrong_type("createUnit", other, 1)),
    };
    let aliases: Vec<String> = match options.get("aliases") {
        Some(Value::Matrix(matrix)) => matrix
            .cells
            .iter()
            .filter_map(|cell| {
                if let Value::Text(text) = cell {
                    Some(text.to_string())
                } else {
                    None
                }
            })
            .collect(),
        _ => Vec::new(),
    };
    let prefixes = match options.get("prefixes") {
        Some(Value::Text(name)) => PrefixSet::named(name),
        _ => PrefixSet::None,
    };
    let offset = options.get("offset").map_or(0.0, to_f64);
    env.units
        .create(name, &aliases, prefixes, offset, measure)?;
    Unit::named(env, name)
        .map(Value::unit)
        .ok_or_else(|| MathError::units(format!("Unit \"{name}\" not found.")))
}

/// `splitUnit(1 m, ["feet", "inch"])`: whole feet, and the rest in inches.
fn split_unit(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (Value::Unit(quantity), Value::Matrix(names)) = (&args[0], &args[1]) else {
        return Err(wrong_type("splitUnit", &args[0], 0));
    };
    let mut rest = (**quantity).clone();
    let mut parts: Vec<Value> = Vec::new();
    let mut sum = Value::Num(0.0);
    for (at, name) in names.cells.iter().enumerate() {
        let target = as_unit(env, "splitUnit", name)?;
        rest = rest.to(env, &target)?;
        if at + 1 == names.cells.len() {
            break;
        }
        let number = rest.number(env)?;
        let rounded = round_scalar(env, &number, &Value::Num(0.0), Rounding::Round)?;
        let whole = if equal_scalar(env, &rounded, &number)? {
            rounded
        } else {
            round_scalar(env, &number, &Value::Num(0.0), Rounding::Fix)?
        };
        let part = Unit {
            value: None,
            ..(*target).clone()
        }
        .with_value(env, &whole)?;
        if let Some(value) = &part.value {
            sum = add_scalar(env, &sum, value)?;
        }
        let difference =
            subtract_scalar(env, &Value::unit(rest.clone()), &Value::unit(part.clone()))?;
        parts.push(Value::unit(part));
        match difference {
            Value::Unit(unit) => rest = (*unit).clone(),
            other => return Err(wrong_type("splitUnit", &other, 0)),
        }
    }
    if let Some(value) = &quantity.value
        && equal_scalar(env, &sum, value)?
    {
        rest.value = Some(Value::Num(0.0));
    }
    parts.push(Value::unit(rest));
    Ok(Matrix::array(parts).into())
}
