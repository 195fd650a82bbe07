//! Values as text: format, print, other bases.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Float, FromPrimitive};

use crate::broadcast::each;
use crate::convert::{length, simple, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::format::write_value;
use crate::number::decimal::Decimal;
use crate::number::digits::{Notation, Style, write_number};
use crate::number::fraction::Fraction;
use crate::refusals::unsupported;
use crate::value::env::Env;
use crate::value::function::{Builtin, Function};
use crate::value::matrix::MatrixKind;
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("format", 1..=2, format),
    Builtin::new("print", 2..=3, print),
    Builtin::new("bin", 1..=2, |env, args| in_base(env, "bin", args, 2)),
    Builtin::new("oct", 1..=2, |env, args| in_base(env, "oct", args, 8)),
    Builtin::new("hex", 1..=2, |env, args| in_base(env, "hex", args, 16)),
];

fn text(env: &mut Env, text: &str) -> Result<Value> {
    env.purse.pay_text(text.len())?;
    Ok(Value::text(text))
}

fn format(env: &mut Env, args: &[Value]) -> Result<Value> {
    let written = match args.get(1) {
        None => write_value(env, &args[0], &Style::EXACT)?,
        Some(Value::Function(function)) => write_by(env, &args[0], function)?,
        Some(Value::Object(options)) => {
            if let Some(base) = base_notation(options) {
                let written = write_in_base(env, &args[0], options.get("wordSize"), base)?;
                return text(env, &written);
            }
            let style = style(options)?;
            if matches!(style.notation, Notation::Engineering) && style.precision == Some(0) {
                return Err(unsupported(
                    "format",
                    "a precision of 0 in engineering notation",
                ));
            }
            write_value(env, &args[0], &style)?
        }
        Some(precision) => {
            let precision = length("format", precision)?;
            write_value(env, &args[0], &Style::digits(bounded(precision)?))?
        }
    };
    text(env, &written)
}

/// As a function writes it: each cell of a matrix by itself.
fn write_by(env: &mut Env, value: &Value, function: &Function) -> Result<String> {
    if let Value::Matrix(matrix) = value {
        if matrix.kind == MatrixKind::Sparse {
            return Err(unsupported("format", "sparse matrices with a function"));
        }
        env.descend()?;
        let mut parts = Vec::new();
        for item in matrix.items() {
            parts.push(write_by(env, &item, function)?);
        }
        env.ascend();
        return Ok(format!("[{}]", parts.join(", ")));
    }
    match value {
        Value::Num(_) | Value::Big(_) => {
            match env.call_function(function, std::slice::from_ref(value))? {
                Value::Text(text) => Ok(text.to_string()),
                other => write_value(env, &other, &Style::EXACT),
            }
        }
        Value::Complex(_) | Value::Unit(_) | Value::Object(_) => Err(unsupported(
            "format",
            "complex numbers, quantities and objects with a function",
        )),
        // Only numbers are written by it.
        other => write_value(env, other, &Style::EXACT),
    }
}

/// Numbers and big numbers in another base, also inside a matrix; everything else as ever.
fn write_in_base(env: &mut Env, value: &Value, size: Option<&Value>, base: u32) -> Result<String> {
    match value {
        Value::Num(_) | Value::Big(_) => {
            let mut arguments = vec![value.clone()];
            arguments.extend(size.cloned());
            match in_base(env, "format", &arguments, base)? {
                Value::Text(text) => Ok(text.to_string()),
                other => Err(wrong_type("format", &other, 0)),
            }
        }
        Value::Matrix(matrix) => {
            env.descend()?;
            let mut parts = Vec::new();
            for item in matrix.items() {
                parts.push(write_in_base(env, &item, size, base)?);
            }
            env.ascend();
            Ok(format!("[{}]", parts.join(", ")))
        }
        Value::Complex(_) => Err(wrong_type("format", value, 0)),
        Value::Unit(_) => Err(unsupported("format", "quantities in another base")),
        other => write_value(env, other, &Style::EXACT),
    }
}

fn bounded(precision: usize) -> Result<usize> {
    if precision > 1000 {
        return Err(MathError::limit("precision must be at most 1000"));
    }
    Ok(precision)
}

fn base_notation(options: &Object) -> Option<u32> {
    match options.get("notation") {
        Some(Value::Text(name)) => match &**name {
            "bin" => Some(2),
            "oct" => Some(8),
            "hex" => Some(16),
            _ => None,
        },
        _ => None,
    }
}

fn style(options: &Object) -> Result<Style> {
    let mut style = Style::EXACT;
    for (key, value) in &options.entries {
        match (&**key, value) {
            ("notation", Value::Text(name)) => {
                style.notation = match &**name {
                    "auto" => Notation::Auto,
                    "fixed" => Notation::Fixed,
                    "exponential" => Notation::Exponential,
                    "engineering" => Notation::Engineering,
                    other => {
                        return Err(MathError::value(format!(
                            "Unknown notation \"{other}\". Choose \"auto\", \"exponential\", \"fixed\", \"bin\", \"oct\", or \"hex."
                        )));
                    }
                };
            }
            ("precision", value @ (Value::Num(_) | Value::Big(_))) => {
                style.precision = Some(bounded(length("format", value)?)?);
            }
            ("precision", _) => {
                return Err(MathError::arguments(
                    "Option \"precision\" must be a number or BigNumber",
                ));
            }
            ("lowerExp", value) => style.lower_exponent = whole("format", value)?,
            ("upperExp", value) => style.upper_exponent = whole("format", value)?.min(1000),
            ("fraction", Value::Text(how)) => style.decimal_fractions = &**how == "decimal",
            _ => {}
        }
    }
    Ok(style)
}

/// `print("Hello $user.name", {user: {name: "John"}})`
fn print(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Value::Text(template) = &args[0] else {
        return Err(wrong_type("print", &args[0], 0));
    };
    if !matches!(args[1], Value::Matrix(_) | Value::Object(_)) {
        return Err(wrong_type("print", &args[1], 1));
    }
    let style = match args.get(2) {
        None => Style::EXACT,
        Some(Value::Object(options)) => style(options)?,
        Some(precision) => Style::digits(bounded(length("print", precision)?)?),
    };
    let mut out = String::new();
    let mut rest: &str = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let name_end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
            .unwrap_or(rest.len());
        // A dot that ends a sentence does not belong to the name.
        let name = rest[..name_end].trim_end_matches('.');
        match find(&args[1], name) {
            Some(Value::Text(text)) if !name.is_empty() => out.push_str(&text),
            Some(value) if !name.is_empty() => {
                let written = write_value(env, &value, &style)?;
                out.push_str(&written);
            }
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => {
                return Err(MathError::value(format!(
                    "There is no value for ${name} in function print; positions count from one"
                )));
            }
            _ => {
                out.push('$');
                out.push_str(name);
            }
        }
        rest = &rest[name.len()..];
        env.purse.pay_text(out.len())?;
    }
    out.push_str(rest);
    text(env, &out)
}

/// Follows a path of names and positions into a value.
fn find(value: &Value, path: &str) -> Option<Value> {
    let mut value = value.clone();
    for key in path.split('.') {
        value = match &value {
            Value::Object(object) => object.get(key)?.clone(),
            Value::Matrix(matrix) => {
                let at = key.parse::<usize>().ok()?.checked_sub(1)?;
                matrix.items().get(at)?.clone()
            }
            _ => return None,
        };
    }
    Some(value)
}

fn in_base(env: &mut Env, name: &str, args: &[Value], base: u32) -> Result<Value> {
    let size = args.get(1).map(|size| whole(name, size)).transpose()?;
    if size.is_some_and(|size| !(1..=1000).contains(&size)) {
        return Err(MathError::value("size must be in greater than 0"));
    }
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        _ => "0x",
    };
    each(env, &args[0], |env, value| {
        let number = match simple("bin", value, 0)? {
            Value::Num(x) if x.is_finite() => Based::of_number(x, base),
            Value::Big(n) if n.is_finite() => Based::of_big(env, &n, base)?,
            Value::Num(x) => return Ok(Value::text(&write_number(x, &Style::EXACT))),
            Value::Big(n) => return Ok(Value::text(&n.write(&Style::EXACT))),
            other => return Err(wrong_type("format", &other, 0)),
        };
        env.purse
            .pay_digits((number.below_point.bits() + number.whole.bits()) / 3)?;
        let Some(size) = size else {
            let sign = if number.is_negative { "-" } else { "" };
            return Ok(Value::text(&format!(
                "{sign}{prefix}{}",
                number.write(base)
            )));
        };
        if number.below_point != BigInt::default() {
            return Err(MathError::value("Value must be an integer"));
        }
        let half = BigInt::from(1) << (size - 1);
        let n = if number.is_negative {
            -number.whole
        } else {
            number.whole
        };
        if n >= half || n < -&half {
            return Err(MathError::value(format!(
                "Value must be in range [-2^{0}, 2^{0}-1]",
                size - 1
            )));
        }
        let bits = if n < BigInt::default() {
            n + half * 2
        } else {
            n
        };
        Ok(Value::text(&format!(
            "{prefix}{}i{size}",
            bits.to_str_radix(base)
        )))
    })
}

/// A number on its way into another base: its whole part, and so many digits below the point, as one whole number.
struct Based {
    is_negative: bool,
    whole: BigInt,
    below_point: BigInt,
    places: u32,
}

impl Based {
    /// Exactly: a float is a sum of powers of two, and so are the bases.
    fn of_number(x: f64, base: u32) -> Self {
        let size = x.abs();
        let (mantissa, exponent, _) = size.fract().integer_decode();
        let bits_below = u32::from(exponent.unsigned_abs());
        let bits = base.trailing_zeros();
        let places = bits_below.div_ceil(bits);
        Self {
            is_negative: x < 0.0,
            whole: BigInt::from_f64(size.trunc()).unwrap_or_default(),
            below_point: BigInt::from(mantissa) << (places * bits - bits_below),
            places,
        }
    }

    /// As many digits of the base as big numbers have of ten; zeros before the first do not count.
    fn of_big(env: &mut Env, n: &Decimal, base: u32) -> Result<Self> {
        let too_long = || MathError::limit("Number too large to be written in another base");
        let Decimal::Finite { mantissa, exponent } = n.abs() else {
            return Err(too_long());
        };
        let exact = Fraction::scaled(mantissa, exponent).ok_or_else(too_long)?;
        env.purse.pay_digits(2 * exact.digits())?;
        let (mut whole, rest) = exact.numerator.div_rem(&exact.denominator);
        let digits = env.settings.precision as u32;
        let places = if whole == BigInt::default() {
            let bits = exact.denominator.bits().saturating_sub(rest.bits());
            digits + bits as u32 / base.trailing_zeros()
        } else {
            digits.saturating_sub(whole.to_str_radix(base).len() as u32)
        };
        let scale = BigInt::from(base).pow(places);
        let mut below_point = (rest * &scale * 2 + &exact.denominator) / (&exact.denominator * 2);
        if below_point == scale {
            whole += 1;
            below_point = BigInt::default();
        }
        Ok(Self {
            is_negative: n.is_negative(),
            whole,
            below_point,
            places,
        })
    }

    fn write(&self, base: u32) -> String {
        let whole = self.whole.to_str_radix(base);
        if self.below_point == BigInt::default() {
            return whole;
        }
        let digits = self.below_point.to_str_radix(base);
        let digits = format!("{digits:0>places$}", places = self.places as usize);
        format!("{whole}.{}", digits.trim_end_matches('0'))
    }
}
