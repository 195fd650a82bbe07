//! Factors of matrices, and equations solved with them.

use crate::convert::{to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::arithmetic::sqrt_scalar;
use crate::functions::complex::conj;
use crate::functions::linear::{as_matrix, square};
use crate::ops::arithmetic::{
    abs, add_scalar, divide_scalar, multiply_scalar, negate_scalar, subtract_scalar,
};
use crate::ops::linear::{identity, is_zero, largest_below, swap_rows, zero};
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::{Object, ObjectKind, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("lup", 1..=1, lup),
    Builtin::new("lusolve", 2..=4, lusolve),
    Builtin::new("lsolve", 2..=2, |env, args| {
        let (matrix, right) = system("lsolve", args)?;
        Ok(substitute(env, &matrix, right, Order::Down)?.into())
    }),
    Builtin::new("usolve", 2..=2, |env, args| {
        let (matrix, right) = system("usolve", args)?;
        Ok(substitute(env, &matrix, right, Order::Up)?.into())
    }),
    Builtin::new("lsolveAll", 2..=2, |env, args| {
        let (matrix, right) = system("lsolveAll", args)?;
        substitute_all(env, &matrix, right, Order::Down)
    }),
    Builtin::new("usolveAll", 2..=2, |env, args| {
        let (matrix, right) = system("usolveAll", args)?;
        substitute_all(env, &matrix, right, Order::Up)
    }),
    Builtin::new("qr", 1..=1, |env, args| {
        let (q, r) = qr(env, as_matrix("qr", &args[0])?)?;
        Ok(factors([("Q", q.into()), ("R", r.into())]))
    }),
    Builtin::new("slu", 3..=3, |_, _| {
        Err(MathError::unsupported(
            "Function slu is left out here; lup factors sparse matrices too",
        ))
    }),
];

fn factors<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::object(Object {
        kind: ObjectKind::Factors,
        ..Object::of(entries)
    })
}

/// A = P⁻¹LU, with the largest entry of each column on the diagonal of U.
struct Lup {
    lower: Matrix,
    upper: Matrix,
    order: Vec<usize>,
}

fn decompose(env: &mut Env, matrix: &Matrix) -> Result<Lup> {
    if matrix.size.len() != 2 {
        return Err(MathError::dimensions("Matrix must be two dimensional"));
    }
    let (rows, columns) = (matrix.rows(), matrix.columns());
    env.purse
        .pay((rows * columns) as u64 * rows.min(columns) as u64)?;
    let mut work = matrix.clone();
    let mut order: Vec<usize> = (0..rows).collect();
    for k in 0..rows.min(columns) {
        let pivot = largest_below(env, &work, k)?;
        swap_rows(&mut work, k, pivot);
        order.swap(k, pivot);
        if is_zero(env, work.at(k, k)) {
            continue;
        }
        for row in k + 1..rows {
            let factor = divide_scalar(env, work.at(row, k), work.at(k, k))?;
            for column in k + 1..columns {
                let part = multiply_scalar(env, &factor, work.at(k, column))?;
                work.cells[row * columns + column] =
                    subtract_scalar(env, work.at(row, column), &part)?;
            }
            work.cells[row * columns + k] = factor;
        }
    }
    let inner = rows.min(columns);
    let mut lower = Matrix::filled(env, matrix.kind, vec![rows, inner], &zero())?;
    let mut upper = Matrix::filled(env, matrix.kind, vec![inner, columns], &zero())?;
    for row in 0..rows {
        for column in 0..columns {
            let cell = work.at(row, column).clone();
            if row > column {
                lower.cells[row * inner + column] = cell;
            } else {
                upper.cells[row * columns + column] = cell;
            }
        }
        if row < inner {
            lower.cells[row * inner + row] = Value::Num(1.0);
        }
    }
    Ok(Lup {
        lower,
        upper,
        order,
    })
}

fn lup(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("lup", &args[0])?;
    let kind = if matrix.kind == MatrixKind::Sparse {
        MatrixKind::Dense
    } else {
        matrix.kind
    };
    let Lup {
        lower,
        upper,
        order,
    } = decompose(env, &matrix.clone().of_kind(kind))?;
    // P says where each row went.
    let mut positions = vec![0; order.len()];
    for (to, from) in order.iter().enumerate() {
        positions[*from] = to;
    }
    let order = Matrix::array(
        positions
            .into_iter()
            .map(|at| Value::Num(at as f64))
            .collect(),
    );
    Ok(factors([
        ("L", lower.into()),
        ("U", upper.into()),
        ("P", order.into()),
    ]))
}

/// A square matrix and the right side of its equations as a column.
fn system(name: &str, args: &[Value]) -> Result<(Matrix, Vec<Value>)> {
    let matrix = square(name, &args[0])?.clone();
    let right = column(name, &args[1], matrix.rows())?;
    Ok((matrix, right))
}

fn column(name: &str, value: &Value, rows: usize) -> Result<Vec<Value>> {
    let Value::Matrix(right) = value else {
        return Err(wrong_type(name, value, 1));
    };
    let is_column = right.size.len() == 1 || (right.size.len() == 2 && right.size[1] == 1);
    if !is_column || right.rows() != rows {
        return Err(MathError::dimensions(
            "Dimension mismatch. Matrix columns must match vector length.",
        ));
    }
    Ok(right.cells.clone())
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Order {
    Down,
    Up,
}

fn substitute_all(
    env: &mut Env,
    matrix: &Matrix,
    right: Vec<Value>,
    order: Order,
) -> Result<Value> {
    let kind = dense(matrix.kind);
    let solutions = all_solutions(env, matrix, right, order)?;
    let columns = solutions.into_iter().map(|cells| {
        Value::matrix(Matrix {
            kind,
            size: vec![matrix.rows(), 1],
            cells,
        })
    });
    Ok(Matrix::array(columns.collect()).into())
}

/// The solutions of a triangular system that span all others: one where the free unknowns are zero, and one more for each
/// that is free, with one in its place. None where it has no solution.
pub(crate) fn all_solutions(
    env: &mut Env,
    matrix: &Matrix,
    right: Vec<Value>,
    order: Order,
) -> Result<Vec<Vec<Value>>> {
    let n = matrix.rows();
    let mut solutions = vec![right];
    for step in 0..n {
        let (row, below) = if order == Order::Down {
            (step, step + 1..n)
        } else {
            (n - 1 - step, 0..n - 1 - step)
        };
        let diagonal = matrix.at(row, row);
        let is_free = is_zero(env, diagonal);
        let known = solutions.len();
        let mut next = Vec::with_capacity(known + 1);
        let mut branched = None;
        for (at, mut solution) in solutions.into_iter().enumerate() {
            env.purse.pay_cells(n)?;
            if !is_free {
                solution[row] = divide_scalar(env, &solution[row], diagonal)?;
                for other in below.clone() {
                    let part = multiply_scalar(env, &solution[row], matrix.at(other, row))?;
                    solution[other] = subtract_scalar(env, &solution[other], &part)?;
                }
            } else if !is_zero(env, &solution[row]) {
                if at == 0 {
                    return Ok(Vec::new());
                }
                continue;
            } else if at == 0 {
                let mut other_solution = solution.clone();
                other_solution[row] = Value::Num(1.0);
                for other in below.clone() {
                    other_solution[other] =
                        subtract_scalar(env, &other_solution[other], matrix.at(other, row))?;
                }
                branched = Some(other_solution);
            }
            next.push(solution);
        }
        next.extend(branched);
        solutions = next;
    }
    Ok(solutions)
}

/// Solves a triangular system, row by row.
pub(crate) fn substitute(
    env: &mut Env,
    matrix: &Matrix,
    mut right: Vec<Value>,
    order: Order,
) -> Result<Matrix> {
    let n = matrix.rows();
    env.purse.pay((n * n) as u64)?;
    for step in 0..n {
        let row = if order == Order::Down {
            step
        } else {
            n - 1 - step
        };
        let solved = if order == Order::Down {
            0..row
        } else {
            row + 1..n
        };
        let mut rest = right[row].clone();
        for known in solved {
            let part = multiply_scalar(env, matrix.at(row, known), &right[known])?;
            rest = subtract_scalar(env, &rest, &part)?;
        }
        if is_zero(env, matrix.at(row, row)) {
            if is_zero(env, &rest) {
                right[row] = zero();
                continue;
            }
            return Err(MathError::value(
                "Linear system cannot be solved since matrix is singular",
            ));
        }
        right[row] = divide_scalar(env, &rest, matrix.at(row, row))?;
    }
    Ok(Matrix {
        kind: dense(matrix.kind),
        size: vec![n, 1],
        cells: right,
    })
}

fn dense(kind: MatrixKind) -> MatrixKind {
    if kind == MatrixKind::Sparse {
        MatrixKind::Dense
    } else {
        kind
    }
}

fn lusolve(env: &mut Env, args: &[Value]) -> Result<Value> {
    if let Value::Object(object) = &args[0] {
        let (Some(Value::Matrix(lower)), Some(Value::Matrix(upper)), Some(Value::Matrix(order))) =
            (object.get("L"), object.get("U"), object.get("P"))
        else {
            return Err(wrong_type("lusolve", &args[0], 0));
        };
        let right = column("lusolve", &args[1], lower.rows())?;
        let mut moved = right.clone();
        for (from, to) in order.cells.iter().enumerate() {
            if let (Some(slot), Some(value)) = (moved.get_mut(to_f64(to) as usize), right.get(from))
            {
                *slot = value.clone();
            }
        }
        let between = substitute(env, lower, moved, Order::Down)?;
        return Ok(substitute(env, upper, between.cells, Order::Up)?.into());
    }
    let (matrix, right) = system("lusolve", args)?;
    Ok(solve(env, &matrix, &right)?.into())
}

/// x of Ax = b, as a column.
pub(crate) fn solve(env: &mut Env, matrix: &Matrix, right: &[Value]) -> Result<Matrix> {
    let Lup {
        lower,
        upper,
        order,
    } = decompose(env, matrix)?;
    let moved = order.iter().map(|from| right[*from].clone()).collect();
    let between = substitute(env, &lower, moved, Order::Down)?;
    substitute(env, &upper, between.cells, Order::Up)
}

/// Householder reflections, one column after another.
pub(crate) fn qr(env: &mut Env, matrix: &Matrix) -> Result<(Matrix, Matrix)> {
    if matrix.size.len() != 2 {
        return Err(MathError::dimensions("Matrix must be two dimensional"));
    }
    let (rows, columns) = (matrix.rows(), matrix.columns());
    env.purse.pay((rows * rows) as u64 * columns as u64 * 2)?;
    let mut q = identity(env, rows)?.of_kind(matrix.kind);
    let mut r = matrix.clone();
    for k in 0..columns.min(rows) {
        let pivot = r.at(k, k).clone();
        let sign = {
            let size = abs(env, &pivot)?;
            if is_exactly_zero(&pivot) {
                Value::Num(1.0)
            } else {
                divide_scalar(env, &pivot, &size)?
            }
        };
        let minus_sign = negate_scalar(env, &sign)?;
        let conjugate_sign = conj(env, &minus_sign)?;
        let mut squares = zero();
        for row in k..rows {
            let conjugate = conj(env, r.at(row, k))?;
            let square = multiply_scalar(env, r.at(row, k), &conjugate)?;
            squares = add_scalar(env, &squares, &square)?;
        }
        let length = sqrt_scalar(env, &squares)?;
        let length = multiply_scalar(env, &minus_sign, &length)?;
        if is_zero(env, &length) {
            continue;
        }
        let first = subtract_scalar(env, &pivot, &length)?;
        let mut w = vec![Value::Num(1.0)];
        for row in k + 1..rows {
            w.push(divide_scalar(env, r.at(row, k), &first)?);
        }
        let ratio = divide_scalar(env, &first, &length)?;
        let ratio = conj(env, &ratio)?;
        let tau = negate_scalar(env, &ratio)?;
        reflect_rows(env, &mut r, k, &w, &tau, &conjugate_sign)?;
        reflect_columns(env, &mut q, k, &w, &tau, &conjugate_sign)?;
    }
    for row in 0..rows {
        for column in 0..row.min(columns) {
            r.cells[row * columns + column] = zero();
        }
    }
    Ok((q, r))
}

fn is_exactly_zero(value: &Value) -> bool {
    match value {
        Value::Complex(z) => z.is_zero(),
        other => to_f64(other) == 0.0,
    }
}

fn reflect_rows(
    env: &mut Env,
    r: &mut Matrix,
    k: usize,
    w: &[Value],
    tau: &Value,
    sign: &Value,
) -> Result<()> {
    let (rows, columns) = (r.rows(), r.columns());
    for column in k..columns {
        let mut s = zero();
        for row in k..rows {
            let weight = conj(env, &w[row - k])?;
            let part = multiply_scalar(env, &weight, r.at(row, column))?;
            s = add_scalar(env, &s, &part)?;
        }
        s = multiply_scalar(env, &s, tau)?;
        for row in k..rows {
            let part = multiply_scalar(env, &w[row - k], &s)?;
            let rest = subtract_scalar(env, r.at(row, column), &part)?;
            r.cells[row * columns + column] = multiply_scalar(env, &rest, sign)?;
        }
    }
    Ok(())
}

fn reflect_columns(
    env: &mut Env,
    q: &mut Matrix,
    k: usize,
    w: &[Value],
    tau: &Value,
    sign: &Value,
) -> Result<()> {
    let rows = q.rows();
    for row in 0..rows {
        let mut s = zero();
        for column in k..rows {
            let part = multiply_scalar(env, q.at(row, column), &w[column - k])?;
            s = add_scalar(env, &s, &part)?;
        }
        s = multiply_scalar(env, &s, tau)?;
        for column in k..rows {
            let weight = conj(env, &w[column - k])?;
            let part = multiply_scalar(env, &s, &weight)?;
            let rest = subtract_scalar(env, q.at(row, column), &part)?;
            q.cells[row * rows + column] = divide_scalar(env, &rest, sign)?;
        }
    }
    Ok(())
}
