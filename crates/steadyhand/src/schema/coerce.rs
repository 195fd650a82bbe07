//! Mends common slips in arguments, where a tool allows it: guided by the schema, and reported (SPEC D12).

use std::collections::HashSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::counted::{CountedValidator, GivenUp, Steps};
use super::{ERRORS_READ_MAX, example};
use crate::repeated_name::RepeatedName;

/// One value that was changed so that the arguments fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coercion {
    /// JSON Pointer into the arguments.
    pub at: String,
    /// What was done, in words.
    pub message: String,
}

/// A JSON text inside a JSON text inside …: deep enough.
const ROUNDS_MAX: usize = 4;

/// Changes what can be changed without guessing; what is still wrong afterwards is reported as usual.
pub(super) fn mend(
    validator: &CountedValidator,
    document: &Value,
    args: &mut Value,
    done: &mut Vec<Coercion>,
    steps: &mut Steps,
) -> Result<(), GivenUp> {
    for _ in 0..ROUNDS_MAX {
        // Several parts of a schema may say the same of one value, which is read once.
        let mut seen = HashSet::new();
        let changes: Vec<(String, Change)> = validator
            .errors(args, ERRORS_READ_MAX, steps)?
            .into_iter()
            .filter_map(|error| {
                let at = error.instance_path().as_str().to_owned();
                let ValidationErrorKind::Type { kind } = error.kind() else {
                    return None;
                };
                let wanted: Vec<String> = match kind {
                    TypeKind::Single(name) => vec![name.to_string()],
                    TypeKind::Multiple(names) => {
                        names.iter().map(|name| name.to_string()).collect()
                    }
                };
                if !seen.insert((at.clone(), wanted.clone())) {
                    return None;
                }
                let change = change(error.instance(), &wanted, &at, document)?;
                Some((at, change))
            })
            .collect();
        if changes.is_empty() {
            break;
        }
        for (at, change) in changes {
            if let Some(message) = change.apply(args, &at) {
                done.push(Coercion { at, message });
            }
        }
    }
    Ok(())
}

enum Change {
    Replace(Value),
    Remove,
}

fn change(value: &Value, wanted: &[String], at: &str, document: &Value) -> Option<Change> {
    let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
    match value {
        // A field that may be text is text.
        Value::String(_) if wants("string") => None,
        Value::String(text) => {
            let parsed = from_text(text.trim(), wants)?;
            Some(Change::Replace(parsed))
        }
        Value::Null if is_optional(at, document) => Some(Change::Remove),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

fn from_text(text: &str, wants: impl Fn(&str) -> bool) -> Option<Value> {
    if (wants("integer") || wants("number"))
        && let Some(number) = number_from(text, &wants)
    {
        return Some(Value::Number(number));
    }
    if wants("boolean")
        && let Ok(flag) = text.parse::<bool>()
    {
        return Some(Value::Bool(flag));
    }
    if !wants("object") && !wants("array") {
        return None;
    }
    if RepeatedName::first_in(text).is_some() {
        return None;
    }
    let parsed: Value = serde_json::from_str(text).ok()?;
    let fits = (parsed.is_object() && wants("object")) || (parsed.is_array() && wants("array"));
    fits.then_some(parsed)
}

fn number_from(text: &str, wants: impl Fn(&str) -> bool) -> Option<Number> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(Number::from(number));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(Number::from(number));
    }
    let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
    // Beyond this a float cannot tell neighbouring integers apart.
    let is_integer = float.fract() == 0.0 && float.abs() < 2f64.powi(53);
    if is_integer || (wants("number") && !is_digits(text)) {
        return Number::from_f64(float);
    }
    None
}

/// Digits and nothing else: as a float, a number that long would lose some of them.
fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the parent object can do without this field.
fn is_optional(at: &str, document: &Value) -> bool {
    let Some((parent, name)) = at.rsplit_once('/') else {
        return false;
    };
    let Some(schema) = example::subschema(document, parent) else {
        return false;
    };
    let declared = schema
        .get("properties")
        .and_then(|all| all.get(name))
        .is_some();
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name));
    declared && !required
}

impl Change {
    /// Makes the change; the report names types, not values, which may be secret.
    fn apply(self, args: &mut Value, at: &str) -> Option<String> {
        match self {
            Change::Replace(value) => {
                let place = args.pointer_mut(at)?;
                let kind = super::explain::type_of(&value);
                *place = value;
                Some(format!("read the {kind} out of a string"))
            }
            Change::Remove => {
                let (parent, name) = at.rsplit_once('/')?;
                let name = name.replace("~1", "/").replace("~0", "~");
                args.pointer_mut(parent)?
                    .as_object_mut()?
                    .shift_remove(&name)?;
                Some("left out: null for an optional parameter".to_owned())
            }
        }
    }
}
