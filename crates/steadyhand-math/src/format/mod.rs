//! Values as text, the way mathjs writes them.

mod node;

use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::digits::{Style, write_number};
use crate::ops::compare::equal_scalar;
use crate::value::env::Env;
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::node::Node;
use crate::value::{Object, ObjectKind, Value};

pub(crate) fn write_value(env: &mut Env, value: &Value, style: &Style) -> Result<String> {
    let mut text = String::new();
    write_into(env, &mut text, value, style)?;
    Ok(text)
}

fn write_into(env: &mut Env, out: &mut String, value: &Value, style: &Style) -> Result<()> {
    let before = out.len();
    match value {
        Value::Undefined => out.push_str("undefined"),
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Num(x) => out.push_str(&write_number(*x, style)),
        Value::Complex(z) => out.push_str(&write_complex(*z, style)),
        Value::Int(n) => out.push_str(&n.to_string()),
        Value::Big(n) => {
            if n.magnitude().unsigned_abs() > env.purse.limits.big_digits as u64
                && style.notation == crate::number::digits::Notation::Fixed
            {
                return Err(MathError::limit("Number too large to be written out"));
            }
            out.push_str(&n.write(style));
        }
        Value::Frac(n) if style.decimal_fractions => out.push_str(&n.write_decimal()),
        Value::Frac(n) => out.push_str(&format!("{}/{}", n.numerator, n.denominator)),
        Value::Text(text) => push_quoted(out, text),
        Value::Unit(unit) => {
            let text = unit.write_styled(env, style)?;
            out.push_str(&text);
        }
        Value::Matrix(matrix) if matrix.kind == MatrixKind::Sparse => {
            write_sparse(env, out, matrix, style)?;
        }
        Value::Matrix(matrix) => write_dense(env, out, matrix, style)?,
        Value::Object(object) => write_object(env, out, object, style)?,
        Value::Function(function) => out.push_str(&function.syntax()),
        Value::Node(node) => out.push_str(&write_node(node)?),
        Value::Results(results) => write_list(env, out, results, style)?,
    }
    env.purse.pay_text(out.len() - before.min(out.len()))?;
    if out.len() > env.purse.limits.string_bytes {
        env.purse.pay_text(out.len())?;
    }
    Ok(())
}

pub(crate) fn write_node(node: &Node) -> Result<String> {
    if !node.is_shallow() {
        return Err(MathError::limit("Expression too deep to be written out"));
    }
    Ok(node.to_string())
}

pub(crate) fn write_complex(z: Complex, style: &Style) -> String {
    let (mut re, mut im) = (z.re, z.im);
    if let Some(precision) = style.precision {
        let epsilon = 10f64.powi(-(precision.min(400) as i32));
        if (re / im).abs() < epsilon {
            re = 0.0;
        }
        if (im / re).abs() < epsilon {
            im = 0.0;
        }
    }
    let (re_text, im_text) = (write_number(z.re, style), write_number(z.im, style));
    let unsigned = im_text.trim_start_matches('-');
    let size = if im.abs() == 1.0 {
        String::from("i")
    } else {
        format!("{unsigned}i")
    };
    if im == 0.0 {
        return re_text;
    }
    let negative = im < 0.0;
    if re == 0.0 {
        return if negative { format!("-{size}") } else { size };
    }
    format!("{re_text} {} {size}", if negative { '-' } else { '+' })
}

pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn write_list(env: &mut Env, out: &mut String, items: &[Value], style: &Style) -> Result<()> {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_into(env, out, item, style)?;
    }
    out.push(']');
    Ok(())
}

fn write_dense(env: &mut Env, out: &mut String, matrix: &Matrix, style: &Style) -> Result<()> {
    if matrix.size.len() <= 1 {
        env.descend()?;
        write_list(env, out, &matrix.cells, style)?;
        env.ascend();
        return Ok(());
    }
    write_level(env, out, &matrix.size, &matrix.cells, style)
}

fn write_level(
    env: &mut Env,
    out: &mut String,
    size: &[usize],
    cells: &[Value],
    style: &Style,
) -> Result<()> {
    let [length, inner @ ..] = size else {
        return Ok(());
    };
    if inner.is_empty() {
        return write_list(env, out, cells, style);
    }
    let part = cells.len().checked_div(*length).unwrap_or(0);
    out.push('[');
    for at in 0..*length {
        if at > 0 {
            out.push_str(", ");
        }
        write_level(env, out, inner, &cells[at * part..(at + 1) * part], style)?;
    }
    out.push(']');
    Ok(())
}

fn write_sparse(env: &mut Env, out: &mut String, matrix: &Matrix, style: &Style) -> Result<()> {
    let (rows, columns) = (
        matrix.rows(),
        if matrix.size.len() > 1 {
            matrix.columns()
        } else {
            matrix.rows().min(1)
        },
    );
    let mut lines = String::new();
    let mut filled = 0;
    for column in 0..columns {
        for row in 0..rows {
            let cell = matrix.at(row, column);
            if !equal_scalar(env, cell, &Value::Num(0.0)).unwrap_or(false) {
                filled += 1;
                lines.push_str(&format!("\n    ({row}, {column}) ==> "));
                write_into(env, &mut lines, cell, style)?;
            }
        }
    }
    let total = rows * columns;
    let density = if total == 0 {
        0.0
    } else {
        f64::from(filled) / total as f64
    };
    out.push_str(&format!(
        "Sparse Matrix [{rows} x {columns}] density: {}\n{lines}",
        write_number(density, style)
    ));
    Ok(())
}

fn write_object(env: &mut Env, out: &mut String, object: &Object, style: &Style) -> Result<()> {
    env.descend()?;
    match object.kind {
        ObjectKind::Compiled => out.push_str("{\"evaluate\": function}"),
        ObjectKind::Parser => out.push_str("{}"),
        ObjectKind::Factors => write_factors(env, out, object)?,
        ObjectKind::Plain | ObjectKind::Index => {
            out.push('{');
            for (at, (key, value)) in object.entries.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                push_quoted(out, key);
                out.push_str(": ");
                write_into(env, out, value, style)?;
            }
            out.push('}');
        }
    }
    env.ascend();
    Ok(())
}

/// One factor in a line, with all its digits; permutations as JavaScript joins them.
fn write_factors(env: &mut Env, out: &mut String, object: &Object) -> Result<()> {
    for (at, (key, value)) in object.entries.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let text = write_value(env, value, &Style::EXACT)?;
        let is_permutation = key.chars().all(|c| matches!(c, 'p' | 'q' | 'P'));
        let text = if is_permutation {
            text.trim_matches(['[', ']']).replace(", ", ",")
        } else {
            text
        };
        out.push_str(&format!("{key}: {text}"));
    }
    // A permutation of columns too: the sparse factorisation ends with an empty line.
    if object.get("q").is_some() {
        out.push('\n');
    }
    Ok(())
}
