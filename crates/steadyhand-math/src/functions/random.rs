//! Chance: random numbers and choices.

use crate::convert::{length, simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind, cell_count};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("random", 0..=3, |env, args| {
        numbers(env, "random", args, |env, low, high| {
            low + env.random.f64() * (high - low)
        })
    }),
    Builtin::new("randomInt", 0..=3, random_int),
    Builtin::new("pickRandom", 1..=3, pick),
];

type Draw = fn(&mut Env, f64, f64) -> f64;

/// `random()`, `random(max)`, `random(min, max)`, `random(size, min, max)`
fn numbers(env: &mut Env, name: &str, args: &[Value], draw: Draw) -> Result<Value> {
    let (size, bounds) = match args {
        [Value::Matrix(size), bounds @ ..] => (Some(size), bounds),
        bounds => (None, bounds),
    };
    let bound = |value: &Value| simple(name, value, 0).map(|value| to_f64(&value));
    let (low, high) = match bounds {
        [] => (0.0, 1.0),
        [high] => (0.0, bound(high)?),
        [low, high, ..] => (bound(low)?, bound(high)?),
    };
    let Some(size) = size else {
        return Ok(Value::Num(draw(env, low, high)));
    };
    let lengths: Result<Vec<usize>> = size.cells.iter().map(|cell| length(name, cell)).collect();
    let lengths = lengths?;
    let count = cell_count(&lengths);
    env.purse.pay_cells(count)?;
    let cells = (0..count)
        .map(|_| Value::Num(draw(env, low, high)))
        .collect();
    Ok(Matrix {
        kind: size.kind,
        size: lengths,
        cells,
    }
    .into())
}

fn random_int(env: &mut Env, args: &[Value]) -> Result<Value> {
    // Without bounds it is a coin: 0 or 1.
    let coin = [Value::Num(0.0), Value::Num(2.0)];
    let args = if args.is_empty() { &coin } else { args };
    numbers(env, "randomInt", args, |env, low, high| {
        (low + env.random.f64() * (high - low)).floor()
    })
}

/// `pickRandom(list)`, with a count, weights, or both in either order.
fn pick(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(list) = &args[0] else {
        return Err(wrong_type("pickRandom", &args[0], 0));
    };
    let (mut count, mut weights) = (None, None);
    for arg in &args[1..] {
        match arg {
            Value::Matrix(matrix) => weights = Some(matrix),
            number => count = Some(length("pickRandom", number)?),
        }
    }
    if list.cells.is_empty() {
        return Err(MathError::value("Cannot pick from an empty list"));
    }
    let weights = match weights {
        None => vec![1.0; list.cells.len()],
        Some(matrix) => {
            let weights: Result<Vec<f64>> = matrix
                .cells
                .iter()
                .map(|cell| simple("pickRandom", cell, 1).map(|cell| to_f64(&cell)))
                .collect();
            weights?
        }
    };
    if weights.len() != list.cells.len()
        || weights
            .iter()
            .any(|weight| !weight.is_finite() || *weight < 0.0)
    {
        return Err(MathError::value(
            "Weights must be non-negative numbers, as many as possibles",
        ));
    }
    let draws = count.unwrap_or(1);
    env.purse.pay_cells(draws)?;
    env.purse.pay(draws as u64 * list.cells.len() as u64)?;
    let total: f64 = weights.iter().sum();
    let mut chosen = Vec::with_capacity(draws);
    for _ in 0..draws {
        let mut left = env.random.f64() * total;
        let at = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        chosen.push(list.cells[at.unwrap_or(list.cells.len() - 1)].clone());
    }
    match count {
        Some(_) => Ok(Matrix::vector(chosen)
            .of_kind(if list.kind == MatrixKind::Array {
                MatrixKind::Array
            } else {
                MatrixKind::Dense
            })
            .into()),
        None => Ok(chosen.remove(0)),
    }
}
