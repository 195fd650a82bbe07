//! Sums, means, extremes, deviations; along one dimension or over everything.

use crate::convert::{simple, to_f64, whole, wrong_type};
use crate::env::Env;
use crate::error::{MathError, Result};
use crate::function::{ANY_NUMBER, Builtin};
use crate::functions::arithmetic::{abs, sqrt_scalar};
use crate::functions::sorting::sorted;
use crate::matrix::{Matrix, MatrixKind, cell_count};
use crate::ops::arithmetic::{add, add_scalar, divide_scalar, multiply_scalar, subtract_scalar};
use crate::ops::compare::{equal_scalar, order};
use crate::value::Value;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("max", 1..=ANY_NUMBER, |env, args| {
        over(env, "max", args, max)
    }),
    Builtin::new("min", 1..=ANY_NUMBER, |env, args| {
        over(env, "min", args, min)
    }),
    Builtin::new("sum", 1..=ANY_NUMBER, |env, args| {
        over(env, "sum", args, sum)
    }),
    Builtin::new("prod", 1..=ANY_NUMBER, |env, args| {
        over(env, "prod", args, prod)
    }),
    Builtin::new("mean", 1..=ANY_NUMBER, |env, args| {
        over(env, "mean", args, mean)
    }),
    Builtin::new("median", 1..=ANY_NUMBER, |env, args| {
        let values = flatten_args(env, args)?;
        median(env, &values)
    }),
    Builtin::new("mode", 1..=ANY_NUMBER, mode),
    Builtin::new("mad", 1..=ANY_NUMBER, mad),
    Builtin::new("variance", 1..=ANY_NUMBER, |env, args| {
        spread(env, "variance", args, variance)
    }),
    Builtin::new("std", 1..=ANY_NUMBER, |env, args| {
        spread(env, "std", args, |env, values, kind| {
            let variance = variance(env, values, kind)?;
            sqrt_scalar(env, &variance)
        })
    }),
    Builtin::new("cumsum", 1..=ANY_NUMBER, cumsum),
    Builtin::new("corr", 2..=2, corr),
    Builtin::new(
        "quantileSeq",
        2..=4,
        crate::functions::sorting::quantile_seq,
    ),
];

/// All numbers in all arguments.
pub(crate) fn flatten_args(env: &mut Env, args: &[Value]) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for arg in args {
        match arg {
            Value::Matrix(matrix) => {
                env.purse.pay_cells(matrix.cells.len())?;
                if matrix
                    .cells
                    .iter()
                    .any(|cell| matches!(cell, Value::Matrix(_)))
                {
                    env.descend()?;
                    values.extend(flatten_args(env, &matrix.cells)?);
                    env.ascend();
                } else {
                    values.extend_from_slice(&matrix.cells);
                }
            }
            scalar => values.push(scalar.clone()),
        }
    }
    Ok(values)
}

type Reduce = fn(&mut Env, &[Value]) -> Result<Value>;

/// `max(a, b, c)`, `max(matrix)` or `max(matrix, dimension)`
fn over(env: &mut Env, name: &str, args: &[Value], reduce: Reduce) -> Result<Value> {
    if let [Value::Matrix(matrix), dimension] = args
        && !matches!(dimension, Value::Matrix(_))
    {
        let dimension = dimension_of(name, dimension, matrix)?;
        return along(env, matrix, dimension, &reduce);
    }
    if args.len() > 1 && args.iter().any(|arg| matches!(arg, Value::Matrix(_))) {
        return Err(MathError::arguments(format!(
            "Scalar values expected in function {name}"
        )));
    }
    let values = flatten_args(env, args)?;
    if values.is_empty() {
        return Err(MathError::value(format!(
            "Cannot calculate {name} of an empty array"
        )));
    }
    reduce(env, &values)
}

/// Dimensions count from one.
pub(crate) fn dimension_of(name: &str, value: &Value, matrix: &Matrix) -> Result<usize> {
    let dimension = whole(name, value)?;
    if dimension < 1 || dimension as usize > matrix.size.len() {
        return Err(MathError::dimensions(format!(
            "Index out of range ({dimension} > {})",
            matrix.size.len()
        )));
    }
    Ok(dimension as usize - 1)
}

/// Reduces every line along one dimension to one value.
pub(crate) fn along(
    env: &mut Env,
    matrix: &Matrix,
    dimension: usize,
    mut reduce: impl FnMut(&mut Env, &[Value]) -> Result<Value>,
) -> Result<Value> {
    let inner = cell_count(&matrix.size[dimension + 1..]);
    let outer = cell_count(&matrix.size[..dimension]);
    let length = matrix.size[dimension];
    env.purse.pay_cells(matrix.cells.len())?;
    let mut cells = Vec::with_capacity(outer * inner);
    for o in 0..outer {
        for i in 0..inner {
            let line: Vec<Value> = (0..length)
                .map(|k| matrix.cells[(o * length + k) * inner + i].clone())
                .collect();
            cells.push(reduce(env, &line)?);
        }
    }
    let mut size = matrix.size.clone();
    size.remove(dimension);
    if size.is_empty() {
        return cells
            .pop()
            .ok_or_else(|| MathError::dimensions("Empty matrix"));
    }
    if cells.iter().any(|cell| matches!(cell, Value::Matrix(_))) {
        let stacked = Matrix::stack(env, matrix.kind, cells)?;
        return Ok(stacked.into());
    }
    Ok(Matrix {
        kind: matrix.kind,
        size,
        cells,
    }
    .into())
}

fn extreme(
    env: &mut Env,
    name: &str,
    values: &[Value],
    wanted: std::cmp::Ordering,
) -> Result<Value> {
    let mut best: Option<Value> = None;
    for value in values {
        env.purse.pay(1)?;
        let is_nan = matches!(value, Value::Num(x) if x.is_nan());
        if is_nan {
            return Ok(Value::Num(f64::NAN));
        }
        let better = match &best {
            None => true,
            Some(best) => order(env, name, value, best)? == Some(wanted),
        };
        if better {
            best = Some(value.clone());
        }
    }
    match best {
        Some(Value::Text(text)) => simple(name, &Value::Text(text), 0),
        Some(Value::Complex(z)) => Err(wrong_type(name, &Value::Complex(z), 0)),
        Some(value) => Ok(value),
        None => Err(MathError::value(format!(
            "Cannot calculate {name} of an empty array"
        ))),
    }
}

fn max(env: &mut Env, values: &[Value]) -> Result<Value> {
    extreme(env, "max", values, std::cmp::Ordering::Greater)
}

fn min(env: &mut Env, values: &[Value]) -> Result<Value> {
    extreme(env, "min", values, std::cmp::Ordering::Less)
}

pub(crate) fn sum(env: &mut Env, values: &[Value]) -> Result<Value> {
    let mut total: Option<Value> = None;
    for value in values {
        env.purse.pay(1)?;
        total = Some(match total {
            Some(total) => add_scalar(env, &total, value)?,
            None => numeric(value)?,
        });
    }
    Ok(total.unwrap_or(Value::Num(0.0)))
}

fn numeric(value: &Value) -> Result<Value> {
    match value {
        Value::Unit(_) => Ok(value.clone()),
        other => simple("sum", other, 0),
    }
}

pub(crate) fn prod(env: &mut Env, values: &[Value]) -> Result<Value> {
    let mut total: Option<Value> = None;
    for value in values {
        env.purse.pay(1)?;
        total = Some(match total {
            Some(total) => multiply_scalar(env, &total, value)?,
            None => numeric(value)?,
        });
    }
    Ok(total.unwrap_or(Value::Num(1.0)))
}

pub(crate) fn mean(env: &mut Env, values: &[Value]) -> Result<Value> {
    let total = sum(env, values)?;
    divide_scalar(env, &total, &Value::Num(values.len() as f64))
}

fn median(env: &mut Env, values: &[Value]) -> Result<Value> {
    if values.is_empty() {
        return Err(MathError::value(
            "Cannot calculate median of an empty array",
        ));
    }
    let ordered = sorted(env, values.to_vec(), |env, a, b| {
        Ok(order(env, "median", a, b)?.unwrap_or(std::cmp::Ordering::Equal))
    })?;
    let middle = ordered.len() / 2;
    if ordered.len() % 2 == 1 {
        return Ok(ordered[middle].clone());
    }
    let total = add_scalar(env, &ordered[middle - 1], &ordered[middle])?;
    divide_scalar(env, &total, &Value::Num(2.0))
}

fn mode(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = flatten_args(env, args)?;
    if values.is_empty() {
        return Err(MathError::value("Cannot calculate mode of an empty array"));
    }
    let mut counts: Vec<(Value, usize)> = Vec::new();
    for value in values {
        env.purse.pay(counts.len() as u64 + 1)?;
        let mut found = None;
        for (at, (known, _)) in counts.iter().enumerate() {
            if matches!((known, &value), (Value::Text(a), Value::Text(b)) if a == b)
                || equal_scalar(env, known, &value).unwrap_or(false)
            {
                found = Some(at);
                break;
            }
        }
        match found {
            Some(at) => counts[at].1 += 1,
            None => counts.push((value, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    Ok(Matrix::array(
        counts
            .into_iter()
            .filter(|(_, count)| *count == most)
            .map(|(value, _)| value)
            .collect(),
    )
    .into())
}

fn mad(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = flatten_args(env, args)?;
    let center = median(env, &values)?;
    let mut distances = Vec::with_capacity(values.len());
    for value in &values {
        let difference = subtract_scalar(env, value, &center)?;
        distances.push(abs(env, &difference)?);
    }
    median(env, &distances)
}

type Spread = fn(&mut Env, &[Value], &str) -> Result<Value>;

/// `std(values)`, `std(values, "biased")`, `std(matrix, dimension, "biased")`
fn spread(env: &mut Env, name: &str, args: &[Value], measure: Spread) -> Result<Value> {
    let (args, kind) = match args {
        [head @ .., Value::Text(kind)] if !head.is_empty() => (head, kind.to_string()),
        args => (args, "unbiased".into()),
    };
    if let [Value::Matrix(matrix), dimension] = args
        && !matches!(dimension, Value::Matrix(_))
    {
        let dimension = dimension_of(name, dimension, matrix)?;
        return along(env, matrix, dimension, |env, line| {
            measure(env, line, &kind)
        });
    }
    let values = flatten_args(env, args)?;
    if values.is_empty() {
        return Err(MathError::value(format!(
            "Cannot calculate {name} of an empty array"
        )));
    }
    measure(env, &values, &kind)
}

fn variance(env: &mut Env, values: &[Value], kind: &str) -> Result<Value> {
    let center = mean(env, values)?;
    let mut total: Option<Value> = None;
    for value in values {
        let difference = subtract_scalar(env, value, &center)?;
        let size = abs(env, &difference)?;
        let square = multiply_scalar(env, &size, &size)?;
        total = Some(match total {
            Some(total) => add_scalar(env, &total, &square)?,
            None => square,
        });
    }
    let total = total.unwrap_or(Value::Num(0.0));
    let count = values.len() as f64;
    let divisor = match kind {
        "unbiased" => count - 1.0,
        "uncorrected" => count,
        "biased" => count + 1.0,
        other => {
            return Err(MathError::value(format!(
                "Unknown normalization \"{other}\". Choose \"unbiased\" (default), \"uncorrected\", or \"biased\"."
            )));
        }
    };
    if divisor == 0.0 {
        // One value alone has no spread.
        return Ok(Value::Num(0.0));
    }
    divide_scalar(env, &total, &Value::Num(divisor))
}

fn cumsum(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (matrix, dimension) = match args {
        [Value::Matrix(matrix)] => ((**matrix).clone(), 0),
        [Value::Matrix(matrix), dimension] => (
            (**matrix).clone(),
            dimension_of("cumsum", dimension, matrix)?,
        ),
        scalars => (
            Matrix::array(scalars.to_vec()).of_kind(MatrixKind::Array),
            0,
        ),
    };
    let mut cells = matrix.cells.clone();
    env.purse.pay_cells(cells.len())?;
    let inner = cell_count(&matrix.size[dimension + 1..]);
    let length = matrix.size[dimension];
    for at in 0..cells.len() {
        if !(at / inner).is_multiple_of(length) {
            cells[at] = add(env, &cells[at - inner], &cells[at])?;
        }
    }
    Ok(Matrix { cells, ..matrix }.into())
}

fn corr(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (Value::Matrix(a), Value::Matrix(b)) = (&args[0], &args[1]) else {
        return Err(wrong_type("corr", &args[0], 0));
    };
    if a.size != b.size {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != {})",
            a.size_text(),
            b.size_text()
        )));
    }
    if a.size.len() == 1 {
        return pearson(env, &a.cells, &b.cells);
    }
    let columns = a.columns();
    let mut cells = Vec::new();
    for (x, y) in a.cells.chunks(columns).zip(b.cells.chunks(columns)) {
        cells.push(pearson(env, x, y)?);
    }
    Ok(Matrix::vector(cells).of_kind(a.kind).into())
}

fn pearson(env: &mut Env, x: &[Value], y: &[Value]) -> Result<Value> {
    env.purse.pay(x.len() as u64)?;
    let numbers = |values: &[Value]| -> Result<Vec<f64>> {
        values
            .iter()
            .map(|value| simple("corr", value, 0).map(|value| to_f64(&value)))
            .collect()
    };
    let (x, y) = (numbers(x)?, numbers(y)?);
    let n = x.len() as f64;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (sum_x, sum_y) = (x.iter().sum::<f64>(), y.iter().sum::<f64>());
    let above = n * dot(&x, &y) - sum_x * sum_y;
    let below = ((n * dot(&x, &x) - sum_x * sum_x) * (n * dot(&y, &y) - sum_y * sum_y)).sqrt();
    Ok(Value::Num(above / below))
}
