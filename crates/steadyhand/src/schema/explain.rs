//! Words for what is wrong with arguments: for people, for programs, and for the model that sent them.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::counted::{CountedValidator, Steps};
use super::{ERRORS_READ_MAX, PROBLEMS_MAX, counted, example};
use crate::cut;
use crate::failure::{Effect, Failure, FailureCode, Problem};
use crate::plain_words;
use crate::redact;

/// A value in a text is shown up to this length.
const SHOWN_BYTES_MAX: usize = 80 + 96;
const OPTIONS_MAX: usize = 20;
const MESSAGE_BYTES_MAX: usize = 4096;
/// Alternatives that allow more values than this are not listed.
const OPTIONS_READ_MAX: usize = 1_000;
/// Where a problem is, in the arguments.
const PLACE_BYTES_MAX: usize = 2_000;
/// Alternatives inside alternatives are explained this deep.
const ALTERNATIVES_DEPTH_MAX: usize = 4;

/// The failure for arguments that do not fit, with one problem per violation.
pub(super) fn failure(
    errors: &[ValidationError<'_>],
    args: &Value,
    document: &Value,
    validator: &CountedValidator,
    steps: &mut Steps,
) -> Failure {
    let mut read = Vec::new();
    for error in errors {
        add_problems(error, document, 0, &mut read);
    }
    let mut problems: Vec<Problem> = Vec::new();
    for found in read {
        if !problems.contains(&found) {
            problems.push(found);
        }
    }
    let (missing, others): (Vec<&Problem>, Vec<&Problem>) = problems
        .iter()
        .partition(|problem| problem.code == "required");
    let mut parts = Vec::new();
    if !missing.is_empty() {
        let names: Vec<String> = missing
            .iter()
            .map(|problem| format!("'{}'", parameter_name(&problem.at)))
            .collect();
        parts.push(format!("missing {}", names.join(", ")));
    }
    parts.extend(
        others
            .iter()
            .take(PROBLEMS_MAX)
            .map(|problem| problem.message.clone()),
    );
    if others.len() > PROBLEMS_MAX {
        parts.push(format!("and {} more", others.len() - PROBLEMS_MAX));
    }
    let text = format!("Invalid parameters: {}", parts.join("; "));
    let text = cut::text(&text, MESSAGE_BYTES_MAX);
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, text)
        .for_people(required_parameters(document));
    failure.example = example::valid_arguments(document, args, &problems, validator, steps);
    problems.truncate(PROBLEMS_MAX);
    failure.problems = problems;
    failure
}

/// Adds one violation's problems. Of alternatives, the one that was meant is explained, if that is clear.
fn add_problems(
    error: &ValidationError<'_>,
    document: &Value,
    depth: usize,
    problems: &mut Vec<Problem>,
) {
    if problems.len() >= ERRORS_READ_MAX {
        return;
    }
    // Of those that are only counted nobody sees an example.
    let document = match problems.len() < 2 * PROBLEMS_MAX {
        true => document,
        false => &Value::Null,
    };
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return problems.push(problem(error, document));
    };
    if depth > ALTERNATIVES_DEPTH_MAX {
        return problems.push(problem(error, document));
    }
    let place = error.instance_path().as_str();
    if let Some(options) = options_of(context, place) {
        return problems.push(one_of(&options, place, error));
    }
    let wrong_type = |branch: &Vec<ValidationError<'_>>| {
        branch.iter().any(|error| {
            let here = error.instance_path().as_str() == place;
            here && matches!(error.kind(), ValidationErrorKind::Type { .. })
        })
    };
    let meant = context.iter().filter(|branch| !wrong_type(branch));
    match meant.min_by_key(|branch| branch.len()) {
        Some(branch) if !branch.is_empty() => {
            for error in branch {
                add_problems(error, document, depth + 1, problems);
            }
        }
        _ => problems.push(problem(error, document)),
    }
}

/// The values that alternatives allow, where they are nothing but values (`null` aside).
fn options_of(context: &[Vec<ValidationError<'static>>], place: &str) -> Option<Vec<Value>> {
    let mut options = Vec::new();
    for error in context.iter().flatten() {
        if error.instance_path().as_str() != place || options.len() > OPTIONS_READ_MAX {
            return None;
        }
        match error.kind() {
            ValidationErrorKind::Constant { expected_value } => {
                options.push(cut::value(expected_value, MESSAGE_BYTES_MAX).into_owned());
            }
            ValidationErrorKind::Enum { options: more } => {
                let more = more.as_array().map_or(&[][..], Vec::as_slice);
                if more.len() > OPTIONS_READ_MAX {
                    return None;
                }
                options.extend(more.iter().cloned());
            }
            ValidationErrorKind::Type {
                kind: TypeKind::Single(wanted),
            } if wanted.to_string() == "null" => options.push(Value::Null),
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                options.extend(options_of(context, place)?);
            }
            _ => return None,
        }
    }
    (!options.is_empty()).then_some(options)
}

fn one_of(options: &[Value], place: &str, error: &ValidationError<'_>) -> Problem {
    let listed = list(&Value::Array(options.to_vec()));
    let name = parameter_name(place);
    let got = shown(place, error.instance());
    let message = format!("'{name}' must be one of {listed}, got {got}");
    Problem {
        at: cut::text(place, PLACE_BYTES_MAX),
        code: "enum".to_owned(),
        message: cut::text(&message, MESSAGE_BYTES_MAX / 4),
        expected: Some(cut::text(
            &format!("one of {listed}"),
            MESSAGE_BYTES_MAX / 4,
        )),
        got: Some(got),
        example: options
            .first()
            .filter(|first| example::is_small(first))
            .cloned(),
    }
}

/// Text that is no JSON, and where it stops being JSON.
pub(super) fn bad_json(text: &str, error: &serde_json::Error, document: &Value) -> Failure {
    let why = if error.is_eof() {
        "unfinished JSON"
    } else {
        "not valid JSON"
    };
    let place = format!("line {}, column {}", error.line(), error.column());
    let fault = plain_words::json_fault(error);
    let message = format!("Invalid parameters: {why} at {place}: {fault}");
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, message)
        .for_people(required_parameters(document));
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
pub(super) fn not_an_object(value: &Value, document: &Value) -> Failure {
    let found = type_of(value);
    let message = format!("Invalid parameters: the arguments must be an object, got {found}");
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, message)
        .for_people(required_parameters(document));
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
            "its schema has a $ref that leads outside the schema or nowhere ({}); put what it names under $defs",
            unresolved(reference)
        );
    }
    let place = error.instance_path().as_str();
    let place = if place.is_empty() { "/" } else { place };
    let fault = match error.kind() {
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            format!("{} cannot stand there", shown("", error.instance()))
        }
        _ => problem(error, &Value::Null).message,
    };
    cut::text(
        &format!("its schema is not valid JSON Schema at {place}: {fault}"),
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
            let message = format!("missing '{}'", parameter_name(&at));
            return Problem {
                message: cut::text(&message, MESSAGE_BYTES_MAX / 4),
                at: cut::text(&at, PLACE_BYTES_MAX),
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
        ValidationErrorKind::Constant { expected_value } => {
            let wanted = beginning(expected_value, MESSAGE_BYTES_MAX);
            rule(&name, place, instance, &wanted)
        }
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
        // `pattern`, as it is compiled here (`counted`).
        ValidationErrorKind::Custom { message, .. } => rule(
            &name,
            place,
            instance,
            &format!("text that matches {message}"),
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
        other => {
            let wanted = wanted_otherwise(other);
            let message = format!("'{name}' must be {wanted}");
            (wanted, message)
        }
    };
    if let Some(schema) = example::subschema(document, &at) {
        example = example::value(schema, document);
    }
    Problem {
        at: cut::text(&at, PLACE_BYTES_MAX),
        code: error.kind().keyword().to_owned(),
        message: cut::text(&message, MESSAGE_BYTES_MAX / 4),
        expected: Some(cut::text(&expected, MESSAGE_BYTES_MAX / 4)),
        got: Some(shown(place, instance)),
        example,
    }
}

/// What the rarer keywords want, in words that follow "must be".
fn wanted_otherwise(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::AnyOf { .. } => "one of several shapes, and fits none".to_owned(),
        ValidationErrorKind::OneOfNotValid { .. } => {
            "exactly one of several shapes, and fits none".to_owned()
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "exactly one of several shapes, and fits more than one".to_owned()
        }
        // `false`, as it is compiled here (`counted`).
        ValidationErrorKind::Not { schema } if schema.get(counted::READS).is_some() => {
            "left out".to_owned()
        }
        ValidationErrorKind::Not { .. } => "something that the schema does not exclude".to_owned(),
        ValidationErrorKind::FalseSchema => "left out".to_owned(),
        ValidationErrorKind::UniqueItems => "a list whose items all differ".to_owned(),
        ValidationErrorKind::Contains => "a list with an item that the schema asks for".to_owned(),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        ValidationErrorKind::MinProperties { limit } => {
            format!("an object with at least {limit} members")
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("an object with at most {limit} members")
        }
        ValidationErrorKind::PropertyNames { error } => {
            let name = shown("", error.instance());
            format!("an object without a member called {name}")
        }
        ValidationErrorKind::AdditionalItems { limit } => {
            format!("a list of at most {limit} items")
        }
        ValidationErrorKind::UnevaluatedItems { .. } => {
            "a list without items that the schema does not describe".to_owned()
        }
        ValidationErrorKind::ContentEncoding { content_encoding } => {
            format!("text encoded as {content_encoding}")
        }
        ValidationErrorKind::ContentMediaType { content_media_type } => {
            format!("text that is {content_media_type}")
        }
        ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. } => {
            "text that the pattern can be tried on within its limits".to_owned()
        }
        _ => "what the schema says".to_owned(),
    }
}

/// Where a `$ref` leads that cannot be followed.
fn unresolved(reference: &jsonschema::ReferencingError) -> String {
    use jsonschema::ReferencingError as Error;
    match reference {
        Error::Unretrievable { uri, .. } => {
            // What has no address of its own gets one from the library.
            let shown = uri.strip_prefix("json-schema:///").unwrap_or(uri);
            format!("{shown} is not part of it")
        }
        Error::PointerToNowhere { pointer }
        | Error::InvalidPercentEncoding { pointer, .. }
        | Error::InvalidArrayIndex { pointer, .. } => format!("there is nothing at {pointer}"),
        Error::NoSuchAnchor { anchor } | Error::InvalidAnchor { anchor } => {
            format!("there is no anchor {anchor}")
        }
        Error::InvalidUri(_) => "it is no address".to_owned(),
        Error::UnknownSpecification { specification } => {
            format!("{specification} is no version of JSON Schema")
        }
        Error::CircularMetaschema { uri } => format!("{uri} leads back to itself"),
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
        .map(|option| beginning(option, SHOWN_BYTES_MAX))
        .collect();
    if options.len() > OPTIONS_MAX {
        names.push(format!("… ({} in all)", options.len()));
    }
    names.join(", ")
}

/// A value as JSON, cut to so many bytes. No more of it is written than that.
fn beginning(value: &Value, bytes_max: usize) -> String {
    let bytes = cut::json_bytes(value, bytes_max);
    match bytes <= bytes_max {
        true => value.to_string(),
        false => cut::text(&cut::json_beginning(value, 4 * bytes_max), bytes_max),
    }
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
        let options = format!("one of {}", list(options));
        return cut::text(&options, MESSAGE_BYTES_MAX / 4);
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
                .filter(|name| name.len() <= SHOWN_BYTES_MAX)
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
