//! Functions of whole matrices: norms, exponentials, roots, pseudo-inverses, matrix equations.

use crate::broadcast::each;
use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{ErrorKind, MathError, Result};
use crate::functions::arithmetic::{power, sqrt_scalar};
use crate::functions::complex::conj;
use crate::functions::eigen;
use crate::functions::factor::{qr, solve};
use crate::functions::linear::{as_matrix, square};
use crate::functions::matrices::ctranspose;
use crate::ops::arithmetic::{
    abs, add, add_scalar, dot_divide, dot_multiply, multiply, negate, subtract, subtract_scalar,
};
use crate::ops::compare::order;
use crate::ops::linear::{identity, inverse, is_zero, product, zero};
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::Matrix;
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("norm", 1..=2, norm),
    Builtin::new("expm", 1..=1, expm),
    Builtin::new("sqrtm", 1..=1, sqrtm),
    Builtin::new("pinv", 1..=1, pinv),
    Builtin::new("sylvester", 3..=3, sylvester),
    Builtin::new("lyap", 2..=2, lyap),
    Builtin::new("schur", 1..=1, schur),
];

fn largest(
    env: &mut Env,
    values: impl IntoIterator<Item = Value>,
    wanted: std::cmp::Ordering,
) -> Result<Value> {
    let mut best: Option<Value> = None;
    for value in values {
        let better = match &best {
            Some(best) => order(env, "norm", &value, best)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some(value);
        }
    }
    Ok(best.unwrap_or_else(zero))
}

/// The length of a vector.
pub(crate) fn norm_of(env: &mut Env, matrix: &Matrix) -> Result<Value> {
    norm(env, &[Value::matrix(matrix.clone())])
}

fn norm(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        if args.len() > 1 {
            return Err(MathError::arguments(
                "Too many arguments in function norm (expected: 1, actual: 2)",
            ));
        }
        let number = simple("norm", &args[0], 0)?;
        return abs(env, &number);
    };
    env.purse.pay_cells(matrix.cells.len())?;
    let p = match args.get(1) {
        None => Norm::P(2.0),
        Some(Value::Text(name)) => match &**name {
            "inf" => Norm::P(f64::INFINITY),
            "-inf" => Norm::P(f64::NEG_INFINITY),
            "fro" => Norm::Frobenius,
            other => {
                return Err(MathError::value(format!(
                    "Unsupported parameter value {other}"
                )));
            }
        },
        Some(Value::Num(p)) => Norm::P(*p),
        Some(p @ Value::Int(_)) => Norm::P(to_f64(&simple("log", p, 0)?)),
        Some(_) => return Err(MathError::value("Unsupported parameter value")),
    };
    let sizes: Result<Vec<Value>> = matrix.cells.iter().map(|cell| abs(env, cell)).collect();
    let sizes = sizes?;
    match (matrix.size.len(), p) {
        (1, Norm::P(p)) if p == f64::INFINITY => largest(env, sizes, std::cmp::Ordering::Greater),
        (1, Norm::P(p)) if p == f64::NEG_INFINITY => largest(env, sizes, std::cmp::Ordering::Less),
        (1, Norm::P(0.0)) => Ok(Value::Num(f64::INFINITY)),
        (1, Norm::P(p)) => power_norm(env, &sizes, p),
        (1 | 2, Norm::Frobenius) => power_norm(env, &sizes, 2.0),
        (2, Norm::P(1.0)) => line_norm(env, matrix, &sizes, |at, columns| at % columns),
        (2, Norm::P(p)) if p == f64::INFINITY => {
            line_norm(env, matrix, &sizes, |at, columns| at / columns)
        }
        (2, Norm::P(2.0)) => spectral_norm(env, matrix),
        (2, Norm::P(p)) => Err(MathError::value(format!("Unsupported parameter value {p}"))),
        _ => Err(MathError::dimensions("Invalid matrix dimensions")),
    }
}

#[derive(Clone, Copy)]
enum Norm {
    P(f64),
    Frobenius,
}

fn power_norm(env: &mut Env, sizes: &[Value], p: f64) -> Result<Value> {
    let mut sum = zero();
    for size in sizes {
        let part = power(env, size, p)?;
        sum = add_scalar(env, &sum, &part)?;
    }
    if p == 2.0 {
        sqrt_scalar(env, &sum)
    } else {
        power(env, &sum, 1.0 / p)
    }
}

/// The largest sum of a row or column.
fn line_norm(
    env: &mut Env,
    matrix: &Matrix,
    sizes: &[Value],
    line: fn(usize, usize) -> usize,
) -> Result<Value> {
    let columns = matrix.columns().max(1);
    let mut sums = vec![zero(); matrix.rows().max(columns)];
    for (at, size) in sizes.iter().enumerate() {
        let slot = line(at, columns);
        sums[slot] = add_scalar(env, &sums[slot], size)?;
    }
    largest(env, sums, std::cmp::Ordering::Greater)
}

fn spectral_norm(env: &mut Env, matrix: &Matrix) -> Result<Value> {
    if !matrix.is_square() {
        return Err(MathError::dimensions("Invalid matrix dimensions"));
    }
    let transposed = conjugate_transpose(env, matrix)?;
    let squared = product(env, &transposed, matrix)?;
    let values = eigen::values(env, &squared)?;
    let sizes: Vec<Value> = values.into_iter().map(|z| Value::Num(z.abs())).collect();
    let largest = largest(env, sizes, std::cmp::Ordering::Greater)?;
    sqrt_scalar(env, &largest)
}

fn conjugate_transpose(env: &mut Env, matrix: &Matrix) -> Result<Matrix> {
    match ctranspose(env, &[Value::matrix(matrix.clone())])? {
        Value::Matrix(matrix) => Ok((*matrix).clone()),
        other => Err(wrong_type("ctranspose", &other, 0)),
    }
}

fn apply(
    env: &mut Env,
    a: &Matrix,
    b: &Value,
    op: fn(&mut Env, &Value, &Value) -> Result<Value>,
) -> Result<Matrix> {
    match op(env, &Value::matrix(a.clone()), b)? {
        Value::Matrix(matrix) => Ok((*matrix).clone()),
        other => Err(wrong_type("matrix", &other, 0)),
    }
}

/// Padé's approximation of the exponential, after halving the matrix until it is small.
fn expm(env: &mut Env, args: &[Value]) -> Result<Value> {
    const ORDER: i32 = 8;
    let matrix = square("expm", &args[0])?;
    let rows: Result<Vec<Value>> = matrix.cells.iter().map(|cell| abs(env, cell)).collect();
    let size = to_f64(&line_norm(env, matrix, &rows?, |at, columns| at / columns)?);
    if !size.is_finite() {
        return Err(MathError::value("expm needs finite numbers"));
    }
    let halvings = if size > 0.5 {
        (size.log2().ceil() as i32 + 1).clamp(0, 1100)
    } else {
        0
    };
    let small = apply(env, matrix, &Value::Num(2f64.powi(-halvings)), dot_multiply)?;
    let n = matrix.rows();
    let mut power = identity(env, n)?.of_kind(matrix.kind);
    let (mut above, mut below) = (power.clone(), power.clone());
    let mut factor = 1.0;
    for k in 1..=ORDER {
        factor *= f64::from(ORDER - k + 1) / f64::from(k * (2 * ORDER - k + 1));
        power = product(env, &small, &power)?;
        let term = apply(env, &power, &Value::Num(factor), dot_multiply)?;
        above = apply(env, &above, &term.clone().into(), add)?;
        below = if k % 2 == 0 {
            apply(env, &below, &term.into(), add)?
        } else {
            apply(env, &below, &term.into(), subtract)?
        };
    }
    let inverse = inverse(env, &below)?;
    let mut result = product(env, &inverse, &above)?;
    for _ in 0..halvings {
        result = product(env, &result, &result)?;
    }
    Ok(result.into())
}

/// The Denman–Beavers iteration: two matrices that meet at the root and its inverse.
fn sqrtm(env: &mut Env, args: &[Value]) -> Result<Value> {
    if let Value::Matrix(matrix) = &args[0]
        && matrix.size == [1]
    {
        let root = sqrt_scalar(env, &matrix.cells[0])?;
        return Ok(Matrix::vector(vec![root]).of_kind(matrix.kind).into());
    }
    let matrix = square("sqrtm", &args[0])?;
    let (mut y, mut z) = (
        matrix.clone(),
        identity(env, matrix.rows())?.of_kind(matrix.kind),
    );
    for _ in 0..1000 {
        let (y_inverse, z_inverse) = (inverse(env, &y)?, inverse(env, &z)?);
        let half = Value::Num(0.5);
        let sum = apply(env, &y, &z_inverse.into(), add)?;
        let next = apply(env, &sum, &half, dot_multiply)?;
        let sum = apply(env, &z, &y_inverse.into(), add)?;
        z = apply(env, &sum, &half, dot_multiply)?;
        let change = apply(env, &next, &y.into(), subtract)?;
        let changes: Result<Vec<Value>> = change.cells.iter().map(|cell| abs(env, cell)).collect();
        y = next;
        if to_f64(&largest(env, changes?, std::cmp::Ordering::Greater)?) <= 1e-6 {
            return Ok(y.into());
        }
    }
    Err(MathError::value(
        "computing square root of matrix: iterative method could not converge",
    ))
}

fn pinv(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        let is_zero = is_zero(env, &args[0]);
        return if is_zero {
            Ok(args[0].clone())
        } else {
            crate::ops::arithmetic::divide(env, &Value::Num(1.0), &args[0])
        };
    };
    if matrix.size.len() == 1 {
        if matrix.cells.iter().all(|cell| is_zero(env, cell)) {
            return Ok(args[0].clone());
        }
        let turned = each(env, &args[0], conj)?;
        let squares = multiply(env, &turned, &args[0])?;
        return dot_divide(env, &turned, &squares);
    }
    if matrix.size.len() != 2 {
        return Err(MathError::dimensions(format!(
            "Matrix must be two dimensional (size: {})",
            matrix.size_text()
        )));
    }
    if matrix.is_square() {
        match inverse(env, matrix) {
            Ok(inverse) => return Ok(inverse.into()),
            Err(error) if error.kind() != ErrorKind::Value => return Err(error),
            Err(_) => {}
        }
    }
    let Some((columns, rows)) = rank_factors(env, matrix)? else {
        return ctranspose(env, args);
    };
    let (columns_t, rows_t) = (
        conjugate_transpose(env, &columns)?,
        conjugate_transpose(env, &rows)?,
    );
    let left = product(env, &columns_t, &columns)?;
    let left = inverse(env, &left)?;
    let left = product(env, &left, &columns_t)?;
    let right = product(env, &rows, &rows_t)?;
    let right = inverse(env, &right)?;
    let right = product(env, &rows_t, &right)?;
    Ok(product(env, &right, &left)?.of_kind(matrix.kind).into())
}

/// The matrix as full-rank columns times full-rank rows, by its reduced row echelon form; `None` for zero.
fn rank_factors(env: &mut Env, matrix: &Matrix) -> Result<Option<(Matrix, Matrix)>> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    env.purse.pay((rows * columns) as u64 * rows as u64)?;
    let mut reduced = matrix.clone();
    let mut pivots = Vec::new();
    for column in 0..columns {
        let at = pivots.len();
        let Some(row) = (at..rows).find(|row| !is_zero(env, reduced.at(*row, column))) else {
            continue;
        };
        crate::ops::linear::swap_rows(&mut reduced, at, row);
        let pivot = reduced.at(at, column).clone();
        for other in 0..columns {
            reduced.cells[at * columns + other] =
                crate::ops::arithmetic::divide_scalar(env, reduced.at(at, other), &pivot)?;
        }
        for row in (0..rows).filter(|row| *row != at) {
            let factor = reduced.at(row, column).clone();
            for other in 0..columns {
                let part =
                    crate::ops::arithmetic::multiply_scalar(env, &factor, reduced.at(at, other))?;
                reduced.cells[row * columns + other] =
                    subtract_scalar(env, reduced.at(row, other), &part)?;
            }
        }
        pivots.push(column);
    }
    if pivots.is_empty() {
        return Ok(None);
    }
    let rank = pivots.len();
    let left = (0..rows)
        .flat_map(|row| pivots.iter().map(move |column| (row, *column)))
        .map(|(row, column)| matrix.at(row, column).clone())
        .collect();
    let right = reduced.cells[..rank * columns].to_vec();
    Ok(Some((
        Matrix::grid(rows, rank, left),
        Matrix::grid(rank, columns, right),
    )))
}

/// X of AX + XB = C, as one large system of equations.
fn sylvester(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (a, b, c) = (
        square("sylvester", &args[0])?,
        square("sylvester", &args[1])?,
        as_matrix("sylvester", &args[2])?,
    );
    let (n, m) = (a.rows(), b.rows());
    if c.size != [n, m] {
        return Err(MathError::dimensions(format!(
            "Matrices do not fit (sizes: {}, {}, {})",
            a.size_text(),
            b.size_text(),
            c.size_text()
        )));
    }
    let unknowns = n * m;
    let mut system = Matrix::filled(env, a.kind, vec![unknowns, unknowns], &zero())?;
    for i in 0..n {
        for j in 0..m {
            let equation = (i * m + j) * unknowns;
            for k in 0..n {
                let at = equation + k * m + j;
                system.cells[at] = add_scalar(env, &system.cells[at], a.at(i, k))?;
            }
            for k in 0..m {
                let at = equation + i * m + k;
                system.cells[at] = add_scalar(env, &system.cells[at], b.at(k, j))?;
            }
        }
    }
    let solution = solve(env, &system, &c.cells)?;
    Ok(Matrix {
        kind: a.kind,
        size: vec![n, m],
        cells: solution.cells,
    }
    .into())
}

/// X of AX + XA' + Q = 0.
fn lyap(env: &mut Env, args: &[Value]) -> Result<Value> {
    let transposed = ctranspose(env, std::slice::from_ref(&args[0]))?;
    let negated = negate(env, &args[1])?;
    sylvester(env, &[args[0].clone(), transposed, negated])
}

/// QR steps without shifts until the matrix settles: A = UTU'.
fn schur(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = square("schur", &args[0])?;
    let (mut t, mut u) = (
        matrix.clone(),
        identity(env, matrix.rows())?.of_kind(matrix.kind),
    );
    for _ in 0..=101 {
        let (q, r) = qr(env, &t)?;
        let next = product(env, &r, &q)?;
        u = product(env, &u, &q)?;
        let change = apply(env, &next, &t.into(), subtract)?;
        t = next;
        let size = spectral_norm(env, &change)?;
        if to_f64(&size) <= 1e-4 {
            break;
        }
    }
    Ok(Value::object(Object::of([
        ("U", u.into()),
        ("T", t.into()),
    ])))
}
