//! Sums, means, extremes, deviations; along one dimension or over everything.

use std::collections::HashMap;

use crate::convert::{simple, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::format::write_value;
use crate::functions::arithmetic::sqrt_scalar;
use crate::functions::sorting::sorted;
use crate::functions::utils::is_nan;
use crate::number::decimal::Decimal;
use crate::number::digits::Style;
use crate::ops::arithmetic::{
    abs, add, add_scalar, divide_scalar, multiply_scalar, plus, subtract_scalar,
};
use crate::ops::compare::order;
use crate::refusals::unsupported;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::{ANY_NUMBER, Builtin};
use crate::value::matrix::{Matrix, MatrixKind, cell_count};

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
        if matches!(args, [Value::Matrix(_), dimension] if !matches!(dimension, Value::Matrix(_))) {
            return Err(MathError::unsupported(
                "median(A, dim) is not yet supported",
            ));
        }
        let values = one_list(env, "median", args)?;
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
                // Such a list is what `lsolveAll` gives: its parts are matrices of their own.
                let is_own = |cell: &Value| matches!(cell, Value::Matrix(inner) if inner.kind != MatrixKind::Array);
                if matrix.kind == MatrixKind::Array && matrix.cells.iter().any(is_own) {
                    return Err(MathError::arguments(
                        "A list of matrices is no list of numbers: take one of them, such as x[1]",
                    ));
                }
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
        if name == "prod" {
            return Err(MathError::unsupported("prod(A, dim) is not yet supported"));
        }
        let dimension = reduced_dimension(name, dimension, matrix)?;
        return along(env, matrix, dimension, &reduce);
    }
    let values = one_list(env, name, args)?;
    if values.is_empty() && name != "sum" {
        return Err(MathError::value(format!(
            "Cannot calculate {name} of an empty array"
        )));
    }
    reduce(env, &values)
}

/// The values of one matrix, or the scalars that were given one by one.
fn one_list(env: &mut Env, name: &str, args: &[Value]) -> Result<Vec<Value>> {
    if args.len() > 1 && args.iter().any(|arg| matches!(arg, Value::Matrix(_))) {
        return Err(MathError::arguments(format!(
            "Scalar values expected in function {name}"
        )));
    }
    flatten_args(env, args)
}

/// A dimension that falls away; of a vector nothing would be left.
fn reduced_dimension(name: &str, value: &Value, matrix: &Matrix) -> Result<usize> {
    if !matches!(value, Value::Num(_) | Value::Big(_)) {
        return Err(wrong_type(name, value, 1));
    }
    if matrix.size.len() == 1 {
        return Err(MathError::dimensions(format!(
            "A vector has no dimension that function {name} can leave over: leave the dimension out"
        )));
    }
    dimension_of(name, value, matrix)
}

/// Dimensions count from one.
pub(crate) fn dimension_of(name: &str, value: &Value, matrix: &Matrix) -> Result<usize> {
    if !matches!(value, Value::Num(_) | Value::Big(_) | Value::Int(_)) {
        return Err(wrong_type(name, value, 1));
    }
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
        if matches!(value, Value::Complex(_)) {
            return Err(MathError::arguments(format!(
                "Cannot calculate {name}, no ordering relation is defined for complex numbers"
            )));
        }
        // What is no number is neither larger nor smaller, and no other takes its place.
        let better = is_nan(value)?
            || match &best {
                None => true,
                Some(best) => order(env, "larger", value, best)? == Some(wanted),
            };
        if better {
            best = Some(value.clone());
        }
    }
    match best {
        Some(text @ Value::Text(_)) => simple(name, &text, 0),
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

/// Folds values from the first on; a text alone becomes a number.
fn fold(
    env: &mut Env,
    name: &str,
    values: &[Value],
    apply: crate::broadcast::Scalar2,
) -> Result<Option<Value>> {
    let mut total: Option<Value> = None;
    for value in values {
        env.purse.pay(1)?;
        total = Some(match total {
            Some(total) => apply(env, &total, value)?,
            None => match value {
                Value::Unit(_) | Value::Bool(_) | Value::Text(_) => value.clone(),
                other => simple(name, other, 0)?,
            },
        });
    }
    match total {
        Some(text @ Value::Text(_)) => simple(name, &text, 0).map(Some),
        total => Ok(total),
    }
}

pub(crate) fn sum(env: &mut Env, values: &[Value]) -> Result<Value> {
    Ok(fold(env, "sum", values, add_scalar)?.unwrap_or(Value::Num(0.0)))
}

pub(crate) fn prod(env: &mut Env, values: &[Value]) -> Result<Value> {
    Ok(fold(env, "prod", values, multiply_scalar)?.unwrap_or(Value::Num(1.0)))
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
    let values: Result<Vec<Value>> = values.iter().map(median_kind).collect();
    let values = values?;
    for value in &values {
        if is_nan(value)? {
            if matches!(value, Value::Unit(_)) {
                return Err(unsupported("median", "quantities that are NaN"));
            }
            let is_big = |value: &Value| matches!(value, Value::Big(_));
            let is_even = values.len().is_multiple_of(2);
            return Ok(
                if is_big(value) || (is_even && values[..values.len() / 2].iter().any(is_big)) {
                    Value::big(Decimal::Nan)
                } else {
                    Value::Num(f64::NAN)
                },
            );
        }
        if matches!(value, Value::Complex(_)) {
            return Err(MathError::arguments(
                "Cannot calculate median, no ordering relation is defined for complex numbers",
            ));
        }
    }
    let ordered = sorted(env, values, |env, a, b| {
        // What is nearly equal has an order, too.
        if let (Value::Num(a), Value::Num(b)) = (a, b) {
            return Ok(a.total_cmp(b));
        }
        Ok(order(env, "compare", a, b)?.unwrap_or(std::cmp::Ordering::Equal))
    })?;
    let middle = ordered.len() / 2;
    if ordered.len() % 2 == 1 {
        return Ok(ordered[middle].clone());
    }
    let total = add_scalar(env, &ordered[middle - 1], &ordered[middle])?;
    divide_scalar(env, &total, &Value::Num(2.0))
}

/// Median takes numbers, big numbers and units; others become numbers where they can.
fn median_kind(value: &Value) -> Result<Value> {
    match value {
        quantity @ Value::Unit(_) => Ok(quantity.clone()),
        other => simple("sqrt", other, 0),
    }
}

fn mode(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = one_list(env, "mode", args)?;
    if values.is_empty() {
        return Err(MathError::value("Cannot calculate mode of an empty array"));
    }
    let mut counts: HashMap<String, usize, foldhash::fast::RandomState> = HashMap::default();
    let (mut modes, mut most) = (Vec::new(), 0);
    for value in values {
        env.purse.pay(2)?;
        let is_number = !matches!(
            value,
            Value::Text(_) | Value::Unit(_) | Value::Complex(_) | Value::Null | Value::Undefined
        );
        if is_number && is_nan(&value)? {
            return Err(MathError::value(
                "Cannot calculate mode of an array containing NaN values",
            ));
        }
        let text = match &value {
            Value::Text(text) => text.to_string(),
            Value::Frac(n) => n.write_decimal(),
            other => write_value(env, other, &Style::EXACT)?,
        };
        let count = counts.entry(text).or_default();
        *count += 1;
        if *count > most {
            most = *count;
            modes.clear();
        }
        if *count == most {
            modes.push(value);
        }
    }
    Ok(Matrix::array(modes).into())
}

fn mad(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = one_list(env, "mad", args)?;
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
        [head @ .., Value::Text(kind)]
            if matches!(head, [Value::Matrix(_)] | [Value::Matrix(_), _]) =>
        {
            (head, kind.to_string())
        }
        args => (args, "unbiased".into()),
    };
    if let [Value::Matrix(matrix), dimension] = args
        && !matches!(dimension, Value::Matrix(_))
    {
        let dimension = reduced_dimension(name, dimension, matrix)?;
        return along(env, matrix, dimension, |env, line| {
            measure(env, line, &kind)
        });
    }
    let values = one_list(env, name, args)?;
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
        let square = multiply_scalar(env, &difference, &difference)?;
        total = Some(match total {
            Some(total) => add_scalar(env, &total, &square)?,
            None => square,
        });
    }
    let total = total.unwrap_or(Value::Num(0.0));
    if is_nan(&total)? {
        return Ok(total);
    }
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
        return Ok(match total {
            Value::Big(_) => Value::big(Decimal::zero()),
            _ => Value::Num(0.0),
        });
    }
    divide_scalar(env, &total, &Value::Num(divisor))
}

fn cumsum_dimension(value: &Value, matrix: &Matrix) -> Result<usize> {
    match value {
        Value::Num(_) | Value::Big(_) => dimension_of("cumsum", value, matrix),
        other => Err(wrong_type("cumsum", other, 1)),
    }
}

fn cumsum(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (matrix, dimension) = match args {
        [Value::Matrix(matrix)] => ((**matrix).clone(), 0),
        [Value::Matrix(matrix), dimension] => {
            ((**matrix).clone(), cumsum_dimension(dimension, matrix)?)
        }
        scalars => {
            let values = one_list(env, "cumsum", scalars)?;
            (Matrix::array(values).of_kind(MatrixKind::Array), 0)
        }
    };
    if matrix.cells.is_empty() {
        return Ok(matrix.into());
    }
    let mut cells = matrix.cells.clone();
    env.purse.pay_cells(cells.len())?;
    let inner = cell_count(&matrix.size[dimension + 1..]);
    let length = matrix.size[dimension];
    for at in 0..cells.len() {
        if (at / inner).is_multiple_of(length) {
            cells[at] = plus(env, &cells[at])?;
        }
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
    let n = Value::Num(x.len() as f64);
    let dot = |env: &mut Env, a: &[Value], b: &[Value]| -> Result<Value> {
        let mut products = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            products.push(multiply_scalar(env, a, b)?);
        }
        sum(env, &products)
    };
    // n·Σab − Σa·Σb
    let spread = |env: &mut Env, a: &[Value], b: &[Value]| -> Result<Value> {
        let products = dot(env, a, b)?;
        let left = multiply_scalar(env, &n, &products)?;
        let (sum_a, sum_b) = (sum(env, a)?, sum(env, b)?);
        let right = multiply_scalar(env, &sum_a, &sum_b)?;
        subtract_scalar(env, &left, &right)
    };
    let above = spread(env, x, y)?;
    let (own, other) = (spread(env, x, x)?, spread(env, y, y)?);
    let below = multiply_scalar(env, &own, &other)?;
    let below = sqrt_scalar(env, &below)?;
    divide_scalar(env, &above, &below)
}
