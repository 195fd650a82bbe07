//! The shape of a document: unknown keys, wrong types, values out of range, told in our own words.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::check::Checker;
use super::document::escaped;
use super::problem::Problem;
use super::repair;
use super::schema::Compiled;
use super::units;
use super::words::{dotted, nearest};

/// How often a value is looked at again without what was wrong with it.
const ROUNDS_MAX: usize = 64;

/// Settings that earlier versions accepted and that nothing reads, each with a neighbour that says which table it is in.
const NOT_BUILT: [(&str, &str); 3] = [
    ("cache", "deadline"),
    ("window", "cooldown"),
    ("rate", "cooldown"),
];

impl Checker<'_> {
    /// Unknown keys, wrong types, missing settings, values out of range: told, and then left out of the value.
    pub(super) fn shape(&mut self, compiled: &Compiled, value: &mut Value, at: &str) {
        for _ in 0..ROUNDS_MAX {
            let mut wrong: Vec<(String, bool)> = Vec::new();
            for error in compiled.validator.iter_errors(value) {
                let within = error.instance_path().to_string();
                let pointer = format!("{at}{within}");
                self.tell_shape(compiled, &within, &pointer, error.kind(), error.instance());
                wrong.extend(wrong_values(error.kind(), within));
            }
            let mut is_changed = false;
            for (within, is_unknown) in wrong {
                is_changed |= match is_unknown {
                    true => repair::remove(value, &within),
                    false => repair::put_stand_in(value, compiled, &within),
                };
                self.leave_out(format!("{at}{within}"));
            }
            if !is_changed {
                break;
            }
        }
    }

    fn tell_shape(
        &mut self,
        compiled: &Compiled,
        within: &str,
        pointer: &str,
        kind: &ValidationErrorKind,
        instance: &Value,
    ) {
        let name = dotted(pointer);
        match kind {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    self.unknown_key(pointer, key, &compiled.keys_at(within));
                }
            }
            ValidationErrorKind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                let problem = Problem::error(format!("{name} has no {property}"))
                    .help(format!("Add a line: {property} = …"));
                self.put_at_key(problem, pointer, &format!("{property} is missing"));
            }
            ValidationErrorKind::Type { kind } => {
                let expected = expected_types(kind);
                let found = toml_type(instance);
                let problem = Problem::error(format!("{name} is {found}, but must be {expected}"));
                let schema = compiled.schema_at(within);
                let problem = match type_hint(instance, &expected, schema) {
                    Some(hint) => problem.help(hint),
                    None => problem,
                };
                self.put_at_value(problem, pointer, found);
            }
            ValidationErrorKind::Enum { options } => {
                let options = texts(options);
                self.not_a_choice(pointer, instance, &options);
            }
            ValidationErrorKind::Constant { expected_value } => {
                self.not_a_choice(pointer, instance, &texts(expected_value));
            }
            ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::AnyOf { .. } => {
                // schemars writes an enum with documented variants as a choice of constants.
                match choices(compiled, within) {
                    options if options.is_empty() => {
                        let found = toml_type(instance);
                        let problem =
                            Problem::error(format!("{name} is {found}, which does not fit here"));
                        self.put_at_value(problem, pointer, found);
                    }
                    options => self.not_a_choice(pointer, instance, &options),
                }
            }
            ValidationErrorKind::Format { format } => {
                let text = instance.as_str().unwrap_or_default();
                let check = units::FORMATS.iter().find(|(known, _)| known == format);
                let reason = check.and_then(|(_, check)| check(text).err());
                let reason = reason.unwrap_or_else(|| format!("{instance} is no {format}"));
                self.put_at_value(Problem::error(format!("{name}: {reason}")), pointer, "here");
            }
            ValidationErrorKind::Minimum { limit } => {
                let problem = Problem::error(format!(
                    "{name} is {instance}, but must be at least {limit}"
                ));
                self.put_at_value(problem, pointer, "too small");
            }
            ValidationErrorKind::Maximum { limit } => {
                let problem =
                    Problem::error(format!("{name} is {instance}, but must be at most {limit}"));
                self.put_at_value(problem, pointer, "too large");
            }
            other => {
                let problem = Problem::error(format!("{name} does not fit ({})", other.keyword()));
                self.put_at_value(problem, pointer, "here");
            }
        }
    }

    pub(super) fn unknown_key(&mut self, table: &str, key: &str, known: &[String]) {
        let pointer = format!("{table}/{}", escaped(key));
        let is_known = |neighbour: &str| known.iter().any(|known| known == neighbour);
        let not_built = NOT_BUILT.iter().find(|(name, _)| *name == key);
        if let Some((_, neighbour)) = not_built
            && is_known(neighbour)
        {
            let message = format!(
                "{} is not available in this version, and never had an effect",
                dotted(&pointer)
            );
            let problem = Problem::error(message).help("Remove it; nothing else changes");
            return self.put_at_key(problem, &pointer, "not built yet");
        }
        let problem = Problem::error(format!("{} is not a setting", dotted(&pointer)));
        let help = match nearest(key, known.iter().map(String::as_str)) {
            Some(near) => format!("Did you mean {near}?"),
            None if known.is_empty() => "Remove the line.".to_owned(),
            None => format!("There are: {}", known.join(", ")),
        };
        self.put_at_key(problem.help(help), &pointer, "unknown key");
    }

    pub(super) fn not_a_choice(&mut self, pointer: &str, instance: &Value, options: &[String]) {
        let name = dotted(pointer);
        let shown = instance
            .as_str()
            .map_or_else(|| instance.to_string(), |text| format!("\"{text}\""));
        let problem = Problem::error(format!("{name} is {shown}, which is none of its values"));
        let near = instance
            .as_str()
            .and_then(|text| nearest(text, options.iter().map(String::as_str)));
        let help = match near {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("One of: {}", options.join(", ")),
        };
        self.put_at_value(problem.help(help), pointer, "not known");
    }
}

/// The values that an error is about, each with whether it is one that no setting stands for.
fn wrong_values(kind: &ValidationErrorKind, within: String) -> Vec<(String, bool)> {
    let key = |key: &str| format!("{within}/{}", escaped(key));
    match kind {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|name| (key(name), true)).collect()
        }
        ValidationErrorKind::Required { property } => {
            vec![(key(property.as_str().unwrap_or_default()), false)]
        }
        _ => vec![(within, false)],
    }
}

fn expected_types(kind: &jsonschema::error::TypeKind) -> String {
    let name = |json: &str| match json {
        "object" => "a table".to_owned(),
        "array" => "an array".to_owned(),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "string" => "a text".to_owned(),
        "boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    };
    match kind {
        jsonschema::error::TypeKind::Single(kind) => name(&kind.to_string()),
        jsonschema::error::TypeKind::Multiple(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(|kind| name(&kind.to_string())).collect();
            kinds.join(" or ")
        }
    }
}

fn toml_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "a table",
    }
}

fn type_hint(instance: &Value, expected: &str, schema: Option<&Value>) -> Option<String> {
    match instance {
        Value::String(text) if expected.contains("an array") => {
            let item = serde_json::to_string(text).ok()?;
            Some(format!("Write a list: [{item}]"))
        }
        Value::String(text) if expected != "a table" => {
            let plain = text.parse::<f64>().is_ok() || text == "true" || text == "false";
            plain.then(|| format!("Write it without quotes: {text}"))
        }
        Value::Number(number) if expected == "a text" => {
            let format = schema.and_then(|schema| schema.get("format")?.as_str());
            Some(match format.and_then(units::unit_of) {
                Some(unit) => format!("Write it in quotes, with its unit: \"{number}{unit}\""),
                None => format!("Write it in quotes: \"{number}\""),
            })
        }
        Value::Bool(_)
        | Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

fn texts(options: &Value) -> Vec<String> {
    let text = |option: &Value| {
        option
            .as_str()
            .map_or_else(|| option.to_string(), str::to_owned)
    };
    match options {
        Value::Array(options) => options.iter().map(text).collect(),
        option => vec![text(option)],
    }
}

/// The constants of a choice in the schema at this place.
fn choices(compiled: &Compiled, within: &str) -> Vec<String> {
    let schema = compiled.schema_at(within);
    let options = schema.and_then(|schema| schema.get("oneOf").or_else(|| schema.get("anyOf")));
    let options = options.and_then(Value::as_array).into_iter().flatten();
    options
        .flat_map(|option| option.get("const").or_else(|| option.get("enum")))
        .flat_map(texts)
        .collect()
}
