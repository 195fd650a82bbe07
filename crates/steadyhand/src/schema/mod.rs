//! Checks arguments against a tool's JSON Schema, and says everything that is wrong at once.

mod coerce;
mod counted;
mod example;
mod explain;
mod extent;
mod patterns;
mod resources;
mod roomy_stack;
mod surplus;
mod unique;
mod verdicts;

use std::sync::Arc;
use std::time::Duration;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::{Map, Value};

pub use coerce::Coercion;
pub(crate) use counted::{GivenUp, Steps};
pub use verdicts::{CompiledSchema, SchemaBudget};
/// What schemas and the texts around them may cost.
pub mod limits {
    pub use super::extent::{REFERENCE_BYTES_MAX, SCHEMA_ID_BYTES_MAX, SCHEMA_PATH_BYTES_MAX};
    pub use super::patterns::{
        LARGE_PATTERNS_MAX, PATTERN_BYTES_MAX, PATTERN_POSITIONS_MAX,
        PATTERN_TRANSLATION_BYTES_MAX, PATTERNS_MAX,
    };
    pub use super::verdicts::{SCHEMAS_TIME_MAX, VERDICTS_MAX};
    pub use super::{DEPTH_MAX, SCHEMA_BYTES_MAX};
}
pub(crate) use verdicts::verdict;

use crate::call::Arguments;
use crate::cut::{self, depth_exceeds, json_bytes, surely_fits};
use crate::exact::InexactInteger;
use crate::failure::{Effect, Failure, FailureCode, Problem};
use crate::repeated_name::RepeatedName;
use counted::{CountedValidator, Uncompiled};
use patterns::{BACKTRACKS_OF_NAMES, REGEX_BYTES_MAX};

/// Changes arguments before they are checked.
pub(crate) type Preparation = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// The largest schema of a tool, in bytes of JSON.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// How deep arguments and schemas may be nested.
pub const DEPTH_MAX: usize = 128;
/// How many violations are reported one by one; the others are counted.
const PROBLEMS_MAX: usize = 10;
/// How many violations are looked at.
const ERRORS_READ_MAX: usize = 200;

/// The steps of a check on the thread that asks for it. Longer ones belong on a thread of their own.
pub(crate) const STEPS_INLINE: Steps = Steps::new(20_000).within(Duration::from_millis(2));
/// Arguments of more values than this are not even begun with there: what is done with all of them at once, such as telling
/// which names are surplus, has no steps.
const VALUES_INLINE_MAX: usize = 20_000;
/// The steps of a check, whatever arguments come: about 100 ms.
pub(crate) const STEPS_MAX: Steps = Steps::new(8_000_000);
/// The steps for telling what is wrong with arguments.
const EXPLANATION_STEPS: u64 = 2_000_000;
/// Examples are small.
const EXAMPLE_STEPS: Steps = Steps::new(100_000);

/// A tool's schema, compiled once.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: CountedValidator,
    declared: surplus::Declared,
    /// Passed on untouched, so there is nothing to check.
    accepts_all: bool,
}

/// Says what is wrong with a JSON Schema for a tool's arguments, if anything is (SPEC V06).
pub fn check_schema(schema: &Value) -> Result<(), String> {
    verdict(schema)
}

/// Arguments that fit a schema: for those who want to see a call before they write one.
pub fn example_arguments(schema: &Value) -> Option<Value> {
    let example = example::value(schema, schema).filter(Value::is_object)?;
    let compiled = Schema::compile(schema).ok()?;
    let valid = compiled
        .validator
        .is_valid(&example, &mut EXAMPLE_STEPS.clone());
    (valid == Ok(true)).then_some(example)
}

/// Arguments that a schema forbids and that are named in the outcome.
const DROPPED_MAX: usize = 100;
/// Their names are text from outside.
const DROPPED_NAME_BYTES_MAX: usize = 256;

/// What was changed in arguments so that they fit.
#[derive(Debug, Clone, Default)]
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
        extent::check(schema)?;
        patterns::check(schema)?;
        let validator = CountedValidator::compile(&resources::addressed(schema), |options| {
            let options = options.should_validate_formats(true).with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(BACKTRACKS_OF_NAMES)
                    .size_limit(REGEX_BYTES_MAX),
            );
            match schema.get("$schema") {
                None => options.with_draft(Draft::Draft202012),
                Some(_) => options,
            }
        });
        let validator = validator.map_err(|fault| match fault {
            Uncompiled::Invalid(error) => explain::schema_fault(&error),
            Uncompiled::GivenUp(why) => unusable(&why),
            Uncompiled::Refused(text) => text,
        })?;
        let compiled = Schema {
            validator,
            declared: surplus::Declared::by(schema),
            accepts_all: schema.as_object().is_some_and(Map::is_empty),
        };
        compiled.check_is_usable()?;
        Ok(compiled)
    }

    /// Whether a check of these arguments takes long, whatever it says.
    pub(crate) fn takes_long(&self, args: &Value) -> bool {
        !self.accepts_all && has_more_values(args, &mut { VALUES_INLINE_MAX })
    }

    /// Refuses a schema that cannot even be checked against nothing.
    fn check_is_usable(&self) -> Result<(), String> {
        let no_arguments = Value::Object(Map::new());
        let checked = self
            .validator
            .is_valid(&no_arguments, &mut STEPS_MAX.clone());
        checked.map(drop).map_err(|why| unusable(&why))
    }

    /// Makes the arguments what the tool gets, or tells every fault in them. `document` is this schema's
    /// text; what was changed in them is added to `mended`. A check that was given up can be repeated with more steps:
    /// what it had changed by then is valid.
    pub(crate) fn check(
        &self,
        args: &mut Value,
        document: &Value,
        rules: Rules,
        mended: &mut Mended,
        steps: &mut Steps,
    ) -> Result<(), CheckFailure> {
        if self.accepts_all || self.validator.is_valid(args, steps)? {
            return Ok(());
        }
        self.mend_or_explain(args, document, rules, mended, steps)
    }

    #[cold]
    fn mend_or_explain(
        &self,
        args: &mut Value,
        document: &Value,
        rules: Rules,
        mended: &mut Mended,
        steps: &mut Steps,
    ) -> Result<(), CheckFailure> {
        if !rules.strict {
            self.drop_surplus(args, mended, steps)?;
        }
        if rules.coerce {
            coerce::mend(&self.validator, document, args, &mut mended.coerced, steps)?;
        }
        if self.validator.is_valid(args, steps)? {
            return Ok(());
        }
        let errors = self.told_errors(args, steps)?;
        let failure = explain::failure(&errors, args, document, &self.validator, steps);
        Err(CheckFailure::Invalid(Box::new(failure)))
    }

    /// Surplus parameters never fail a call: those the schema forbids are dropped (SPEC D6).
    fn drop_surplus(
        &self,
        args: &mut Value,
        mended: &mut Mended,
        steps: &mut Steps,
    ) -> Result<(), GivenUp> {
        let Some(fields) = args.as_object() else {
            return Ok(());
        };
        let mut forbidden = self.declared.surplus(fields);
        for error in self.told_errors(args, steps)? {
            if let ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } = error.kind()
                && error.instance_path().as_str().is_empty()
            {
                forbidden.extend(unexpected.iter().cloned());
            }
        }
        let Some(fields) = args.as_object_mut() else {
            return Ok(());
        };
        let surplus: Vec<String> = fields
            .keys()
            .filter(|name| forbidden.contains(*name))
            .cloned()
            .collect();
        if !surplus.is_empty() {
            fields.retain(|name, _| !forbidden.contains(name));
            tracing::debug!(?surplus, "dropped parameters the schema does not allow");
        }
        mended.name_dropped(&surplus);
        Ok(())
    }

    /// The violations that are looked at. Where there are more than there are steps to tell them, only the first one.
    fn told_errors<'a>(
        &'a self,
        args: &'a Value,
        steps: &mut Steps,
    ) -> Result<Vec<ValidationError<'a>>, GivenUp> {
        let all = steps.portion(EXPLANATION_STEPS, |steps| {
            self.validator.errors(args, ERRORS_READ_MAX, steps)
        });
        match all {
            Err(_) if steps.left() > EXPLANATION_STEPS => {
                let first = self.validator.first_error(args, steps)?;
                Ok(first.into_iter().collect())
            }
            all => all,
        }
    }
}

/// Whether a value consists of more than so many values. Takes as many off.
fn has_more_values(value: &Value, left: &mut usize) -> bool {
    let Some(one_less) = left.checked_sub(1) else {
        return true;
    };
    *left = one_less;
    match value {
        Value::Array(items) => items.iter().any(|item| has_more_values(item, left)),
        Value::Object(members) => members.values().any(|member| has_more_values(member, left)),
        _ => false,
    }
}

/// What is wrong with a schema that takes more work than it may.
fn unusable(why: &GivenUp) -> String {
    match why {
        GivenUp::Steps => {
            "its schema takes too long to check: it repeats or nests allOf, anyOf, oneOf, $ref or unevaluatedProperties too often"
                .to_owned()
        }
        GivenUp::Depth => "its schema has parts within parts, too deep to follow".to_owned(),
        GivenUp::Pattern(which) => format!(
            "its schema has a pattern that is too large, or no regular expression, at {}",
            cut::text(which, DROPPED_NAME_BYTES_MAX)
        ),
        GivenUp::Panic(text) => format!("its schema cannot be used: {text}"),
    }
}

/// Why arguments were not taken.
#[derive(Debug)]
pub(crate) enum CheckFailure {
    /// They do not fit.
    Invalid(Box<Failure>),
    /// The check was given up before it could tell.
    GivenUp(GivenUp),
}

impl From<GivenUp> for CheckFailure {
    fn from(why: GivenUp) -> CheckFailure {
        CheckFailure::GivenUp(why)
    }
}

impl From<Box<Failure>> for CheckFailure {
    fn from(failure: Box<Failure>) -> CheckFailure {
        CheckFailure::Invalid(failure)
    }
}

impl CheckFailure {
    /// The failure of a call whose arguments could not be checked to the end.
    pub(crate) fn into_failure(self) -> Box<Failure> {
        let message = match self {
            CheckFailure::Invalid(failure) => return failure,
            CheckFailure::GivenUp(GivenUp::Steps) => {
                "they take too long to check against the tool's schema; send fewer or smaller values"
                    .to_owned()
            }
            CheckFailure::GivenUp(GivenUp::Depth) => {
                "they are nested too deep to check against the tool's schema".to_owned()
            }
            CheckFailure::GivenUp(GivenUp::Pattern(text) | GivenUp::Panic(text)) => {
                format!("they could not be checked against the tool's schema: {text}")
            }
        };
        refused("budget", message)
    }
}

/// Reads the arguments and prepares them as the tool asks; once per call, before they are checked.
pub(crate) fn read<'a>(
    arguments: &'a mut Arguments,
    document: &Value,
    rules: Rules,
    preparation: Option<&Preparation>,
    mended: &mut Mended,
) -> Result<&'a mut Value, Box<Failure>> {
    let args = parse(arguments, document, rules, &mut mended.coerced)?;
    if let Some(prepare) = preparation
        && let Err(panic) = crate::guard::attempt::contained(|| prepare(args))
    {
        return Err(refused("arguments", format!("could not be read: {panic}")));
    }
    Ok(args)
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
        Arguments::Text(text) if let Some(repeated) = RepeatedName::first_in(text) => {
            return Err(refused_for(&repeated));
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
        Value::String(text)
            if rules.coerce
                && let Some(repeated) = RepeatedName::first_in(text) =>
        {
            return Err(refused_for(&repeated));
        }
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

fn refused_for(repeated: &RepeatedName) -> Box<Failure> {
    refused_at(
        repeated.pointer().to_owned(),
        "repeated",
        repeated.message(),
    )
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
