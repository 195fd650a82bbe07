//! Eigenvalues and eigenvectors.

use std::cmp::Ordering;

use crate::convert::{simple, to_complex, to_f64, truthy};
use crate::error::{MathError, Result};
use crate::functions::arithmetic::sqrt_scalar;
use crate::functions::factor::{Order, all_solutions, qr, substitute};
use crate::functions::linear::square;
use crate::functions::trigonometry::{arctangent, cosine, sine};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::ops::arithmetic::{abs, add_scalar, divide_scalar, multiply_scalar, subtract_scalar};
use crate::ops::compare::equal_scalar;
use crate::ops::linear::{identity, inverse, product, zero};
use crate::refusals::unsupported;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[Builtin::new("eigs", 1..=2, eigs)];

/// What counts as zero, unless the call says otherwise.
const PRECISION: f64 = 1e-12;

/// QR steps without a new eigenvalue before the search is given up.
const STEPS_MAX: usize = 100;

/// The eigenvalues, the smallest first, and the vectors that were found for them.
struct Eigen {
    values: Vec<Value>,
    vectors: Vec<(Value, Vec<Value>)>,
}

fn eigs(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = square("eigs", &args[0])?;
    let (mut wants_vectors, mut precision) = (true, PRECISION);
    match args.get(1) {
        Some(Value::Object(options)) => {
            if let Some(wanted) = options.get("eigenvectors") {
                wants_vectors = truthy("eigs", wanted)?;
            }
            precision = options.get("precision").map_or(PRECISION, to_f64);
        }
        Some(given) => precision = to_f64(&simple("eigs", given, 1)?),
        None => {}
    }
    if precision.is_nan() || precision >= 1.0 {
        return Err(unsupported("eigs", "a precision of 1 or more, or NaN"));
    }
    let found = decompose(env, matrix, precision, wants_vectors)?;
    let kind = match matrix.kind {
        MatrixKind::Sparse => MatrixKind::Dense,
        kind => kind,
    };
    let values = Matrix::vector(found.values).of_kind(kind);
    let mut result = Object::of([("values", values.into())]);
    if wants_vectors {
        let vectors = found.vectors.into_iter().map(|(value, vector)| {
            Value::object(Object::of([
                ("value", value),
                ("vector", Matrix::vector(vector).of_kind(kind).into()),
            ]))
        });
        result.entries.insert(
            "eigenvectors".into(),
            Matrix::array(vectors.collect()).into(),
        );
    }
    Ok(Value::object(result))
}

/// Only the eigenvalues.
pub(crate) fn values(env: &mut Env, matrix: &Matrix) -> Result<Vec<Complex>> {
    let found = decompose(env, matrix, PRECISION, false)?;
    Ok(found.values.iter().map(to_complex).collect())
}

fn decompose(env: &mut Env, matrix: &Matrix, precision: f64, wants_vectors: bool) -> Result<Eigen> {
    let n = matrix.rows();
    env.purse.pay_cells(n * n)?;
    let mut cells = of_one_kind(matrix)?;
    if cells.iter().any(|cell| !is_finite(cell)) {
        return Err(MathError::value("Eigenvalues need finite numbers"));
    }
    let imaginary = |cell: &Value| matches!(cell, Value::Complex(z) if z.im.abs() > precision);
    if !cells.iter().any(imaginary) {
        let mut is_symmetric = true;
        for at in 0..n * n {
            let difference = subtract_scalar(env, &cells[at], &cells[at % n * n + at / n])?;
            is_symmetric &= size_of(env, &difference)? <= precision;
        }
        if is_symmetric {
            for cell in &mut cells {
                if let Value::Complex(z) = cell {
                    *cell = Value::Num(z.re);
                }
            }
            return symmetric(env, cells, n);
        }
    }
    let matrix = Matrix::grid(n, n, cells);
    General::new(env, matrix, precision)?.solve(env, wants_vectors)
}

/// All numbers, all big numbers or all complex ones.
fn of_one_kind(matrix: &Matrix) -> Result<Vec<Value>> {
    let has = |wanted: fn(&Value) -> bool| matrix.cells.iter().any(wanted);
    let (has_complex, has_big) = (
        has(|cell| matches!(cell, Value::Complex(_))),
        has(|cell| matches!(cell, Value::Big(_))),
    );
    matrix
        .cells
        .iter()
        .map(|cell| match cell {
            Value::Num(_) | Value::Frac(_) | Value::Big(_) | Value::Complex(_) => {
                Ok(if has_complex {
                    to_complex(cell).into()
                } else if has_big {
                    Value::big(crate::convert::to_big(cell))
                } else {
                    Value::Num(to_f64(cell))
                })
            }
            other => Err(MathError::arguments(format!(
                "Unsupported type in Matrix: {}",
                other.type_name()
            ))),
        })
        .collect()
}

fn is_finite(cell: &Value) -> bool {
    let z = to_complex(cell);
    z.re.is_finite() && z.im.is_finite()
}

fn size_of(env: &mut Env, value: &Value) -> Result<f64> {
    Ok(to_f64(&abs(env, value)?))
}

/// Smallest first; those of one size keep their order.
fn by_size(a: &Value, b: &Value) -> Ordering {
    let size = |value: &Value| match value {
        Value::Complex(z) => z.abs(),
        other => to_f64(other).abs(),
    };
    size(a).total_cmp(&size(b))
}

/// Jacobi's rotations: each makes the largest entry beside the diagonal vanish.
fn symmetric(env: &mut Env, mut a: Vec<Value>, n: usize) -> Result<Eigen> {
    let is_big = a.iter().any(|cell| matches!(cell, Value::Big(_)));
    let scale = a.iter().fold(0.0f64, |scale, x| scale.max(to_f64(x).abs()));
    let smallest = scale
        * if is_big {
            10f64.powi(-(env.settings.precision.min(300) as i32))
        } else {
            1e-16
        };
    let mut vectors = identity(env, n)?.cells;
    loop {
        env.purse.pay((n * n) as u64 + 1)?;
        let (mut i, mut j, mut size) = (0, 0, 0.0);
        for row in 0..n {
            for column in row + 1..n {
                let own = to_f64(&a[row * n + column]).abs();
                if own > size {
                    (i, j, size) = (row, column, own);
                }
            }
        }
        if size <= smallest {
            break;
        }
        let (c, s) = rotation(env, &a[i * n + i], &a[j * n + j], &a[i * n + j])?;
        for k in 0..n {
            let (x, y) = (k * n + i, k * n + j);
            turn(env, &mut vectors, x, y, &c, &s)?;
        }
        // Both diagonal entries from the old ones; what the rotation is for is zero exactly.
        let (c2, s2) = (multiply_scalar(env, &c, &c)?, multiply_scalar(env, &s, &s)?);
        let mixed = multiply_scalar(env, &c, &s)?;
        let mixed = multiply_scalar(env, &mixed, &Value::Num(2.0))?;
        let mixed = multiply_scalar(env, &mixed, &a[i * n + j])?;
        let (ii, jj) = (a[i * n + i].clone(), a[j * n + j].clone());
        let weigh = |env: &mut Env, p: &Value, q: &Value| -> Result<(Value, Value)> {
            Ok((multiply_scalar(env, p, &ii)?, multiply_scalar(env, q, &jj)?))
        };
        let (first, second) = weigh(env, &c2, &s2)?;
        let first = subtract_scalar(env, &first, &mixed)?;
        let new_ii = add_scalar(env, &first, &second)?;
        let (first, second) = weigh(env, &s2, &c2)?;
        let first = add_scalar(env, &first, &mixed)?;
        let new_jj = add_scalar(env, &first, &second)?;
        for k in (0..n).filter(|k| *k != i && *k != j) {
            let (x, y) = (i * n + k, j * n + k);
            turn(env, &mut a, x, y, &c, &s)?;
            a[k * n + i] = a[i * n + k].clone();
            a[k * n + j] = a[j * n + k].clone();
        }
        let nothing = subtract_scalar(env, &ii, &ii)?;
        (a[i * n + i], a[j * n + j]) = (new_ii, new_jj);
        (a[i * n + j], a[j * n + i]) = (nothing.clone(), nothing);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| by_size(&a[x * n + x], &a[y * n + y]));
    let pairs = order.into_iter().map(|at| {
        let vector = (0..n).map(|k| vectors[k * n + at].clone()).collect();
        (a[at * n + at].clone(), vector)
    });
    let vectors: Vec<(Value, Vec<Value>)> = pairs.collect();
    Ok(Eigen {
        values: vectors.iter().map(|(value, _)| value.clone()).collect(),
        vectors,
    })
}

/// Cosine and sine of the angle that makes the entry beside the diagonal vanish.
fn rotation(env: &mut Env, ii: &Value, jj: &Value, ij: &Value) -> Result<(Value, Value)> {
    let spread = subtract_scalar(env, jj, ii)?;
    let angle = if size_of(env, &spread)? <= PRECISION {
        let one = if matches!(ij, Value::Big(_)) {
            Value::big(Decimal::integer(1))
        } else {
            Value::Num(1.0)
        };
        arctangent(env, &one)?
    } else {
        let slope = multiply_scalar(env, &Value::Num(2.0), ij)?;
        let slope = divide_scalar(env, &slope, &spread)?;
        let angle = arctangent(env, &slope)?;
        multiply_scalar(env, &angle, &Value::Num(0.5))?
    };
    Ok((cosine(env, &angle)?, sine(env, &angle)?))
}

/// Two cells become c·x − s·y and s·x + c·y.
fn turn(
    env: &mut Env,
    cells: &mut [Value],
    x: usize,
    y: usize,
    c: &Value,
    s: &Value,
) -> Result<()> {
    let (cx, sy) = (
        multiply_scalar(env, c, &cells[x])?,
        multiply_scalar(env, s, &cells[y])?,
    );
    let (sx, cy) = (
        multiply_scalar(env, s, &cells[x])?,
        multiply_scalar(env, c, &cells[y])?,
    );
    cells[x] = subtract_scalar(env, &cx, &sy)?;
    cells[y] = add_scalar(env, &sx, &cy)?;
    Ok(())
}

/// Any other matrix: balanced, brought to Hessenberg form, then to a triangle by QR steps.
struct General {
    n: usize,
    precision: f64,
    matrix: Matrix,
    /// How the balanced matrix came from the given one.
    reduction: Matrix,
}

/// A triangle: the eigenvalues, and the base in which the matrix is one.
struct Triangle {
    values: Vec<Value>,
    base: Matrix,
}

impl General {
    fn new(env: &mut Env, matrix: Matrix, precision: f64) -> Result<Self> {
        let n = matrix.rows();
        let mut general = Self {
            n,
            precision,
            reduction: identity(env, n)?,
            matrix,
        };
        general.balance(env)?;
        general.reduce(env)?;
        Ok(general)
    }

    fn at(&self, row: usize, column: usize) -> &Value {
        self.matrix.at(row, column)
    }

    /// Powers of the radix on the diagonal make rows and columns of about one size.
    fn balance(&mut self, env: &mut Env) -> Result<()> {
        let n = self.n;
        let is_big = self
            .matrix
            .cells
            .iter()
            .any(|cell| matches!(cell, Value::Big(_)));
        let radix = if is_big { 10.0 } else { 2.0 };
        let mut is_balanced = false;
        while !is_balanced {
            is_balanced = true;
            for i in 0..n {
                env.purse.pay(n as u64 + 1)?;
                let (mut column, mut row) = (0.0, 0.0);
                for j in (0..n).filter(|j| *j != i) {
                    column += size_of(env, self.at(j, i))?;
                    row += size_of(env, self.at(i, j))?;
                }
                if column < 1e-15 || row < 1e-15 {
                    continue;
                }
                let (mut factor, mut size) = (1.0, column);
                while size < row / radix {
                    (size, factor) = (size * radix * radix, factor * radix);
                }
                while size > row * radix {
                    (size, factor) = (size / (radix * radix), factor / radix);
                }
                if (size + row) / factor < (column + row) * 0.95 {
                    is_balanced = false;
                    let (up, down) = (Value::Num(factor), Value::Num(1.0 / factor));
                    for j in (0..n).filter(|j| *j != i) {
                        let (in_row, in_column) = (i * n + j, j * n + i);
                        let cells = &mut self.matrix.cells;
                        cells[in_row] = multiply_scalar(env, &cells[in_row], &down)?;
                        cells[in_column] = multiply_scalar(env, &cells[in_column], &up)?;
                    }
                    let at = i * n + i;
                    self.reduction.cells[at] =
                        multiply_scalar(env, &self.reduction.cells[at], &down)?;
                }
            }
        }
        Ok(())
    }

    /// Eliminates what lies below the first subdiagonal, with the largest entry of each column as the pivot.
    fn reduce(&mut self, env: &mut Env) -> Result<()> {
        let n = self.n;
        for i in 0..n.saturating_sub(2) {
            env.purse.pay((n * n) as u64)?;
            let (mut pivot, mut largest) = (i + 1, 0.0);
            for j in i + 1..n {
                let size = size_of(env, self.at(j, i))?;
                if size > largest {
                    (pivot, largest) = (j, size);
                }
            }
            if largest < self.precision {
                continue;
            }
            if pivot != i + 1 {
                for k in 0..n {
                    self.matrix.cells.swap(pivot * n + k, (i + 1) * n + k);
                    self.reduction.cells.swap(pivot * n + k, (i + 1) * n + k);
                }
                for k in 0..n {
                    self.matrix.cells.swap(k * n + pivot, k * n + i + 1);
                }
            }
            let head = self.at(i + 1, i).clone();
            for j in i + 2..n {
                let factor = divide_scalar(env, self.at(j, i), &head)?;
                for k in 0..n {
                    for cells in [&mut self.matrix.cells, &mut self.reduction.cells] {
                        let part = multiply_scalar(env, &factor, &cells[(i + 1) * n + k])?;
                        cells[j * n + k] = subtract_scalar(env, &cells[j * n + k], &part)?;
                    }
                }
                for k in 0..n {
                    let part = multiply_scalar(env, &factor, self.at(k, j))?;
                    let at = k * n + i + 1;
                    self.matrix.cells[at] = add_scalar(env, &self.matrix.cells[at], &part)?;
                }
            }
        }
        Ok(())
    }

    fn solve(&self, env: &mut Env, wants_vectors: bool) -> Result<Eigen> {
        let triangle = self.triangle(env)?;
        let mut values = triangle.values.clone();
        values.sort_by(by_size);
        let vectors = if wants_vectors {
            self.vectors(env, &values, &triangle.base)?
        } else {
            Vec::new()
        };
        Ok(Eigen { values, vectors })
    }

    /// QR steps, shifted by the last entry; what has converged at the end is cut off.
    fn triangle(&self, env: &mut Env) -> Result<Triangle> {
        let mut a = self.matrix.clone();
        let mut n = self.n;
        let mut values = Vec::with_capacity(n);
        let mut base = identity(env, self.n)?;
        let mut step_base = identity(env, n)?;
        // The blocks of two that are left on the diagonal, where they start.
        let mut blocks: Vec<(usize, [Value; 4])> = Vec::new();
        let mut steps = 0;
        while n > 0 {
            steps += 1;
            if steps > STEPS_MAX {
                return Err(MathError::value("The eigenvalues failed to converge"));
            }
            let shift = a.at(n - 1, n - 1).clone();
            for i in 0..n {
                a.cells[i * n + i] = subtract_scalar(env, &a.cells[i * n + i], &shift)?;
            }
            let (q, r) = qr(env, &a)?;
            a = product(env, &r, &q)?;
            for i in 0..n {
                a.cells[i * n + i] = add_scalar(env, &a.cells[i * n + i], &shift)?;
            }
            step_base = product(env, &step_base, &q)?;
            let cut = if n == 1 || size_of(env, a.at(n - 1, n - 2))? < self.precision {
                values.push(a.at(n - 1, n - 1).clone());
                1
            } else if n == 2 || size_of(env, a.at(n - 2, n - 3))? < self.precision {
                let block = [
                    (n - 2, n - 2),
                    (n - 2, n - 1),
                    (n - 1, n - 2),
                    (n - 1, n - 1),
                ]
                .map(|(row, column)| a.at(row, column).clone());
                let both = of_two(env, &block)?;
                let jordan = self.base_of_two(env, &block, &both)?;
                values.extend(both);
                blocks.push((n - 2, jordan));
                2
            } else {
                continue;
            };
            steps = 0;
            let wide_base = inflated(env, &step_base, self.n)?;
            base = product(env, &base, &wide_base)?;
            n -= cut;
            let wide = n + cut;
            let cells = (0..n * n).map(|at| a.cells[at / n.max(1) * wide + at % n.max(1)].clone());
            a = Matrix::grid(n, n, cells.collect());
            step_base = identity(env, n)?;
        }
        if !blocks.is_empty() {
            let mut diagonal = identity(env, self.n)?;
            for (start, block) in blocks {
                for (at, cell) in block.into_iter().enumerate() {
                    diagonal.cells[(start + at / 2) * self.n + start + at % 2] = cell;
                }
            }
            base = product(env, &base, &diagonal)?;
        }
        Ok(Triangle { values, base })
    }

    /// The base in which a block of two is a triangle.
    fn base_of_two(
        &self,
        env: &mut Env,
        [a, b, c, d]: &[Value; 4],
        [first, second]: &[Value; 2],
    ) -> Result<[Value; 4]> {
        let (one, nothing) = (Value::Num(1.0), zero());
        if size_of(env, c)? < self.precision {
            return Ok([one.clone(), nothing.clone(), nothing, one]);
        }
        let spread = subtract_scalar(env, first, second)?;
        if size_of(env, &spread)? > self.precision {
            return Ok([
                subtract_scalar(env, first, d)?,
                subtract_scalar(env, second, d)?,
                c.clone(),
                c.clone(),
            ]);
        }
        let left = subtract_scalar(env, a, first)?;
        let right = subtract_scalar(env, d, first)?;
        if size_of(env, b)? < self.precision && size_of(env, &right)? < self.precision {
            return Ok([left, one, c.clone(), nothing]);
        }
        Ok([b.clone(), nothing, right, one])
    }

    fn vectors(
        &self,
        env: &mut Env,
        values: &[Value],
        base: &Matrix,
    ) -> Result<Vec<(Value, Vec<Value>)>> {
        let n = self.n;
        let inverse_base = inverse(env, base)?;
        let triangle = product(env, &inverse_base, &self.matrix)?;
        let triangle = product(env, &triangle, base)?;
        let back = inverse(env, &self.reduction)?;
        let back = product(env, &back, base)?;
        let mut distinct: Vec<(Value, usize)> = Vec::new();
        for value in values {
            let mut known = None;
            for (at, (other, _)) in distinct.iter().enumerate() {
                if equal_scalar(env, other, value)? {
                    known = Some(at);
                    break;
                }
            }
            match known {
                Some(at) => distinct[at].1 += 1,
                None => distinct.push((value.clone(), 1)),
            }
        }
        let mut found = Vec::with_capacity(n);
        for (value, times) in distinct {
            let mut shifted = triangle.clone();
            for i in 0..n {
                let at = i * n + i;
                shifted.cells[at] = subtract_scalar(env, &shifted.cells[at], &value)?;
            }
            let mut solutions = all_solutions(env, &shifted, vec![zero(); n], Order::Up)?;
            // The first is the null vector.
            solutions.drain(..solutions.len().min(1));
            while solutions.len() < times {
                match self.inverse_iteration(env, &shifted, &solutions)? {
                    Some(solution) => solutions.push(solution),
                    None => break,
                }
            }
            for solution in solutions {
                let vector = product(env, &back, &Matrix::vector(solution))?;
                found.push((value.clone(), vector.cells));
            }
        }
        Ok(found)
    }

    /// A vector that the triangle nearly turns into nothing, beside those already known; none where there is no more.
    fn inverse_iteration(
        &self,
        env: &mut Env,
        shifted: &Matrix,
        known: &[Vec<Value>],
    ) -> Result<Option<Vec<Value>>> {
        let mut vector: Option<Vec<Value>> = None;
        for attempt in 0..5 {
            let start: Vec<Value> = (0..self.n)
                .map(|k| Value::Num(((k * 7 + attempt * 3) % 11) as f64 - 4.5))
                .collect();
            let start = beside(env, start, known)?;
            let start = normalized(env, &start)?;
            // A singular triangle has no such vector in its image.
            let Ok(solution) = substitute(env, shifted, start, Order::Up) else {
                continue;
            };
            if length(env, &solution.cells)? > 1000.0 {
                vector = Some(solution.cells);
                break;
            }
        }
        let Some(mut vector) = vector else {
            return Ok(None);
        };
        for _ in 0..10 {
            let Ok(next) = substitute(env, shifted, vector.clone(), Order::Up) else {
                return Ok(None);
            };
            let rest = beside(env, vector.clone(), std::slice::from_ref(&next.cells))?;
            if length(env, &rest)? < self.precision {
                return Ok(Some(vector));
            }
            vector = normalized(env, &next.cells)?;
        }
        Ok(None)
    }
}

/// Both eigenvalues of [a, b; c, d].
fn of_two(env: &mut Env, [a, b, c, d]: &[Value; 4]) -> Result<[Value; 2]> {
    let trace = add_scalar(env, a, d)?;
    let (ad, bc) = (multiply_scalar(env, a, d)?, multiply_scalar(env, b, c)?);
    let determinant = subtract_scalar(env, &ad, &bc)?;
    let middle = multiply_scalar(env, &trace, &Value::Num(0.5))?;
    let square = multiply_scalar(env, &trace, &trace)?;
    let product = multiply_scalar(env, &Value::Num(4.0), &determinant)?;
    let difference = subtract_scalar(env, &square, &product)?;
    let root = sqrt_scalar(env, &difference)?;
    let half = multiply_scalar(env, &root, &Value::Num(0.5))?;
    Ok([
        add_scalar(env, &middle, &half)?,
        subtract_scalar(env, &middle, &half)?,
    ])
}

/// A smaller matrix in the corner of an identity.
fn inflated(env: &mut Env, matrix: &Matrix, n: usize) -> Result<Matrix> {
    let mut wide = identity(env, n)?;
    let own = matrix.rows();
    for (at, cell) in matrix.cells.iter().enumerate() {
        wide.cells[at / own * n + at % own] = cell.clone();
    }
    Ok(wide)
}

fn dot(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Value> {
    let mut sum = zero();
    for (a, b) in a.iter().zip(b) {
        let a = crate::functions::complex::conj(env, a)?;
        let part = multiply_scalar(env, &a, b)?;
        sum = add_scalar(env, &sum, &part)?;
    }
    Ok(sum)
}

fn length(env: &mut Env, vector: &[Value]) -> Result<f64> {
    let square = dot(env, vector, vector)?;
    Ok(to_complex(&square).abs().sqrt())
}

fn normalized(env: &mut Env, vector: &[Value]) -> Result<Vec<Value>> {
    let length = Value::Num(length(env, vector)?);
    vector
        .iter()
        .map(|part| divide_in_kind(env, part, &length))
        .collect()
}

/// Big numbers are not divided by numbers with many digits.
fn divide_in_kind(env: &mut Env, part: &Value, length: &Value) -> Result<Value> {
    match part {
        Value::Big(_) => {
            let length = Value::big(Decimal::from_f64(to_f64(length)));
            divide_scalar(env, part, &length)
        }
        _ => divide_scalar(env, part, length),
    }
}

/// What is left of a vector without its parts along others.
fn beside(env: &mut Env, mut vector: Vec<Value>, others: &[Vec<Value>]) -> Result<Vec<Value>> {
    for other in others {
        let (along, own) = (dot(env, other, &vector)?, dot(env, other, other)?);
        let share = divide_scalar(env, &along, &own)?;
        for (part, other) in vector.iter_mut().zip(other) {
            let away = multiply_scalar(env, &share, other)?;
            *part = subtract_scalar(env, part, &away)?;
        }
    }
    Ok(vector)
}
