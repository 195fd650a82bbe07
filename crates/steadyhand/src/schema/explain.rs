//! Words for what is wrong with arguments: for people, for programs, and for the model that sent them.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::example;
use crate::cut;
use crate::failure::{Effect, Failure, FailureCode, Problem};
use crate::redact;

/// A value in a text is shown up to this length.
const SHOWN_BYTES_MAX: usize = 80 + 96;
const OPTIONS_MAX: usize = 20;
const MESSAGE_BYTES_MAX: usize = 4096;

/// The failure for arguments that do not fit, with one problem per violation.
pub(super) fn failure(
    errors: &[ValidationError<'_>],
    args: &Value,
    document: &Value,
    validator: &Validator,
) -> Failure {
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|error| problem(error, document))
        .collect();
    problems.dedup();
    let mut missing = Vec::new();
    let mut others = Vec::new();
    for problem in &problems {
        match problem.code.as_str() {
            "required" => missing.push(format!("'{}'", parameter_name(&problem.at))),
            _ => others.push(problem.message.clone()),
        }
    }
    missing.dedup();
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("missing {}", missing.join(", ")));
    }
    parts.extend(others);
    let text = cut::text(
        &format!("Invalid parameters: {}", parts.join("; ")),
        MESSAGE_BYTES_MAX,
    );
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, text);
    if let Some(valid) = example::valid_arguments(document, args, &problems, validator) {
        problems.push(Problem {
            at: String::new(),
            code: "example".to_owned(),
            message: "arguments that would do".to_owned(),
            expected: Some("arguments like".to_owned()),
            got: None,
            example: Some(valid),
        });
    }
    failure.problems = problems;
    failure.user_message = required_parameters(document);
    failure
}

/// Text that is no JSON, and where it stops being JSON.
pub(super) fn bad_json(text: &str, error: &serde_json::Error) -> Failure {
    let why = if error.is_eof() {
        "unfinished JSON"
    } else {
        "not valid JSON"
    };
    let place = format!("line {}, column {}", error.line(), error.column());
    let message = format!("Invalid parameters: {why} at {place}: {error}");
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, message);
    failure.problems.push(Problem {
        at: String::new(),
        code: "json".to_owned(),
        message: format!("{why} at {place}"),
        expected: Some("a complete JSON object".to_owned()),
        got: Some(redact::text(&cut::text(text, SHOWN_BYTES_MAX)).into_owned()),
        example: None,
    });
    failure
}

/// JSON, but not the object that arguments are.
pub(super) fn not_an_object(value: &Value) -> Failure {
    let found = type_of(value);
    let message = format!("Invalid parameters: the arguments must be an object, got {found}");
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, message);
    failure.problems.push(Problem {
        at: String::new(),
        code: "type".to_owned(),
        message: format!("the arguments must be an object, got {found}"),
        expected: Some("an object".to_owned()),
        got: Some(found.to_owned()),
        example: None,
    });
    failure
}

/// What is wrong with a schema itself, and where.
pub(super) fn schema_fault(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(reference) = error.kind() {
        return format!(
            "its schema has a $ref that leads outside the schema or nowhere ({reference}); put what it names under $defs"
        );
    }
    let place = error.instance_path().as_str();
    let place = if place.is_empty() { "/" } else { place };
    cut::text(
        &format!("its schema is not valid JSON Schema at {place}: {error}"),
        MESSAGE_BYTES_MAX,
    )
}

/// JSON's word for a value's type; whole numbers are integers.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn problem(error: &ValidationError<'_>, document: &Value) -> Problem {
    let place = error.instance_path().as_str();
    let instance = error.instance();
    let name = parameter_name(place);
    let mut at = place.to_owned();
    let mut example = None;
    let (expected, message) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            at = format!("{place}/{}", escape(property));
            let schema = example::subschema(document, &at);
            example = schema.and_then(|schema| example::value(schema, document));
            let expected = schema.map_or("a value".to_owned(), describe);
            return Problem {
                message: format!("missing '{}'", parameter_name(&at)),
                at,
                code: "required".to_owned(),
                expected: Some(expected),
                got: Some("nothing".to_owned()),
                example,
            };
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(wanted) => wanted.to_string(),
                TypeKind::Multiple(wanted) => {
                    let names: Vec<String> = wanted.iter().map(|name| name.to_string()).collect();
                    names.join(" or ")
                }
            };
            let message = format!("'{name}' must be {wanted}, got {}", type_of(instance));
            (wanted, message)
        }
        ValidationErrorKind::Enum { options } => {
            let listed = list(options);
            (
                format!("one of {listed}"),
                format!(
                    "'{name}' must be one of {listed}, got {}",
                    shown(place, instance)
                ),
            )
        }
        ValidationErrorKind::Constant { expected_value } => (
            expected_value.to_string(),
            format!(
                "'{name}' must be {expected_value}, got {}",
                shown(place, instance)
            ),
        ),
        ValidationErrorKind::Minimum { limit } => {
            rule(&name, place, instance, &format!("at least {limit}"))
        }
        ValidationErrorKind::Maximum { limit } => {
            rule(&name, place, instance, &format!("at most {limit}"))
        }
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            rule(&name, place, instance, &format!("more than {limit}"))
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            rule(&name, place, instance, &format!("less than {limit}"))
        }
        ValidationErrorKind::MinLength { limit } => rule(
            &name,
            place,
            instance,
            &format!("at least {limit} characters long"),
        ),
        ValidationErrorKind::MaxLength { limit } => rule(
            &name,
            place,
            instance,
            &format!("at most {limit} characters long"),
        ),
        ValidationErrorKind::MinItems { limit } => rule(
            &name,
            place,
            instance,
            &format!("at least {limit} items long"),
        ),
        ValidationErrorKind::MaxItems { limit } => rule(
            &name,
            place,
            instance,
            &format!("at most {limit} items long"),
        ),
        ValidationErrorKind::Pattern { pattern } => rule(
            &name,
            place,
            instance,
            &format!("text that matches {pattern}"),
        ),
        ValidationErrorKind::Format { format } => {
            rule(&name, place, instance, &format!("a valid {format}"))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| format!("'{name}'")).collect();
            let names = names.join(", ");
            (
                "no other parameters".to_owned(),
                format!("'{name}' has parameters it does not know: {names}"),
            )
        }
        _ => {
            let text = error.masked().to_string();
            (
                "what the schema says".to_owned(),
                format!("'{name}': {text}"),
            )
        }
    };
    if let Some(schema) = example::subschema(document, &at) {
        example = example::value(schema, document);
    }
    Problem {
        at,
        code: error.kind().keyword().to_owned(),
        message: cut::text(&message, MESSAGE_BYTES_MAX / 4),
        expected: Some(cut::text(&expected, MESSAGE_BYTES_MAX / 4)),
        got: Some(shown(place, instance)),
        example,
    }
}

fn rule(name: &str, place: &str, instance: &Value, wanted: &str) -> (String, String) {
    let message = format!("'{name}' must be {wanted}, got {}", shown(place, instance));
    (wanted.to_owned(), message)
}

/// What came, short, and hidden where its name says it is secret.
fn shown(place: &str, value: &Value) -> String {
    let secret = place.split('/').any(redact::is_secret_name);
    if secret {
        return format!("a {} (hidden)", type_of(value));
    }
    let text = match value {
        Value::Array(_) | Value::Object(_) => type_of(value).to_owned(),
        other => other.to_string(),
    };
    redact::text(&cut::text(&text, SHOWN_BYTES_MAX)).into_owned()
}

fn list(options: &Value) -> String {
    let empty = Vec::new();
    let options = options.as_array().unwrap_or(&empty);
    let mut names: Vec<String> = options
        .iter()
        .take(OPTIONS_MAX)
        .map(|option| cut::text(&option.to_string(), SHOWN_BYTES_MAX))
        .collect();
    if options.len() > OPTIONS_MAX {
        names.push(format!("… ({} in all)", options.len()));
    }
    names.join(", ")
}

/// `/address/street/0` as people say it: `address.street[0]`.
fn parameter_name(pointer: &str) -> String {
    let mut name = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !name.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            name.push_str(&format!("[{part}]"));
            continue;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&part);
    }
    if name.is_empty() {
        return "arguments".to_owned();
    }
    name
}

fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

/// What a schema wants, in a few words.
fn describe(schema: &Value) -> String {
    if let Some(options) = schema.get("enum") {
        return format!("one of {}", list(options));
    }
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => "a value".to_owned(),
    }
}

/// The friendly text: which parameters the tool wants (SPEC V09).
fn required_parameters(document: &Value) -> String {
    let names: Vec<&str> = document
        .get("required")
        .and_then(Value::as_array)
        .map(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .take(OPTIONS_MAX)
                .collect()
        })
        .unwrap_or_default();
    if names.is_empty() {
        return "Some of the values given do not fit.".to_owned();
    }
    format!(
        "Some of the values given do not fit. Required: {}.",
        names.join(", ")
    )
}
