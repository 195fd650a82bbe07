//! The fields of a message that this library carries along without knowing what they mean.

use std::ops::Deref;
use std::ops::DerefMut;

use serde_json::Map;
use serde_json::Value;

/// Fields kept as they came, in the order they came.
///
/// Two of these are equal when LangChain would make the same message of them. Some of its forms write
/// out what is empty (`"id": null`, `"additional_kwargs": {}`) and others leave it out, so a field that
/// is null or empty equals one that is absent.
#[derive(Debug, Clone, Default)]
pub struct Extra(pub Map<String, Value>);

impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        self.filled().count() == other.filled().count()
            && self
                .filled()
                .all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Deref for Extra {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Extra {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl From<Map<String, Value>> for Extra {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

impl Extra {
    fn filled(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().filter(|(_, value)| !is_empty(value))
    }
}

/// Whether LangChain treats the value as if it had not been given.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
