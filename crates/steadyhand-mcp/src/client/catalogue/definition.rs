//! One tool as a server lists it: what we need of it read out, everything kept as it came.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use steadyhand::SchemaBudget;

const NAME_BYTES_MAX: usize = 256;
/// More than this nobody should have to read, and a model would have to.
const DESCRIPTION_BYTES_MAX: usize = 32 * 1024;
/// What a refusal shows of a name that is too long.
const NAME_CHARS_SHOWN_MAX: usize = 60;
const REASON_BYTES_MAX: usize = 1_000;

/// A tool of `tools/list` that can be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What its server calls it.
    pub name: String,
    /// What models are told: its description, else its title, else its name (SPEC D14).
    pub description: String,
    /// Whether it has a description of its own.
    pub described: bool,
    /// The schema of its arguments, always an object of type `object`.
    pub schema: Value,
    /// `readOnlyHint`: it changes nothing.
    pub read_only: bool,
    /// `idempotentHint`: twice is as good as once.
    pub idempotent: bool,
    /// `destructiveHint`, where its server says so or denies it.
    pub destructive: Option<bool>,
    /// A name for people.
    pub title: Option<String>,
    /// What had to be made up or cut, in sentences.
    pub notes: Vec<String>,
    /// As it came, every member of it: this goes to disk and to clients.
    pub raw: Map<String, Value>,
}

/// A tool of `tools/list` that cannot be offered. It costs only itself, not the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{name} cannot be used: {reason}")]
pub struct Unusable {
    /// Its name, or its place in the list where it has none.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it has a name that somebody could call it by.
    #[serde(skip)]
    pub(crate) is_named: bool,
}

/// Why a tool that runs only as a task is not offered.
const ONLY_AS_A_TASK: &str = "it runs only as a task (its execution.taskSupport is \"required\"), and Steadyhand does not run tasks yet";

/// Reads one tool from its text: one that is nested too deeply to be read costs only itself.
pub(crate) fn read_raw(
    raw: &RawValue,
    position: usize,
    budget: &mut SchemaBudget,
) -> Result<Definition, Unusable> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    match serde_json::from_str(raw.get()) {
        Ok(value) => read_within(value, position, budget),
        Err(error) => {
            let named = steadyhand::typed_json::from_str::<Named>(raw.get()).ok();
            Err(Unusable {
                is_named: named.is_some(),
                name: named.map_or_else(|| format!("tool {}", position + 1), |named| named.name),
                reason: format!(
                    "its definition cannot be read: {}",
                    steadyhand::plain_words::json(&error)
                ),
            })
        }
    }
}

/// Reads one tool; `position` counts from 0 and names a tool without a name.
pub fn read(raw: Value, position: usize) -> Result<Definition, Unusable> {
    read_within(raw, position, &mut SchemaBudget::default())
}

fn read_within(
    raw: Value,
    position: usize,
    budget: &mut SchemaBudget,
) -> Result<Definition, Unusable> {
    let name = name_of(&raw, position)?;
    let unusable = |reason: String| Unusable {
        name: name.clone(),
        reason: cut(&reason, REASON_BYTES_MAX).to_owned(),
        is_named: true,
    };
    let Value::Object(raw) = raw else {
        return Err(unusable("it is no object".to_owned()));
    };
    let mut notes = Vec::new();
    let schema = schema_of(&raw, &mut notes).map_err(&unusable)?;
    budget.check(&schema).map_err(&unusable)?;
    if runs_only_as_a_task(&raw) {
        return Err(unusable(ONLY_AS_A_TASK.to_owned()));
    }

    let title = text(raw.get("title")).or_else(|| text(hint(&raw, "title")));
    let own = text(raw.get("description"));
    let described = own.is_some();
    let description = match (own, title) {
        (Some(own), _) => bounded(own, &mut notes),
        (None, Some(title)) => {
            notes.push("it has no description; its title serves as one".to_owned());
            bounded(title, &mut notes)
        }
        (None, None) => {
            notes.push("it has no description; its name serves as one".to_owned());
            name.clone()
        }
    };
    Ok(Definition {
        description,
        described,
        schema,
        // Only a plain yes counts: what is repeated by mistake cannot be taken back (SPEC D7).
        read_only: hint(&raw, "readOnlyHint") == Some(&Value::Bool(true)),
        idempotent: hint(&raw, "idempotentHint") == Some(&Value::Bool(true)),
        destructive: hint(&raw, "destructiveHint").and_then(Value::as_bool),
        title: title.map(str::to_owned),
        notes,
        name,
        raw,
    })
}

impl Definition {
    /// Whether it may be run again after a failure that leaves open whether it ran (SPEC D7).
    pub fn safe_to_repeat(&self) -> bool {
        self.read_only || self.idempotent
    }
}

fn name_of(raw: &Value, position: usize) -> Result<String, Unusable> {
    let nameless = |reason: &str| Unusable {
        name: format!("tool {} of the list", position + 1),
        reason: reason.to_owned(),
        is_named: false,
    };
    match raw.get("name") {
        _ if !raw.is_object() => Err(nameless("it is no object")),
        None | Some(Value::Null) => Err(nameless("it has no name")),
        Some(Value::String(name)) if name.trim().is_empty() => Err(nameless("its name is empty")),
        Some(Value::String(name)) if name.len() > NAME_BYTES_MAX => Err(Unusable {
            name: name
                .chars()
                .take(NAME_CHARS_SHOWN_MAX)
                .chain(['…'])
                .collect(),
            reason: format!("its name is longer than {NAME_BYTES_MAX} bytes"),
            is_named: false,
        }),
        Some(Value::String(name)) => Ok(name.clone()),
        Some(_) => Err(nameless("its name is no string")),
    }
}

fn schema_of(raw: &Map<String, Value>, notes: &mut Vec<String>) -> Result<Value, String> {
    match raw.get("inputSchema") {
        // Against the protocol, and harmless: a tool without parameters, most of the time.
        None | Some(Value::Null) => {
            notes.push("it has no inputSchema; any arguments are passed on".to_owned());
            Ok(json!({"type": "object"}))
        }
        Some(Value::Object(schema)) if !schema.contains_key("type") => {
            notes.push("its inputSchema has no type; taken as an object".to_owned());
            let mut schema = schema.clone();
            schema.shift_insert(0, "type".to_owned(), json!("object"));
            Ok(Value::Object(schema))
        }
        Some(schema @ Value::Object(_)) => Ok(schema.clone()),
        Some(other) => {
            let shown = other.to_string();
            Err(format!(
                "its inputSchema is {}, not an object",
                cut(&shown, 60)
            ))
        }
    }
}

/// `required` means that a plain call of it is refused; `optional` and `forbidden` leave plain calls as they are.
fn runs_only_as_a_task(raw: &Map<String, Value>) -> bool {
    let support = raw.get("execution").and_then(|it| it.get("taskSupport"));
    support.and_then(Value::as_str) == Some("required")
}

fn hint<'a>(raw: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    raw.get("annotations")?.get(name)
}

fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.trim().is_empty())
}

fn bounded(text: &str, notes: &mut Vec<String>) -> String {
    let kept = cut(text, DESCRIPTION_BYTES_MAX);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    notes.push(format!(
        "its description of {} bytes is cut to {}",
        text.len(),
        kept.len()
    ));
    format!("{kept}…")
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
