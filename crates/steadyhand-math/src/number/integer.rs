//! Whole numbers: other bases, divisors, primes.

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
