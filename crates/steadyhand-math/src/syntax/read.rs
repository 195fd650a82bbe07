//! Reads a text as an expression, its numbers as the settings say.

use super::parser;
use crate::error::{ErrorKind, MathError, Result};
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::integer;
use crate::value::Value;
use crate::value::env::{Env, NumberKind};
use crate::value::node::Node;

impl Env {
    pub(crate) fn parse(&mut self, expression: &str) -> Result<Node> {
        self.purse.pay(expression.len() as u64 / 64)?;
        let (kind, digits_max) = (self.settings.number, self.purse.limits.big_digits);
        parser::parse(expression, &self.purse.limits, &|text| {
            read_number(text, kind, digits_max)
        })
    }
}

fn read_number(text: &str, kind: NumberKind, digits_max: usize) -> Result<Value> {
    if kind == NumberKind::Number
        && text.len() <= 15
        && text.bytes().all(|byte| byte.is_ascii_digit())
    {
        // Short whole numbers, the usual ones, are exact however they are read.
        let whole = text
            .bytes()
            .fold(0u64, |whole, byte| whole * 10 + u64::from(byte - b'0'));
        return Ok(Value::Num(whole as f64));
    }
    let unreadable = || {
        MathError::new(
            ErrorKind::Value,
            format!("String \"{text}\" is not a valid number"),
        )
    };
    let is_based = text.starts_with("0b") || text.starts_with("0o") || text.starts_with("0x");
    if is_based {
        return integer::read_based(text)
            .map(Value::Num)
            .ok_or_else(unreadable);
    }
    match kind {
        NumberKind::Number => text.parse().map(Value::Num).map_err(|_| unreadable()),
        NumberKind::BigNumber => Decimal::read(text).map(Value::big).ok_or_else(unreadable),
        NumberKind::Fraction => Fraction::read(text).map(Value::frac).ok_or_else(unreadable),
        NumberKind::BigInt => {
            match Decimal::read(text).and_then(|decimal| decimal.to_bigint(digits_max)) {
                Some(n) => Ok(Value::int(n)),
                None => text.parse().map(Value::Num).map_err(|_| unreadable()),
            }
        }
    }
}
