//! A JSON Schema validator whose work is counted, so that it ends.
//!
//! Schemas come from servers and arguments from callers, and a few hundred bytes of both can ask for more work than
//! a machine can do. The validator reads every value through [`Counted`], which counts each reading as a step. When
//! the steps are used up, the check unwinds to where it began. A part of a schema that would read nothing (`{}`,
//! `false`) gets a keyword that does: [`readable`].

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use jsonschema::{JsonType, Keyword, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Number, Value, json};

use super::patterns::{Pattern, Patterns};
use super::roomy_stack::DroppedThere;
use super::{patterns, roomy_stack, unique};

use crate::guard::attempt::panic_text;

/// The stack that a check may use. Threads of asynchronous runtimes have 2 MiB.
const STACK_BYTES_MAX: usize = 768 * 1024;
/// Between two readings a check may pass through many parts of a schema. The stack tells how many they are.
const STACK_BYTES_PER_STEP: usize = 4 * 1024;
/// An error that is reported takes about as long as this many readings of a value. It may keep a copy of the value and of
/// the way to it: so many bytes of those are another step.
const STEPS_PER_ERROR: u64 = 50;
const ERROR_BYTES_PER_STEP: usize = 4;
/// The steps of compiling one schema, and those of one part that leads to others.
const COMPILE_STEPS: Steps = Steps::new(2_000_000);
const STEPS_PER_COMPILED_PART: u64 = 400;
/// A text is compared with patterns and formats, many bytes a step.
const STEPS_PER_TEXT: u64 = 32;
const TEXT_BYTES_PER_STEP: usize = 64;
/// A text that has to be a regular expression is parsed.
const STEPS_PER_REGEX_BYTE: usize = 4;
/// A value of a list whose values must differ is written down to be compared.
const STEPS_PER_COMPARED_NODE: u64 = 4;
/// The time of the processor that one check, or compiling one schema, may take.
const PROCESSOR_TIME_MAX: Duration = Duration::from_millis(150);
/// The clock is looked at once in so many steps, and before matches of patterns that may take longer together.
const STEPS_PER_CLOCK_READING: u64 = 256;
const MATCHES_PER_CLOCK_READING: Duration = Duration::from_micros(100);

/// How much a check may still do: so many steps, in so much time of the processor. The time is the bound for all that
/// no count of steps shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Steps {
    left: u64,
    time: Duration,
}

impl Steps {
    pub(crate) const fn new(left: u64) -> Steps {
        Steps {
            left,
            time: PROCESSOR_TIME_MAX,
        }
    }

    pub(crate) const fn within(self, time: Duration) -> Steps {
        Steps { time, ..self }
    }

    pub(crate) fn left(self) -> u64 {
        self.left
    }

    /// Does work with at most `portion` of these steps, and half of the time.
    pub(crate) fn portion<T>(&mut self, portion: u64, work: impl FnOnce(&mut Steps) -> T) -> T {
        let mut steps = Steps {
            left: portion.min(self.left),
            time: self.time / 2,
        };
        let before = steps;
        let result = work(&mut steps);
        self.left -= before.left - steps.left;
        self.time -= before.time - steps.time;
        result
    }
}

/// Why a check was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// All its steps were used.
    Steps,
    /// References lead deeper than a check may follow.
    Depth,
    /// A pattern of the schema cannot be compiled; this is where it stands, and the pattern.
    Pattern(String),
    /// The validator itself failed, with this text.
    Panic(String),
}

/// A compiled schema.
#[derive(Debug)]
pub(super) struct CountedValidator {
    validator: DroppedThere<Validator<CountedJson>>,
    costs: Costs,
}

/// What work costs with one schema.
#[derive(Debug, Clone, Copy, Default)]
struct Costs {
    /// The time that its patterns for names of members may take for each byte of a name.
    nanos_per_byte_of_names: u64,
    /// The length of the longest way to a part of it.
    path_bytes: usize,
}

impl CountedValidator {
    pub(super) fn compile(
        schema: &Value,
        with: impl FnOnce(Options<'_>) -> Options<'_> + Send,
    ) -> Result<CountedValidator, Uncompiled> {
        match roomy_stack::is_needed(schema) {
            false => CountedValidator::compile_here(schema, false, with),
            true => roomy_stack::run(|| CountedValidator::compile_here(schema, true, with))
                .unwrap_or_else(|| {
                    let why = "its schema is nested deep, and there is no thread to compile it on";
                    Err(Uncompiled::Refused(why.to_owned()))
                }),
        }
    }

    fn compile_here(
        schema: &Value,
        is_deep: bool,
        with: impl FnOnce(Options<'_>) -> Options<'_>,
    ) -> Result<CountedValidator, Uncompiled> {
        let costs = Costs {
            nanos_per_byte_of_names: patterns::nanos_per_byte_of_names(schema),
            path_bytes: longest_path_bytes(schema),
        };
        let schema = readable(schema).map_err(Uncompiled::Refused)?;
        let patterns = Patterns::default();
        let options = jsonschema::options_for::<CountedJson>()
            .with_keyword(READS, |_, _, _| {
                spend(STEPS_PER_COMPILED_PART);
                Ok(Box::new(ReadsKeyword))
            })
            .with_keyword("pattern", move |_, value, place| {
                let pattern = value.as_str().unwrap_or_default();
                spend(STEPS_PER_COMPILED_PART + pattern.len() as u64);
                let Some(compiled) = patterns.get(pattern) else {
                    give_up(GivenUp::Pattern(format!("{}: {pattern}", place.as_str())));
                };
                let text = pattern.to_owned();
                Ok(Box::new(PatternKeyword { compiled, text }))
            })
            .with_format("regex", |text: &str| {
                spend((text.len() * STEPS_PER_REGEX_BYTE) as u64);
                jsonschema_regex::is_valid_ecma_regex(text)
            });
        let options = with(options);
        let built = bounded(&mut COMPILE_STEPS.clone(), Meter::of(costs), || {
            options.build(&schema)
        });
        let validator = built
            .map_err(Uncompiled::GivenUp)?
            .map_err(Uncompiled::Invalid)?;
        Ok(CountedValidator {
            validator: DroppedThere::new(validator, is_deep),
            costs,
        })
    }

    pub(super) fn is_valid(&self, value: &Value, steps: &mut Steps) -> Result<bool, GivenUp> {
        bounded(steps, Meter::of(self.costs), || {
            self.validator.is_valid(Counted(value))
        })
    }

    /// At most `max` violations.
    pub(super) fn errors<'a>(
        &'a self,
        value: &'a Value,
        max: usize,
        steps: &mut Steps,
    ) -> Result<Vec<ValidationError<'a>>, GivenUp> {
        bounded(steps, self.meter_of_errors(value), || {
            let errors = self.validator.iter_errors(Counted(value));
            errors.take(max).collect()
        })
    }

    /// The first violation: for values with more of them than there are steps to find.
    pub(super) fn first_error<'a>(
        &'a self,
        value: &'a Value,
        steps: &mut Steps,
    ) -> Result<Option<ValidationError<'a>>, GivenUp> {
        bounded(steps, self.meter_of_errors(value), || {
            self.validator.validate(Counted(value)).err()
        })
    }

    /// Each error names the ways to its place in the schema and in the value.
    fn meter_of_errors(&self, value: &Value) -> Meter {
        let paths = longest_path_bytes(value) + 2 * self.costs.path_bytes;
        Meter {
            steps_per_error: STEPS_PER_ERROR + (paths / ERROR_BYTES_PER_STEP) as u64,
            ..Meter::of(self.costs)
        }
    }
}

/// Does work that counts its steps, until it is done or they are used up.
fn bounded<T>(steps: &mut Steps, meter: Meter, work: impl FnOnce() -> T) -> Result<T, GivenUp> {
    let here = 0u8;
    let meter = Meter {
        steps: steps.left,
        time: steps.time,
        stack_end: stack_address(&here).saturating_sub(STACK_BYTES_MAX),
        ..meter
    };
    let outer = METER.replace(Some(meter));
    let result = catch_unwind(AssertUnwindSafe(work));
    let used = METER.replace(outer);
    (steps.left, steps.time) =
        used.map_or_else(Default::default, |meter| (meter.steps, meter.time));
    result.map_err(|payload| match payload.downcast::<GivenUp>() {
        Ok(given_up) => *given_up,
        Err(payload) => GivenUp::Panic(panic_text(payload)),
    })
}

/// What is left to the work that runs on this thread.
#[derive(Clone, Copy)]
struct Meter {
    steps: u64,
    until_clock: u64,
    time: Duration,
    /// The processor time when it was last looked at. Most work is done before that.
    clock: Option<Duration>,
    /// What the matches since then may have taken at most.
    matches: Duration,
    stack_end: usize,
    steps_per_error: u64,
    nanos_per_byte_of_names: u64,
}

impl Meter {
    fn of(costs: Costs) -> Meter {
        Meter {
            steps: 0,
            until_clock: STEPS_PER_CLOCK_READING,
            time: Duration::ZERO,
            clock: None,
            matches: Duration::ZERO,
            stack_end: 0,
            steps_per_error: STEPS_PER_ERROR,
            nanos_per_byte_of_names: costs.nanos_per_byte_of_names,
        }
    }

    /// Whether a match may begin that takes so long at worst.
    fn allows(&mut self, worst: Duration) -> Result<(), GivenUp> {
        self.matches = self.matches.saturating_add(worst);
        if self.matches > MATCHES_PER_CLOCK_READING {
            self.read_clock()?;
            self.matches = worst;
        }
        match worst < self.time {
            true => Ok(()),
            false => Err(GivenUp::Steps),
        }
    }

    fn spend(&mut self, cost: u64) -> Result<(), GivenUp> {
        let here = 0u8;
        let stack_left = stack_address(&here).checked_sub(self.stack_end);
        let stack_left = stack_left.ok_or(GivenUp::Depth)?;
        let passed = (STACK_BYTES_MAX.saturating_sub(stack_left) / STACK_BYTES_PER_STEP) as u64;
        let cost = cost + passed;
        self.steps = self.steps.saturating_sub(cost);
        if self.steps == 0 {
            return Err(GivenUp::Steps);
        }
        match self.until_clock.checked_sub(cost) {
            Some(until_clock) => self.until_clock = until_clock,
            None => self.read_clock()?,
        }
        Ok(())
    }

    #[cold]
    fn read_clock(&mut self) -> Result<(), GivenUp> {
        self.until_clock = STEPS_PER_CLOCK_READING;
        let now = processor_time();
        let passed = now.saturating_sub(self.clock.replace(now).unwrap_or(now));
        self.time = self.time.saturating_sub(passed);
        if self.time.is_zero() {
            return Err(GivenUp::Steps);
        }
        Ok(())
    }
}

thread_local! {
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

fn stack_address(local: &u8) -> usize {
    std::ptr::from_ref(local) as usize
}

/// How long this thread has run. A busy machine does not make a check longer, so it does not refuse one.
pub(super) fn processor_time() -> Duration {
    #[cfg(unix)]
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)
        .try_into()
        .unwrap_or_default();
    // Elsewhere the steps alone are the bound.
    #[cfg(not(unix))]
    let time = Duration::ZERO;
    time
}

/// Takes steps off what is left; unwinds when nothing is.
fn spend(cost: u64) {
    if let Err(given_up) = metered(|meter| meter.spend(cost)) {
        give_up(given_up);
    }
}

/// Whether there is so much time left for a match.
fn allows(worst: Duration) -> bool {
    metered(|meter| meter.allows(worst)).is_ok()
}

fn metered(work: impl FnOnce(&mut Meter) -> Result<(), GivenUp>) -> Result<(), GivenUp> {
    let Some(mut meter) = METER.get() else {
        return Ok(());
    };
    let done = work(&mut meter);
    METER.set(Some(meter));
    done
}

/// Ends the work where it began. The panic hook is not called: nothing is wrong here.
fn give_up(why: GivenUp) -> ! {
    resume_unwind(Box::new(why))
}

fn spend_on_text(text: &str) {
    spend(STEPS_PER_TEXT + (text.len() / TEXT_BYTES_PER_STEP) as u64);
}

/// A name is compared with all patterns for names, one after the other.
fn spend_on_name(name: &str) {
    spend_on_text(name);
    let nanos = METER.get().map_or(0, |meter| meter.nanos_per_byte_of_names);
    let worst = Duration::from_nanos(nanos.saturating_mul(name.len() as u64 + 1));
    if nanos > 0 && !allows(worst) {
        give_up(GivenUp::Steps);
    }
}

/// Whoever reports an error may copy the value.
fn spend_on_error(value: &Value) {
    let (steps, left) = METER
        .get()
        .map_or((0, 0), |meter| (meter.steps_per_error, meter.steps));
    let most = usize::try_from(left)
        .unwrap_or(usize::MAX)
        .saturating_mul(ERROR_BYTES_PER_STEP);
    spend(steps + (kept_bytes(value, most) / ERROR_BYTES_PER_STEP) as u64);
}

/// About what a value takes in memory. What takes more than `most` is not looked at to its end.
fn kept_bytes(value: &Value, most: usize) -> usize {
    let mut bytes = std::mem::size_of::<Value>();
    match value {
        Value::String(text) => bytes += text.len(),
        Value::Array(items) => {
            for item in items {
                if bytes > most {
                    break;
                }
                bytes += kept_bytes(item, most - bytes);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if bytes > most {
                    break;
                }
                bytes += 2 * name.len() + 32;
                bytes += kept_bytes(member, most.saturating_sub(bytes));
            }
        }
        _ => {}
    }
    bytes
}

/// The length of the longest JSON Pointer to a value in it.
fn longest_path_bytes(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| 8 + longest_path_bytes(item)).max(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| 1 + name.len() + longest_path_bytes(member))
            .max(),
        _ => None,
    }
    .unwrap_or(0)
}

/// `pattern`, within the time that is left.
struct PatternKeyword {
    compiled: Arc<Pattern>,
    text: String,
}

impl PatternKeyword {
    fn matches(&self, value: Counted<'_>) -> bool {
        let Some(text) = value.as_string() else {
            return true;
        };
        match self.compiled.is_match(&text, allows) {
            Ok(matches) => matches,
            Err(given_up) => give_up(given_up),
        }
    }
}

impl<'i> Keyword<'i, CountedJson> for PatternKeyword {
    fn validate(&self, value: Counted<'i>) -> Result<(), ValidationError<'i>> {
        match self.matches(value) {
            true => Ok(()),
            false => Err(ValidationError::custom(self.text.clone())),
        }
    }

    fn is_valid(&self, value: Counted<'i>) -> bool {
        self.matches(value)
    }
}

/// The keyword of parts that would read nothing.
pub(super) const READS: &str = "x-steadyhand-reads";

/// It takes every value, and counts.
struct ReadsKeyword;

impl<'i> Keyword<'i, CountedJson> for ReadsKeyword {
    fn validate(&self, value: Counted<'i>) -> Result<(), ValidationError<'i>> {
        value.is_null();
        Ok(())
    }

    fn is_valid(&self, value: Counted<'i>) -> bool {
        value.is_null();
        true
    }
}

/// Options of a validator, in whichever way it gets schemas from elsewhere.
pub(super) type Options<'a> = ValidationOptions<'a, Arc<dyn jsonschema::Retrieve>, CountedJson>;

/// Why a schema could not be compiled.
pub(super) enum Uncompiled {
    Invalid(ValidationError<'static>),
    GivenUp(GivenUp),
    /// It cannot be counted.
    Refused(String),
}

/// The schema with a keyword that reads in each part without one.
fn readable(document: &Value) -> Result<Value, String> {
    Rewriting { document }.part(document)
}

/// `false` under these is left as it is: the validator tells the names that it forbids, and a default is no schema.
const KEPT_FALSE: [&str; 5] = [
    "additionalItems",
    "additionalProperties",
    "default",
    "unevaluatedItems",
    "unevaluatedProperties",
];

struct Rewriting<'a> {
    document: &'a Value,
}

impl Rewriting<'_> {
    fn part(&self, part: &Value) -> Result<Value, String> {
        match part {
            Value::Object(members) => {
                self.check_references(members)?;
                let mut copy = Map::new();
                for (keyword, value) in members {
                    copy.insert(keyword.clone(), self.member(keyword, value)?);
                }
                if needs_reading(members) {
                    copy.insert(READS.to_owned(), Value::Bool(true));
                }
                Ok(Value::Object(copy))
            }
            Value::Array(parts) => parts.iter().map(|part| self.part(part)).collect(),
            Value::Bool(false) => Ok(json!({"not": {READS: true}})),
            other => Ok(other.clone()),
        }
    }

    fn member(&self, keyword: &str, value: &Value) -> Result<Value, String> {
        match value {
            value if is_data(keyword) => Ok(value.clone()),
            // Most keywords with a flag are no schemas.
            Value::Bool(_) if !matches!(keyword, "not" | "if" | "then" | "else" | "items") => {
                Ok(value.clone())
            }
            Value::Object(parts) if has_names(keyword) => {
                let parts = parts
                    .iter()
                    .map(|(name, part)| Ok((name.clone(), self.part(part)?)));
                let parts: Result<_, String> = parts.collect();
                parts.map(Value::Object)
            }
            part => self.part(part),
        }
    }

    /// A reference to what is no schema, or to a `false` that was left, would find a part that reads nothing.
    fn check_references(&self, members: &Map<String, Value>) -> Result<(), String> {
        let targets = ["$ref", "$dynamicRef", "$recursiveRef"]
            .into_iter()
            .filter_map(|keyword| members.get(keyword)?.as_str());
        for target in targets {
            let pointer = target.split_once('#').map_or("", |(_, pointer)| pointer);
            let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
            let mut parts = pointer.split('/').skip(1);
            let mut leads_to_a_schema = true;
            while let Some(keyword) = parts.next() {
                if has_names(keyword) {
                    parts.next();
                } else if is_data(keyword) {
                    leads_to_a_schema = false;
                }
            }
            if KEPT_FALSE.iter().any(|keyword| pointer.ends_with(keyword)) {
                let found = self.document.pointer(&pointer);
                leads_to_a_schema &= found.is_some_and(|found| *found != Value::Bool(false));
            }
            if !leads_to_a_schema {
                return Err(format!(
                    "its schema has a reference to {target}, which is no schema; put what it names under $defs"
                ));
            }
        }
        Ok(())
    }
}

/// Whether a part has no keyword that reads, or one that leads to other parts: those are compiled anew for each way
/// that leads to them, which has to be counted too.
fn needs_reading(members: &Map<String, Value>) -> bool {
    const READING: [&str; 6] = ["type", "enum", "const", "properties", "required", "items"];
    const LEADING: [&str; 12] = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependentSchemas",
        "dependencies",
        "unevaluatedItems",
        "unevaluatedProperties",
    ];
    let has = |keyword: &&str| members.contains_key(*keyword);
    LEADING.iter().any(has) || !READING.iter().any(has)
}

/// Keywords whose values are compared with, so that they stay as they are.
fn is_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum")
}

/// Keywords whose members have names of their own, each with a schema.
fn has_names(keyword: &str) -> bool {
    matches!(
        keyword,
        "$defs"
            | "definitions"
            | "properties"
            | "patternProperties"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas"
            | "$vocabulary"
    )
}

/// `serde_json::Value`, read through [`Counted`].
pub(super) struct CountedJson;

/// One value that counts how often it is read.
#[derive(Clone, Copy)]
pub(super) struct Counted<'a>(pub(super) &'a Value);

pub(super) struct CountedObject<'a>(&'a Map<String, Value>);
pub(super) struct CountedArray<'a>(&'a [Value]);
pub(super) struct CountedMembers<'a>(serde_json::map::Iter<'a>);
pub(super) struct CountedElements<'a>(std::slice::Iter<'a, Value>);

impl Json for CountedJson {
    type Node<'a> = Counted<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        read: impl FnOnce(Counted<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        read(Counted(buffer))
    }
}

impl<'a> Node<'a, CountedJson> for Counted<'a> {
    type Object = CountedObject<'a>;
    type Array = CountedArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<CountedObject<'a>> {
        spend(1);
        self.0.as_object().map(CountedObject)
    }

    fn as_array(&self) -> Option<CountedArray<'a>> {
        spend(1);
        self.0
            .as_array()
            .map(|items| CountedArray(items.as_slice()))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        spend_on_text(text.unwrap_or_default());
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        spend(1);
        match self.0 {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        spend(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        spend(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        spend(1);
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        let is_container = expected.is_object() || expected.is_array();
        spend(if is_container { 16 } else { 1 });
        jsonschema::json::cmp::equal(self.0, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        spend_on_error(self.0);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        spend(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.0) as usize))
    }
}

impl<'a> Object<'a, CountedJson> for CountedObject<'a> {
    type Node = Counted<'a>;
    type MemberName = &'a str;
    type MembersIter = CountedMembers<'a>;

    fn len(&self) -> usize {
        spend(1);
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Counted<'a>> {
        spend(1);
        self.0.get(key).map(Counted)
    }

    fn members(&self) -> CountedMembers<'a> {
        CountedMembers(self.0.iter())
    }
}

impl<'a> Iterator for CountedMembers<'a> {
    type Item = (&'a str, Counted<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        spend_on_name(name);
        Some((name, Counted(value)))
    }
}

impl<'a> Array<'a, CountedJson> for CountedArray<'a> {
    type Node = Counted<'a>;
    type ElementsIter = CountedElements<'a>;

    fn len(&self) -> usize {
        spend(1);
        self.0.len()
    }

    fn elements(&self) -> CountedElements<'a> {
        CountedElements(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        // While it goes on: counting a long list first would take longer than a short check may.
        unique::is_unique(self.0, |values, bytes| {
            spend(values as u64 * STEPS_PER_COMPARED_NODE + (bytes / TEXT_BYTES_PER_STEP) as u64);
        })
    }
}

impl<'a> Iterator for CountedElements<'a> {
    type Item = Counted<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        spend(1);
        self.0.next().map(Counted)
    }
}
