//! The way in: one expression, or several that share their variables.

use std::fmt;

use crate::error::MathError;
use crate::format::write_value;
use crate::limits::Limits;
use crate::number::digits::{Style, write_number};
use crate::value::Value;
use crate::value::env::Env;

/// Evaluates one expression within the default [`Limits`].
///
/// ```
/// let answer = steadyhand_math::evaluate("sqrt(3^2 + 4^2)").unwrap();
/// assert_eq!(answer.to_json(), 5);
/// assert_eq!(steadyhand_math::evaluate("90 km/h to m/s").unwrap().to_string(), "25 m / s");
/// assert_eq!(steadyhand_math::evaluate("2 + x").unwrap_err().to_string(), "Undefined symbol x");
/// ```
pub fn evaluate(expression: &str) -> Result<Answer, MathError> {
    Session::new().evaluate(expression)
}

/// Expressions that share variables, functions and units.
///
/// ```
/// let mut session = steadyhand_math::Session::new();
/// session.evaluate("f(x) = x^2 + 1").unwrap();
/// assert_eq!(session.evaluate("f(3)").unwrap().to_json(), 10);
/// ```
#[derive(Debug)]
pub struct Session {
    env: Env,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A session without variables, within the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A session whose every expression stays within these limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            env: Env::new(limits),
        }
    }

    /// Makes the random functions repeat themselves, for tests.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.env.random = fastrand::Rng::with_seed(seed);
        self
    }

    /// Evaluates one expression; what it assigns stays for the next one, also when it fails half-way.
    pub fn evaluate(&mut self, expression: &str) -> Result<Answer, MathError> {
        let value = self.env.run(expression)?;
        let text = match &value {
            Value::Num(_) | Value::Bool(_) | Value::Null | Value::Undefined => None,
            other => Some(write_value(&mut self.env, other, &Style::EXACT)?),
        };
        Ok(Answer { value, text })
    }
}

/// What an expression evaluates to. `Display` writes it the way mathjs's `format(value)` does, with all its digits.
#[derive(Debug, Clone)]
pub struct Answer {
    value: Value,
    /// Written out while there was still something to pay with.
    text: Option<String>,
}

impl Answer {
    /// Numbers, booleans and null as themselves; a text without its quotes; `NaN`, `Infinity` and `-Infinity` as those texts;
    /// everything else (units, matrices, complex and big numbers, …) as the text mathjs writes.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Num(x) if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => {
                serde_json::Value::from(*x as i64)
            }
            Value::Num(x) => serde_json::Number::from_f64(*x).map_or_else(
                || write_number(*x, &Style::EXACT).into(),
                serde_json::Value::Number,
            ),
            Value::Bool(value) => (*value).into(),
            Value::Null | Value::Undefined => serde_json::Value::Null,
            Value::Text(text) => serde_json::Value::from(&**text),
            _ => serde_json::Value::from(self.text.as_deref().unwrap_or_default()),
        }
    }

    /// The number it is, if it is a plain one.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self.value {
            Value::Num(x) => Some(x),
            _ => None,
        }
    }

    /// What mathjs's `typeOf` calls it: `number`, `Unit`, `DenseMatrix`, …
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.value.type_name()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, &self.value) {
            (Some(text), _) => f.write_str(text),
            (None, Value::Num(x)) => f.write_str(&write_number(*x, &Style::EXACT)),
            (None, Value::Bool(value)) => write!(f, "{value}"),
            (None, Value::Null) => f.write_str("null"),
            (None, _) => f.write_str("undefined"),
        }
    }
}
