//! Makes examples from a schema: values that would do, for people and models that sent others.

use std::collections::HashSet;

use serde_json::{Map, Number, Value, json};

use crate::cut::json_bytes;
use crate::failure::Problem;
use crate::redact;

use super::counted::{CountedValidator, Steps};

const DEPTH_MAX: usize = 8;
const EXAMPLE_BYTES_MAX: usize = 1024;
/// How many schemas are read for one example.
const SCHEMAS_READ_MAX: usize = 256;
/// Longer references are not followed: each is read once for every step on its way.
const REFERENCE_BYTES_MAX: usize = 2_000;
/// How many of the sent arguments go into an example, and with how many names a wrong one is compared.
const ARGUMENTS_TAKEN_MAX: usize = 64;
const NAMES_COMPARED_MAX: usize = 256;
const COMPARED_NAME_BYTES_MAX: usize = 64;

/// Arguments that would have passed: as many of the sent ones as possible, the faulty ones replaced.
/// None where we cannot make any: an example that does not validate would be a lie.
pub(super) fn valid_arguments(
    document: &Value,
    sent: &Value,
    problems: &[Problem],
    validator: &CountedValidator,
    steps: &mut Steps,
) -> Option<Value> {
    let plain = value(document, document).filter(Value::is_object)?;
    let mut mended = plain.clone();
    let properties = document.get("properties").and_then(Value::as_object);
    if let (Some(fields), Some(sent)) = (mended.as_object_mut(), sent.as_object()) {
        let faulty: HashSet<String> = problems.iter().map(|one| top_name(&one.at)).collect();
        for (name, field) in sent.iter().take(ARGUMENTS_TAKEN_MAX) {
            // A name that the tool does not know is not taught to anybody; its value may be the one that is missing.
            let name = match properties {
                Some(known) if !known.contains_key(name) => {
                    let unsent = known.keys().filter(|known| !sent.contains_key(*known));
                    match meant(name, unsent) {
                        Some(meant) => meant,
                        None => continue,
                    }
                }
                _ => name,
            };
            let is_faulty = sent.contains_key(name) && faulty.contains(name);
            let is_shown = || !redact::is_secret_name(name) && redact::value(field) == *field;
            if !is_faulty && is_small(field) && is_shown() {
                fields.insert(name.clone(), field.clone());
            }
        }
    }
    [mended, plain]
        .into_iter()
        .find(|example| is_small(example) && validator.is_valid(example, steps) == Ok(true))
}

/// The argument that a JSON Pointer leads into.
fn top_name(pointer: &str) -> String {
    let name = pointer.split('/').nth(1).unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~")
}

/// The name that somebody probably meant who wrote another one.
fn meant<'a>(written: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    if written.len() > COMPARED_NAME_BYTES_MAX {
        return None;
    }
    let known = known.filter(|name| name.len() <= COMPARED_NAME_BYTES_MAX);
    let known = known.take(NAMES_COMPARED_MAX);
    let likeness =
        |name: &String| strsim::jaro_winkler(&written.to_lowercase(), &name.to_lowercase());
    let likely = known.map(|name| (likeness(name), name));
    let likely = likely.filter(|(likeness, _)| *likeness >= 0.84);
    likely
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A value that fits the schema, as far as can be told without solving it.
pub(super) fn value(schema: &Value, document: &Value) -> Option<Value> {
    let mut maker = Maker {
        document,
        schemas_left: SCHEMAS_READ_MAX,
    };
    maker.make(schema, 0).filter(is_small)
}

pub(super) fn is_small(example: &Value) -> bool {
    json_bytes(example, EXAMPLE_BYTES_MAX) <= EXAMPLE_BYTES_MAX
}

/// The schema of the value at a JSON Pointer into the arguments, through properties and items.
pub(super) fn subschema<'a>(document: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut schema = document;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        schema = follow(schema, document);
        let property = schema.get("properties").and_then(|all| all.get(&part));
        schema = property.or_else(|| schema.get("items"))?;
    }
    Some(follow(schema, document))
}

pub(super) fn follow<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .filter(|reference| reference.len() <= REFERENCE_BYTES_MAX)
        .and_then(|reference| reference.strip_prefix('#'))
        .and_then(|pointer| document.pointer(pointer));
    target.unwrap_or(schema)
}

/// Makes one example, from a bounded number of schemas: required fields that refer to each other grow exponentially.
struct Maker<'a> {
    document: &'a Value,
    schemas_left: usize,
}

impl Maker<'_> {
    fn make(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.schemas_left = self.schemas_left.checked_sub(1)?;
        if depth > DEPTH_MAX {
            return None;
        }
        let schema = follow(schema, self.document);
        for known in ["const", "default"] {
            if let Some(value) = schema.get(known).filter(|value| !value.is_null()) {
                return is_small(value).then(|| value.clone());
            }
        }
        for list in ["examples", "enum"] {
            if let Some(value) = schema.get(list).and_then(|values| values.get(0)) {
                return is_small(value).then(|| value.clone());
            }
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(first) = schema.get(choice).and_then(|choices| choices.get(0)) {
                return self.make(first, depth + 1);
            }
        }
        let name = match schema.get("type") {
            Some(Value::Array(names)) => names.first()?.as_str()?,
            Some(Value::String(name)) => name,
            Some(_) => return None,
            None if schema.get("properties").is_some() => "object",
            None => return Some(json!("…")),
        };
        match name {
            "object" => self.make_object(schema, depth),
            "array" => self.make_array(schema, depth),
            "string" => make_string(schema),
            "integer" | "number" => make_number(schema, name),
            "boolean" => Some(Value::Bool(true)),
            "null" => Some(Value::Null),
            _ => None,
        }
    }

    fn make_object(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        let mut fields = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let property = schema.get("properties").and_then(|all| all.get(name));
            let field = match property {
                Some(property) => self.make(property, depth + 1)?,
                None => json!("…"),
            };
            if fields.len() > SCHEMAS_READ_MAX {
                return None;
            }
            fields.insert(name.to_owned(), field);
        }
        Some(Value::Object(fields))
    }

    fn make_array(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1);
        let items = schema.get("items").unwrap_or(&Value::Null);
        let item = self.make(items, depth + 1).unwrap_or(json!("…"));
        let count = count.clamp(1, 4) as usize;
        // Lists of lists grow with each level.
        let fits = json_bytes(&item, EXAMPLE_BYTES_MAX) * count <= EXAMPLE_BYTES_MAX;
        fits.then(|| Value::Array(vec![item; count]))
    }
}

fn make_string(schema: &Value) -> Option<Value> {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00Z",
        Some("email") => "name@example.com",
        Some("uri" | "url" | "iri") => "https://example.com",
        Some("uuid") => "123e4567-e89b-42d3-a456-426614174000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("hostname") => "example.com",
        Some(_) => return None,
        // Guessing what a pattern matches would be guessing.
        None if schema.get("pattern").is_some() => return None,
        None => "text",
    };
    let shortest = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let longest = schema
        .get("maxLength")
        .and_then(Value::as_u64)
        .unwrap_or(u64::MAX);
    let mut text = text.to_owned();
    while (text.chars().count() as u64) < shortest.min(64) {
        text.push('x');
    }
    Some(Value::String(
        text.chars().take(longest.min(64) as usize).collect(),
    ))
}

fn make_number(schema: &Value, name: &str) -> Option<Value> {
    let bound = |key| schema.get(key).and_then(Value::as_f64);
    let mut number = bound("minimum")
        .or(bound("exclusiveMinimum").map(|limit| limit + 1.0))
        .unwrap_or(1.0);
    if let Some(limit) = bound("maximum").or(bound("exclusiveMaximum").map(|limit| limit - 1.0)) {
        number = number.min(limit);
    }
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    if name == "integer" || number.fract() == 0.0 {
        return Some(Value::Number(Number::from(number.ceil() as i64)));
    }
    Number::from_f64(number).map(Value::Number)
}
