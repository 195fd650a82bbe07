//! Filters: from zeros and poles to coefficients, and their frequency response.

use std::f64::consts::PI;

use crate::convert::{length, simple, to_complex, to_f64, wrong_type};
use crate::error::Result;
use crate::functions::linear::as_matrix;
use crate::number::complex::Complex;
use crate::ops::arithmetic::{add_scalar, divide_scalar, multiply_scalar, negate_scalar};
use crate::refusals::unsupported;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("zpk2tf", 2..=3, zpk2tf),
    Builtin::new("freqz", 2..=3, freqz),
];

/// The coefficients of (x − r₁)(x − r₂)…
fn polynomial(env: &mut Env, roots: &[Value]) -> Result<Vec<Value>> {
    let mut coefficients = vec![Value::Complex(Complex::from(1.0))];
    for root in roots {
        env.purse.pay(coefficients.len() as u64)?;
        let root = negate_scalar(env, &simple("zpk2tf", root, 0)?)?;
        let mut next = vec![Value::Num(0.0); coefficients.len() + 1];
        for (at, coefficient) in coefficients.iter().enumerate() {
            next[at] = add_scalar(env, &next[at], coefficient)?;
            let product = multiply_scalar(env, coefficient, &root)?;
            next[at + 1] = add_scalar(env, &next[at + 1], &product)?;
        }
        coefficients = next;
    }
    Ok(coefficients)
}

fn zpk2tf(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (zeros, poles) = (
        as_matrix("zpk2tf", &args[0])?,
        as_matrix("zpk2tf", &args[1])?,
    );
    for list in [zeros, poles] {
        let has_big = list.cells.iter().any(|cell| matches!(cell, Value::Big(_)));
        let is_number = |cell: &Value| {
            matches!(cell, Value::Num(_) | Value::Complex(_) | Value::Big(_))
                || (has_big && matches!(cell, Value::Frac(_)))
        };
        if list.size.len() != 1 || !list.cells.iter().all(is_number) {
            return Err(unsupported("zpk2tf", "anything but lists of numbers"));
        }
    }
    let gain = args.get(2).cloned().unwrap_or(Value::Num(1.0));
    let mut above = polynomial(env, &zeros.cells)?;
    let below = polynomial(env, &poles.cells)?;
    for coefficient in &mut above {
        *coefficient = multiply_scalar(env, coefficient, &gain)?;
    }
    let is_grid = above.len() == below.len();
    let rows = vec![Matrix::array(above).into(), Matrix::array(below).into()];
    Ok(match is_grid {
        true => Matrix::stack(env, MatrixKind::Array, rows)?.into(),
        false => Matrix::array(rows).into(),
    })
}

/// The response of a filter at these frequencies, or at as many as asked for between 0 and π.
fn freqz(env: &mut Env, args: &[Value]) -> Result<Value> {
    let numbers = |value: &Value| -> Result<Vec<Complex>> {
        let list = as_matrix("freqz", value)?;
        if list.size.len() != 1 {
            return Err(unsupported("freqz", "matrices as coefficients, only lists"));
        }
        list.cells
            .iter()
            .map(|cell| simple("freqz", cell, 0).map(|cell| to_complex(&cell)))
            .collect()
    };
    let (above, below) = (numbers(&args[0])?, numbers(&args[1])?);
    let frequencies: Vec<f64> = match args.get(2) {
        Some(Value::Matrix(matrix)) => {
            let is_real = |cell: &Value| {
                matches!(
                    cell,
                    Value::Num(_) | Value::Big(_) | Value::Frac(_) | Value::Int(_)
                )
            };
            if matrix.size.len() != 1 || !matrix.cells.iter().all(is_real) {
                return Err(unsupported(
                    "freqz",
                    "anything but a list of real numbers as frequencies",
                ));
            }
            matrix.cells.iter().map(to_f64).collect()
        }
        Some(count @ (Value::Num(_) | Value::Big(_))) => bins(env, length("freqz", count)?)?,
        None => bins(env, 512)?,
        Some(other) => return Err(wrong_type("freqz", other, 2)),
    };
    env.purse
        .pay(frequencies.len() as u64 * (above.len() + below.len()) as u64)?;
    let at = |coefficients: &[Complex], frequency: f64| {
        let turned = coefficients
            .iter()
            .enumerate()
            .map(|(k, c)| *c * Complex::polar(1.0, -(k as f64) * frequency));
        turned.fold(Complex::from(0.0), |sum, z| sum + z)
    };
    let response: Result<Vec<Value>> = frequencies
        .iter()
        .map(|f| divide_scalar(env, &at(&above, *f).into(), &at(&below, *f).into()))
        .collect();
    let kind = as_matrix("freqz", &args[0])?.kind;
    let response = Matrix::vector(response?).of_kind(kind);
    let frequencies = Matrix::numbers(kind, vec![frequencies.len()], &frequencies);
    Ok(Value::object(match args.get(2) {
        None => Object::of([("w", frequencies.into()), ("h", response.into())]),
        Some(given @ Value::Matrix(_)) => {
            Object::of([("h", response.into()), ("w", given.clone())])
        }
        Some(_) => Object::of([("h", response.into()), ("w", frequencies.into())]),
    }))
}

fn bins(env: &mut Env, count: usize) -> Result<Vec<f64>> {
    env.purse.pay_cells(count)?;
    Ok((0..count).map(|k| k as f64 / count as f64 * PI).collect())
}
