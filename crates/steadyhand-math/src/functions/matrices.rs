//! Making matrices and looking at them.

use crate::convert::{length, wrong_type};
use crate::env::Env;
use crate::error::Result;
use crate::function::{ANY_NUMBER, Builtin};
use crate::functions::complex::conj;
use crate::matrix::Matrix;
use crate::value::Value;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("transpose", 1..=1, transpose),
    Builtin::new("ctranspose", 1..=1, ctranspose),
    Builtin::new("zeros", 0..=ANY_NUMBER, |env, args| {
        filled(env, "zeros", args, 0.0)
    }),
    Builtin::new("ones", 0..=ANY_NUMBER, |env, args| {
        filled(env, "ones", args, 1.0)
    }),
];

fn transpose(env: &mut Env, args: &[Value]) -> Result<Value> {
    match &args[0] {
        Value::Matrix(matrix) => {
            env.purse.pay_cells(matrix.cells.len())?;
            Ok(matrix.transposed()?.into())
        }
        other => Ok(other.clone()),
    }
}

pub(crate) fn ctranspose(env: &mut Env, args: &[Value]) -> Result<Value> {
    let transposed = transpose(env, args)?;
    crate::broadcast::each(env, &transposed, |env, cell| match cell {
        Value::Complex(_) => conj(env, cell),
        other => Ok(other.clone()),
    })
}

fn filled(env: &mut Env, name: &str, args: &[Value], cell: f64) -> Result<Value> {
    use crate::matrix::MatrixKind;
    let (args, mut kind) = match args {
        [head @ .., Value::Text(format)] => (
            head,
            if &**format == "sparse" {
                MatrixKind::Sparse
            } else {
                MatrixKind::Dense
            },
        ),
        args => (args, MatrixKind::Dense),
    };
    let sizes: Vec<Value> = match args {
        [Value::Matrix(matrix)] => {
            if kind == MatrixKind::Dense {
                kind = matrix.kind;
            }
            matrix.cells.clone()
        }
        args => args.to_vec(),
    };
    let is_big = sizes.iter().any(|size| matches!(size, Value::Big(_)));
    let size: Result<Vec<usize>> = sizes.iter().map(|size| length(name, size)).collect();
    let size = size?;
    let cell = if is_big {
        Value::big(crate::number::decimal::Decimal::from_f64(cell))
    } else {
        Value::Num(cell)
    };
    if size.is_empty() {
        return Ok(Matrix::vector(Vec::new()).of_kind(kind).into());
    }
    Ok(Matrix::filled(env, kind, size, &cell)?.into())
}

pub(crate) fn not_a_matrix(name: &str, value: &Value) -> crate::error::MathError {
    wrong_type(name, value, 0)
}
