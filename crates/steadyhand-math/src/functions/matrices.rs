//! Making matrices, joining them, looking at them.

use crate::convert::{length, simple, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::complex::conj;
use crate::functions::linear::{as_matrix, vector};
use crate::functions::statistics::dimension_of;
use crate::number::decimal::Decimal;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::{ANY_NUMBER, Builtin, Function};
use crate::value::matrix::{Matrix, MatrixKind, cell_count};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("transpose", 1..=1, transpose),
    Builtin::new("ctranspose", 1..=1, ctranspose),
    Builtin::new("zeros", 0..=ANY_NUMBER, |env, args| {
        filled(env, "zeros", args, 0.0)
    }),
    Builtin::new("ones", 0..=ANY_NUMBER, |env, args| {
        filled(env, "ones", args, 1.0)
    }),
    Builtin::new("identity", 0..=3, identity),
    Builtin::new("diag", 1..=3, diag),
    Builtin::new("concat", 1..=ANY_NUMBER, concat),
    Builtin::new("count", 1..=1, count),
    Builtin::new("size", 1..=1, size),
    Builtin::new("getMatrixDataType", 1..=1, data_type),
    Builtin::new("matrixFromRows", 1..=ANY_NUMBER, |env, args| {
        from_lines(env, args)
    }),
    Builtin::new("matrixFromColumns", 1..=ANY_NUMBER, from_columns),
    Builtin::new("matrixFromFunction", 2..=4, from_function),
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
    crate::broadcast::each(env, &transposed, conj)
}

/// Lengths given one by one or as a list, the kind of matrix asked for, and whether big numbers were used.
fn shape_of(name: &str, args: &[Value]) -> Result<(Vec<usize>, MatrixKind, bool)> {
    let (args, wanted) = match args {
        [head @ .., Value::Text(format)] => (head, Some(storage(format)?)),
        args => (args, None),
    };
    let (sizes, kind) = match args {
        [Value::Matrix(matrix)] if matrix.size.len() == 1 => (matrix.cells.clone(), matrix.kind),
        args => (args.to_vec(), MatrixKind::Dense),
    };
    let is_list = matches!(args, [Value::Matrix(_)]);
    let is_big = sizes.iter().any(|size| matches!(size, Value::Big(_)));
    let lengths: Result<Vec<usize>> = sizes
        .iter()
        .map(|size| {
            let plain = matches!(size, Value::Num(_) | Value::Big(_))
                || (!is_list && matches!(size, Value::Int(_) | Value::Bool(_)));
            plain
                .then(|| length(name, size).ok())
                .flatten()
                .ok_or_else(|| {
                    MathError::value(format!(
                        "Parameters in function {name} must be positive integers"
                    ))
                })
        })
        .collect();
    let (lengths, kind) = (lengths?, wanted.unwrap_or(kind));
    if name == "identity" && lengths.contains(&0) {
        return Err(MathError::value(
            "Parameters in function identity must be positive integers",
        ));
    }
    if kind == MatrixKind::Sparse && name != "identity" && lengths.len() == 1 {
        return Err(MathError::dimensions(
            "Only two dimensions matrix are supported",
        ));
    }
    Ok((lengths, kind, is_big))
}

fn storage(format: &str) -> Result<MatrixKind> {
    match format {
        "dense" | "default" => Ok(MatrixKind::Dense),
        "sparse" => Ok(MatrixKind::Sparse),
        other => Err(MathError::value(format!("Unknown matrix type \"{other}\""))),
    }
}

fn number(x: f64, is_big: bool) -> Value {
    if is_big {
        Value::big(Decimal::from_f64(x))
    } else {
        Value::Num(x)
    }
}

fn filled(env: &mut Env, name: &str, args: &[Value], cell: f64) -> Result<Value> {
    let (size, kind, is_big) = shape_of(name, args)?;
    if size.is_empty() {
        return Ok(Matrix::vector(Vec::new()).of_kind(kind).into());
    }
    Ok(Matrix::filled(env, kind, size, &number(cell, is_big))?.into())
}

fn identity(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (mut size, kind, is_big) = shape_of("identity", args)?;
    match size.len() {
        0 => return Ok(Matrix::vector(Vec::new()).of_kind(kind).into()),
        1 => size.push(size[0]),
        2 => {}
        _ => {
            return Err(MathError::dimensions(
                "Vector containing two values expected",
            ));
        }
    }
    let columns = size[1];
    let mut matrix = Matrix::filled(env, kind, size, &number(0.0, is_big))?;
    for at in 0..matrix.rows().min(columns) {
        matrix.cells[at * columns + at] = number(1.0, is_big);
    }
    Ok(matrix.into())
}

/// A matrix with this diagonal, or the diagonal of a matrix; the k-th above or below the main one.
fn diag(env: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("diag", &args[0])?;
    let (k, format) = match &args[1..] {
        [] => (0, None),
        [Value::Text(format)] => (0, Some(format)),
        [k] => (whole("diag", k)?, None),
        [k, Value::Text(format), ..] => (whole("diag", k)?, Some(format)),
        [_, other, ..] => return Err(wrong_type("diag", other, 2)),
    };
    let kind = match format {
        Some(format) => storage(format)?,
        None => matrix.kind,
    };
    let too_far = || MathError::value("Second parameter in function diag is too large");
    let above = usize::try_from(k.max(0))
        .ok()
        .filter(|k| *k <= 100_000)
        .ok_or_else(too_far)?;
    let below = usize::try_from((-k).max(0))
        .ok()
        .filter(|k| *k <= 100_000)
        .ok_or_else(too_far)?;
    match matrix.size.len() {
        1 => {
            let n = matrix.cells.len();
            let mut result =
                Matrix::filled(env, kind, vec![n + below, n + above], &Value::Num(0.0))?;
            for (at, cell) in matrix.cells.iter().enumerate() {
                result.cells[(at + below) * (n + above) + at + above] = cell.clone();
            }
            Ok(result.into())
        }
        2 => {
            if below > matrix.rows() || above > matrix.columns() {
                return Err(too_far());
            }
            let length = matrix
                .rows()
                .saturating_sub(below)
                .min(matrix.columns().saturating_sub(above));
            let cells = (0..length)
                .map(|at| matrix.at(at + below, at + above).clone())
                .collect();
            Ok(Matrix::vector(cells).of_kind(kind).into())
        }
        _ => Err(MathError::dimensions(
            "Matrix for function diag must be 2 dimensional",
        )),
    }
}

fn concat(env: &mut Env, args: &[Value]) -> Result<Value> {
    if matches!(args[0], Value::Text(_)) {
        let mut text = String::new();
        for arg in args {
            let Value::Text(part) = arg else {
                return Err(wrong_type("concat", arg, 0));
            };
            env.purse.pay_text(text.len() + part.len())?;
            text.push_str(part);
        }
        return Ok(Value::text(&text));
    }
    let (args, dimension) = match args {
        [head @ .., last] if !matches!(last, Value::Matrix(_)) && !head.is_empty() => {
            let first = as_matrix("concat", &head[0])?;
            (head, dimension_of("concat", last, first)?)
        }
        args => (
            args,
            as_matrix("concat", &args[0])?.size.len().saturating_sub(1),
        ),
    };
    let mut result = as_matrix("concat", &args[0])?.clone();
    for arg in &args[1..] {
        let next = as_matrix("concat", arg)?;
        result = join(env, &result, next, dimension)?;
    }
    Ok(result.into())
}

fn join(env: &mut Env, a: &Matrix, b: &Matrix, dimension: usize) -> Result<Matrix> {
    let fits = a.size.len() == b.size.len()
        && a.size
            .iter()
            .zip(&b.size)
            .enumerate()
            .all(|(at, (a, b))| at == dimension || a == b);
    if !fits {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != {})",
            a.size_text(),
            b.size_text()
        )));
    }
    env.purse.pay_cells(a.cells.len() + b.cells.len())?;
    let outer = cell_count(&a.size[..dimension]);
    let (left, right) = (a.cells.len() / outer.max(1), b.cells.len() / outer.max(1));
    let mut cells = Vec::with_capacity(a.cells.len() + b.cells.len());
    for at in 0..outer {
        cells.extend_from_slice(&a.cells[at * left..(at + 1) * left]);
        cells.extend_from_slice(&b.cells[at * right..(at + 1) * right]);
    }
    let mut size = a.size.clone();
    size[dimension] += b.size[dimension];
    Ok(Matrix {
        kind: a.kind.with(b.kind),
        size,
        cells,
    })
}

fn count(_: &mut Env, args: &[Value]) -> Result<Value> {
    match &args[0] {
        Value::Matrix(matrix) => Ok(Value::Num(matrix.cells.len() as f64)),
        Value::Text(text) => Ok(Value::Num(text.encode_utf16().count() as f64)),
        other => Err(wrong_type("count", other, 0)),
    }
}

fn size(_: &mut Env, args: &[Value]) -> Result<Value> {
    let lengths = match &args[0] {
        Value::Matrix(matrix) => matrix.size.clone(),
        Value::Text(text) => vec![text.encode_utf16().count()],
        Value::Object(_) | Value::Function(_) | Value::Null | Value::Undefined => {
            return Err(wrong_type("size", &args[0], 0));
        }
        _ => Vec::new(),
    };
    Ok(Matrix::array(
        lengths
            .into_iter()
            .map(|length| Value::Num(length as f64))
            .collect(),
    )
    .into())
}

fn data_type(_: &mut Env, args: &[Value]) -> Result<Value> {
    let matrix = as_matrix("getMatrixDataType", &args[0])?;
    let first = matrix.cells.first().map(Value::type_name);
    let same = matrix
        .cells
        .iter()
        .all(|cell| Some(cell.type_name()) == first);
    Ok(match first {
        Some(name) if same => Value::text(name),
        Some(_) => Value::text("mixed"),
        None => Value::Undefined,
    })
}

/// Vectors, each a line of its own.
fn lines(args: &[Value]) -> Result<Vec<Vec<Value>>> {
    let lines = args.iter().map(|arg| vector("matrixFromRows", arg));
    let lines: Vec<Vec<Value>> = lines.collect::<Result<_>>()?;
    if lines.iter().any(|line| line.len() != lines[0].len()) {
        return Err(MathError::dimensions("The vectors had different length"));
    }
    Ok(lines)
}

fn from_lines(env: &mut Env, args: &[Value]) -> Result<Value> {
    let lines = lines(args)?;
    let (rows, columns) = (lines.len(), lines.first().map_or(0, Vec::len));
    env.purse.pay_cells(rows * columns)?;
    let kind = as_matrix("matrixFromRows", &args[0])?.kind;
    Ok(
        Matrix::grid(rows, columns, lines.into_iter().flatten().collect())
            .of_kind(kind)
            .into(),
    )
}

fn from_columns(env: &mut Env, args: &[Value]) -> Result<Value> {
    let rows = from_lines(env, args)?;
    transpose(env, &[rows])
}

fn from_function(env: &mut Env, args: &[Value]) -> Result<Value> {
    let sizes = as_matrix("matrixFromFunction", &args[0])?;
    let size: Result<Vec<usize>> = sizes
        .cells
        .iter()
        .map(|cell| length("matrixFromFunction", cell))
        .collect();
    let size = size?;
    let mut function: Option<&Function> = None;
    let mut kind = sizes.kind;
    for arg in &args[1..] {
        match arg {
            Value::Function(given) => function = Some(given),
            Value::Text(name) if &**name == "sparse" => kind = MatrixKind::Sparse,
            Value::Text(_) => {}
            other => return Err(wrong_type("matrixFromFunction", other, 1)),
        }
    }
    let function = function
        .ok_or_else(|| wrong_type("matrixFromFunction", &args[1], 1))?
        .clone();
    let total = cell_count(&size);
    env.purse.pay_cells(total)?;
    let mut cells = Vec::with_capacity(total);
    // Positions count from zero here, as they do in mathjs even inside expressions.
    for at in 0..total {
        let mut rest = at;
        let mut index = vec![Value::Num(0.0); size.len()];
        for (slot, length) in index.iter_mut().zip(&size).rev() {
            *slot = Value::Num((rest % length) as f64);
            rest /= length;
        }
        let index = Matrix::array(index).of_kind(MatrixKind::Dense);
        env.purse.pay(1)?;
        let value = env.call_function(&function, &[index.into()])?;
        cells.push(if let Value::Matrix(_) = value {
            value
        } else {
            simple("matrixFromFunction", &value, 0).unwrap_or(value)
        });
    }
    Ok(Matrix { kind, size, cells }.into())
}
