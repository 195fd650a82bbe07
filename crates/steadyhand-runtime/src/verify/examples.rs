//! The calls that are declared for a tool, and running them: only where that cannot do harm, or somebody said so.

use serde_json::{Map, Value};
use steadyhand::{Call, Tool, redact};

use super::{Example, Verdict};
use crate::runtime::Runtime;

/// Examples of one tool that are looked at.
const EXAMPLES_MAX: usize = 20;

/// A call that is declared to work.
pub(super) struct Declared {
    pub(super) arguments: Value,
    by: By,
}

/// Who declared it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// `examples = […]` of the tool's own table: by whoever runs this.
    Configuration,
    /// The schema of its arguments, which may be somebody else's.
    Schema,
}

/// What may be run.
pub(super) struct Consent {
    pub(super) safe_to_repeat: bool,
    pub(super) only_reads: bool,
    /// A person must say yes to its calls.
    pub(super) asks: bool,
    /// `--run-unsafe` names it.
    pub(super) named: bool,
    /// No example at all.
    pub(super) none: bool,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            By::Configuration => "configuration",
            By::Schema => "schema",
        }
    }
}

/// The declared calls of a tool, those of the configuration first.
pub(super) fn declared(runtime: &Runtime, tool: &Tool) -> Vec<Declared> {
    let settings = runtime.settings_of(tool.name());
    // What all tools start from holds no arguments of one of them.
    let own = settings.iter().skip(1).rev();
    let own = own.filter_map(|settings| settings.examples.clone()).next();
    let own = own.into_iter().flatten().map(Value::Object);
    let own = own.map(|arguments| (arguments, By::Configuration));
    let of_schema = of_schema(tool.schema()).into_iter();
    let of_schema = of_schema.map(|arguments| (arguments, By::Schema));
    let mut declared: Vec<Declared> = Vec::new();
    for (arguments, by) in own.chain(of_schema) {
        let is_known = declared.iter().any(|one| one.arguments == arguments);
        if !is_known && declared.len() < EXAMPLES_MAX {
            declared.push(Declared { arguments, by });
        }
    }
    declared
}

/// `examples` of the whole, else one made of the `examples` of all arguments it needs.
fn of_schema(schema: &Value) -> Vec<Value> {
    let whole = schema.get("examples").and_then(Value::as_array);
    let whole: Vec<Value> = whole
        .into_iter()
        .flatten()
        .filter(|it| it.is_object())
        .cloned()
        .collect();
    if !whole.is_empty() {
        return whole;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let example_of = |name: &str| properties?.get(name)?.get("examples")?.get(0).cloned();
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if required.iter().any(|name| example_of(name).is_none()) {
        return Vec::new();
    }
    let names = properties.into_iter().flatten().map(|(name, _)| name);
    let made: Map<String, Value> = names
        .filter_map(|name| Some((name.clone(), example_of(name)?)))
        .collect();
    match made.is_empty() {
        true => Vec::new(),
        false => vec![Value::Object(made)],
    }
}

/// Runs what may be run, one after the other.
pub(super) async fn run(
    runtime: &Runtime,
    tool: &Tool,
    declared: Vec<Declared>,
    consent: &Consent,
) -> Vec<Example> {
    let mut examples = Vec::new();
    for one in declared {
        let verdict = match consent.why_not(one.by, tool.name()) {
            Some(why) => checked(runtime, tool, &one.arguments).unwrap_or(Verdict::Skipped(why)),
            None => called(runtime, tool, &one.arguments).await,
        };
        examples.push(Example {
            arguments: redact::value(&one.arguments),
            declared_by: one.by.as_str(),
            verdict,
        });
    }
    examples
}

impl Consent {
    /// Why a declared call is not made.
    fn why_not(&self, by: By, tool: &str) -> Option<String> {
        let allow = format!("--run-unsafe {tool} runs it");
        match (self.none, self.named, by) {
            (true, ..) => Some("no example is run, as you said".to_owned()),
            (false, true, _) => None,
            (false, false, _) if self.asks => {
                Some(format!("a person must say yes to its calls; {allow}"))
            }
            (false, false, By::Configuration) if self.safe_to_repeat => None,
            (false, false, By::Schema) if self.only_reads => None,
            (false, false, By::Configuration) => {
                Some(format!("it is not known to be safe to repeat; {allow}"))
            }
            (false, false, By::Schema) => {
                Some(format!("it is not known to change nothing; {allow}"))
            }
        }
    }
}

/// An example that does not even fit the schema fails without being run.
fn checked(runtime: &Runtime, tool: &Tool, arguments: &Value) -> Option<Verdict> {
    let checked = runtime
        .manager()
        .check(tool.name(), arguments.clone().into())?;
    checked
        .err()
        .map(|failure| Verdict::Failed(failure.to_string()))
}

async fn called(runtime: &Runtime, tool: &Tool, arguments: &Value) -> Verdict {
    let call = Call::new(tool.name(), arguments.clone()).caller("verify");
    let outcome = runtime.executor().execute(call).await;
    match outcome.failure() {
        None => Verdict::Passed,
        Some(failure) => Verdict::Failed(failure.to_string()),
    }
}
