//! The arguments of a call in a history: an object, or the text of one.

use serde_json::{Map, Value, json};

use crate::problem::{Code, Log};
use crate::texts::UNREADABLE;
use steadyhand::{Arguments, RepeatedName};

/// The longest text that is looked at for being JSON; a longer one is taken as it is.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The arguments as the object a provider wants, with what was wrong. None where they are one already.
pub(crate) fn as_object(value: Option<&Value>) -> Option<(Value, Code, &'static str)> {
    match value {
        Some(Value::Object(_)) => None,
        None | Some(Value::Null) => Some((json!({}), Code::BadArguments, "has no arguments")),
        Some(Value::String(text)) => Some(read(text)),
        Some(other) => Some((
            kept(other.clone()),
            Code::BadArguments,
            "has arguments that are no object",
        )),
    }
}

/// The arguments as the text a provider wants, with what was wrong. None where they are one already.
pub(crate) fn as_text(value: Option<&Value>) -> Option<(Value, Code, &'static str)> {
    match value {
        Some(Value::String(text)) if is_object_text(text) => None,
        Some(Value::String(text)) => {
            let (object, code, fault) = read(text);
            Some((Value::String(object.to_string()), code, fault))
        }
        Some(object @ Value::Object(_)) => Some((
            Value::String(object.to_string()),
            Code::BadArguments,
            "has arguments that are an object, not its text",
        )),
        other => {
            let (object, code, fault) = as_object(other)?;
            Some((Value::String(object.to_string()), code, fault))
        }
    }
}

/// Whether arguments in either form are ones that broke off and were kept as they were.
pub(crate) fn were_cut_off(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(object)) => is_kept_text(object),
        Some(Value::String(text)) if text.starts_with("{\"unreadable_arguments\"") => {
            match serde_json::from_str(text) {
                Ok(Value::Object(object)) => is_kept_text(&object),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Replaces the arguments under `key`, and says so.
pub(crate) fn mend(
    call: &mut Map<String, Value>,
    key: &str,
    mended: Option<(Value, Code, &'static str)>,
    at: impl FnOnce() -> String,
    says: Option<String>,
    log: &mut Log,
) {
    let Some((value, code, fault)) = mended else {
        return;
    };
    let fix = match code {
        Code::UnfinishedArguments => "what there is of them is kept under one key",
        _ => "they are written as the provider takes them",
    };
    log.found(at(), code, format!("the call {fault}"))
        .says(says)
        .fixed(fix);
    call.insert(key.to_owned(), value);
}

fn is_kept_text(object: &Map<String, Value>) -> bool {
    object.len() == 1 && object.get(UNREADABLE).is_some_and(Value::is_string)
}

/// Reads what should have been an object.
fn read(text: &str) -> (Value, Code, &'static str) {
    if text.trim().is_empty() {
        return (json!({}), Code::BadArguments, "has no arguments");
    }
    if RepeatedName::first_in(text).is_some() {
        return (
            kept(Value::String(text.to_owned())),
            Code::BadArguments,
            "has arguments with a name that is there twice",
        );
    }
    match serde_json::from_str::<Value>(text) {
        Ok(object @ Value::Object(_)) => (
            object,
            Code::BadArguments,
            "has arguments that are text, not an object",
        ),
        Ok(Value::Null) => (json!({}), Code::BadArguments, "has no arguments"),
        // An object that was turned to text twice.
        Ok(Value::String(inner))
            if is_object_text(&inner) && RepeatedName::first_in(&inner).is_none() =>
        {
            (
                serde_json::from_str(&inner).unwrap_or_else(|_| kept(Value::String(inner))),
                Code::BadArguments,
                "has arguments that are text in a text",
            )
        }
        Ok(other) => (
            kept(other),
            Code::BadArguments,
            "has arguments that are no object",
        ),
        Err(_) => (
            kept(Value::String(text.to_owned())),
            Code::UnfinishedArguments,
            "has arguments that break off or are no JSON",
        ),
    }
}

fn kept(value: Value) -> Value {
    json!({ UNREADABLE: value })
}

fn is_object_text(text: &str) -> bool {
    if text.len() > TEXT_BYTES_MAX {
        return true;
    }
    text.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// A call without arguments has an empty object.
pub(crate) fn of_call(found: &Value) -> Arguments {
    match found {
        Value::Null => Arguments::Json(json!({})),
        Value::String(text) if text.trim().is_empty() => Arguments::Json(json!({})),
        Value::String(text) => Arguments::Text(text.clone()),
        other => Arguments::Json(other.clone()),
    }
}
