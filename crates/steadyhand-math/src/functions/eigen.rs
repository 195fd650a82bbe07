//! Eigenvalues and eigenvectors.

use crate::convert::{simple, to_complex, truthy};
use crate::env::Env;
use crate::error::{MathError, Result};
use crate::function::Builtin;
use crate::functions::linear::square;
use crate::matrix::Matrix;
use crate::number::complex::Complex;
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[Builtin::new("eigs", 1..=2, eigs)];

fn eigs(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = square("eigs", &args[0])?;
    let wants_vectors = match args.get(1) {
        Some(Value::Object(options)) => options
            .get("eigenvectors")
            .map(|value| truthy("eigs", value))
            .transpose()?
            .unwrap_or(true),
        _ => true,
    };
    let numbers = numbers(matrix)?;
    let pairs = if is_symmetric(&numbers, matrix.rows()) {
        symmetric(env, &numbers, matrix.rows())?
    } else {
        general(env, &numbers, matrix.rows(), wants_vectors)?
    };
    let kind = matrix.kind;
    let values = Matrix::vector(pairs.iter().map(|pair| pair.0.clone()).collect()).of_kind(kind);
    let mut result = Object::of([("values", values.into())]);
    if wants_vectors {
        let vectors = pairs.into_iter().map(|(value, vector)| {
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

fn numbers(matrix: &Matrix) -> Result<Vec<Complex>> {
    matrix
        .cells
        .iter()
        .map(|cell| simple("eigs", cell, 0).map(|cell| to_complex(&cell)))
        .collect()
}

fn is_symmetric(cells: &[Complex], n: usize) -> bool {
    (0..n * n).all(|at| {
        cells[at].im == 0.0 && (cells[at].re - cells[at % n * n + at / n].re).abs() <= 1e-12
    })
}

/// Only the eigenvalues.
pub(crate) fn values(env: &mut Env, matrix: &Matrix) -> Result<Vec<Complex>> {
    let cells = numbers(matrix)?;
    let pairs = if is_symmetric(&cells, matrix.rows()) {
        symmetric(env, &cells, matrix.rows())?
    } else {
        general(env, &cells, matrix.rows(), false)?
    };
    Ok(pairs
        .into_iter()
        .map(|(value, _)| to_complex(&value))
        .collect())
}

type Pairs = Vec<(Value, Vec<Value>)>;

/// Jacobi's rotations: each makes the largest entry beside the diagonal vanish.
fn symmetric(env: &mut Env, cells: &[Complex], n: usize) -> Result<Pairs> {
    let mut a: Vec<f64> = cells.iter().map(|cell| cell.re).collect();
    if a.iter().any(|x| !x.is_finite()) {
        return Err(MathError::value("Eigenvalues need finite numbers"));
    }
    let mut vectors = vec![0.0; n * n];
    (0..n).for_each(|at| vectors[at * n + at] = 1.0);
    loop {
        env.purse.pay((n * n) as u64 + 1)?;
        let scale = a.iter().fold(0.0f64, |scale, x| scale.max(x.abs()));
        let mut largest = (0, 0, 0.0);
        for i in 0..n {
            for j in i + 1..n {
                if a[i * n + j].abs() > largest.2 {
                    largest = (i, j, a[i * n + j].abs());
                }
            }
        }
        let (i, j, size) = largest;
        if size <= scale * 1e-16 {
            break;
        }
        let spread = a[j * n + j] - a[i * n + i];
        let angle = if spread == 0.0 {
            std::f64::consts::FRAC_PI_4
        } else {
            0.5 * (2.0 * a[i * n + j] / spread).atan()
        };
        let (s, c) = angle.sin_cos();
        for k in 0..n {
            let (x, y) = (a[k * n + i], a[k * n + j]);
            a[k * n + i] = c * x - s * y;
            a[k * n + j] = s * x + c * y;
        }
        for k in 0..n {
            let (x, y) = (a[i * n + k], a[j * n + k]);
            a[i * n + k] = c * x - s * y;
            a[j * n + k] = s * x + c * y;
            let (x, y) = (vectors[k * n + i], vectors[k * n + j]);
            vectors[k * n + i] = c * x - s * y;
            vectors[k * n + j] = s * x + c * y;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| a[x * n + x].total_cmp(&a[y * n + y]));
    let column = |at: usize| (0..n).map(|k| Value::Num(vectors[k * n + at])).collect();
    Ok(order
        .into_iter()
        .map(|at| (Value::Num(a[at * n + at]), column(at)))
        .collect())
}

/// QR steps with shifts on a complex matrix; vectors by inverse iteration.
fn general(env: &mut Env, cells: &[Complex], n: usize, wants_vectors: bool) -> Result<Pairs> {
    if cells.iter().any(|z| !z.re.is_finite() || !z.im.is_finite()) {
        return Err(MathError::value("Eigenvalues need finite numbers"));
    }
    let is_real = cells.iter().all(|z| z.im == 0.0);
    let scale = cells
        .iter()
        .fold(0.0f64, |scale, z| scale.max(z.abs()))
        .max(f64::MIN_POSITIVE);
    let mut found = Vec::with_capacity(n);
    let (mut a, mut size, mut steps) = (cells.to_vec(), n, 0);
    while size > 0 {
        env.purse.pay((size * size * size) as u64 + 1)?;
        if size == 1 {
            found.push(a[0]);
            break;
        }
        let last = size - 1;
        let beside = (0..last)
            .map(|k| a[last * size + k].abs())
            .fold(0.0, f64::max);
        if beside <= 1e-15 * scale || steps > 300 {
            found.push(a[last * size + last]);
            a = (0..last * last)
                .map(|at| a[at / last * size + at % last])
                .collect();
            size = last;
            steps = 0;
            continue;
        }
        steps += 1;
        let shift = if steps % 11 == 10 {
            Complex::new(a[last * size + last].re + beside, beside)
        } else {
            wilkinson(&a, size)
        };
        shifted_step(&mut a, size, shift);
    }
    for value in &mut found {
        if is_real && value.im.abs() <= 1e-12 * scale {
            value.im = 0.0;
        }
    }
    found.sort_by(|x, y| x.abs().total_cmp(&y.abs()));
    found
        .into_iter()
        .map(|value| {
            let vector = if wants_vectors {
                inverse_iteration(env, cells, n, value, scale)?
            } else {
                Vec::new()
            };
            let real = value.im == 0.0 && is_real;
            let number = |z: Complex| {
                if real {
                    Value::Num(z.re)
                } else {
                    Value::Complex(z)
                }
            };
            Ok((number(value), vector.into_iter().map(number).collect()))
        })
        .collect()
}

/// The eigenvalue of the last two rows that is nearer to the corner.
fn wilkinson(a: &[Complex], size: usize) -> Complex {
    let at = |row: usize, column: usize| a[row * size + column];
    let (p, q) = (size - 2, size - 1);
    let half = (at(p, p) - at(q, q)).scale(0.5);
    let root = (half * half + at(p, q) * at(q, p)).sqrt();
    let middle = (at(p, p) + at(q, q)).scale(0.5);
    let (one, other) = (middle + root, middle - root);
    if (one - at(q, q)).abs() < (other - at(q, q)).abs() {
        one
    } else {
        other
    }
}

/// A − σ = QR by Gram–Schmidt, then RQ + σ.
fn shifted_step(a: &mut [Complex], n: usize, shift: Complex) {
    for at in 0..n {
        a[at * n + at] = a[at * n + at] - shift;
    }
    let mut q = a.to_vec();
    let mut r = vec![Complex::from(0.0); n * n];
    for column in 0..n {
        for before in 0..column {
            let dot = (0..n).fold(Complex::from(0.0), |sum, k| {
                sum + q[k * n + before].conjugate() * q[k * n + column]
            });
            r[before * n + column] = dot;
            for k in 0..n {
                q[k * n + column] = q[k * n + column] - dot * q[k * n + before];
            }
        }
        let length = (0..n)
            .map(|k| q[k * n + column].abs().powi(2))
            .sum::<f64>()
            .sqrt();
        r[column * n + column] = length.into();
        if length > 0.0 {
            (0..n).for_each(|k| q[k * n + column] = q[k * n + column].scale(1.0 / length));
        }
    }
    for row in 0..n {
        for column in 0..n {
            let sum = (row..n).fold(Complex::from(0.0), |sum, k| {
                sum + r[row * n + k] * q[k * n + column]
            });
            a[row * n + column] = if row == column { sum + shift } else { sum };
        }
    }
}

/// The vector that (A − λ)⁻¹ stretches most, of length one, its largest part positive.
fn inverse_iteration(
    env: &mut Env,
    cells: &[Complex],
    n: usize,
    value: Complex,
    scale: f64,
) -> Result<Vec<Complex>> {
    env.purse.pay((n * n * n) as u64 + 1)?;
    let nudge = Complex::from(value.re + scale * 1e-10);
    let nudge = Complex::new(nudge.re, value.im);
    let mut vector: Vec<Complex> = (0..n)
        .map(|k| Complex::new(1.0 + k as f64 * 0.01, 0.0))
        .collect();
    for _ in 0..4 {
        let mut system: Vec<Complex> = cells.to_vec();
        (0..n).for_each(|at| system[at * n + at] = system[at * n + at] - nudge);
        vector = eliminate(system, vector, n);
        let length = vector.iter().map(|z| z.abs().powi(2)).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|z| *z = z.scale(1.0 / length));
    }
    let largest = vector.iter().copied().fold(Complex::from(0.0), |best, z| {
        if z.abs() > best.abs() + 1e-9 { z } else { best }
    });
    let turn = if largest.is_zero() {
        Complex::from(1.0)
    } else {
        Complex::from(largest.abs()) / largest
    };
    Ok(vector.into_iter().map(|z| z * turn).collect())
}

fn eliminate(mut a: Vec<Complex>, mut right: Vec<Complex>, n: usize) -> Vec<Complex> {
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|x, y| a[x * n + k].abs().total_cmp(&a[y * n + k].abs()))
            .unwrap_or(k);
        (0..n).for_each(|column| a.swap(k * n + column, pivot * n + column));
        right.swap(k, pivot);
        if a[k * n + k].is_zero() {
            a[k * n + k] = 1e-300.into();
        }
        for row in k + 1..n {
            let factor = a[row * n + k] / a[k * n + k];
            (k..n).for_each(|column| {
                a[row * n + column] = a[row * n + column] - factor * a[k * n + column];
            });
            right[row] = right[row] - factor * right[k];
        }
    }
    for k in (0..n).rev() {
        let known = (k + 1..n).fold(Complex::from(0.0), |sum, j| sum + a[k * n + j] * right[j]);
        right[k] = (right[k] - known) / a[k * n + k];
    }
    right
}
