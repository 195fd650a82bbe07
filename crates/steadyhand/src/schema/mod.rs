//! Checks arguments against a tool's JSON Schema, and says everything that is wrong at once.

mod coerce;
mod example;
mod explain;
mod resources;
mod surplus;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

pub use coerce::Coercion;

use crate::call::Arguments;
use crate::cut::{self, depth_exceeds, json_bytes, surely_fits};
use crate::exact::InexactInteger;
use crate::failure::{Effect, Failure, FailureCode, Problem};
use crate::tool::Preparation;

/// The largest schema of a tool, in bytes of JSON.
pub(crate) const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// How deep arguments and schemas may be nested.
pub(crate) const DEPTH_MAX: usize = 128;
/// How many violations are reported one by one; the others are counted.
const PROBLEMS_MAX: usize = 10;
/// How many violations are looked at.
const ERRORS_READ_MAX: usize = 200;

/// How far a regular expression in a schema may search before it counts as a mismatch.
const REGEX_STEPS_MAX: usize = 100_000;
const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// A tool's schema, compiled once.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    declared: surplus::Declared,
    /// Passed on untouched, so there is nothing to check.
    accepts_all: bool,
}

/// Says what is wrong with a JSON Schema for a tool's arguments, if anything is (SPEC V06).
pub fn check_schema(schema: &Value) -> Result<(), String> {
    Schema::compile(schema).map(drop)
}

/// Arguments that fit a schema: for those who want to see a call before they write one.
pub fn example_arguments(schema: &Value) -> Option<Value> {
    let example = example::value(schema, schema)?;
    jsonschema::is_valid(schema, &example).then_some(example)
}

/// Arguments that a schema forbids and that are named in the outcome.
const DROPPED_MAX: usize = 100;
/// Their names are text from outside.
const DROPPED_NAME_BYTES_MAX: usize = 256;

/// What was changed in arguments so that they fit.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    pub(crate) coerced: Vec<Coercion>,
    /// Names of arguments that the schema forbids.
    pub(crate) dropped: Vec<String>,
}

impl Mended {
    /// Names arguments that the tool has no place for. They stay in the call, for records and approvals: what ignores
    /// them is the tool.
    pub(crate) fn name_unused(&mut self, arguments: &Arguments, used: &[String]) {
        let Arguments::Json(Value::Object(members)) = arguments else {
            return;
        };
        let unused = members.keys().filter(|name| !used.contains(name));
        let unused: Vec<String> = unused.cloned().collect();
        self.name_dropped(&unused);
    }

    /// Names what does not reach the tool, within bounds.
    fn name_dropped(&mut self, names: &[String]) {
        let names = names
            .iter()
            .take(DROPPED_MAX.saturating_sub(self.dropped.len()));
        let names = names.map(|name| cut::text(name, DROPPED_NAME_BYTES_MAX));
        self.dropped.extend(names);
    }
}

/// How strictly one tool takes its schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) strict: bool,
    pub(crate) coerce: bool,
    pub(crate) args_bytes_max: usize,
}

impl Schema {
    /// Compiles a schema, or says what is wrong with it.
    pub(crate) fn compile(schema: &Value) -> Result<Schema, String> {
        if !schema.is_object() {
            return Err(format!(
                "its schema must be a JSON object, not {}",
                explain::type_of(schema)
            ));
        }
        if depth_exceeds(schema, DEPTH_MAX) {
            return Err(format!(
                "its schema is nested deeper than {DEPTH_MAX} levels"
            ));
        }
        if json_bytes(schema, SCHEMA_BYTES_MAX) > SCHEMA_BYTES_MAX {
            return Err(format!(
                "its schema is larger than {SCHEMA_BYTES_MAX} bytes"
            ));
        }
        if let Some(root_type) = schema.get("type")
            && root_type != "object"
        {
            return Err(format!(
                "its schema must have \"type\": \"object\" at the top, not {root_type}: arguments are an object"
            ));
        }
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(REGEX_STEPS_MAX)
            .size_limit(REGEX_BYTES_MAX);
        let mut options = jsonschema::options()
            .should_validate_formats(true)
            .with_pattern_options(patterns);
        if schema.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft202012);
        }
        // A schema from outside must not be able to take the process down with it.
        let built =
            crate::guard::attempt::contained(|| options.build(&resources::addressed(schema)));
        let validator = match built {
            Ok(built) => built.map_err(|error| explain::schema_fault(&error))?,
            Err(panic) => return Err(format!("its schema cannot be compiled: {panic}")),
        };
        let accepts_all = schema.as_object().is_some_and(Map::is_empty);
        Ok(Schema {
            validator,
            declared: surplus::Declared::by(schema),
            accepts_all,
        })
    }

    /// Makes the arguments what the tool gets, or tells every fault in them. `document` is this schema's
    /// text; what was changed in them is added to `mended`.
    pub(crate) fn check(
        &self,
        arguments: &mut Arguments,
        document: &Value,
        rules: Rules,
        preparation: Option<&Preparation>,
        mended: &mut Mended,
    ) -> Result<(), Box<Failure>> {
        let args = parse(arguments, document, rules, &mut mended.coerced)?;
        if let Some(prepare) = preparation
            && let Err(panic) = crate::guard::attempt::contained(|| prepare(args))
        {
            return Err(refused("arguments", format!("could not be read: {panic}")));
        }
        if self.accepts_all || self.validator.is_valid(args) {
            return Ok(());
        }
        self.mend_or_explain(args, document, rules, mended)
    }

    #[cold]
    fn mend_or_explain(
        &self,
        args: &mut Value,
        document: &Value,
        rules: Rules,
        mended: &mut Mended,
    ) -> Result<(), Box<Failure>> {
        if !rules.strict {
            self.drop_surplus(args, mended);
        }
        if rules.coerce {
            mended
                .coerced
                .extend(coerce::mend(&self.validator, document, args));
        }
        if self.validator.is_valid(args) {
            return Ok(());
        }
        let errors: Vec<ValidationError<'_>> = self
            .validator
            .iter_errors(args)
            .take(ERRORS_READ_MAX)
            .collect();
        Err(Box::new(explain::failure(
            &errors,
            args,
            document,
            &self.validator,
        )))
    }

    /// Surplus parameters never fail a call: those the schema forbids are dropped (SPEC D6).
    fn drop_surplus(&self, args: &mut Value, mended: &mut Mended) {
        let Some(fields) = args.as_object() else {
            return;
        };
        let mut surplus = self.declared.surplus(fields);
        for error in self.validator.iter_errors(args).take(ERRORS_READ_MAX) {
            if let ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } = error.kind()
                && error.instance_path().as_str().is_empty()
            {
                surplus.extend(unexpected.iter().cloned());
            }
        }
        let Some(fields) = args.as_object_mut() else {
            return;
        };
        surplus.retain(|name| fields.shift_remove(name).is_some());
        if !surplus.is_empty() {
            tracing::debug!(?surplus, "dropped parameters the schema does not allow");
        }
        mended.name_dropped(&surplus);
    }
}

/// From what came to a JSON object within its limits. No arguments at all are an empty object.
fn parse<'a>(
    arguments: &'a mut Arguments,
    document: &Value,
    rules: Rules,
    coerced: &mut Vec<Coercion>,
) -> Result<&'a mut Value, Box<Failure>> {
    let limit = rules.args_bytes_max;
    match arguments {
        Arguments::Json(value) if surely_fits(value, &mut { limit }, DEPTH_MAX) => {}
        Arguments::Json(value) if depth_exceeds(value, DEPTH_MAX) => {
            let message = format!("nested deeper than {DEPTH_MAX} levels");
            return Err(refused("depth", message));
        }
        Arguments::Json(value) if json_bytes(value, limit) > limit => return Err(too_large(limit)),
        Arguments::Json(_) => {}
        Arguments::Text(text) if text.len() > limit => return Err(too_large(limit)),
        Arguments::Text(text) if text.trim_ascii().is_empty() => {
            *arguments = Arguments::Json(Value::Null);
        }
        Arguments::Text(text) if let Some(inexact) = InexactInteger::first_in(text) => {
            return Err(refused_at(inexact.at.clone(), "exact", inexact.message()));
        }
        Arguments::Text(text) => match serde_json::from_str(text) {
            // serde_json itself stops at a depth of 128.
            Ok(value) => *arguments = Arguments::Json(value),
            Err(error) => return Err(Box::new(explain::bad_json(text, &error, document))),
        },
    }
    let Arguments::Json(value) = arguments else {
        return Err(refused("json", "not JSON".to_owned()));
    };
    match value {
        Value::Object(_) => {}
        Value::Null => *value = Value::Object(Map::new()),
        Value::String(text) if rules.coerce => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => {
                coerced.push(Coercion {
                    at: String::new(),
                    message: "read the object out of a string".to_owned(),
                });
                *value = Value::Object(fields);
            }
            _ => return Err(Box::new(explain::not_an_object(value, document))),
        },
        other => return Err(Box::new(explain::not_an_object(other, document))),
    }
    Ok(value)
}

fn too_large(limit: usize) -> Box<Failure> {
    refused("size", format!("larger than {limit} bytes"))
}

fn refused(code: &str, message: String) -> Box<Failure> {
    refused_at(String::new(), code, message)
}

fn refused_at(at: String, code: &str, message: String) -> Box<Failure> {
    let text = format!("Invalid parameters: {message}");
    let mut failure = Failure::new(FailureCode::ValidationError, Effect::None, text);
    failure.problems.push(Problem {
        at,
        code: code.to_owned(),
        message,
        expected: None,
        got: None,
        example: None,
    });
    Box::new(failure)
}

/// Arguments no recursive walk should be tried on.
pub(crate) fn is_too_deep(arguments: &Arguments) -> bool {
    match arguments {
        Arguments::Json(value) => depth_exceeds(value, DEPTH_MAX),
        Arguments::Text(_) => false,
    }
}
