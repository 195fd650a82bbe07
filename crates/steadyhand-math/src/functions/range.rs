//! Ranges: `1:5`, `range(0, 12, 2)`

use std::cmp::Ordering;

use crate::convert::{Pair, pair, read_number, simple, to_f64, truthy, wrong_type};
use crate::error::{MathError, Result};
use crate::ops::arithmetic::{add_scalar, multiply_scalar};
use crate::ops::compare::order;
use crate::refusals::unsupported;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::Matrix;

pub(crate) const TABLE: &[Builtin] = &[Builtin::new("range", 1..=4, range)];

/// `start:step:end`, the end included.
pub(crate) fn from_to(
    env: &mut Env,
    start: &Value,
    end: &Value,
    step: Option<&Value>,
) -> Result<Value> {
    let one = Value::Num(1.0);
    sequence(env, start, end, step.unwrap_or(&one), true)
}

fn range(env: &mut Env, args: &[Value]) -> Result<Value> {
    // In expressions the end is part of the range unless the last argument says otherwise.
    let (args, include_end) = match args {
        [head @ .., Value::Bool(include)] => (head, *include),
        args => (args, true),
    };
    let one = Value::Num(1.0);
    match args {
        [Value::Text(text)] => {
            let parts: Result<Vec<f64>> = text
                .split(':')
                .map(|part| read_number(part.trim()))
                .collect();
            match parts?.as_slice() {
                [start, end] => sequence(
                    env,
                    &Value::Num(*start),
                    &Value::Num(*end),
                    &one,
                    include_end,
                ),
                [start, step, end] => sequence(
                    env,
                    &Value::Num(*start),
                    &Value::Num(*end),
                    &Value::Num(*step),
                    include_end,
                ),
                _ => Err(MathError::value(format!(
                    "String \"{text}\" is no valid range"
                ))),
            }
        }
        [start, end] => sequence(env, start, end, &one, include_end),
        [start, end, step] => sequence(env, start, end, step, include_end),
        _ => Err(wrong_type(
            "range",
            args.first().unwrap_or(&Value::Undefined),
            0,
        )),
    }
}

fn sequence(
    env: &mut Env,
    start: &Value,
    end: &Value,
    step: &Value,
    include_end: bool,
) -> Result<Value> {
    if let (Value::Num(start), Value::Num(end), Value::Num(step)) = (start, end, step) {
        return numbers(env, *start, *end, *step, include_end);
    }
    if [start, end, step]
        .iter()
        .any(|value| matches!(value, Value::Bool(_)))
    {
        return Err(unsupported("range", "booleans"));
    }
    let scalar = |value: &Value| match value {
        Value::Unit(_) => Ok(value.clone()),
        Value::Complex(_) => Err(wrong_type("range", value, 0)),
        other => simple("range", other, 0),
    };
    let (start, end, step) = (scalar(start)?, scalar(end)?, scalar(step)?);
    // One fraction, big integer or big number makes all of them so; quantities go only with quantities.
    let ends = [start, end, step];
    let units = ends
        .iter()
        .filter(|value| matches!(value, Value::Unit(_)))
        .count();
    if units != 0 && units != ends.len() {
        return Err(MathError::units(
            "A range of quantities needs a step that is a quantity too",
        ));
    }
    let first = |wanted: fn(&Value) -> bool| ends.iter().find(|value| wanted(value));
    let like = first(|value| matches!(value, Value::Frac(_)))
        .or_else(|| first(|value| matches!(value, Value::Big(_))))
        .or_else(|| first(|value| matches!(value, Value::Int(_))))
        .cloned();
    let [start, end, step] = match like {
        None => ends,
        Some(like) => {
            let mut alike = Vec::with_capacity(3);
            for value in ends {
                alike.push(in_kind_of(env, &value, &like)?);
            }
            let [start, end, step] =
                alike
                    .try_into()
                    .unwrap_or([Value::Undefined, Value::Undefined, Value::Undefined]);
            [start, end, step]
        }
    };
    let size = match &step {
        Value::Unit(unit) => unit.value.as_ref().map_or(0.0, to_f64),
        other => to_f64(other),
    };
    if size == 0.0 || !truthy("range", &step)? {
        return Err(MathError::value("Step must be non-zero"));
    }
    let (before, after) = if size > 0.0 {
        (Ordering::Less, Ordering::Greater)
    } else {
        (Ordering::Greater, Ordering::Less)
    };
    let mut cells = Vec::new();
    loop {
        let times = match &step {
            Value::Int(_) => Value::int(cells.len().into()),
            _ => Value::Num(cells.len() as f64),
        };
        let offset = multiply_scalar(env, &step, &times)?;
        let next = if cells.is_empty() {
            start.clone()
        } else {
            add_scalar(env, &start, &offset)?
        };
        match order(env, "range", &next, &end)? {
            Some(order) if order == before => {}
            Some(Ordering::Equal) if include_end => {}
            Some(order) if order == after => break,
            _ => break,
        }
        cells.push(next);
        if cells.len() > env.purse.limits.matrix_cells {
            env.purse.pay_cells(cells.len())?;
        }
        env.purse.pay(1)?;
    }
    Ok(Matrix::vector(cells).into())
}

fn in_kind_of(env: &mut Env, value: &Value, like: &Value) -> Result<Value> {
    if let (Value::Num(x), Value::Int(_)) = (value, like) {
        return crate::number::integer::exact(*x)
            .map(Value::int)
            .ok_or_else(|| {
                MathError::value("A range of bigints needs whole numbers as its ends and step")
            });
    }
    Ok(match pair(env, "add", value, like)? {
        Pair::Num(x, _) => Value::Num(x),
        Pair::Complex(..) => return Err(wrong_type("range", value, 0)),
        Pair::Int(n, _) => Value::int(n),
        Pair::Big(n, _) => Value::big(n),
        Pair::Frac(n, _) => Value::frac(n),
    })
}

fn numbers(env: &mut Env, start: f64, end: f64, step: f64, include_end: bool) -> Result<Value> {
    if step == 0.0 {
        return Err(MathError::value("Step must be non-zero"));
    }
    let span = (end - start) / step;
    if span.is_nan() {
        return Err(MathError::value("Range limits must be numbers"));
    }
    // A step that leads away from the end.
    if (end > start && step < 0.0) || (end < start && step > 0.0) {
        return Ok(Matrix::vector(Vec::new()).into());
    }
    // A last step that misses the end by a rounding error still reaches it.
    let nearest = span.round();
    let on_step = (span - nearest).abs() <= 1e-12 * span.abs().max(1.0);
    let count = if on_step {
        nearest + f64::from(u8::from(include_end))
    } else {
        span.floor() + 1.0
    };
    let count = count.max(0.0);
    env.purse.pay_cells(if count > 1e15 {
        usize::MAX
    } else {
        count as usize
    })?;
    // Step by step, as mathjs adds them up.
    let steps = std::iter::successors(Some(start), |x| Some(x + step));
    let cells = steps.take(count as usize).map(Value::Num).collect();
    Ok(Matrix::vector(cells).into())
}
