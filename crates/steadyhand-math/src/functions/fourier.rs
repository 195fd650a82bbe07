//! Discrete Fourier transforms of any length and any number of dimensions.

use std::f64::consts::TAU;

use crate::convert::{simple, to_complex};
use crate::error::Result;
use crate::functions::linear::as_matrix;
use crate::number::complex::Complex;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, cell_count};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("fft", 1..=1, |env, args| transform(env, "fft", args, -1.0)),
    Builtin::new("ifft", 1..=1, |env, args| transform(env, "ifft", args, 1.0)),
];

fn transform(env: &mut Env, name: &str, args: &[Value], sign: f64) -> Result<Value> {
    let matrix = as_matrix(name, &args[0])?;
    let cells: Result<Vec<Complex>> = matrix
        .cells
        .iter()
        .map(|cell| simple(name, cell, 0).map(|cell| to_complex(&cell)))
        .collect();
    let mut cells = cells?;
    env.purse.pay_cells(cells.len())?;
    for dimension in 0..matrix.size.len() {
        let inner = cell_count(&matrix.size[dimension + 1..]);
        let length = matrix.size[dimension];
        for start in (0..cells.len()).filter(|at| (at / inner.max(1)).is_multiple_of(length.max(1)))
        {
            let line: Vec<Complex> = (0..length).map(|k| cells[start + k * inner]).collect();
            let turned = line_transform(env, line, sign)?;
            for (k, z) in turned.into_iter().enumerate() {
                cells[start + k * inner] = z;
            }
        }
    }
    if sign > 0.0 {
        let count = cells.len() as f64;
        cells.iter_mut().for_each(|z| *z = z.scale(1.0 / count));
    }
    let cells = cells.into_iter().map(Value::Complex).collect();
    Ok(Matrix {
        kind: matrix.kind,
        size: matrix.size.clone(),
        cells,
    }
    .into())
}

/// Halves even lengths; odd ones are summed up directly.
fn line_transform(env: &mut Env, line: Vec<Complex>, sign: f64) -> Result<Vec<Complex>> {
    let n = line.len();
    if n <= 1 {
        return Ok(line);
    }
    let turn = |k: usize| Complex::polar(1.0, sign * TAU * k as f64 / n as f64);
    if n % 2 == 1 {
        env.purse.pay((n * n) as u64)?;
        return Ok((0..n)
            .map(|k| {
                line.iter()
                    .enumerate()
                    .fold(Complex::from(0.0), |sum, (j, z)| sum + *z * turn(j * k % n))
            })
            .collect());
    }
    env.purse.pay(n as u64)?;
    let even = line_transform(env, line.iter().copied().step_by(2).collect(), sign)?;
    let odd = line_transform(env, line.iter().copied().skip(1).step_by(2).collect(), sign)?;
    let half = n / 2;
    Ok((0..n)
        .map(|k| {
            let turned = odd[k % half] * turn(k % half);
            if k < half {
                even[k] + turned
            } else {
                even[k - half] - turned
            }
        })
        .collect())
}
