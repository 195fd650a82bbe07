//! Arguments that the functions of mathjs take but answer by accident: they are refused, with the function's name.

use num_traits::Zero;

use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::value::Value;
use crate::value::matrix::MatrixKind;

/// Refuses what has no well-defined answer. Numbers that are finite never get here.
pub(crate) fn check(function: &str, arguments: &[Value]) -> Result<()> {
    match function {
        // NaN has no place in an order.
        "sort" | "setCartesian" | "setDifference" | "setDistinct" | "setIntersect"
        | "setIsSubset" | "setPowerset" | "setSize" | "setSymDifference" | "setUnion" => {
            refuse(function, arguments, "NaN", is_nan)
        }
        "max" | "min" if is_along_dimension(arguments) => refuse(
            function,
            arguments,
            "NaN or texts along a dimension",
            |value| is_nan(value) || matches!(value, Value::Text(_)),
        ),
        "lusolve" => refuse(function, arguments, "NaN and Infinity", is_not_finite),
        // Whether a cell becomes NaN would depend on the order of the steps.
        "det" | "inv" | "lup" if has_matrix(arguments) => {
            refuse(function, arguments, "NaN", is_nan)
        }
        "norm" => refuse(
            function,
            arguments,
            "NaN, or complex numbers that are infinite",
            |value| is_nan(value) || (matches!(value, Value::Complex(_)) && is_not_finite(value)),
        ),
        "nthRoot" => {
            refuse(
                function,
                arguments.get(1..).unwrap_or_default(),
                "NaN",
                is_nan,
            )?;
            refuse(function, arguments, "NaN", |value| {
                matches!(value, Value::Big(_)) && is_nan(value)
            })
        }
        "im" => refuse(function, arguments, "NaN", |value| {
            matches!(value, Value::Big(_)) && is_nan(value)
        }),
        "string" => refuse(
            function,
            arguments,
            "complex numbers that are NaN or infinite",
            |value| matches!(value, Value::Complex(_)) && is_not_finite(value),
        ),
        "cbrt" if arguments.len() == 1 => {
            refuse(function, arguments, "quantities that are NaN", |value| {
                matches!(value, Value::Unit(_)) && is_nan(value)
            })
        }
        // Their formulas lose track of what is infinite.
        "polynomialRoot" | "zpk2tf" | "freqz" | "nthRoots" | "atanh" | "lyap" => {
            refuse(function, arguments, "NaN and Infinity", is_not_finite)
        }
        "acos" | "asin" => refuse(
            function,
            arguments,
            "-Infinity",
            |value| matches!(value, Value::Num(x) if *x == f64::NEG_INFINITY),
        ),
        "cbrt" if arguments.len() == 2 => {
            refuse(function, arguments, "NaN and Infinity", is_not_finite)?;
            refuse(function, arguments, "all roots of a big number", |value| {
                matches!(value, Value::Big(_))
            })
        }
        "lgamma" => refuse(function, arguments, "complex numbers with NaN", |value| {
            matches!(value, Value::Complex(_)) && is_nan(value)
        }),
        "expm1" | "gamma" | "log1p" | "rotationMatrix" | "sign" => refuse(
            function,
            arguments,
            "a complex number with a part that is NaN or infinite",
            |value| matches!(value, Value::Complex(_)) && is_not_finite(value),
        ),
        "sqrt" => refuse(
            function,
            arguments,
            "a complex number whose imaginary part is NaN or infinite",
            |value| matches!(value, Value::Complex(z) if !z.im.is_finite()),
        ),
        "number" | "bignumber" | "fraction" => refuse(
            function,
            arguments,
            "a unit without a value",
            |value| matches!(value, Value::Unit(unit) if unit.value.is_none()),
        ),
        "column" | "row" | "diff" => refuse(
            function,
            arguments.get(1..).unwrap_or_default(),
            "anything but a number for a row, column or dimension",
            |value| !matches!(value, Value::Num(_) | Value::Big(_)),
        ),
        "dot" if arguments.iter().any(is_sparse) => refuse(
            function,
            arguments,
            "complex numbers in sparse matrices; make them dense first",
            |value| matches!(value, Value::Complex(_)),
        ),
        _ => Ok(()),
    }
}

pub(crate) fn unsupported(function: &str, what: &str) -> MathError {
    MathError::value(format!("Function {function} does not support {what}"))
}

/// Refuses where one of these, or a cell of one, is of this kind.
fn refuse(
    function: &str,
    values: &[Value],
    what: &str,
    is_refused: impl Fn(&Value) -> bool,
) -> Result<()> {
    let mut open: Vec<&Value> = values.iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Matrix(matrix) => open.extend(&matrix.cells),
            value if is_refused(value) => return Err(unsupported(function, what)),
            _ => {}
        }
    }
    Ok(())
}

fn has_matrix(arguments: &[Value]) -> bool {
    arguments
        .iter()
        .any(|value| matches!(value, Value::Matrix(_)))
}

fn is_along_dimension(arguments: &[Value]) -> bool {
    matches!(arguments, [Value::Matrix(_), dimension] if !matches!(dimension, Value::Matrix(_)))
}

fn is_sparse(value: &Value) -> bool {
    matches!(value, Value::Matrix(matrix) if matrix.kind == MatrixKind::Sparse)
}

pub(crate) fn is_zero_cell(value: &Value) -> bool {
    match value {
        Value::Num(x) => *x == 0.0,
        Value::Big(n) => n.is_zero(),
        Value::Complex(z) => z.is_zero(),
        Value::Int(n) => n.is_zero(),
        Value::Frac(n) => n.numerator.is_zero(),
        Value::Unit(unit) => unit.value.as_ref().is_some_and(is_zero_cell),
        _ => false,
    }
}

pub(crate) fn is_nan(value: &Value) -> bool {
    match value {
        Value::Num(x) => x.is_nan(),
        Value::Big(n) => matches!(**n, Decimal::Nan),
        Value::Complex(z) => z.re.is_nan() || z.im.is_nan(),
        Value::Unit(unit) => unit.value.as_ref().is_some_and(is_nan),
        _ => false,
    }
}

pub(crate) fn is_not_finite(value: &Value) -> bool {
    match value {
        Value::Num(x) => !x.is_finite(),
        Value::Big(n) => !n.is_finite(),
        Value::Complex(z) => !z.re.is_finite() || !z.im.is_finite(),
        Value::Unit(unit) => unit.value.as_ref().is_some_and(is_not_finite),
        _ => false,
    }
}
