//! Integers that 64 bits cannot hold: a JSON value would round them, so they are found in the text (SPEC V20).
//!
//! In arguments they are refused, in results they are kept as texts of their digits.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

/// Fewer digits always fit.
const DIGITS_THAT_FIT: usize = 18;
/// Marks an integer while its place is looked for. No JSON text of anyone has it unescaped.
const MARK: &str = "\\u0001\\u0001";

/// An integer that does not fit into 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InexactInteger {
    /// JSON Pointer to it.
    pub at: String,
    /// The integer as it is written.
    pub digits: String,
}

impl InexactInteger {
    /// The first in a JSON text.
    pub fn first_in(text: &str) -> Option<InexactInteger> {
        let range = ranges(text).next()?;
        let (before, digits) = (&text[..range.start], &text[range.clone()]);
        let marked = format!("{before}\"{MARK}\"{}", &text[range.end..]);
        let found = serde_json::from_str(&marked).ok();
        Some(InexactInteger {
            at: found
                .and_then(|value| place_of_mark(&value))
                .unwrap_or_default(),
            digits: digits.to_owned(),
        })
    }

    /// What is wrong with it, and what to do.
    pub fn message(&self) -> String {
        format!(
            "the integer {} does not fit into 64 bits and would be rounded; send it as a string",
            self.digits
        )
    }
}

/// The JSON text with such integers as strings of their digits, so that none is lost.
pub fn with_exact_integers(text: &str) -> Cow<'_, str> {
    let mut found = ranges(text).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len() + 16);
    let mut end = 0;
    for range in found {
        whole.push_str(&text[end..range.start]);
        whole.push('"');
        whole.push_str(&text[range.clone()]);
        whole.push('"');
        end = range.end;
    }
    whole.push_str(&text[end..]);
    Cow::Owned(whole)
}

/// Where such integers stand in a JSON text.
fn ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = match has_many_digits(bytes) {
        true => 0,
        false => bytes.len(),
    };
    let mut in_string = false;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' if in_string => at += 2,
                b'"' => {
                    in_string = !in_string;
                    at += 1;
                }
                b'-' | b'0'..=b'9' if !in_string => {
                    let start = at;
                    let is_number =
                        |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    at += bytes[start..]
                        .iter()
                        .take_while(|byte| is_number(byte))
                        .count();
                    if is_inexact(&text[start..at]) {
                        return Some(start..at);
                    }
                }
                _ => at += 1,
            }
        }
        None
    })
}

fn has_many_digits(bytes: &[u8]) -> bool {
    let mut run = 0;
    bytes.iter().any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        run > DIGITS_THAT_FIT
    })
}

fn is_inexact(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() > DIGITS_THAT_FIT
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

fn place_of_mark(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (text == "\u{1}\u{1}").then(String::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(format!("/{index}{}", place_of_mark(item)?))),
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            Some(format!("/{name}{}", place_of_mark(field)?))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v20_only_integers_beyond_64_bits_are_inexact() {
        for text in [
            r#"{"a": 18446744073709551615, "b": -9223372036854775808}"#,
            r#"["18446744073709551616", "\"18446744073709551616"]"#,
            "[1.8446744073709551616e19, 123456789012345678901.5, 1e30]",
            "",
            "not JSON",
        ] {
            assert_eq!(InexactInteger::first_in(text), None, "{text}");
            assert_eq!(with_exact_integers(text), text);
        }
        for (text, at, digits, quoted) in [
            (
                r#"{"a": [1, {"x/y": 18446744073709551616}]}"#,
                "/a/1/x~1y",
                "18446744073709551616",
                r#"{"a": [1, {"x/y": "18446744073709551616"}]}"#,
            ),
            (
                r#"{"s":"\\","n":-9223372036854775809,"m":99999999999999999999}"#,
                "/n",
                "-9223372036854775809",
                r#"{"s":"\\","n":"-9223372036854775809","m":"99999999999999999999"}"#,
            ),
            (
                "123456789012345678901234567890",
                "",
                "123456789012345678901234567890",
                r#""123456789012345678901234567890""#,
            ),
        ] {
            let found = InexactInteger::first_in(text).expect(text);
            assert_eq!((found.at.as_str(), found.digits.as_str()), (at, digits));
            assert_eq!(with_exact_integers(text), quoted);
        }
    }
}
