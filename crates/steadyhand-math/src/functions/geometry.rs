//! Points, lines, planes, rotations.

use crate::convert::{simple, to_f64, wrong_type};
use crate::env::Env;
use crate::error::{MathError, Result};
use crate::function::Builtin;
use crate::functions::linear::{as_matrix, product};
use crate::matrix::{Matrix, MatrixKind};
use crate::value::Value;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("distance", 1..=3, distance),
    Builtin::new("intersect", 3..=4, intersect),
    Builtin::new("rotationMatrix", 0..=3, rotation_matrix),
    Builtin::new("rotate", 2..=3, rotate),
];

/// The coordinates of a point, given as a list or as an object.
fn point(name: &str, value: &Value) -> Result<Vec<f64>> {
    let number = |value: &Value| simple(name, value, 0).map(|value| to_f64(&value));
    match value {
        Value::Matrix(matrix) => matrix.cells.iter().map(number).collect(),
        Value::Object(object) => object.entries.values().map(number).collect(),
        other => Err(wrong_type(name, other, 0)),
    }
}

fn between(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b) * (a - b))
        .sum::<f64>()
        .sqrt()
}

fn distance(env: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Matrix(points)] if points.size.len() == 2 => {
            let points: Result<Vec<Vec<f64>>> = points
                .items()
                .iter()
                .map(|item| point("distance", item))
                .collect();
            let points = points?;
            env.purse
                .pay_cells(points.len().saturating_mul(points.len()))?;
            let mut distances = Vec::new();
            for (at, a) in points.iter().enumerate() {
                distances.extend(points[at + 1..].iter().map(|b| Value::Num(between(a, b))));
            }
            Ok(Matrix::array(distances).into())
        }
        [a, b] => {
            let (a, b) = (point("distance", a)?, point("distance", b)?);
            match (a.as_slice(), b.as_slice()) {
                (a, b) if a.len() == b.len() => Ok(Value::Num(between(a, b))),
                // A point and a line ax + by + c = 0.
                ([x, y], [a, b, c]) => Ok(Value::Num((a * x + b * y + c).abs() / a.hypot(*b))),
                _ => Err(MathError::dimensions(
                    "Invalid arguments in function distance",
                )),
            }
        }
        [a, from, to] => {
            let (a, from, to) = (
                point("distance", a)?,
                point("distance", from)?,
                point("distance", to)?,
            );
            point_to_line(&a, &from, &to)
        }
        _ => Err(MathError::arguments(
            "Invalid arguments in function distance",
        )),
    }
}

fn point_to_line(a: &[f64], from: &[f64], to: &[f64]) -> Result<Value> {
    let direction: Vec<f64> = to.iter().zip(from).map(|(to, from)| to - from).collect();
    let offset: Vec<f64> = a.iter().zip(from).map(|(a, from)| a - from).collect();
    let length: f64 = direction.iter().map(|x| x * x).sum();
    if length == 0.0 {
        return Err(MathError::value("The two points of the line are the same"));
    }
    let along = offset
        .iter()
        .zip(&direction)
        .map(|(a, b)| a * b)
        .sum::<f64>()
        / length;
    let foot: Vec<f64> = from
        .iter()
        .zip(&direction)
        .map(|(from, d)| from + along * d)
        .collect();
    Ok(Value::Num(between(a, &foot)))
}

fn intersect(_: &mut Env, args: &[Value]) -> Result<Value> {
    let kind = as_matrix("intersect", &args[0])?.kind;
    let points: Result<Vec<Vec<f64>>> = args.iter().map(|arg| point("intersect", arg)).collect();
    let points = points?;
    let found = match points.as_slice() {
        [a, b, plane] => line_and_plane(a, b, plane)?,
        [a, b, c, d] => two_lines(a, b, c, d)?,
        _ => {
            return Err(MathError::arguments(
                "Invalid arguments in function intersect",
            ));
        }
    };
    Ok(match found {
        Some(point) => Matrix::vector(point.into_iter().map(Value::Num).collect())
            .of_kind(kind)
            .into(),
        None => Value::Null,
    })
}

/// Where two lines, each through two points, meet; `None` for parallel or skew ones.
fn two_lines(a: &[f64], b: &[f64], c: &[f64], d: &[f64]) -> Result<Option<Vec<f64>>> {
    let n = a.len();
    if !(2..=3).contains(&n) || [b, c, d].iter().any(|point| point.len() != n) {
        return Err(MathError::dimensions(
            "Arrays with two or thee dimensional points expected",
        ));
    }
    let minus =
        |x: &[f64], y: &[f64]| -> Vec<f64> { x.iter().zip(y).map(|(x, y)| x - y).collect() };
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (u, v, w) = (minus(b, a), minus(d, c), minus(a, c));
    let below = dot(&u, &u) * dot(&v, &v) - dot(&u, &v) * dot(&u, &v);
    if below.abs() < 1e-15 {
        return Ok(None);
    }
    let s = (dot(&u, &v) * dot(&v, &w) - dot(&v, &v) * dot(&u, &w)) / below;
    let t = (dot(&u, &u) * dot(&v, &w) - dot(&u, &v) * dot(&u, &w)) / below;
    let on_first: Vec<f64> = a.iter().zip(&u).map(|(a, u)| a + s * u).collect();
    let on_second: Vec<f64> = c.iter().zip(&v).map(|(c, v)| c + t * v).collect();
    Ok((between(&on_first, &on_second) < 1e-9).then_some(on_first))
}

/// A plane is ax + by + cz = d.
fn line_and_plane(a: &[f64], b: &[f64], plane: &[f64]) -> Result<Option<Vec<f64>>> {
    let ([ax, ay, az], [bx, by, bz], [p, q, r, s]) = (a, b, plane) else {
        return Err(MathError::dimensions(
            "Array with 3 numbers expected for the points, with 4 for the plane",
        ));
    };
    let (dx, dy, dz) = (bx - ax, by - ay, bz - az);
    let along = p * dx + q * dy + r * dz;
    if along == 0.0 {
        return Ok(None);
    }
    let t = (s - p * ax - q * ay - r * az) / along;
    Ok(Some(vec![ax + t * dx, ay + t * dy, az + t * dz]))
}

fn angle(value: &Value) -> Result<f64> {
    Ok(match value {
        Value::Unit(unit) => to_f64(&unit.radians("rotationMatrix")?),
        other => to_f64(&simple("rotationMatrix", other, 0)?),
    })
}

fn rotation_matrix(_: &mut Env, args: &[Value]) -> Result<Value> {
    let (mut axis, mut kind) = (None, MatrixKind::Dense);
    for arg in args.iter().skip(1) {
        match arg {
            Value::Text(format) if &**format == "sparse" => kind = MatrixKind::Sparse,
            Value::Text(_) => {}
            other => axis = Some(point("rotationMatrix", other)?),
        }
    }
    let Some(theta) = args.first() else {
        return Ok(Matrix::vector(Vec::new()).into());
    };
    Ok(rotation(angle(theta)?, axis.as_deref(), kind)?.into())
}

/// In the plane, or around an axis in space.
fn rotation(theta: f64, axis: Option<&[f64]>, kind: MatrixKind) -> Result<Matrix> {
    let (sin, cos) = theta.sin_cos();
    let Some(axis) = axis else {
        return Ok(Matrix::numbers(kind, vec![2, 2], &[cos, -sin, sin, cos]));
    };
    let [x, y, z] = axis else {
        return Err(MathError::dimensions("Vector must be of dimensions 1x3"));
    };
    let length = (x * x + y * y + z * z).sqrt();
    if length == 0.0 {
        return Err(MathError::value("Rotation around zero vector"));
    }
    let (x, y, z, rest) = (x / length, y / length, z / length, 1.0 - cos);
    let cells = [
        cos + x * x * rest,
        x * y * rest - z * sin,
        x * z * rest + y * sin,
        x * y * rest + z * sin,
        cos + y * y * rest,
        y * z * rest - x * sin,
        x * z * rest - y * sin,
        y * z * rest + x * sin,
        cos + z * z * rest,
    ];
    // Minus zero is not worth showing.
    let cells = cells.map(|x| x + 0.0);
    Ok(Matrix::numbers(kind, vec![3, 3], &cells))
}

fn rotate(env: &mut Env, args: &[Value]) -> Result<Value> {
    let vector = as_matrix("rotate", &args[0])?;
    let axis = args.get(2).map(|axis| point("rotate", axis)).transpose()?;
    let expected = if axis.is_some() { 3 } else { 2 };
    if vector.cells.len() != expected {
        return Err(MathError::dimensions(format!(
            "Vector must be of dimensions 1x{expected}"
        )));
    }
    let turned = rotation(angle(&args[1])?, axis.as_deref(), vector.kind)?;
    let flat = Matrix::vector(vector.cells.clone()).of_kind(vector.kind);
    Ok(product(env, &turned, &flat)?.into())
}
