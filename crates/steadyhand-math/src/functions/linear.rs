//! Linear algebra: products of vectors, and what a matrix has: its determinant, inverse and trace.

use crate::convert::{simple, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::complex::conj;
use crate::ops::arithmetic::{add_scalar, divide_scalar, multiply_scalar, subtract_scalar};
use crate::ops::linear::{determinant, inverse, zero};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::Matrix;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("det", 1..=1, det),
    Builtin::new("inv", 1..=1, inv),
    Builtin::new("dot", 2..=2, dot),
    Builtin::new("cross", 2..=2, cross),
    Builtin::new("kron", 2..=2, kron),
    Builtin::new("trace", 1..=1, trace),
];

pub(crate) fn as_matrix<'a>(function: &str, value: &'a Value) -> Result<&'a Matrix> {
    match value {
        Value::Matrix(matrix) => Ok(matrix),
        other => Err(wrong_type(function, other, 0)),
    }
}

pub(crate) fn square<'a>(function: &str, value: &'a Value) -> Result<&'a Matrix> {
    let matrix = as_matrix(function, value)?;
    if !matrix.is_square() {
        return Err(MathError::dimensions(format!(
            "Matrix must be square (size: {})",
            matrix.size_text()
        )));
    }
    Ok(matrix)
}

/// A number or quantity is a matrix of itself.
fn scalar_itself(function: &str, value: &Value) -> Result<Value> {
    match value {
        Value::Unit(_) | Value::Text(_) | Value::Bool(_) => Ok(value.clone()),
        other => simple(function, other, 0),
    }
}

fn det(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return scalar_itself("det", &args[0]);
    };
    if matrix.cells.is_empty() {
        return Ok(Value::Num(1.0));
    }
    if matrix.cells.len() == 1 && matrix.size.len() <= 2 {
        return Ok(matrix.cells[0].clone());
    }
    let matrix = square("det", &args[0])?;
    determinant(env, matrix)
}

fn inv(env: &mut Env, args: &[Value]) -> Result<Value> {
    match &args[0] {
        Value::Matrix(matrix) => Ok(inverse(env, matrix)?.into()),
        scalar => divide_scalar(env, &Value::Num(1.0), scalar),
    }
}

/// The cells of a vector, or of a matrix with one row or column.
pub(crate) fn vector(function: &str, value: &Value) -> Result<Vec<Value>> {
    let matrix = as_matrix(function, value)?;
    let long = matrix.size.iter().filter(|length| **length != 1).count();
    if long > 1 {
        return Err(MathError::dimensions(format!(
            "Expected a column vector, instead got a matrix of size ({})",
            matrix.size_text()
        )));
    }
    Ok(matrix.cells.clone())
}

fn dot(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (a, b) = (vector("dot", &args[0])?, vector("dot", &args[1])?);
    if a.len() != b.len() {
        return Err(MathError::dimensions(format!(
            "Vectors must have equal length ({} != {})",
            a.len(),
            b.len()
        )));
    }
    if a.is_empty() {
        return Err(MathError::dimensions(
            "Cannot calculate the dot product of empty vectors",
        ));
    }
    let mut sum: Option<Value> = None;
    for (a, b) in a.iter().zip(&b) {
        env.purse.pay(1)?;
        let a = conj(env, a)?;
        let product = multiply_scalar(env, &a, b)?;
        sum = Some(match sum {
            Some(sum) => add_scalar(env, &sum, &product)?,
            None => product,
        });
    }
    Ok(sum.unwrap_or_else(zero))
}

fn cross(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (a, b) = (vector("cross", &args[0])?, vector("cross", &args[1])?);
    let ([a0, a1, a2], [b0, b1, b2]) = (a.as_slice(), b.as_slice()) else {
        return Err(MathError::dimensions(format!(
            "Vectors with length 3 expected (Size A = [{}], B = [{}])",
            a.len(),
            b.len()
        )));
    };
    let mut cells = Vec::with_capacity(3);
    for (p, q, r, s) in [(a1, b2, a2, b1), (a2, b0, a0, b2), (a0, b1, a1, b0)] {
        let (left, right) = (multiply_scalar(env, p, q)?, multiply_scalar(env, r, s)?);
        cells.push(subtract_scalar(env, &left, &right)?);
    }
    let matrix = as_matrix("cross", &args[0])?;
    let other = as_matrix("cross", &args[1])?;
    let size = if matrix.size.len() > 1 || other.size.len() > 1 {
        vec![1, 3]
    } else {
        vec![3]
    };
    Ok(Matrix {
        kind: matrix.kind,
        size,
        cells,
    }
    .into())
}

fn kron(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (a, b) = (as_matrix("kron", &args[0])?, as_matrix("kron", &args[1])?);
    let as_rows = |matrix: &Matrix| {
        if matrix.size.len() == 1 {
            (1, matrix.size[0])
        } else {
            (matrix.rows(), matrix.columns())
        }
    };
    if a.size.len() > 2 || b.size.len() > 2 {
        return Err(MathError::dimensions(
            "Vector dimensions greater than 2 are not supported in function kron",
        ));
    }
    let ((m, n), (p, q)) = (as_rows(a), as_rows(b));
    let total = (m * p).saturating_mul(n * q);
    env.purse.pay_cells(total)?;
    let mut cells = Vec::with_capacity(total);
    for row in 0..m * p {
        for column in 0..n * q {
            let (left, right) = (
                &a.cells[row / p * n + column / q],
                &b.cells[row % p * q + column % q],
            );
            cells.push(multiply_scalar(env, left, right)?);
        }
    }
    let size = if a.size.len() == 1 && b.size.len() == 1 {
        vec![n * q]
    } else {
        vec![m * p, n * q]
    };
    Ok(Matrix {
        kind: a.kind.with(b.kind),
        size,
        cells,
    }
    .into())
}

fn trace(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return scalar_itself("trace", &args[0]);
    };
    if matrix.cells.len() == 1 && matrix.size.len() <= 2 {
        return Ok(matrix.cells[0].clone());
    }
    let matrix = square("trace", &args[0])?;
    let mut sum = zero();
    for at in 0..matrix.rows() {
        sum = add_scalar(env, &sum, matrix.at(at, at))?;
    }
    Ok(sum)
}
