//! Comparisons under their names, and the orders mathjs knows.

use std::cmp::Ordering;

use crate::broadcast::both;
use crate::convert::{to_f64, wrong_type};
use crate::error::Result;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::ops::compare::{self, equal_scalar, order, sign_of};
use crate::refusals::{is_zero_cell, unsupported};
use crate::signatures;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("compare", 2..=2, compare),
    Builtin::new("compareNatural", 2..=2, |env, args| {
        Ok(Value::Num(sign_of(Some(natural(env, &args[0], &args[1])?))))
    }),
    Builtin::new("compareText", 2..=2, |env, args| {
        both(env, &args[0], &args[1], compare_text)
    }),
    Builtin::new("deepEqual", 2..=2, |env, args| {
        Ok(Value::Bool(deep_equal(env, &args[0], &args[1])?))
    }),
    Builtin::new("equal", 2..=2, |env, args| {
        compare::equal(env, &args[0], &args[1])
    }),
    Builtin::new("equalScalar", 2..=2, |env, args| {
        compare::equal_scalar(env, &args[0], &args[1]).map(Value::Bool)
    }),
    Builtin::new("equalText", 2..=2, equal_text),
    Builtin::new("larger", 2..=2, |env, args| {
        compare::larger(env, &args[0], &args[1])
    }),
    Builtin::new("largerEq", 2..=2, |env, args| {
        compare::larger_eq(env, &args[0], &args[1])
    }),
    Builtin::new("smaller", 2..=2, |env, args| {
        compare::smaller(env, &args[0], &args[1])
    }),
    Builtin::new("smallerEq", 2..=2, |env, args| {
        compare::smaller_eq(env, &args[0], &args[1])
    }),
    Builtin::new("unequal", 2..=2, |env, args| {
        compare::unequal(env, &args[0], &args[1])
    }),
];

pub(crate) fn compare(env: &mut Env, args: &[Value]) -> Result<Value> {
    both(env, &args[0], &args[1], compare_scalar)
}

/// -1, 0 or 1, in the kind of number that was compared.
fn compare_scalar(env: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    let order = order(env, "compare", a, b)?;
    let sign = order.map(|order| sign_of(Some(order)) as i64);
    Ok(match signatures::pair_targets("compare", a, b) {
        Some((b'b', _)) => Value::big(sign.map_or(Decimal::Nan, Decimal::integer)),
        Some((b'i', _)) => Value::int(sign.unwrap_or(0).into()),
        Some((b'f', _)) => Value::frac(Fraction::integer(sign.unwrap_or(0))),
        // What is no number is not larger.
        _ => Value::Num(sign.map_or(-1.0, |sign| sign as f64)),
    })
}

fn text_order(a: &Value, b: &Value) -> Result<Ordering> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(a.encode_utf16().cmp(b.encode_utf16())),
        (Value::Text(_), other) => Err(wrong_type("compareText", other, 1)),
        (other, _) => Err(wrong_type("compareText", other, 0)),
    }
}

pub(crate) fn compare_text(_: &mut Env, a: &Value, b: &Value) -> Result<Value> {
    Ok(Value::Num(sign_of(Some(text_order(a, b)?))))
}

fn equal_text(env: &mut Env, args: &[Value]) -> Result<Value> {
    both(env, &args[0], &args[1], |_, a, b| {
        Ok(Value::Bool(text_order(a, b)? == Ordering::Equal))
    })
}

pub(crate) fn deep_equal(env: &mut Env, a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Matrix(a), Value::Matrix(b)) => {
            if a.size != b.size {
                return Ok(false);
            }
            env.purse.pay(a.cells.len() as u64)?;
            for (a, b) in a.cells.iter().zip(&b.cells) {
                if !deep_equal(env, a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Matrix(_), _) | (_, Value::Matrix(_)) => Ok(false),
        _ => equal_scalar(env, a, b),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Num(_) | Value::Int(_) | Value::Big(_) | Value::Frac(_) => 0,
        _ => 1,
    }
}

/// An order over everything: kinds by name, numbers by size, texts so that "2" comes before "10".
pub(crate) fn natural(env: &mut Env, a: &Value, b: &Value) -> Result<Ordering> {
    env.purse.pay(1)?;
    if rank(a) == 0 && rank(b) == 0 {
        // What is no number is not larger than any.
        let by_size = order(env, "compare", a, b)?.unwrap_or(Ordering::Less);
        return Ok(if by_size == Ordering::Equal {
            natural_text(a.type_name(), b.type_name())
        } else {
            by_size
        });
    }
    if let (Value::Matrix(matrix), other) | (other, Value::Matrix(matrix)) = (a, b)
        && matrix.kind == MatrixKind::Sparse
        && matches!(other, Value::Bool(_))
    {
        return Err(unsupported(
            "compareNatural",
            "a sparse matrix beside true or false",
        ));
    }
    Ok(match (a, b) {
        (Value::Matrix(_), _) | (_, Value::Matrix(_)) => {
            natural_matrices(env, a, b)?.then_with(|| natural_text(a.type_name(), b.type_name()))
        }
        (Value::Text(a), Value::Text(b)) => natural_text(a, b),
        (Value::Complex(a), Value::Complex(b)) => {
            let part = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
            part(a.re, b.re).then(part(a.im, b.im))
        }
        (Value::Unit(x), Value::Unit(y)) => {
            if x.same_base(y) {
                order(env, "compareNatural", a, b)?.unwrap_or(Ordering::Equal)
            } else {
                x.units_text().cmp(&y.units_text())
            }
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: (Vec<_>, Vec<_>) = (
                a.entries.keys().cloned().collect(),
                b.entries.keys().cloned().collect(),
            );
            keys.0.sort();
            keys.1.sort();
            let by_keys = keys.0.cmp(&keys.1);
            if by_keys != Ordering::Equal {
                return Ok(by_keys);
            }
            for key in &keys.0 {
                if let (Some(a), Some(b)) = (a.get(key), b.get(key)) {
                    let by_value = natural(env, a, b)?;
                    if by_value != Ordering::Equal {
                        return Ok(by_value);
                    }
                }
            }
            Ordering::Equal
        }
        (a, b) => natural_text(a.type_name(), b.type_name()),
    })
}

fn natural_matrices(env: &mut Env, a: &Value, b: &Value) -> Result<Ordering> {
    // Rows are arrays, whatever they were cut from.
    let items = |value: &Value| match value {
        Value::Matrix(matrix) => (**matrix).clone().of_kind(MatrixKind::Array).items(),
        other => vec![other.clone()],
    };
    let (left, right) = match (a, b) {
        (Value::Matrix(a), Value::Matrix(b))
            if a.kind == MatrixKind::Sparse && b.kind == MatrixKind::Sparse =>
        {
            (stored_cells(a), stored_cells(b))
        }
        _ => (items(a), items(b)),
    };
    for (a, b) in left.iter().zip(&right) {
        let order = natural(env, a, b)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(left.len().cmp(&right.len()))
}

/// What a sparse matrix stores: column by column, all but the zeros.
fn stored_cells(matrix: &Matrix) -> Vec<Value> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
    let cells = places.map(|(row, column)| matrix.at(row, column).clone());
    cells.filter(|cell| !is_zero_cell(cell)).collect()
}

/// Runs of digits count as numbers, and stand before letters; letters are ordered by their code.
pub(crate) fn natural_text(a: &str, b: &str) -> Ordering {
    let split = |text: &str| {
        let text = text.trim_matches(' ');
        // A text that is a number as a whole stays one part.
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'))
            && text.parse::<f64>().is_ok();
        let mut parts: Vec<String> = Vec::new();
        let mut was_digit = None;
        for c in text.chars() {
            let is_digit = is_number || c.is_ascii_digit();
            match parts.last_mut() {
                Some(part) if was_digit == Some(is_digit) => part.push(c),
                _ => parts.push(c.to_string()),
            }
            was_digit = Some(is_digit);
        }
        parts
    };
    let (left, right) = (split(a), split(b));
    for at in 0..left.len().max(right.len()) {
        // A part that is missing counts as zero.
        let part = |parts: &[String]| parts.get(at).cloned().unwrap_or_else(|| "0".into());
        let (a, b) = (part(&left), part(&right));
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| !x.is_nan());
        let order = match (number(&a), number(&b)) {
            (Some(x), Some(y)) if a.starts_with('0') == b.starts_with('0') => {
                x.partial_cmp(&y).unwrap_or(Ordering::Equal)
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            _ => a.encode_utf16().cmp(b.encode_utf16()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// For sorting: the sign a comparison function gave.
pub(crate) fn from_sign(value: &Value) -> Ordering {
    let x = to_f64(value);
    if x > 0.0 {
        Ordering::Greater
    } else if x < 0.0 {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}
