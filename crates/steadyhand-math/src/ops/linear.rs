//! Products, powers, determinants and inverses of matrices.

use super::arithmetic::{
    abs, add_scalar, divide_scalar, multiply_scalar, negate_scalar, subtract_scalar,
};
use super::compare::{equal_scalar, larger};
use crate::broadcast::zeros_would_change;
use crate::convert::to_f64;
use crate::error::{MathError, Result};
use crate::refusals::{is_not_finite, is_zero_cell};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::matrix::{Matrix, MatrixKind};

pub(crate) fn zero() -> Value {
    Value::Num(0.0)
}

pub(crate) fn is_zero(env: &mut Env, value: &Value) -> bool {
    equal_scalar(env, value, &zero()).unwrap_or(false)
}

/// The product: of vectors a number, of a matrix and a vector a vector.
pub(crate) fn multiply(env: &mut Env, a: &Matrix, b: &Matrix) -> Result<Value> {
    let mismatch = |text: String| Err(MathError::dimensions(text));
    let (left, right) = (a.size.as_slice(), b.size.as_slice());
    match (left, right) {
        ([n], [m]) if n != m => {
            return mismatch(format!(
                "Dimension mismatch in multiplication. Vectors must have the same length ({n} != {m})"
            ));
        }
        ([n], [m, _]) if n != m => {
            return mismatch(format!(
                "Dimension mismatch in multiplication. Vector length ({n}) must match Matrix rows ({m})"
            ));
        }
        ([_, n], [m]) if n != m => {
            return mismatch(format!(
                "Dimension mismatch in multiplication. Matrix columns ({n}) must match Vector length ({m})"
            ));
        }
        ([_, n], [m, _]) if n != m => {
            return mismatch(format!(
                "Dimension mismatch in multiplication. Matrix A columns ({n}) must match Matrix B rows ({m})"
            ));
        }
        ([_] | [_, _], [_] | [_, _]) => {}
        (a, b) => {
            let (a, b) = (a.len(), b.len());
            return mismatch(format!(
                "Can only multiply a 1 or 2 dimensional matrix (the matrices have {a} and {b} dimensions)"
            ));
        }
    }
    let (rows, inner) = if left.len() == 1 {
        (1, left[0])
    } else {
        (left[0], left[1])
    };
    let columns = if right.len() == 1 { 1 } else { right[1] };
    if inner == 0 {
        return mismatch("Cannot multiply two empty vectors".into());
    }
    env.purse.pay((rows * columns) as u64 * inner as u64)?;
    env.purse.pay_cells(rows * columns)?;
    let mut cells = Vec::with_capacity(rows * columns);
    let numbers = a
        .cells
        .iter()
        .chain(&b.cells)
        .all(|cell| matches!(cell, Value::Num(_)));
    for row in 0..rows {
        for column in 0..columns {
            let left = &a.cells[row * inner..(row + 1) * inner];
            if numbers {
                let sum = (0..inner)
                    .map(|k| to_f64(&left[k]) * to_f64(&b.cells[k * columns + column]))
                    .sum::<f64>();
                cells.push(Value::Num(sum));
                continue;
            }
            let mut sum = multiply_scalar(env, &left[0], &b.cells[column])?;
            for (k, cell) in left.iter().enumerate().skip(1) {
                let product = multiply_scalar(env, cell, &b.cells[k * columns + column])?;
                sum = add_scalar(env, &sum, &product)?;
            }
            cells.push(sum);
        }
    }
    for (sparse, other) in [(a, b), (b, a)] {
        if sparse.kind == MatrixKind::Sparse
            && sparse.cells.iter().any(is_zero_cell)
            && other.cells.iter().any(is_not_finite)
        {
            return Err(zeros_would_change("multiply"));
        }
    }
    let kind = a.kind.with(b.kind);
    let size = match (left.len(), right.len()) {
        (1, 1) => {
            return cells
                .pop()
                .ok_or_else(|| MathError::dimensions("Empty product"));
        }
        (1, _) => vec![columns],
        (_, 1) => vec![rows],
        _ => vec![rows, columns],
    };
    Ok(Matrix { kind, size, cells }.into())
}

pub(crate) fn product(env: &mut Env, a: &Matrix, b: &Matrix) -> Result<Matrix> {
    match multiply(env, a, b)? {
        Value::Matrix(matrix) => Ok((*matrix).clone()),
        other => Ok(Matrix::vector(vec![other])),
    }
}

pub(crate) fn identity(env: &mut Env, n: usize) -> Result<Matrix> {
    env.purse.pay_cells(n.saturating_mul(n))?;
    let cells = (0..n * n)
        .map(|at| Value::Num(if at / n == at % n { 1.0 } else { 0.0 }))
        .collect();
    Ok(Matrix::grid(n, n, cells))
}

pub(crate) fn power(env: &mut Env, matrix: &Matrix, exponent: i64) -> Result<Matrix> {
    if !matrix.is_square() {
        return Err(MathError::dimensions(format!(
            "For A^b, A must be a square matrix (size: {})",
            matrix.size_text()
        )));
    }
    let base = if exponent < 0 {
        inverse(env, matrix)?
    } else {
        matrix.clone()
    };
    let (mut result, mut base, mut n) = (
        identity(env, matrix.rows())?.of_kind(matrix.kind),
        base,
        exponent.unsigned_abs(),
    );
    while n > 0 {
        if n & 1 == 1 {
            result = product(env, &result, &base)?;
        }
        n >>= 1;
        if n > 0 {
            base = product(env, &base, &base)?;
        }
    }
    Ok(result)
}

fn cube_of(n: usize) -> u64 {
    let n = n as u64;
    n.saturating_mul(n).saturating_mul(n)
}

pub(crate) fn determinant(env: &mut Env, matrix: &Matrix) -> Result<Value> {
    let n = matrix.rows();
    env.purse.pay(cube_of(n))?;
    if n == 0 {
        return Ok(Value::Num(1.0));
    }
    if n == 2 {
        let main = multiply_scalar(env, matrix.at(0, 0), matrix.at(1, 1))?;
        let other = multiply_scalar(env, matrix.at(1, 0), matrix.at(0, 1))?;
        return subtract_scalar(env, &main, &other);
    }
    // Bareiss: divisions come out even, so whole numbers stay whole.
    let mut cells = matrix.cells.clone();
    let at = |row: usize, column: usize| row * n + column;
    let mut negated = false;
    for k in 0..n {
        if is_zero(env, &cells[at(k, k)]) {
            let Some(swap) = (k + 1..n).find(|row| !is_zero(env, &cells[at(*row, k)])) else {
                // A zero of the kind the cells have.
                let cell = matrix
                    .cells
                    .iter()
                    .find(|cell| !matches!(cell, Value::Num(_)))
                    .unwrap_or(&matrix.cells[0]);
                return multiply_scalar(env, cell, &zero());
            };
            for column in 0..n {
                cells.swap(at(k, column), at(swap, column));
            }
            negated = !negated;
        }
        let pivot = cells[at(k, k)].clone();
        let previous = if k == 0 {
            Value::Num(1.0)
        } else {
            cells[at(k - 1, k - 1)].clone()
        };
        for row in k + 1..n {
            for column in k + 1..n {
                let left = multiply_scalar(env, &cells[at(row, column)], &pivot)?;
                let right = multiply_scalar(env, &cells[at(row, k)], &cells[at(k, column)])?;
                let difference = subtract_scalar(env, &left, &right)?;
                cells[at(row, column)] = divide_scalar(env, &difference, &previous)?;
            }
        }
    }
    let last = cells[at(n - 1, n - 1)].clone();
    if negated {
        negate_scalar(env, &last)
    } else {
        Ok(last)
    }
}

pub(crate) fn inverse(env: &mut Env, matrix: &Matrix) -> Result<Matrix> {
    if matrix.size == [1] {
        let cell = divide_scalar(env, &Value::Num(1.0), &matrix.cells[0])?;
        return Ok(Matrix::vector(vec![cell]).of_kind(matrix.kind));
    }
    if !matrix.is_square() {
        return Err(MathError::dimensions(format!(
            "Matrix must be square (size: {})",
            matrix.size_text()
        )));
    }
    let n = matrix.rows();
    env.purse.pay(cube_of(n))?;
    if n == 2 {
        return inverse_of_two(env, matrix);
    }
    let (mut left, mut right) = (matrix.clone(), identity(env, n)?);
    for column in 0..n {
        let pivot = largest_below(env, &left, column)?;
        if is_zero(env, left.at(pivot, column)) {
            return Err(MathError::value(
                "Cannot calculate inverse, determinant is zero",
            ));
        }
        swap_rows(&mut left, column, pivot);
        swap_rows(&mut right, column, pivot);
        for row in (0..n).filter(|row| *row != column) {
            let factor = divide_scalar(env, left.at(row, column), left.at(column, column))?;
            eliminate(env, &mut left, row, column, &factor)?;
            eliminate(env, &mut right, row, column, &factor)?;
        }
        let pivot = left.at(column, column).clone();
        for other in 0..n {
            let at = column * n + other;
            left.cells[at] = divide_scalar(env, &left.cells[at], &pivot)?;
            right.cells[at] = divide_scalar(env, &right.cells[at], &pivot)?;
        }
    }
    Ok(right.of_kind(matrix.kind))
}

fn inverse_of_two(env: &mut Env, matrix: &Matrix) -> Result<Matrix> {
    let determinant = determinant(env, matrix)?;
    if is_exact_zero(&determinant) {
        return Err(MathError::value(
            "Cannot calculate inverse, determinant is zero",
        ));
    }
    let order = [
        (matrix.at(1, 1), false),
        (matrix.at(0, 1), true),
        (matrix.at(1, 0), true),
        (matrix.at(0, 0), false),
    ];
    let mut cells = Vec::with_capacity(4);
    for (cell, negate) in order {
        let cell = if negate {
            negate_scalar(env, cell)?
        } else {
            cell.clone()
        };
        cells.push(divide_scalar(env, &cell, &determinant)?);
    }
    Ok(Matrix::grid(2, 2, cells).of_kind(matrix.kind))
}

fn is_exact_zero(value: &Value) -> bool {
    match value {
        Value::Complex(z) => z.is_zero(),
        other => to_f64(other) == 0.0,
    }
}

/// The row at or below the diagonal with the largest entry in this column.
pub(crate) fn largest_below(env: &mut Env, matrix: &Matrix, column: usize) -> Result<usize> {
    let mut best = column;
    let mut best_size = abs(env, matrix.at(column, column))?;
    for row in column + 1..matrix.rows() {
        let size = abs(env, matrix.at(row, column))?;
        if matches!(larger(env, &size, &best_size)?, Value::Bool(true)) {
            (best, best_size) = (row, size);
        }
    }
    Ok(best)
}

pub(crate) fn swap_rows(matrix: &mut Matrix, a: usize, b: usize) {
    let columns = matrix.columns();
    if a != b {
        for column in 0..columns {
            matrix
                .cells
                .swap(a * columns + column, b * columns + column);
        }
    }
}

/// Subtracts a multiple of one row from another.
fn eliminate(
    env: &mut Env,
    matrix: &mut Matrix,
    row: usize,
    source: usize,
    factor: &Value,
) -> Result<()> {
    let columns = matrix.columns();
    for column in 0..columns {
        let part = multiply_scalar(env, factor, matrix.at(source, column))?;
        let at = row * columns + column;
        matrix.cells[at] = subtract_scalar(env, &matrix.cells[at], &part)?;
    }
    Ok(())
}
