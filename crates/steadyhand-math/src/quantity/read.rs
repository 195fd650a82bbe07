//! Reads quantities from text: `5.2 kg m / s^2`

use crate::convert::read_number;
use crate::error::{MathError, Result};
use crate::names::is_letter;
use crate::unit::Part;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::unit::Unit;

impl Unit {
    /// A unit alone, by name; it becomes the one that answers of its kind are written in.
    pub(crate) fn named(env: &mut Env, name: &str) -> Option<Self> {
        let part = env.units.find(name)?;
        env.units.prefer(&part);
        Some(Self::without_value(vec![part]))
    }

    /// A text with an optional number in front.
    pub(crate) fn read(env: &mut Env, text: &str) -> Result<Self> {
        let (value, unit) = Self::read_parts(env, text)?;
        if unit.parts.is_empty() {
            return Err(MathError::units(format!("\"{text}\" contains no units")));
        }
        match value {
            Some(value) => unit.with_value(env, &Value::Num(value)),
            None => Ok(unit),
        }
    }

    /// The number and the units of a text that may lack either.
    pub(crate) fn read_parts(env: &mut Env, text: &str) -> Result<(Option<f64>, Self)> {
        env.purse.pay_text(text.len())?;
        let mut reader = Reader {
            text,
            rest: text.trim_start(),
        };
        let value = reader.number()?;
        let mut sign = 1.0;
        let mut expecting = false;
        if value.is_some() {
            (sign, expecting) = reader.operator(sign);
        }
        // Each open parenthesis remembers whether it stands below a fraction bar.
        let mut groups: Vec<f64> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        loop {
            while reader.eat('(') {
                groups.push(sign);
                sign = 1.0;
            }
            if reader.rest.is_empty() {
                break;
            }
            let name = reader.name()?;
            let found = env
                .units
                .find(name)
                .ok_or_else(|| MathError::units(format!("Unit \"{name}\" not found.")))?;
            env.units.prefer(&found);
            let mut power = sign * groups.iter().product::<f64>();
            if reader.eat('^') {
                power *= reader.number()?.ok_or_else(|| {
                    MathError::units(format!(
                        "In \"{text}\", \"^\" must be followed by a floating-point number"
                    ))
                })?;
            }
            parts.push(Part { power, ..found });
            while reader.eat(')') {
                groups
                    .pop()
                    .ok_or_else(|| MathError::units(format!("Unmatched \")\" in \"{text}\"")))?;
            }
            (sign, expecting) = reader.operator(1.0);
        }
        if expecting {
            return Err(MathError::units(format!("Trailing characters: \"{text}\"")));
        }
        if !groups.is_empty() {
            return Err(MathError::units(format!("Unmatched \"(\" in \"{text}\"")));
        }
        Ok((value, Self::without_value(parts)))
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn operator(&mut self, otherwise: f64) -> (f64, bool) {
        if self.eat('*') {
            (1.0, true)
        } else if self.eat('/') {
            (-1.0, true)
        } else {
            (otherwise, false)
        }
    }

    fn name(&mut self) -> Result<&'a str> {
        let end = self
            .rest
            .find(|c: char| !is_letter(c) && !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        if end == 0 || self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            let found = self.rest.chars().next().unwrap_or_default();
            let at = self.text.len() - self.rest.len();
            return Err(MathError::units(format!(
                "Unexpected \"{found}\" in \"{}\" at index {at}",
                self.text
            )));
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        Ok(name)
    }

    fn number(&mut self) -> Result<Option<f64>> {
        let bytes = self.rest.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let mut end = digits(start);
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if !self.rest[start..end]
            .bytes()
            .any(|byte| byte.is_ascii_digit())
        {
            return Ok(None);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let after = digits(end + 1 + sign);
            if after > end + 1 + sign {
                end = after;
            }
        }
        let value = read_number(&self.rest[..end])?;
        self.rest = self.rest[end..].trim_start();
        Ok(Some(value))
    }
}
