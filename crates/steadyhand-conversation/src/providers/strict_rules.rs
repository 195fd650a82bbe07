//! What a stand-in for a provider must know of it. Nothing of the checks and repairs is used here, nor in any file
//! `strict.rs` of a provider, so that each can prove the other wrong.

use serde_json::Value;

/// A status and the body that goes with it.
pub type Refusal = (u16, Value);

/// A provider as strict as the real one.
pub trait StrictRules: Sync {
    /// Checks a request.
    ///
    /// # Errors
    ///
    /// What the provider would answer instead of a reply.
    fn check(&self, request: &Value) -> Result<(), Refusal>;
}

pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(crate) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

/// However deep it is: a parsed value could not be.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
