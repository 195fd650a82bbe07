//! Functions of scalars, applied to every cell of matrices.

use crate::error::{MathError, Result};
use crate::refusals::{is_zero_cell, unsupported};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::matrix::{Matrix, MatrixKind, broadcast_index, broadcast_size, cell_count};

pub(crate) type Scalar1 = fn(&mut Env, &Value) -> Result<Value>;
pub(crate) type Scalar2 = fn(&mut Env, &Value, &Value) -> Result<Value>;

pub(crate) fn each(
    env: &mut Env,
    value: &Value,
    apply: impl Fn(&mut Env, &Value) -> Result<Value> + Copy,
) -> Result<Value> {
    match value {
        Value::Matrix(matrix) => {
            env.purse.pay_cells(matrix.cells.len())?;
            env.descend()?;
            let cells: Result<Vec<Value>> = matrix
                .cells
                .iter()
                .map(|cell| each_inner(env, cell, apply))
                .collect();
            env.ascend();
            Ok(Matrix {
                kind: matrix.kind,
                size: matrix.size.clone(),
                cells: cells?,
            }
            .into())
        }
        scalar => apply(env, scalar),
    }
}

/// Arrays whose rows differ in length hold matrices in their cells.
fn each_inner(
    env: &mut Env,
    cell: &Value,
    apply: impl Fn(&mut Env, &Value) -> Result<Value> + Copy,
) -> Result<Value> {
    if matches!(cell, Value::Matrix(_)) {
        let dynamic: &dyn Fn(&mut Env, &Value) -> Result<Value> = &apply;
        return each_dynamic(env, cell, dynamic);
    }
    apply(env, cell)
}

fn each_dynamic(
    env: &mut Env,
    value: &Value,
    apply: &dyn Fn(&mut Env, &Value) -> Result<Value>,
) -> Result<Value> {
    let Value::Matrix(matrix) = value else {
        return apply(env, value);
    };
    env.purse.pay_cells(matrix.cells.len())?;
    env.descend()?;
    let cells: Result<Vec<Value>> = matrix
        .cells
        .iter()
        .map(|cell| each_dynamic(env, cell, apply))
        .collect();
    env.ascend();
    Ok(Matrix {
        kind: matrix.kind,
        size: matrix.size.clone(),
        cells: cells?,
    }
    .into())
}

/// The same for what mathjs applies only to the stored cells of a sparse matrix on the left: its zeros must stay zeros.
pub(crate) fn keeping_zeros(
    env: &mut Env,
    function: &str,
    a: &Value,
    b: &Value,
    apply: Scalar2,
) -> Result<Value> {
    if let Value::Matrix(matrix) = a
        && matrix.kind == MatrixKind::Sparse
        && !matches!(b, Value::Matrix(_))
        && let Some(zero) = matrix.cells.iter().find(|cell| is_zero_cell(cell))
        && !is_zero_cell(&apply(env, zero, b)?)
    {
        return Err(zeros_would_change(function));
    }
    both(env, a, b, apply)
}

pub(crate) fn zeros_would_change(function: &str) -> MathError {
    unsupported(
        function,
        "a sparse matrix whose zeros would become other numbers; make it dense first: matrix(A, \"dense\")",
    )
}

/// Combines two values cell by cell; dimensions of length one, and scalars, are stretched.
pub(crate) fn both(env: &mut Env, a: &Value, b: &Value, apply: Scalar2) -> Result<Value> {
    match (a, b) {
        (Value::Matrix(a), Value::Matrix(b)) => {
            let kind = a.kind.with(b.kind);
            if a.size == b.size {
                env.purse.pay_cells(a.cells.len())?;
                env.descend()?;
                let cells: Result<Vec<Value>> = a
                    .cells
                    .iter()
                    .zip(&b.cells)
                    .map(|(a, b)| both(env, a, b, apply))
                    .collect();
                env.ascend();
                return Ok(Matrix {
                    kind,
                    size: a.size.clone(),
                    cells: cells?,
                }
                .into());
            }
            let size = broadcast_size(&a.size, &b.size)?;
            let count = cell_count(&size);
            env.purse.pay_cells(count)?;
            let mut cells = Vec::with_capacity(count);
            for at in 0..count {
                let left = &a.cells[broadcast_index(at, &size, &a.size)];
                let right = &b.cells[broadcast_index(at, &size, &b.size)];
                cells.push(apply(env, left, right)?);
            }
            Ok(Matrix { kind, size, cells }.into())
        }
        (Value::Matrix(_), scalar) => {
            let scalar = scalar.clone();
            each(env, a, |env, cell| apply(env, cell, &scalar))
        }
        (scalar, Value::Matrix(_)) => {
            let scalar = scalar.clone();
            each(env, b, |env, cell| apply(env, &scalar, cell))
        }
        (a, b) => apply(env, a, b),
    }
}
