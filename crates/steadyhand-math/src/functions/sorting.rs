//! Sorting, and what needs only part of it.

use std::cmp::Ordering;

use crate::convert::{simple, to_f64, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::relational::{from_sign, natural};
use crate::functions::statistics::{along, dimension_of};
use crate::number::decimal::Decimal;
use crate::ops::arithmetic::{add_scalar, multiply_scalar};
use crate::ops::compare::order;
use crate::refusals::is_nan;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::Matrix;
use crate::value::node::Node;

pub(crate) const TABLE: &[Builtin] = &[Builtin::new("sort", 1..=2, sort)];

/// Insertion into a sorted list by halving: a comparison may fail or be inconsistent, and neither may harm.
pub(crate) fn sorted(
    env: &mut Env,
    values: Vec<Value>,
    mut compare: impl FnMut(&mut Env, &Value, &Value) -> Result<Ordering>,
) -> Result<Vec<Value>> {
    merge_sort(env, values, &mut compare)
}

fn merge_sort(
    env: &mut Env,
    mut values: Vec<Value>,
    compare: &mut impl FnMut(&mut Env, &Value, &Value) -> Result<Ordering>,
) -> Result<Vec<Value>> {
    if values.len() < 2 {
        return Ok(values);
    }
    let right = values.split_off(values.len() / 2);
    let (left, right) = (
        merge_sort(env, values, compare)?,
        merge_sort(env, right, compare)?,
    );
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        env.purse.pay(1)?;
        let take_right = compare(env, a, b)? == Ordering::Greater;
        merged.extend(if take_right {
            right.next()
        } else {
            left.next()
        });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

/// "asc", "desc", "natural" or a function.
fn compare_with(env: &mut Env, how: Option<&Value>, a: &Value, b: &Value) -> Result<Ordering> {
    let ascending = |env: &mut Env| Ok(order(env, "compare", a, b)?.unwrap_or(Ordering::Equal));
    match how {
        None => ascending(env),
        Some(Value::Text(name)) => match &**name {
            "asc" => ascending(env),
            "desc" => ascending(env).map(Ordering::reverse),
            "natural" => natural(env, a, b),
            _ => Err(MathError::value(
                "String \"asc\", \"desc\", or \"natural\" expected",
            )),
        },
        Some(Value::Function(function)) => {
            let sign = env.call_function(function, &[a.clone(), b.clone()])?;
            Ok(from_sign(&sign))
        }
        Some(other) => Err(wrong_type("sort", other, 1)),
    }
}

fn sort(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return Err(wrong_type("sort", &args[0], 0));
    };
    if matrix.size.len() > 1 {
        return Err(MathError::dimensions("One dimensional array expected"));
    }
    env.purse.pay_cells(matrix.cells.len())?;
    let how = args.get(1);
    let cells = sorted(env, matrix.cells.clone(), |env, a, b| {
        compare_with(env, how, a, b)
    })?;
    Ok(Matrix {
        cells,
        ..(**matrix).clone()
    }
    .into())
}

/// `partitionSelect(x, k)` also leaves x in order, where x is a variable.
pub(crate) fn partition_select(env: &mut Env, args: &[Node]) -> Result<Value> {
    let [list, k, how @ ..] = args else {
        return Err(MathError::arguments(format!(
            "Too few arguments in function partitionSelect (expected: 2, actual: {})",
            args.len()
        )));
    };
    let value = env.eval(list)?;
    let Value::Matrix(matrix) = &value else {
        return Err(wrong_type("partitionSelect", &value, 0));
    };
    if matrix.size.len() > 1 {
        return Err(MathError::dimensions(
            "Only one dimensional matrices supported",
        ));
    }
    let k = env.eval(k)?;
    let position = whole("partitionSelect", &k)?;
    let how = how.first().map(|node| env.eval(node)).transpose()?;
    let is_inside = usize::try_from(position).is_ok_and(|at| at < matrix.cells.len());
    if let (true, Some(nan)) = (is_inside, nan_among(&matrix.cells)) {
        return Ok(nan);
    }
    let cells = sorted(env, matrix.cells.clone(), |env, a, b| {
        compare_with(env, how.as_ref(), a, b)
    })?;
    let chosen = usize::try_from(position)
        .ok()
        .and_then(|at| cells.get(at))
        .cloned();
    let chosen = chosen
        .ok_or_else(|| MathError::value("k must be a non-negative integer within the list"))?;
    if let Node::Symbol(name) = list {
        env.store(
            name,
            Matrix {
                cells,
                ..(**matrix).clone()
            }
            .into(),
        )?;
    }
    Ok(chosen)
}

/// What is no number leaves the others without an order: it is the answer. Quantities that are none are not.
fn nan_among(values: &[Value]) -> Option<Value> {
    let nan = |value: &&Value| is_nan(value) && !matches!(value, Value::Unit(_));
    values.iter().find(nan).cloned()
}

pub(crate) fn quantile_seq(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return Err(wrong_type("quantileSeq", &args[0], 0));
    };
    let (is_sorted, dimension) = match &args[2..] {
        [] => (false, None),
        [Value::Bool(is_sorted)] => (*is_sorted, None),
        [Value::Bool(is_sorted), dimension] => (*is_sorted, Some(dimension)),
        [dimension] => (false, Some(dimension)),
        [other, ..] => return Err(wrong_type("quantileSeq", other, 2)),
    };
    match dimension {
        Some(dimension) => {
            let dimension = dimension_of("quantileSeq", dimension, matrix)?;
            along(env, matrix, dimension, |env, line| {
                quantiles(env, line, &args[1], is_sorted)
            })
        }
        None => quantiles(env, &matrix.cells, &args[1], is_sorted),
    }
}

fn quantiles(env: &mut Env, values: &[Value], wanted: &Value, is_sorted: bool) -> Result<Value> {
    if values.is_empty() {
        return Err(MathError::value(
            "Cannot calculate quantile of an empty sequence",
        ));
    }
    env.purse.pay_cells(values.len())?;
    let ordered = if is_sorted {
        values.to_vec()
    } else if let Some(nan) = nan_among(values) {
        vec![nan; values.len()]
    } else {
        sorted(env, values.to_vec(), |env, a, b| {
            Ok(order(env, "quantileSeq", a, b)?.unwrap_or(Ordering::Equal))
        })?
    };
    if let Value::Matrix(list) = wanted {
        let cells: Result<Vec<Value>> = list
            .cells
            .iter()
            .map(|probability| quantile(env, &ordered, probability))
            .collect();
        return Ok(Matrix::array(cells?).into());
    }
    let probability = to_f64(&simple("quantileSeq", wanted, 1)?);
    if probability > 1.0 {
        // A whole number asks for that many cuts of equal weight.
        let cuts = whole("quantileSeq", wanted)?;
        env.purse.pay_cells(cuts as usize)?;
        let is_big = matches!(wanted, Value::Big(_));
        let precision = env.settings.precision;
        let shares = (1..=cuts).map(|cut| match is_big {
            true => {
                Value::big(Decimal::integer(cut).divide(&Decimal::integer(cuts + 1), precision))
            }
            false => Value::Num(cut as f64 / (cuts + 1) as f64),
        });
        let cells: Result<Vec<Value>> = shares
            .map(|share| quantile(env, &ordered, &share))
            .collect();
        return Ok(Matrix::array(cells?).into());
    }
    quantile(env, &ordered, wanted)
}

fn quantile(env: &mut Env, ordered: &[Value], probability: &Value) -> Result<Value> {
    let share = to_f64(&simple("quantileSeq", probability, 1)?);
    if !(0.0..=1.0).contains(&share) {
        return Err(MathError::value(
            "Probability must be between 0 and 1, inclusive",
        ));
    }
    if let Value::Big(share) = probability {
        let precision = env.settings.precision;
        let position = share.multiply(&Decimal::integer(ordered.len() as i64 - 1), precision);
        let whole = position.floor(0);
        let fraction = position.subtract(&whole, precision);
        let below = whole.to_f64() as usize;
        if fraction.is_zero() || below + 1 >= ordered.len() {
            return Ok(ordered[below.min(ordered.len() - 1)].clone());
        }
        let rest = Decimal::integer(1).subtract(&fraction, precision);
        let left = multiply_scalar(env, &ordered[below], &Value::big(rest))?;
        let right = multiply_scalar(env, &ordered[below + 1], &Value::big(fraction))?;
        return add_scalar(env, &left, &right);
    }
    let position = share * (ordered.len() - 1) as f64;
    let fraction = position % 1.0;
    let below = position.floor() as usize;
    if fraction == 0.0 || below + 1 >= ordered.len() {
        return Ok(ordered[below].clone());
    }
    let left = multiply_scalar(env, &ordered[below], &Value::Num(1.0 - fraction))?;
    let right = multiply_scalar(env, &ordered[below + 1], &Value::Num(fraction))?;
    add_scalar(env, &left, &right)
}
