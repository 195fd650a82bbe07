//! Making values of one kind from another, and the settings.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::broadcast::each;
use crate::convert::{
    Pair, pair, read_number, silently_big, simple, to_big, to_f64, truthy, whole, wrong_type,
};
use crate::error::{MathError, Result};
use crate::format::{write_complex, write_value};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::digits::{Style, write_javascript};
use crate::number::fraction::Fraction;
use crate::number::integer;
use crate::ops::compare::equal_scalar;
use crate::ops::rounding::round_number;
use crate::refusals::{is_not_finite, unsupported};
use crate::value::env::{Env, NumberKind};
use crate::value::function::{ANY_NUMBER, Builtin};
use crate::value::matrix::{Matrix, MatrixKind};
use crate::value::unit::Unit;
use crate::value::{Object, ObjectKind, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("bignumber", 0..=1, |env, args| {
        or_each(env, args, Value::big(Decimal::zero()), bignumber)
    }),
    Builtin::new("bigint", 0..=1, |env, args| {
        or_each(env, args, Value::int(BigInt::default()), bigint)
    }),
    Builtin::new("boolean", 0..=1, |env, args| {
        or_each(env, args, Value::Bool(false), boolean)
    }),
    Builtin::new("complex", 0..=2, complex),
    Builtin::new("fraction", 0..=2, fraction),
    Builtin::new("index", 0..=ANY_NUMBER, index),
    Builtin::new("matrix", 0..=3, matrix),
    Builtin::new("sparse", 0..=2, sparse),
    Builtin::new("number", 0..=2, number),
    Builtin::new("string", 0..=1, |env, args| {
        or_each(env, args, Value::text(""), string)
    }),
    Builtin::new("numeric", 1..=2, numeric),
    Builtin::new("num", 1..=1, |env, args| {
        each(env, &args[0], |_, value| {
            Ok(Value::int(exact_fraction(&as_big(value)?)?.numerator))
        })
    }),
    Builtin::new("den", 1..=1, |env, args| {
        each(env, &args[0], |_, value| {
            Ok(Value::int(exact_fraction(&as_big(value)?)?.denominator))
        })
    }),
    Builtin::new("config", 0..=1, config),
];

fn or_each(
    env: &mut Env,
    args: &[Value],
    nothing: Value,
    make: crate::broadcast::Scalar1,
) -> Result<Value> {
    match args.first() {
        Some(value) => each(env, value, make),
        None => Ok(nothing),
    }
}

pub(crate) fn bignumber(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Text(text) => {
            env.purse.pay_digits(text.len() as u64)?;
            let based = ['x', 'X', 'b', 'B', 'o', 'O'];
            let read = if text.trim_start().starts_with('0') && text.contains(based) {
                integer::read_whole(text).map(|n| Decimal::new(n, 0))
            } else {
                Decimal::read(text)
            };
            Value::big(read.ok_or_else(|| {
                MathError::value(format!("[DecimalError] Invalid argument: {text}"))
            })?)
        }
        Value::Unit(unit) => Value::unit(unit.map(|value| bignumber(env, value))?),
        Value::Null => Value::big(Decimal::zero()),
        Value::Frac(n) => Value::big(n.to_decimal(env.settings.precision)),
        other => Value::big(to_big(&simple("bignumber", other, 0)?)),
    })
}

fn bigint(env: &mut Env, value: &Value) -> Result<Value> {
    let digits_max = env.purse.limits.big_digits;
    let whole = |decimal: Decimal| decimal.to_bigint(digits_max).map(Value::int);
    let made = match value {
        Value::Text(text) => {
            env.purse.pay_digits(text.len() as u64)?;
            integer::read_whole(text).map(Value::int)
        }
        Value::Num(x) => integer::exact(round_number(*x, 0)).map(Value::int),
        Value::Null => Some(Value::int(BigInt::default())),
        Value::Bool(value) => Some(Value::int(BigInt::from(u8::from(*value)))),
        Value::Int(n) => Some(Value::Int(n.clone())),
        Value::Big(_) | Value::Frac(_) => whole(to_big(value).round(0)),
        other => return Err(wrong_type("bigint", other, 0)),
    };
    made.ok_or_else(|| {
        let text = write_value(env, value, &Style::EXACT).unwrap_or_default();
        MathError::value(format!("Cannot convert {text} to a BigInt"))
    })
}

fn boolean(_: &mut Env, value: &Value) -> Result<Value> {
    Ok(Value::Bool(match value {
        Value::Text(text) => match text.to_lowercase().as_str() {
            "true" => true,
            "false" => false,
            other => match read_number(other) {
                Ok(x) if !other.is_empty() => x != 0.0,
                _ => {
                    return Err(MathError::value(format!(
                        "Cannot convert \"{text}\" to a boolean"
                    )));
                }
            },
        },
        Value::Null | Value::Bool(_) => truthy("boolean", value)?,
        // A big number that is none is not zero.
        Value::Big(n) => !n.is_zero(),
        other => truthy("boolean", &simple("boolean", other, 0)?)?,
    }))
}

fn complex(env: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [] => Ok(Complex::from(0.0).into()),
        [value] => each(env, value, |_, value| match value {
            Value::Text(text) => Complex::read(text).map(Value::from).ok_or_else(|| {
                MathError::value(format!("String \"{text}\" is no valid complex number"))
            }),
            Value::Object(object) => {
                let is_number = |key: &&str| {
                    !object.get(key).is_some_and(|value| {
                        !matches!(value, Value::Num(_) | Value::Big(_) | Value::Frac(_))
                            || is_not_finite(value)
                    })
                };
                if !["r", "phi", "arg"].iter().all(is_number) {
                    return Err(unsupported(
                        "complex",
                        "an r or phi that is no finite number",
                    ));
                }
                let part = |key: &str| object.get(key).map(to_f64);
                match (
                    part("re"),
                    part("im"),
                    part("r"),
                    part("phi").or_else(|| part("arg")),
                ) {
                    (Some(re), Some(im), _, _) => Ok(Complex::new(re, im).into()),
                    (_, _, Some(r), Some(phi)) => Ok(Complex::polar(r, phi).into()),
                    _ => Err(MathError::value(
                        "Expected object with either properties re and im, or properties r and phi.",
                    )),
                }
            }
            Value::Null => Ok(Complex::from(0.0).into()),
            Value::Unit(_) => Err(wrong_type("complex", value, 0)),
            other => Ok(crate::convert::to_complex(&simple("complex", other, 0)?).into()),
        }),
        [re, im, ..] => match pair(env, "complex", re, im)? {
            Pair::Num(re, im) => Ok(Complex::new(re, im).into()),
            Pair::Big(re, im) => Ok(Complex::new(re.to_f64(), im.to_f64()).into()),
            _ => Err(wrong_type("complex", re, 0)),
        },
    }
}

/// A number as the digits it is written with: half a digit more is another fraction.
fn as_big(value: &Value) -> Result<Value> {
    match value {
        Value::Num(_) => silently_big(value).map(Value::big),
        other => Ok(other.clone()),
    }
}

pub(crate) fn exact_fraction(value: &Value) -> Result<Fraction> {
    match value {
        Value::Frac(n) => Ok((**n).clone()),
        Value::Int(n) => Ok(Fraction::integer((**n).clone())),
        Value::Text(text) => Fraction::read(text)
            .ok_or_else(|| MathError::value(format!("String \"{text}\" is no valid fraction"))),
        Value::Big(n) => match &**n {
            Decimal::Finite { mantissa, exponent } => Fraction::scaled(mantissa.clone(), *exponent)
                .ok_or_else(|| MathError::value("Number too large for a fraction")),
            other => Err(MathError::value(format!(
                "{} cannot be represented as a fraction",
                other.write(&Style::EXACT)
            ))),
        },
        other => {
            let x = match simple("fraction", other, 0)? {
                Value::Complex(_) => return Err(wrong_type("fraction", other, 0)),
                value => to_f64(&value),
            };
            if !x.is_finite() {
                return Err(MathError::value(format!(
                    "{} cannot be represented as a fraction",
                    write_javascript(x)
                )));
            }
            Fraction::from_f64(x)
        }
    }
}

fn fraction(env: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [] => Ok(Value::frac(Fraction::integer(0))),
        [value] => each(env, value, |env, value| match value {
            Value::Object(object) => {
                let part = |key: &str| object.get(key).map(exact_fraction).transpose();
                let (n, d) = (part("n")?, part("d")?);
                let missing = || MathError::value("Expected object with properties n and d");
                Ok(Value::frac(
                    n.ok_or_else(missing)?.divide(&d.ok_or_else(missing)?)?,
                ))
            }
            Value::Unit(unit) => Ok(Value::unit(
                unit.map(|value| exact_fraction(value).map(Value::frac))?,
            )),
            Value::Null => Ok(Value::frac(Fraction::integer(0))),
            other => {
                env.purse.pay(8)?;
                exact_fraction(other).map(Value::frac)
            }
        }),
        [above, below, ..] => {
            let (above, below) = match pair(env, "fraction", above, below)? {
                Pair::Num(above, below) => (integer::exact(above), integer::exact(below)),
                Pair::Int(above, below) => (Some(above), Some(below)),
                _ => return Err(wrong_type("fraction", above, 0)),
            };
            match (above, below) {
                (Some(above), Some(below)) => Ok(Value::frac(Fraction::new(above, below)?)),
                _ => Err(MathError::value("Parameters must be integer")),
            }
        }
    }
}

fn index(env: &mut Env, args: &[Value]) -> Result<Value> {
    env.purse.pay_cells(args.len())?;
    for part in args {
        check_index_part(part)?;
    }
    let parts = Matrix::array(Vec::new());
    let entries = Object::of([(
        "parts",
        Matrix {
            size: vec![args.len()],
            cells: args.to_vec(),
            ..parts
        }
        .into(),
    )]);
    Ok(Value::object(Object {
        kind: ObjectKind::Index,
        ..entries
    }))
}

/// A position, a list of positions or of truth values, or the name of a property.
fn check_index_part(part: &Value) -> Result<()> {
    let is_position = |value: &Value| match value {
        Value::Num(_) | Value::Big(_) | Value::Int(_) => {
            let x = to_f64(value);
            x.fract() == 0.0 && x >= 0.0
        }
        _ => false,
    };
    let fits = match part {
        Value::Text(_) => true,
        Value::Matrix(matrix) => {
            matrix.size.len() == 1
                && (matrix.cells.iter().all(is_position)
                    || matrix
                        .cells
                        .iter()
                        .all(|cell| matches!(cell, Value::Bool(_))))
        }
        Value::Num(_) | Value::Big(_) | Value::Int(_) => is_position(part),
        other => {
            return Err(MathError::arguments(format!(
                "Dimension must be an Array, Matrix, number, bigint, string, or Range (actual: {})",
                other.type_name()
            )));
        }
    };
    if fits {
        Ok(())
    } else {
        Err(MathError::dimensions(
            "Index parameters must be positive integer numbers",
        ))
    }
}

/// The parts of an `index(…)`.
pub(crate) fn index_parts(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Object(object) if object.kind == ObjectKind::Index => match object.get("parts") {
            Some(Value::Matrix(parts)) => Some(parts.cells.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn matrix_kind(name: &Value) -> Result<MatrixKind> {
    match name {
        Value::Text(name) => match &**name {
            "dense" | "default" => Ok(MatrixKind::Dense),
            "sparse" => Ok(MatrixKind::Sparse),
            other => Err(MathError::value(format!(
                "Unsupported matrix storage format: {other}"
            ))),
        },
        other => Err(wrong_type("matrix", other, 1)),
    }
}

fn matrix(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (data, kind) = match args {
        [] => (None, MatrixKind::Dense),
        [format @ Value::Text(_)] => (None, matrix_kind(format)?),
        [data] => (Some(data), MatrixKind::Dense),
        [data, format, ..] => (Some(data), matrix_kind(format)?),
    };
    of_kind(env, "matrix", data, kind)
}

fn sparse(env: &mut Env, args: &[Value]) -> Result<Value> {
    // A text names the kind of number the cells have.
    const DATA_TYPES: [&str; 8] = [
        "number",
        "BigNumber",
        "bigint",
        "Complex",
        "Fraction",
        "Unit",
        "string",
        "boolean",
    ];
    for arg in args {
        if let Value::Text(kind) = arg
            && !DATA_TYPES.contains(&&**kind)
        {
            return Err(MathError::value(format!("Unknown type \"{kind}\"")));
        }
    }
    let data = args
        .first()
        .filter(|value| !matches!(value, Value::Text(_)));
    of_kind(env, "sparse", data, MatrixKind::Sparse)
}

fn of_kind(env: &mut Env, name: &str, data: Option<&Value>, kind: MatrixKind) -> Result<Value> {
    match data {
        None if kind == MatrixKind::Sparse => Ok(Matrix {
            kind,
            size: vec![0, 0],
            cells: Vec::new(),
        }
        .into()),
        None => Ok(Matrix::vector(Vec::new()).into()),
        Some(Value::Matrix(matrix)) => {
            env.purse.pay_cells(matrix.cells.len())?;
            if kind == MatrixKind::Sparse {
                check_sparse(env, matrix)?;
            }
            let mut matrix = (**matrix).clone().of_kind(kind);
            if kind == MatrixKind::Sparse && matrix.size.len() == 1 {
                matrix.size.push(usize::from(!matrix.cells.is_empty()));
            }
            Ok(matrix.into())
        }
        Some(other) => Err(wrong_type(name, other, 0)),
    }
}

/// A sparse matrix has two dimensions, and cells that can be compared with zero.
fn check_sparse(env: &mut Env, matrix: &Matrix) -> Result<()> {
    if matrix.size.len() > 2 {
        return Err(MathError::dimensions(
            "A sparse matrix must have two dimensions",
        ));
    }
    for cell in &matrix.cells {
        if !matches!(cell, Value::Num(_)) {
            equal_scalar(env, cell, &Value::Num(0.0))?;
        }
    }
    Ok(())
}

pub(crate) fn number(env: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [] => Ok(Value::Num(0.0)),
        [value] => each(env, value, to_number),
        [value, unit, ..] => {
            let unit = match unit {
                Value::Unit(unit) => (**unit).clone(),
                Value::Text(text) => Unit::read(env, text)?,
                other => return Err(wrong_type("number", other, 1)),
            };
            let Value::Unit(quantity) = value else {
                return Err(wrong_type("number", value, 0));
            };
            let number = quantity.number_in(env, &unit)?;
            to_number(env, &number)
        }
    }
}

#[allow(
    clippy::only_used_in_recursion,
    reason = "every scalar function has this signature"
)]
fn to_number(env: &mut Env, value: &Value) -> Result<Value> {
    match value {
        Value::Text(text) if text.trim() == "NaN" => Ok(Value::Num(f64::NAN)),
        // Here other bases may have a point and a word size, as in expressions.
        Value::Text(text) => integer::read_based(text)
            .map_or_else(|| read_number(text), Ok)
            .map(Value::Num)
            .map_err(|_| MathError::value(format!("String \"{text}\" is not a valid number"))),
        Value::Null => Ok(Value::Num(0.0)),
        Value::Unit(unit) => Ok(Value::unit(unit.map(|value| to_number(env, value))?)),
        Value::Complex(_) => Err(wrong_type("number", value, 0)),
        other => Ok(Value::Num(to_f64(&simple("number", other, 0)?))),
    }
}

/// A part of a complex number that is smaller is left out of its text.
const HIDDEN_BELOW: f64 = 1e-15;

pub(crate) fn string(env: &mut Env, value: &Value) -> Result<Value> {
    let text = match value {
        Value::Text(_) => return Ok(value.clone()),
        // Unlike in `format`, a fraction alone is written out in decimals.
        Value::Frac(n) => n.write_decimal(),
        // These write themselves as JavaScript's numbers do.
        Value::Big(n) => n.write(&Style::JAVASCRIPT),
        Value::Complex(z) => {
            let shown = |x: f64| if x.abs() < HIDDEN_BELOW { 0.0 } else { x };
            write_complex(Complex::new(shown(z.re), shown(z.im)), &Style::JAVASCRIPT)
        }
        other => write_value(env, other, &Style::EXACT)?,
    };
    env.purse.pay_text(text.len())?;
    Ok(Value::text(&text))
}

fn numeric(env: &mut Env, args: &[Value]) -> Result<Value> {
    let kind = match args.get(1) {
        None | Some(Value::Undefined) => "number".into(),
        Some(Value::Text(kind)) => kind.clone(),
        Some(other) => return Err(wrong_type("numeric", other, 1)),
    };
    if !matches!(
        args[0],
        Value::Text(_) | Value::Num(_) | Value::Big(_) | Value::Frac(_)
    ) {
        return Err(MathError::arguments(format!(
            "Cannot convert a value of type \"{}\"; valid input types are string, number, BigNumber, Fraction",
            args[0].type_name()
        )));
    }
    let value = std::slice::from_ref(&args[0]);
    match &*kind {
        "number" => number(env, value),
        "BigNumber" => each(env, &args[0], bignumber),
        "Fraction" => fraction(env, value),
        "bigint" => each(env, &args[0], bigint),
        other => Err(MathError::value(format!(
            "Cannot convert to output type \"{other}\". Valid output types: \"number\", \"BigNumber\", \"bigint\", \"Fraction\""
        ))),
    }
}

fn config(env: &mut Env, args: &[Value]) -> Result<Value> {
    if let Some(value) = args.first() {
        let Value::Object(options) = value else {
            return Err(wrong_type("config", value, 0));
        };
        for (key, value) in &options.entries {
            set_option(env, key, value)?;
        }
    }
    let settings = &env.settings;
    let kind = match settings.number {
        NumberKind::Number => "number",
        NumberKind::BigNumber => "BigNumber",
        NumberKind::Fraction => "Fraction",
        NumberKind::BigInt => "bigint",
    };
    Ok(Value::object(Object::of([
        ("relTol", Value::Num(settings.relative_tolerance)),
        ("absTol", Value::Num(settings.absolute_tolerance)),
        ("matrix", Value::text("Matrix")),
        ("number", Value::text(kind)),
        ("numberFallback", Value::text("number")),
        ("precision", Value::Num(settings.precision as f64)),
        ("predictable", Value::Bool(settings.predictable)),
        ("randomSeed", Value::Null),
        ("legacySubset", Value::Bool(false)),
    ])))
}

fn set_option(env: &mut Env, key: &str, value: &Value) -> Result<()> {
    let unsupported = || MathError::unsupported(format!("config({{{key}: …}}) is left out here"));
    match (key, value) {
        ("number", Value::Text(kind)) => {
            env.settings.number = match &**kind {
                "number" => NumberKind::Number,
                "BigNumber" => NumberKind::BigNumber,
                "Fraction" => NumberKind::Fraction,
                "bigint" => NumberKind::BigInt,
                _ => {
                    return Err(MathError::value(format!(
                        "Unknown value \"{kind}\" for configuration option \"number\""
                    )));
                }
            };
        }
        ("precision", value) => {
            let precision = whole("config", value)?
                .to_usize()
                .filter(|precision| (1..=1000).contains(precision));
            env.settings.precision = precision
                .ok_or_else(|| MathError::limit("precision must be between 1 and 1000"))?;
        }
        ("relTol" | "epsilon", value) => env.settings.relative_tolerance = to_f64(value),
        ("absTol", value) => env.settings.absolute_tolerance = to_f64(value),
        ("randomSeed", value) => {
            let seed = match value {
                Value::Text(text) => text.bytes().fold(0u64, |seed, byte| {
                    seed.wrapping_mul(31).wrapping_add(byte.into())
                }),
                other => to_f64(other).to_bits(),
            };
            env.random = fastrand::Rng::with_seed(seed);
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}
