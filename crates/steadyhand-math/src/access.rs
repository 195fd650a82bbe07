//! Reads and writes parts of values: `A[2, :]`, `text[1:3]`, `object.key`.

use std::sync::Arc;

use crate::convert::{to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::number::digits::write_javascript;
use crate::value::env::Env;
use crate::value::function::Function;
use crate::value::matrix::{Matrix, MatrixKind, broadcast_index, cell_count, dimension_text};
use crate::value::{Object, ObjectKind, Value};

/// The lengths that `end` can stand for.
pub(crate) fn lengths(object: &Value) -> Vec<usize> {
    match object {
        Value::Matrix(matrix) => matrix.size.clone(),
        Value::Text(text) => vec![text.encode_utf16().count()],
        _ => Vec::new(),
    }
}

/// What one part of an index selects: positions from zero, and whether it was a single number.
struct Selection {
    positions: Vec<usize>,
    is_single: bool,
}

fn select(env: &mut Env, part: &Value, length: usize) -> Result<Selection> {
    let position = |value: &Value| -> Result<usize> {
        let x = match value {
            Value::Num(_) | Value::Big(_) | Value::Int(_) | Value::Frac(_) => to_f64(value),
            other => {
                return Err(MathError::dimensions(format!(
                    "Dimension must be an Array, Matrix, number, bigint, string, or Range (actual: {})",
                    other.type_name()
                )));
            }
        };
        if x.fract() != 0.0 || !x.is_finite() {
            return Err(MathError::dimensions(format!(
                "Index must be an integer (value: {})",
                write_javascript(x)
            )));
        }
        if x < 1.0 {
            return Err(MathError::dimensions(format!(
                "Index out of range ({} < 1)",
                write_javascript(x)
            )));
        }
        if x > 1e9 {
            return Err(MathError::dimensions(format!(
                "Index out of range ({} > {length})",
                write_javascript(x)
            )));
        }
        Ok(x as usize - 1)
    };
    match part {
        Value::Matrix(matrix) => {
            env.purse.pay_cells(matrix.cells.len())?;
            let is_mask = !matrix.cells.is_empty()
                && matrix
                    .cells
                    .iter()
                    .all(|cell| matches!(cell, Value::Bool(_)));
            if is_mask {
                if matrix.cells.len() != length {
                    return Err(MathError::dimensions(format!(
                        "Dimension mismatch ({} != {length})",
                        matrix.cells.len()
                    )));
                }
                let chosen = matrix
                    .cells
                    .iter()
                    .enumerate()
                    .filter(|(_, cell)| matches!(cell, Value::Bool(true)));
                return Ok(Selection {
                    positions: chosen.map(|(at, _)| at).collect(),
                    is_single: false,
                });
            }
            let positions: Result<Vec<usize>> = matrix.cells.iter().map(position).collect();
            Ok(Selection {
                positions: positions?,
                is_single: false,
            })
        }
        single => Ok(Selection {
            positions: vec![position(single)?],
            is_single: true,
        }),
    }
}

fn out_of_range(position: usize, length: usize) -> MathError {
    MathError::dimensions(format!("Index out of range ({} > {length})", position + 1))
}

pub(crate) fn get(env: &mut Env, object: &Value, index: &[Value]) -> Result<Value> {
    match (object, index) {
        (Value::Object(object), [Value::Text(key)]) => {
            Ok(object.get(key).cloned().unwrap_or(Value::Undefined))
        }
        (Value::Object(_), _) => Err(MathError::dimensions(
            "Cannot apply a numeric index as object property",
        )),
        (Value::Matrix(matrix), _) => get_cells(env, matrix, index),
        (Value::Text(text), [part]) => get_letters(env, text, part),
        (Value::Text(_), _) => Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != 1)",
            index.len()
        ))),
        (Value::Results(results), [part]) => {
            let selection = select(env, part, results.len())?;
            let at = selection.positions.first().copied().unwrap_or(0);
            results
                .get(at)
                .cloned()
                .ok_or_else(|| out_of_range(at, results.len()))
        }
        (other, _) => Err(MathError::arguments(format!(
            "Cannot apply index: unsupported type of object ({})",
            other.type_name()
        ))),
    }
}

fn get_letters(env: &mut Env, text: &str, part: &Value) -> Result<Value> {
    let letters: Vec<u16> = text.encode_utf16().collect();
    env.purse.pay_text(text.len())?;
    let selection = select(env, part, letters.len())?;
    let mut chosen = Vec::new();
    for at in selection.positions {
        chosen.push(
            *letters
                .get(at)
                .ok_or_else(|| out_of_range(at, letters.len()))?,
        );
    }
    whole_letters(&chosen)
}

/// Positions count UTF-16 units, as JavaScript does; half of a character is no text.
fn whole_letters(units: &[u16]) -> Result<Value> {
    String::from_utf16(units)
        .map(|text| Value::text(&text))
        .map_err(|_| MathError::value("The index cuts a character in half"))
}

fn get_cells(env: &mut Env, matrix: &Matrix, index: &[Value]) -> Result<Value> {
    if index.is_empty() {
        return Ok(Value::matrix(matrix.clone()));
    }
    if index.len() != matrix.size.len() {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != {})",
            index.len(),
            matrix.size.len()
        )));
    }
    let mut selections = Vec::with_capacity(index.len());
    for (part, length) in index.iter().zip(&matrix.size) {
        let selection = select(env, part, *length)?;
        if let Some(outside) = selection.positions.iter().find(|at| **at >= *length) {
            return Err(out_of_range(*outside, *length));
        }
        selections.push(selection);
    }
    let shape: Vec<usize> = selections
        .iter()
        .map(|selection| selection.positions.len())
        .collect();
    let count = cell_count(&shape);
    env.purse.pay_cells(count)?;
    let mut cells = Vec::with_capacity(count);
    for_each_position(&selections, &matrix.size, |at| {
        cells.push(matrix.cells[at].clone());
    });
    if selections.iter().all(|selection| selection.is_single) {
        return cells
            .pop()
            .ok_or_else(|| MathError::dimensions("Index out of range"));
    }
    let size = match matrix.kind {
        // A sparse matrix has rows and columns, whatever is taken from it.
        MatrixKind::Sparse => shape,
        _ => selections
            .iter()
            .filter(|selection| !selection.is_single)
            .map(|selection| selection.positions.len())
            .collect(),
    };
    Ok(Matrix {
        kind: matrix.kind,
        size,
        cells,
    }
    .into())
}

/// Visits the flat position of every selected cell, in order.
fn for_each_position(selections: &[Selection], size: &[usize], mut visit: impl FnMut(usize)) {
    if selections
        .iter()
        .any(|selection| selection.positions.is_empty())
    {
        return;
    }
    let mut counters = vec![0usize; selections.len()];
    loop {
        let mut at = 0;
        for (i, length) in size.iter().enumerate() {
            at = at * length + selections[i].positions[counters[i]];
        }
        visit(at);
        let mut dimension = counters.len();
        loop {
            if dimension == 0 {
                return;
            }
            dimension -= 1;
            counters[dimension] += 1;
            if counters[dimension] < selections[dimension].positions.len() {
                break;
            }
            counters[dimension] = 0;
        }
    }
}

/// The object with a part replaced; matrices grow as needed, filled with zeros.
pub(crate) fn set(env: &mut Env, object: &Value, index: &[Value], value: &Value) -> Result<Value> {
    match (object, index) {
        (Value::Object(_), [Value::Text(key)]) => {
            env.purse.pay_cells(lengths(object).len() + 1)?;
            set_property(object, key, value.clone())
        }
        (Value::Object(_), _) => Err(MathError::dimensions(
            "Cannot apply a numeric index as object property",
        )),
        (Value::Matrix(matrix), _) => set_cells(env, matrix, index, value, &Value::Num(0.0)),
        (Value::Text(text), [part]) => set_letters(env, text, part, value),
        (other, _) => Err(MathError::arguments(format!(
            "Cannot apply index: unsupported type of object ({})",
            other.type_name()
        ))),
    }
}

pub(crate) fn set_cells(
    env: &mut Env,
    matrix: &Matrix,
    index: &[Value],
    value: &Value,
    filling: &Value,
) -> Result<Value> {
    if index.len() < matrix.size.len() {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} < {})",
            index.len(),
            matrix.size.len()
        )));
    }
    // A matrix with fewer dimensions than the index gains outer ones; an empty vector fits anything.
    let mut size = if matrix.cells.is_empty() && matrix.size == [0] {
        Vec::new()
    } else {
        matrix.size.clone()
    };
    while size.len() < index.len() {
        size.insert(0, usize::from(!matrix.cells.is_empty()));
    }
    let mut selections = Vec::with_capacity(index.len());
    let mut grown = size.clone();
    for (at, part) in index.iter().enumerate() {
        let selection = select(env, part, size[at])?;
        let needed = selection.positions.iter().max().map_or(0, |last| last + 1);
        grown[at] = grown[at].max(needed);
        selections.push(selection);
    }
    let mut result = if grown == size && !matrix.cells.is_empty() {
        env.purse.pay_cells(matrix.cells.len())?;
        Matrix {
            kind: matrix.kind,
            size,
            cells: matrix.cells.clone(),
        }
    } else {
        let base = Matrix {
            kind: matrix.kind,
            size,
            cells: matrix.cells.clone(),
        };
        resized(env, &base, grown, filling)?
    };
    let selected: Vec<usize> = selections
        .iter()
        .map(|selection| selection.positions.len())
        .collect();
    let replacement = Replacement::fit(value, &selections, &selected)?;
    let size = result.size.clone();
    let mut next = 0;
    for_each_position(&selections, &size, |at| {
        result.cells[at] = replacement.cell(next, &selected);
        next += 1;
    });
    Ok(result.into())
}

/// What is written into the selected cells, stretched over them.
enum Replacement<'a> {
    Scalar(&'a Value),
    Cells {
        cells: &'a [Value],
        size: Vec<usize>,
    },
}

impl<'a> Replacement<'a> {
    fn fit(value: &'a Value, selections: &[Selection], selected: &[usize]) -> Result<Self> {
        let Value::Matrix(matrix) = value else {
            return Ok(Self::Scalar(value));
        };
        // Single positions have no dimension in the value; ones are put where they were.
        let wanted: Vec<usize> = selections
            .iter()
            .filter(|selection| !selection.is_single)
            .map(|selection| selection.positions.len())
            .collect();
        let squeezed: Vec<usize> = matrix
            .size
            .iter()
            .copied()
            .filter(|length| *length != 1)
            .collect();
        let fits = matrix.size == selected
            || matrix.size == wanted
            || squeezed
                == wanted
                    .iter()
                    .copied()
                    .filter(|length| *length != 1)
                    .collect::<Vec<_>>();
        if !fits {
            let (found, expected) = (dimension_text(&matrix.size), dimension_text(selected));
            return Err(MathError::dimensions(format!(
                "Dimension mismatch ({found} != {expected})"
            )));
        }
        Ok(Self::Cells {
            cells: &matrix.cells,
            size: selected.to_vec(),
        })
    }

    fn cell(&self, at: usize, selected: &[usize]) -> Value {
        match self {
            Self::Scalar(value) => (*value).clone(),
            Self::Cells { cells, size } => cells[broadcast_index(at, selected, size)].clone(),
        }
    }
}

/// Of another size: cells that are no longer inside fall away, new ones are filled.
pub(crate) fn resized(
    env: &mut Env,
    matrix: &Matrix,
    size: Vec<usize>,
    filling: &Value,
) -> Result<Matrix> {
    let mut result = Matrix::filled(env, matrix.kind, size, filling)?;
    if result.cells.is_empty() {
        return Ok(result);
    }
    let (rank, old_rank) = (result.size.len(), matrix.size.len());
    let strides = |size: &[usize]| {
        let mut strides = vec![1; size.len()];
        for at in (1..size.len()).rev() {
            strides[at - 1] = strides[at] * size[at];
        }
        strides
    };
    let (new_strides, old_strides) = (strides(&result.size), strides(&matrix.size));
    for (flat, cell) in matrix.cells.iter().enumerate() {
        let mut target = 0;
        let mut inside = true;
        for dimension in 0..old_rank {
            let position = flat / old_strides[dimension] % matrix.size[dimension];
            match result.size.get(dimension) {
                Some(length) if position < *length => target += position * new_strides[dimension],
                None if position == 0 => {}
                _ => inside = false,
            }
        }
        if inside && (rank > 0 || flat == 0) {
            result.cells[target] = cell.clone();
        }
    }
    Ok(result)
}

fn set_letters(env: &mut Env, text: &str, part: &Value, value: &Value) -> Result<Value> {
    let Value::Text(replacement) = value else {
        return Err(wrong_type("subset", value, 2));
    };
    let mut letters: Vec<u16> = text.encode_utf16().collect();
    env.purse.pay_text(text.len())?;
    let positions = select(env, part, letters.len())?.positions;
    let new: Vec<u16> = replacement.encode_utf16().collect();
    if new.len() != positions.len() {
        return Err(MathError::dimensions(format!(
            "Dimension mismatch ({} != {})",
            positions.len(),
            new.len()
        )));
    }
    for (at, letter) in positions.into_iter().zip(new) {
        env.purse.pay_text(at)?;
        if at >= letters.len() {
            letters.resize(at + 1, u16::from(b' '));
        }
        letters[at] = letter;
    }
    whole_letters(&letters)
}

pub(crate) fn property(object: &Value, name: &Arc<str>) -> Result<Value> {
    let is_method = match object {
        Value::Node(_) => matches!(
            &**name,
            "evaluate" | "eval" | "compile" | "toString" | "toTex"
        ),
        Value::Object(object) => match object.kind {
            ObjectKind::Compiled => matches!(&**name, "evaluate" | "eval"),
            ObjectKind::Parser => matches!(
                &**name,
                "evaluate" | "eval" | "get" | "set" | "getAll" | "remove" | "clear"
            ),
            ObjectKind::Plain | ObjectKind::Factors | ObjectKind::Index => false,
        },
        Value::Unit(_) => matches!(&**name, "toNumber" | "toNumeric" | "toString"),
        Value::Num(_) | Value::Big(_) => matches!(&**name, "toFixed" | "toString"),
        Value::Complex(_) | Value::Frac(_) | Value::Int(_) => &**name == "toString",
        _ => false,
    };
    if is_method {
        return Ok(Value::Function(Function::Method(Arc::new((
            object.clone(),
            name.clone(),
        )))));
    }
    match object {
        Value::Object(_) if is_reserved(name) => Err(no_property(name)),
        Value::Object(object) => Ok(object.get(name).cloned().unwrap_or(Value::Undefined)),
        Value::Complex(z) => match &**name {
            "re" => Ok(Value::Num(z.re)),
            "im" => Ok(Value::Num(z.im)),
            _ => Err(no_property(name)),
        },
        Value::Frac(n) => match &**name {
            "n" => Ok(Value::int(num_traits::Signed::abs(&n.numerator))),
            "d" => Ok(Value::int(n.denominator.clone())),
            "s" => Ok(Value::int(num_traits::Signed::signum(&n.numerator))),
            _ => Err(no_property(name)),
        },
        Value::Results(results) if &**name == "entries" => Ok(Matrix {
            kind: MatrixKind::Array,
            size: vec![results.len()],
            cells: results.to_vec(),
        }
        .into()),
        other if other.is_nothing() => Err(MathError::value(format!(
            "Cannot read properties of {} (reading '{name}')",
            other.type_name()
        ))),
        Value::Matrix(_)
        | Value::Text(_)
        | Value::Unit(_)
        | Value::Node(_)
        | Value::Function(_) => Err(no_property(name)),
        other => Err(MathError::arguments(format!(
            "Cannot apply a property to a {}",
            other.type_name()
        ))),
    }
}

/// Names that belong to the objects of JavaScript: mathjs gives no access to them, so they mean nothing here.
pub(crate) fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "constructor"
            | "__proto__"
            | "prototype"
            | "__defineGetter__"
            | "__defineSetter__"
            | "__lookupGetter__"
            | "__lookupSetter__"
            | "hasOwnProperty"
            | "isPrototypeOf"
            | "propertyIsEnumerable"
            | "toLocaleString"
            | "toString"
            | "valueOf"
            | "apply"
            | "arguments"
            | "bind"
            | "call"
            | "caller"
    )
}

pub(crate) fn no_property(name: &str) -> MathError {
    MathError::arguments(format!("No access to property \"{name}\""))
}

pub(crate) fn set_property(object: &Value, name: &Arc<str>, value: Value) -> Result<Value> {
    let Value::Object(object) = object else {
        return Err(no_property(name));
    };
    if is_reserved(name) {
        return Err(no_property(name));
    }
    let mut changed = Object::clone(object);
    changed.entries.insert(name.clone(), value);
    Ok(Value::object(changed))
}
