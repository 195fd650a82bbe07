//! Points, lines, planes, rotations.

use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::arithmetic::sqrt_scalar;
use crate::functions::linear::as_matrix;
use crate::functions::matrix_functions::norm_of;
use crate::functions::trigonometry::{cosine, sine};
use crate::number::decimal::Decimal;
use crate::ops::arithmetic::{
    abs, add_scalar, divide_scalar, multiply_scalar, negate_scalar, subtract_scalar,
};
use crate::ops::compare::equal_scalar;
use crate::ops::linear::{is_zero, product, zero};
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("distance", 1..=3, distance),
    Builtin::new("intersect", 3..=4, intersect),
    Builtin::new("rotationMatrix", 0..=3, rotation_matrix),
    Builtin::new("rotate", 2..=3, rotate),
];

/// The sum of products of pairs.
fn dot(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Value> {
    let mut sum: Option<Value> = None;
    for (a, b) in a.iter().zip(b) {
        let product = multiply_scalar(env, a, b)?;
        sum = Some(match sum {
            Some(sum) => add_scalar(env, &sum, &product)?,
            None => product,
        });
    }
    Ok(sum.unwrap_or_else(zero))
}

fn minus(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    a.iter()
        .zip(b)
        .map(|(a, b)| subtract_scalar(env, a, b))
        .collect()
}

fn length(env: &mut Env, vector: &[Value]) -> Result<Value> {
    let square = dot(env, vector, vector)?;
    sqrt_scalar(env, &square)
}

/// The point `share` of the way along a direction.
fn along(env: &mut Env, start: &[Value], share: &Value, direction: &[Value]) -> Result<Vec<Value>> {
    start
        .iter()
        .zip(direction)
        .map(|(start, step)| {
            let part = multiply_scalar(env, share, step)?;
            add_scalar(env, start, &part)
        })
        .collect()
}

fn invalid() -> MathError {
    MathError::arguments("Invalid arguments in function distance")
}

/// The coordinates of a point given as a list: numbers or big numbers.
fn coordinates(value: &Value) -> Result<Vec<Value>> {
    let Value::Matrix(matrix) = value else {
        return Err(wrong_type("distance", value, 0));
    };
    let plain = matrix
        .cells
        .iter()
        .all(|cell| matches!(cell, Value::Num(_) | Value::Big(_)));
    if matrix.size.len() != 1 || !plain {
        return Err(MathError::arguments(
            "Points in function distance must be lists of numbers or BigNumbers",
        ));
    }
    Ok(matrix.cells.clone())
}

/// The coordinates of a point given as an object, under exactly these names.
fn named(object: &Object, names: &[&str]) -> Result<Vec<Value>> {
    if object.entries.len() != names.len() {
        return Err(invalid());
    }
    names
        .iter()
        .map(|name| match object.get(name) {
            Some(value @ (Value::Num(_) | Value::Big(_))) => Ok(value.clone()),
            Some(other) => Err(wrong_type("distance", other, 0)),
            None => Err(MathError::arguments(
                "Key names do not match in function distance",
            )),
        })
        .collect()
}

fn distance(env: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Matrix(points)] => pairwise(env, points),
        [Value::Object(a), Value::Object(b)] => {
            let is_plain = |object: &Object| object.get("x").is_some();
            let (a, b) = match (a.entries.len(), b.entries.len()) {
                (2, 2) if is_plain(a) => (named(a, &["x", "y"])?, named(b, &["x", "y"])?),
                (3, 3) if is_plain(a) => (named(a, &["x", "y", "z"])?, named(b, &["x", "y", "z"])?),
                (2, 3) => (
                    named(a, &["pointX", "pointY"])?,
                    named(b, &["xCoeffLine", "yCoeffLine", "constant"])?,
                ),
                (3, 6) => (
                    named(a, &["pointX", "pointY", "pointZ"])?,
                    named(b, &["x0", "y0", "z0", "a", "b", "c"])?,
                ),
                (2, 2) => (
                    named(a, &["pointOneX", "pointOneY"])?,
                    named(b, &["pointTwoX", "pointTwoY"])?,
                ),
                (3, 3) => (
                    named(a, &["pointOneX", "pointOneY", "pointOneZ"])?,
                    named(b, &["pointTwoX", "pointTwoY", "pointTwoZ"])?,
                ),
                _ => return Err(invalid()),
            };
            from_point(env, &a, &b)
        }
        [a, b] => {
            let (a, b) = (coordinates(a)?, coordinates(b)?);
            from_point(env, &a, &b)
        }
        [Value::Object(a), Value::Object(from), Value::Object(to)] => {
            let a = named(a, &["pointX", "pointY"])?;
            let from = named(from, &["lineOnePtX", "lineOnePtY"])?;
            let to = named(to, &["lineTwoPtX", "lineTwoPtY"])?;
            from_line_through(env, &a, &from, &to)
        }
        [a, from, to] => {
            let (a, from, to) = (coordinates(a)?, coordinates(from)?, coordinates(to)?);
            from_line_through(env, &a, &from, &to)
        }
        _ => Err(invalid()),
    }
}

/// Of a point from a point of as many coordinates, or from a line.
fn from_point(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Value> {
    match (a, b) {
        ([x, y], [p, q, constant]) => from_line(env, x, y, p, q, constant),
        // A line in space, by a point and a direction.
        ([_, _, _], [x0, y0, z0, direction @ ..]) if direction.len() == 3 => {
            let start = [x0.clone(), y0.clone(), z0.clone()];
            let offset = minus(env, &start, a)?;
            let mut cross = Vec::with_capacity(3);
            for (p, q) in [(1, 2), (2, 0), (0, 1)] {
                let left = multiply_scalar(env, &offset[p], &direction[q])?;
                let right = multiply_scalar(env, &offset[q], &direction[p])?;
                cross.push(subtract_scalar(env, &left, &right)?);
            }
            let (above, below) = (length(env, &cross)?, length(env, direction)?);
            divide_scalar(env, &above, &below)
        }
        (a, b) if a.len() == b.len() && !a.is_empty() => {
            let difference = minus(env, a, b)?;
            length(env, &difference)
        }
        _ => Err(invalid()),
    }
}

/// From the line px + qy + c = 0.
fn from_line(
    env: &mut Env,
    x: &Value,
    y: &Value,
    p: &Value,
    q: &Value,
    c: &Value,
) -> Result<Value> {
    let normal = [p.clone(), q.clone()];
    let sum = dot(env, &normal, &[x.clone(), y.clone()])?;
    let sum = add_scalar(env, &sum, c)?;
    let (above, below) = (abs(env, &sum)?, length(env, &normal)?);
    divide_scalar(env, &above, &below)
}

fn from_line_through(env: &mut Env, a: &[Value], from: &[Value], to: &[Value]) -> Result<Value> {
    let ([x, y], [x1, y1], [x2, y2]) = (a, from, to) else {
        return Err(invalid());
    };
    if equal_scalar(env, x1, x2)? && equal_scalar(env, y1, y2)? {
        return Err(MathError::value("The two points of the line are the same"));
    }
    let p = subtract_scalar(env, y2, y1)?;
    let q = subtract_scalar(env, x1, x2)?;
    let (left, right) = (multiply_scalar(env, x2, y1)?, multiply_scalar(env, x1, y2)?);
    let constant = subtract_scalar(env, &left, &right)?;
    from_line(env, x, y, &p, &q, &constant)
}

fn pairwise(env: &mut Env, points: &Matrix) -> Result<Value> {
    let fits = points.size.len() == 2
        && (2..=3).contains(&points.columns())
        && points
            .cells
            .iter()
            .all(|cell| matches!(cell, Value::Num(_) | Value::Big(_)));
    if !fits {
        return Err(MathError::arguments(
            "Incorrect array format entered for pairwise distance calculation",
        ));
    }
    let rows: Vec<&[Value]> = points.cells.chunks(points.columns()).collect();
    env.purse.pay_cells(rows.len().saturating_mul(rows.len()))?;
    let mut distances = Vec::new();
    for (at, a) in rows.iter().enumerate() {
        for b in &rows[at + 1..] {
            let difference = minus(env, a, b)?;
            distances.push(length(env, &difference)?);
        }
    }
    Ok(Matrix::array(distances).into())
}

/// The numbers of a vector, or of a matrix with one row or column.
fn point(value: &Value) -> Result<Vec<Value>> {
    let matrix = as_matrix("intersect", value)?;
    let is_line = matrix.size.iter().filter(|length| **length != 1).count() <= 1;
    let numeric = matrix.cells.iter().all(|cell| {
        matches!(
            cell,
            Value::Num(_) | Value::Big(_) | Value::Int(_) | Value::Frac(_) | Value::Bool(_)
        )
    });
    if !is_line || !numeric {
        return Err(MathError::arguments(
            "Points in function intersect must be lists of numbers",
        ));
    }
    Ok(matrix.cells.clone())
}

fn intersect(env: &mut Env, args: &[Value]) -> Result<Value> {
    let kind = as_matrix("intersect", &args[0])?.kind;
    let points: Result<Vec<Vec<Value>>> = args.iter().map(point).collect();
    let points = points?;
    let sizes: Vec<usize> = points.iter().map(Vec::len).collect();
    let found = match (points.as_slice(), sizes.as_slice()) {
        ([a, b, plane], [3, 3, 4]) => line_and_plane(env, a, b, plane)?,
        ([a, b, c, d], [2, 2, 2, 2]) => lines_in_plane(env, a, b, c, d)?,
        ([a, b, c, d], [3, 3, 3, 3]) => lines_in_space(env, a, b, c, d)?,
        _ => {
            return Err(MathError::dimensions(
                "Function intersect takes four points of two or three numbers, or two points of three numbers and a plane of four",
            ));
        }
    };
    Ok(match found {
        Some(point) => Matrix::vector(point).of_kind(kind).into(),
        None => Value::Null,
    })
}

fn lines_in_plane(
    env: &mut Env,
    a: &[Value],
    b: &[Value],
    c: &[Value],
    d: &[Value],
) -> Result<Option<Vec<Value>>> {
    let (u, v) = (minus(env, a, b)?, minus(env, c, d)?);
    let cross = |env: &mut Env, x: &[Value], y: &[Value]| -> Result<Value> {
        let left = multiply_scalar(env, &x[0], &y[1])?;
        let right = multiply_scalar(env, &x[1], &y[0])?;
        subtract_scalar(env, &left, &right)
    };
    let determinant = cross(env, &u, &v)?;
    let size = abs(env, &determinant)?;
    if is_zero(env, &determinant) || crate::convert::to_f64(&size) < 1e-12 {
        return Ok(None);
    }
    let offset = minus(env, a, c)?;
    let above = cross(env, &v, &offset)?;
    let share = divide_scalar(env, &above, &determinant)?;
    along(env, a, &share, &u).map(Some)
}

/// Where two lines, each through two points, meet; `None` for parallel or skew ones.
fn lines_in_space(
    env: &mut Env,
    a: &[Value],
    b: &[Value],
    c: &[Value],
    d: &[Value],
) -> Result<Option<Vec<Value>>> {
    let (u, v, w) = (minus(env, b, a)?, minus(env, d, c)?, minus(env, a, c)?);
    let (uu, vv, uv) = (dot(env, &u, &u)?, dot(env, &v, &v)?, dot(env, &u, &v)?);
    let (uw, vw) = (dot(env, &u, &w)?, dot(env, &v, &w)?);
    let determinant =
        |env: &mut Env, p: &Value, q: &Value, r: &Value, s: &Value| -> Result<Value> {
            let left = multiply_scalar(env, p, q)?;
            let right = multiply_scalar(env, r, s)?;
            subtract_scalar(env, &left, &right)
        };
    let below = determinant(env, &uu, &vv, &uv, &uv)?;
    if is_zero(env, &below) {
        return Ok(None);
    }
    let above = determinant(env, &vw, &uv, &uw, &vv)?;
    let s = divide_scalar(env, &above, &below)?;
    let part = multiply_scalar(env, &s, &uv)?;
    let part = add_scalar(env, &vw, &part)?;
    let t = divide_scalar(env, &part, &vv)?;
    let (on_first, on_second) = (along(env, a, &s, &u)?, along(env, c, &t, &v)?);
    for (one, other) in on_first.iter().zip(&on_second) {
        if !equal_scalar(env, one, other)? {
            return Ok(None);
        }
    }
    Ok(Some(on_first))
}

/// A plane is ax + by + cz = d.
fn line_and_plane(
    env: &mut Env,
    a: &[Value],
    b: &[Value],
    plane: &[Value],
) -> Result<Option<Vec<Value>>> {
    let (normal, constant) = (&plane[..3], &plane[3]);
    let direction = minus(env, b, a)?;
    let below = dot(env, normal, &direction)?;
    if is_zero(env, &below) {
        return Err(MathError::value(
            "The line is parallel to the plane: they do not meet in one point",
        ));
    }
    let start = dot(env, normal, a)?;
    let above = subtract_scalar(env, constant, &start)?;
    let share = divide_scalar(env, &above, &below)?;
    along(env, a, &share, &direction).map(Some)
}

fn format_kind(name: &str) -> Result<MatrixKind> {
    match name {
        "sparse" => Ok(MatrixKind::Sparse),
        "dense" => Ok(MatrixKind::Dense),
        other => Err(MathError::value(format!("Unknown matrix type \"{other}\""))),
    }
}

fn rotation_matrix(env: &mut Env, args: &[Value]) -> Result<Value> {
    let theta = match args {
        [] => return Ok(Matrix::vector(Vec::new()).into()),
        [Value::Text(format)] => {
            let kind = format_kind(format)?;
            let size = if kind == MatrixKind::Sparse {
                vec![0, 0]
            } else {
                vec![0]
            };
            return Ok(Matrix {
                kind,
                size,
                cells: Vec::new(),
            }
            .into());
        }
        [theta, ..] => theta,
    };
    let (mut axis, mut kind) = (None, MatrixKind::Dense);
    for arg in &args[1..] {
        match arg {
            Value::Text(format) => kind = format_kind(format)?,
            Value::Matrix(matrix) => {
                axis = Some(&**matrix);
                kind = matrix.kind;
            }
            other => return Err(wrong_type("rotationMatrix", other, 1)),
        }
    }
    Ok(rotation(env, theta, axis, kind)?.into())
}

/// In the plane, or around an axis in space.
fn rotation(
    env: &mut Env,
    theta: &Value,
    axis: Option<&Matrix>,
    kind: MatrixKind,
) -> Result<Matrix> {
    let (sin, cos) = (sine(env, theta)?, cosine(env, theta)?);
    let Some(axis) = axis else {
        let negated = negate_scalar(env, &sin)?;
        return Ok(Matrix::grid(2, 2, vec![cos.clone(), negated, sin, cos]).of_kind(kind));
    };
    if axis.size.first() != Some(&3) || axis.cells.len() != 3 {
        return Err(MathError::dimensions("Vector must be of dimensions 1x3"));
    }
    let mut parts = Vec::with_capacity(3);
    for part in &axis.cells {
        parts.push(match simple("abs", part, 0)? {
            Value::Complex(_) => return Err(wrong_type("rotationMatrix", part, 1)),
            number => to_f64(&number),
        });
    }
    let length = norm_of(env, &Matrix::numbers(MatrixKind::Dense, vec![3], &parts))?;
    if is_zero(env, &length) {
        return Err(MathError::value("Rotation around zero vector"));
    }
    let is_big = matches!(cos, Value::Big(_));
    let unit: Vec<Value> = parts
        .iter()
        .map(|part| {
            let x = part / to_f64(&length);
            if is_big {
                Value::big(Decimal::from_f64(x))
            } else {
                Value::Num(x)
            }
        })
        .collect();
    let one = if is_big {
        Value::big(Decimal::integer(1))
    } else {
        Value::Num(1.0)
    };
    let rest = subtract_scalar(env, &one, &cos)?;
    // Beside the diagonal stands the axis times the sine, with these signs.
    const TURNED: [(usize, f64); 9] = [
        (0, 0.0),
        (2, -1.0),
        (1, 1.0),
        (2, 1.0),
        (0, 0.0),
        (0, -1.0),
        (1, -1.0),
        (0, 1.0),
        (0, 0.0),
    ];
    let mut cells = Vec::with_capacity(9);
    for (at, (part, sign)) in TURNED.into_iter().enumerate() {
        let stretched = multiply_scalar(env, &unit[at / 3], &unit[at % 3])?;
        let stretched = multiply_scalar(env, &stretched, &rest)?;
        let turned = if sign == 0.0 {
            cos.clone()
        } else {
            let turned = multiply_scalar(env, &unit[part], &sin)?;
            multiply_scalar(env, &turned, &Value::Num(sign))?
        };
        cells.push(add_scalar(env, &stretched, &turned)?);
    }
    Ok(Matrix::grid(3, 3, cells).of_kind(kind))
}

fn rotate(env: &mut Env, args: &[Value]) -> Result<Value> {
    let vector = as_matrix("rotate", &args[0])?;
    let axis = args
        .get(2)
        .map(|axis| as_matrix("rotate", axis))
        .transpose()?;
    let expected = if axis.is_some() { 3 } else { 2 };
    let fits = match vector.size.as_slice() {
        [rows] | [rows, 1] => *rows == expected,
        _ => false,
    };
    if !fits {
        return Err(MathError::dimensions(format!(
            "Vector must be of dimensions 1x{expected}"
        )));
    }
    let turned = rotation(env, &args[1], axis, vector.kind)?;
    Ok(product(env, &turned, vector)?.into())
}
