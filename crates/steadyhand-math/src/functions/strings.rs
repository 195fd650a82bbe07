//! Values as text: format, print, other bases.

use crate::broadcast::each;
use crate::convert::{length, simple, whole, wrong_type};
use crate::env::Env;
use crate::error::{MathError, Result};
use crate::format::write_value;
use crate::function::Builtin;
use crate::number::digits::{Notation, Style};
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
        Some(Value::Function(function)) => {
            match env.call_function(function, std::slice::from_ref(&args[0]))? {
                Value::Text(text) => text.to_string(),
                other => write_value(env, &other, &Style::EXACT)?,
            }
        }
        Some(Value::Object(options)) => {
            if let Some(base) = base_notation(options) {
                let size = options.get("wordSize").cloned();
                let mut arguments = vec![args[0].clone()];
                arguments.extend(size);
                return in_base(env, "format", &arguments, base);
            }
            let style = style(options)?;
            write_value(env, &args[0], &style)?
        }
        Some(precision) => {
            let precision = length("format", precision)?;
            write_value(env, &args[0], &Style::digits(bounded(precision)?))?
        }
    };
    text(env, &written)
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
            ("precision", value) => style.precision = Some(bounded(length("format", value)?)?),
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
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        _ => "0x",
    };
    each(env, &args[0], |_, value| {
        let mut x = match &simple(name, value, 0)? {
            Value::Num(x) => *x,
            Value::Int(n) => {
                let sign = if **n < num_bigint::BigInt::default() {
                    "-"
                } else {
                    ""
                };
                return Ok(Value::text(&format!(
                    "{sign}{prefix}{}",
                    n.magnitude().to_str_radix(base)
                )));
            }
            Value::Big(n) => n.to_f64(),
            other => return Err(wrong_type("format", other, 0)),
        };
        let mut suffix = String::new();
        if let Some(size) = size {
            if !(1..=1000).contains(&size) {
                return Err(MathError::value("size must be in greater than 0"));
            }
            let half = 2f64.powi(size as i32 - 1);
            if x > half - 1.0 || x < -half {
                return Err(MathError::value(format!(
                    "Value must be in range [-2^{0}, 2^{0}-1]",
                    size - 1
                )));
            }
            if x < 0.0 {
                x += 2.0 * half;
            }
            suffix = format!("i{size}");
        }
        if !x.is_finite() {
            return Ok(Value::text(&crate::number::digits::write_number(
                x,
                &Style::EXACT,
            )));
        }
        let sign = if x < 0.0 { "-" } else { "" };
        Ok(Value::text(&format!(
            "{sign}{prefix}{}{suffix}",
            digits_in(x.abs(), base)
        )))
    })
}

fn digits_in(x: f64, base: u32) -> String {
    let whole = crate::number::decimal::Decimal::from_f64(x.trunc())
        .to_bigint(400)
        .unwrap_or_default();
    let mut text = whole.to_str_radix(base);
    let mut fraction = x.fract();
    if fraction > 0.0 {
        text.push('.');
        for _ in 0..60 {
            fraction *= f64::from(base);
            let digit = fraction.trunc();
            text.push(char::from_digit(digit as u32, base).unwrap_or('0'));
            fraction -= digit;
            if fraction == 0.0 {
                break;
            }
        }
    }
    text
}
