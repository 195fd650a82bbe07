//! Whole numbers: other bases, divisors, primes.

use num_bigint::BigInt;
use num_traits::FromPrimitive;

/// The whole number a float is, with all its digits; `None` for what is not whole.
pub(crate) fn exact(x: f64) -> Option<BigInt> {
    if x.fract() == 0.0 {
        BigInt::from_f64(x)
    } else {
        None
    }
}

/// A whole number as JavaScript's `BigInt(text)` reads it: nothing is zero.
pub(crate) fn read_whole(text: &str) -> Option<BigInt> {
    let text = text.trim();
    if text.is_empty() {
        return Some(BigInt::default());
    }
    let radix = match text.get(..2) {
        Some("0b" | "0B") => 2,
        Some("0o" | "0O") => 8,
        Some("0x" | "0X") => 16,
        _ => {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            return plain.then(|| text.parse().ok()).flatten();
        }
    };
    let digits = &text[2..];
    let plain = digits.chars().all(|c| c.is_digit(radix));
    plain
        .then(|| BigInt::parse_bytes(digits.as_bytes(), radix))
        .flatten()
}

/// `0b101`, `0o17`, `0xff`, with an optional radix point (`0x1.8`) or word size (`0xffi8`).
pub(crate) fn read_based(text: &str) -> Option<f64> {
    let radix = match text.get(..2)? {
        "0b" => 2,
        "0o" => 8,
        "0x" => 16,
        _ => return None,
    };
    let body = &text[2..];
    let (body, bits) = match body.rsplit_once('i') {
        Some((body, bits)) => (body, Some(bits.parse::<i32>().ok()?)),
        None => (body, None),
    };
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for c in whole.chars() {
        value = value * f64::from(radix) + f64::from(c.to_digit(radix)?);
    }
    let mut scale = 1.0;
    for c in fraction.chars() {
        scale /= f64::from(radix);
        value += f64::from(c.to_digit(radix)?) * scale;
    }
    match bits {
        None => Some(value),
        Some(bits) if value >= 2f64.powi(bits) => None,
        Some(bits) if value >= 2f64.powi(bits - 1) => Some(value - 2f64.powi(bits)),
        Some(_) => Some(value),
    }
}
