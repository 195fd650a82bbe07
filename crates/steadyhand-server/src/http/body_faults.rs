//! What is wrong with the shape of a body, in words: found with the schema that the document has for it.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::openapi;
use steadyhand::cut::json_bytes;

use steadyhand_config::words::{dotted, nearest};

/// So many are told; the others are for the next try.
const FAULTS_MAX: usize = 5;
/// In a body of up to this length all faults are looked for.
pub const SEARCHED_BYTES_MAX: usize = 64 * 1024;
/// A value in a text is shown up to this length; all of it up to that one.
const SHOWN_BYTES_MAX: usize = 80;
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// The schemas of all bodies, by name. Made when the first body does not fit.
static SCHEMAS: LazyLock<HashMap<String, BodySchema>> = LazyLock::new(body_schemas);

struct BodySchema {
    validator: Validator,
    /// What an object of it may have.
    fields: Vec<String>,
}

fn body_schemas() -> HashMap<String, BodySchema> {
    let document = json!(openapi::described());
    let components = &document["components"];
    let operations = document["paths"].as_object().into_iter().flatten();
    let operations = operations.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let bodies = operations.filter_map(|(_, operation)| {
        let schema = operation.pointer("/requestBody/content/application~1json/schema/$ref")?;
        let (_, name) = schema.as_str()?.rsplit_once('/')?;
        let root = json!({"$ref": schema, "components": components});
        let options = jsonschema::options().with_draft(Draft::Draft202012);
        let validator = options.build(&root).ok()?;
        let fields = components["schemas"][name]["properties"].as_object();
        let fields = fields.into_iter().flatten().map(|(name, _)| name.clone());
        let fields = fields.collect();
        Some((name.to_owned(), BodySchema { validator, fields }))
    });
    bodies.collect()
}

/// What does not fit, each fault with its place: `name is missing`. None where the schema finds nothing.
pub fn of<T: ToSchema>(value: &Value) -> Option<String> {
    let schema = SCHEMAS.get(&*T::name())?;
    // All faults are collected before the first of them is seen: of a large body only the first is looked for.
    let is_large = json_bytes(value, SEARCHED_BYTES_MAX) > SEARCHED_BYTES_MAX;
    let faults: Vec<String> = match is_large {
        true => {
            let first = schema.validator.validate(value).err();
            first
                .map(|error| fault(&error, schema))
                .into_iter()
                .collect()
        }
        false => {
            let errors = schema.validator.iter_errors(value).take(FAULTS_MAX);
            errors.map(|error| fault(&error, schema)).collect()
        }
    };
    (!faults.is_empty()).then(|| steadyhand::cut::text(&faults.join("; "), TEXT_BYTES_MAX))
}

fn fault(error: &ValidationError<'_>, schema: &BodySchema) -> String {
    let place = error.instance_path().as_str();
    let subject = match place.is_empty() {
        true => "the body".to_owned(),
        false => dotted(place),
    };
    let found = error.instance();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("{} is missing", dotted(&format!("{place}/{name}")))
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(wanted) => with_article(&wanted.to_string()).to_owned(),
                TypeKind::Multiple(wanted) => {
                    let names: Vec<String> = wanted.iter().map(|name| name.to_string()).collect();
                    let names = names.iter().filter(|name| *name != "null");
                    let names: Vec<&str> = names.map(|name| with_article(name)).collect();
                    names.join(" or ")
                }
            };
            format!("{subject} is {}, and must be {wanted}", kind_of(found))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = || schema.fields.iter().map(String::as_str);
            let unknown = unexpected.iter().take(FAULTS_MAX).map(|name| {
                let meant = nearest(name, known()).filter(|_| place.is_empty());
                match meant {
                    Some(meant) => format!("there is no field {name:?} (did you mean {meant}?)"),
                    None => format!("there is no field {name:?}"),
                }
            });
            unknown.collect::<Vec<_>>().join("; ")
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().into_iter().flatten();
            let options: Vec<&str> = options.filter_map(Value::as_str).collect();
            let found = steadyhand::cut::text(&found.to_string(), SHOWN_BYTES_MAX);
            let options = options.join(", ");
            format!("{subject} is {found}, and must be one of {options}")
        }
        ValidationErrorKind::Minimum { limit } => {
            format!("{subject} is {found}, and must be at least {limit}")
        }
        ValidationErrorKind::Maximum { limit } => {
            format!("{subject} is {found}, and must be at most {limit}")
        }
        ValidationErrorKind::MinLength { limit } => {
            format!("{subject} must have at least {limit} characters")
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("{subject} must have at most {limit} characters")
        }
        ValidationErrorKind::MaxItems { limit } => {
            format!("{subject} has more than {limit} items; send them in parts")
        }
        _ => format!("{subject} does not fit"),
    }
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "object" => "an object",
        "array" => "a list",
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "null",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
