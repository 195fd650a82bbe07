//! Other shapes of the same cells: flatten, reshape, resize, rows, columns, slices.

use crate::access;
use crate::convert::{length, simple, to_f64, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::construction::index_parts;
use crate::functions::linear::as_matrix;
use crate::functions::statistics::{along, dimension_of};
use crate::ops::arithmetic::subtract;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind, cell_count};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("flatten", 1..=1, flatten),
    Builtin::new("squeeze", 1..=1, squeeze),
    Builtin::new("reshape", 2..=2, reshape),
    Builtin::new("resize", 2..=3, resize),
    Builtin::new("row", 2..=2, |env, args| line(env, "row", args, 0)),
    Builtin::new("column", 2..=2, |env, args| line(env, "column", args, 1)),
    Builtin::new("subset", 2..=4, subset),
    Builtin::new("diff", 1..=2, diff),
    Builtin::new("mapSlices", 3..=3, map_slices),
    Builtin::new("apply", 3..=3, map_slices),
];

fn flatten(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("flatten", &args[0])?;
    if matrix.kind == MatrixKind::Sparse {
        return Err(MathError::dimensions(
            "SparseMatrix is not supported by function flatten because it does not support 1D vectors. Convert to a DenseMatrix first: flatten(matrix(x))",
        ));
    }
    let cells = crate::functions::statistics::flatten_args(env, args)?;
    Ok(Matrix::vector(cells).of_kind(matrix.kind).into())
}

fn squeeze(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return Ok(args[0].clone());
    };
    env.purse.pay_cells(matrix.cells.len())?;
    let size: Vec<usize> = matrix
        .size
        .iter()
        .copied()
        .filter(|length| *length != 1)
        .collect();
    if size.is_empty() {
        return matrix
            .cells
            .first()
            .cloned()
            .ok_or_else(|| MathError::dimensions("Empty matrix"));
    }
    Ok(Matrix {
        size,
        ..(**matrix).clone()
    }
    .into())
}

fn reshape(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("reshape", &args[0])?;
    let wanted: Result<Vec<i64>> = as_matrix("reshape", &args[1])?
        .cells
        .iter()
        .map(|cell| whole("reshape", cell))
        .collect();
    let wanted = wanted?;
    let total = matrix.cells.len();
    // One length may be left open as -1.
    let known: i64 = wanted
        .iter()
        .filter(|length| **length >= 0)
        .fold(1i64, |product, length| product.saturating_mul(*length));
    let open = wanted.iter().filter(|length| **length < 0).count();
    let size: Vec<usize> = wanted
        .iter()
        .map(|length| {
            usize::try_from(*length)
                .unwrap_or_else(|_| total.checked_div(known.max(0) as usize).unwrap_or(0))
        })
        .collect();
    if open > 1 || wanted.is_empty() || cell_count(&size) != total {
        let asked: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        return Err(MathError::dimensions(format!(
            "Could not reshape the {total} elements into [{}]",
            asked.join(", ")
        )));
    }
    env.purse.pay_cells(total)?;
    Ok(Matrix {
        size,
        ..matrix.clone()
    }
    .into())
}

fn resize(env: &mut Env, args: &[Value]) -> Result<Value> {
    let wanted = as_matrix("resize", &args[1])?;
    if wanted.size.len() != 1 {
        return Err(MathError::dimensions(
            "Invalid size, must contain positive integers in function resize",
        ));
    }
    let size: Result<Vec<usize>> = wanted
        .cells
        .iter()
        .map(|cell| match cell {
            Value::Num(_) => length("resize", cell),
            other => Err(wrong_type("resize", other, 1)),
        })
        .collect();
    let size = size?;
    if let Value::Text(text) = &args[0] {
        return resize_text(env, text, &size, args.get(2));
    }
    let zero = Value::Num(0.0);
    let filling = args.get(2).unwrap_or(&zero);
    if let Value::Matrix(_) = filling {
        return Err(wrong_type("resize", filling, 2));
    }
    let matrix = match &args[0] {
        Value::Matrix(matrix) => (**matrix).clone(),
        scalar => Matrix {
            kind: MatrixKind::Dense,
            size: vec![1; size.len()],
            cells: vec![scalar.clone()],
        },
    };
    if size.is_empty() {
        return Err(MathError::dimensions(
            "At least one dimension expected in function resize",
        ));
    }
    Ok(access::resized(env, &matrix, size, filling)?.into())
}

fn resize_text(
    env: &mut Env,
    text: &str,
    size: &[usize],
    filling: Option<&Value>,
) -> Result<Value> {
    let [length] = size else {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != 1)",
            size.len()
        )));
    };
    let letter = match filling {
        None => ' ',
        Some(Value::Text(letter)) if letter.chars().count() == 1 => {
            letter.chars().next().unwrap_or(' ')
        }
        Some(other) => return Err(wrong_type("resize", other, 2)),
    };
    env.purse
        .pay_text(length.saturating_mul(letter.len_utf8()).max(text.len()))?;
    Ok(Value::text(
        &text
            .chars()
            .chain(std::iter::repeat(letter))
            .take(*length)
            .collect::<String>(),
    ))
}

/// One row or column, kept as a matrix.
fn line(env: &mut Env, name: &str, args: &[Value], dimension: usize) -> Result<Value> {
    let matrix = as_matrix(name, &args[0])?;
    if matrix.size.len() != 2 {
        return Err(MathError::dimensions(
            "Only two dimensional matrix is supported",
        ));
    }
    let all = |length: usize| {
        Value::matrix(Matrix::vector(
            (1..=length).map(|at| Value::Num(at as f64)).collect(),
        ))
    };
    let chosen = Value::matrix(Matrix::vector(vec![simple(name, &args[1], 1)?]));
    let index = if dimension == 0 {
        [chosen, all(matrix.columns())]
    } else {
        [all(matrix.rows()), chosen]
    };
    access::get(env, &args[0], &index)
}

fn subset(env: &mut Env, args: &[Value]) -> Result<Value> {
    let index = match &args[1] {
        key @ Value::Text(_) => vec![key.clone()],
        other => index_parts(other).ok_or_else(|| wrong_type("subset", other, 1))?,
    };
    match args.get(2) {
        None => access::get(env, &args[0], &index),
        Some(value) => match (&args[0], args.get(3)) {
            (Value::Matrix(matrix), Some(filling)) => {
                access::set_cells(env, matrix, &index, value, filling)
            }
            _ => access::set(env, &args[0], &index, value),
        },
    }
}

fn diff(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("diff", &args[0])?;
    let dimension = match args.get(1) {
        Some(dimension) => dimension_of("diff", &Value::Num(to_f64(dimension)), matrix)?,
        None => 0,
    };
    let inner = cell_count(&matrix.size[dimension + 1..]);
    let length = matrix.size[dimension];
    env.purse.pay_cells(matrix.cells.len())?;
    let mut cells = Vec::with_capacity(matrix.cells.len());
    for (at, cell) in matrix.cells.iter().enumerate() {
        if at / inner.max(1) % length + 1 < length {
            cells.push(subtract(env, &matrix.cells[at + inner], cell)?);
        }
    }
    let mut size = matrix.size.clone();
    size[dimension] = length.saturating_sub(1);
    Ok(Matrix {
        kind: matrix.kind,
        size,
        cells,
    }
    .into())
}

fn map_slices(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("mapSlices", &args[0])?;
    let dimension = dimension_of("mapSlices", &args[1], matrix)?;
    let Value::Function(function) = &args[2] else {
        return Err(wrong_type("mapSlices", &args[2], 2));
    };
    let kind = matrix.kind;
    along(env, matrix, dimension, |env, line| {
        let slice = Matrix::vector(line.to_vec()).of_kind(kind);
        env.call_function(function, &[slice.into()])
    })
}
