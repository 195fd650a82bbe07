//! What is wrong with a message's JSON, and where.

use std::error::Error;
use std::fmt;

use serde_json::Value;

/// A message that is not as LangChain writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    /// The place, as a JSON Pointer; empty for the whole.
    pub at: String,
    /// What belongs there.
    pub expected: &'static str,
    /// What is there instead.
    pub found: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.at.is_empty() {
            "the whole"
        } else {
            &self.at
        };
        write!(
            out,
            "{place}: expected {}, found {}",
            self.expected, self.found
        )
    }
}

impl Error for FormatError {}

impl FormatError {
    pub(super) fn new(at: String, expected: &'static str, found: Option<&Value>) -> Self {
        Self {
            at,
            expected,
            found: found.map_or_else(|| "nothing".to_owned(), describe),
        }
    }
}

/// How much of a text is quoted: it may be a whole document in the wrong place.
const QUOTE_CHARS_MAX: usize = 40;

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => format!("the number {value}"),
        Value::String(text) if text.chars().nth(QUOTE_CHARS_MAX).is_some() => {
            "a long string".to_owned()
        }
        Value::String(text) => format!("the string {text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
