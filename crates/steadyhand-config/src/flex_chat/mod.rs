//! Flex Chat's `tools` JSON, as it is: full definitions, and names alone that stand for builtins.

mod entry;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::source::builtin;

use super::foreign::{Document, Field, Node, Place, Syntax};
use super::import::holds_servers;
use entry::{by_name, implementation, label, schema};

/// What a Flex Chat file says about tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlexChat {
    /// How many turns a conversation may take.
    pub max_iterations: Option<u32>,
    /// The time limit of a tool.
    pub default_timeout: Option<Duration>,
    /// The tools, in the order of the file.
    pub tools: Vec<FlexTool>,
    /// Remarks: nothing needs to be done.
    pub notes: Vec<FlexRemark>,
    /// What kept an entry, or the file, from being used.
    pub problems: Vec<FlexRemark>,
}

/// One tool of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct FlexTool {
    /// Its name.
    pub name: String,
    /// Its other name, `lc_name`.
    pub alias: Option<String>,
    /// What it does; none leaves a builtin its own words.
    pub description: Option<String>,
    /// JSON Schema of its parameters; none leaves a builtin its own.
    pub schema: Option<Value>,
    /// What runs it.
    pub implementation: Implementation,
    /// Where it stands.
    pub place: Place,
}

/// What runs a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Implementation {
    /// Always this answer
    Mock(Value),
    /// The builtin of this name
    Builtin(String),
    /// The handler of the host application with this name
    Internal(String),
}

/// Something about a place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlexRemark {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// What a JSON file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Flex Chat's tools
    FlexChat,
    /// MCP servers
    Mcp,
}

/// Names that need no definition, and the builtins they stand for.
pub const BY_NAME: [(&str, &str); 3] = [
    ("calculator", "math_eval"),
    ("get_current_datetime", "datetime"),
    ("generate_uuid", "uuid"),
];

const TOOLS_MAX: usize = 10_000;
const REMARKS_MAX: usize = 1000;
/// As many as a conversation could ever take; more is a slip of the hand.
const ITERATIONS_MAX: u64 = 10_000;
const TIMEOUT_MS_MAX: f64 = 24.0 * 3600.0 * 1000.0;

/// Whether a JSON text holds Flex Chat's tools or MCP servers, if either.
pub fn recognise(text: &str) -> Option<Shape> {
    let document = Document::read(text, Syntax::Json).ok()?;
    match registry(&document.root) {
        Some(_) => Some(Shape::FlexChat),
        None if holds_servers(&document.root) => Some(Shape::Mcp),
        None => None,
    }
}

/// Reads Flex Chat's tools. One bad entry does not lose the others.
pub fn read(text: &str) -> FlexChat {
    let mut out = FlexChat::default();
    let document = match Document::read(text, Syntax::Json) {
        Ok(document) => document,
        Err(broken) => {
            out.problems.push(FlexRemark {
                place: broken.at,
                message: format!("this is no JSON: {}", broken.message),
                help: Some("mend the file; nothing of it is used until then".to_owned()),
            });
            return out;
        }
    };
    let mut reader = Reader {
        document: &document,
        out,
    };
    reader.read();
    reader.out
}

impl FlexTool {
    /// The definition the engine takes: a builtin without words of its own gets those it ships with.
    pub fn definition(&self) -> Value {
        let implementation = match &self.implementation {
            Implementation::Mock(answer) => json!({"type": "mock", "mock_response": answer}),
            Implementation::Builtin(handler) => json!({"type": "builtin", "handler": handler}),
            Implementation::Internal(handler) => json!({"type": "internal", "handler": handler}),
        };
        let own_words = || match &self.implementation {
            Implementation::Builtin(handler) => match builtin::find(handler) {
                Some(tool) => tool.description().to_owned(),
                None if handler == "math_eval" => {
                    "Calculates the value of an expression".to_owned()
                }
                None => format!("The builtin tool {handler}"),
            },
            Implementation::Mock(_) | Implementation::Internal(_) => String::new(),
        };
        let description = self.description.clone().unwrap_or_else(own_words);
        let mut definition = json!({
            "name": self.name,
            "description": description,
            "implementation": implementation,
        });
        if let Some(alias) = &self.alias {
            definition["lc_name"] = json!(alias);
        }
        if let Some(schema) = &self.schema {
            definition["schema"] = schema.clone();
        }
        definition
    }
}

/// The list of tools, and the table it stands in.
fn registry(root: &Node) -> Option<(&Node, Option<&Node>)> {
    let is_registry = |node: &Node| {
        let items = node.items()?;
        let mut entries = items.iter().filter(|item| item.get("name").is_some());
        (items.is_empty() || entries.next().is_some()).then_some(())
    };
    if is_registry(root).is_some() {
        return Some((root, None));
    }
    for settings in [root.get("tools"), Some(root)].into_iter().flatten() {
        if let Some(registry) = settings.get("registry")
            && registry.items().is_some()
        {
            return Some((registry, Some(settings)));
        }
    }
    let list = root.get("tools")?;
    is_registry(list)?;
    Some((list, Some(root)))
}

struct Reader<'a> {
    document: &'a Document<'a>,
    out: FlexChat,
}

/// The byte, what is wrong there, and what to do.
type Fault = (usize, String, String);

impl Reader<'_> {
    fn read(&mut self) {
        let root = &self.document.root;
        let Some((registry, settings)) = registry(root) else {
            let help = "write {\"tools\": {\"registry\": [{\"name\": …}]}}";
            self.problem((
                root.at,
                "no list of tools in this file".to_owned(),
                help.to_owned(),
            ));
            return;
        };
        if let Some(settings) = settings {
            self.settings(settings);
        }
        let mut seen: HashMap<String, Place> = HashMap::new();
        for (index, entry) in registry.items().unwrap_or_default().iter().enumerate() {
            if index == TOOLS_MAX {
                let message = format!("more than {TOOLS_MAX} tools; the rest is left out");
                self.problem((entry.at, message, "split the file".to_owned()));
                break;
            }
            let tool = match self.tool(entry) {
                Ok(tool) => tool,
                Err((at, message, help)) => {
                    let label = label(index, entry);
                    self.problem((at, format!("{label}: {message}"), help));
                    continue;
                }
            };
            if let Some(before) = seen.insert(tool.name.clone(), tool.place) {
                let label = label(index, entry);
                let message = format!("{label} replaces the one on line {}", before.line);
                self.note(entry.at, message);
            }
            self.unknown_keys(index, entry);
            self.out.tools.push(tool);
        }
    }

    fn settings(&mut self, settings: &Node) {
        if let Some(node) = settings.get("max_iterations") {
            let whole = node.number().filter(|number| number.fract() == 0.0);
            match whole.map(|number| number as u64) {
                Some(turns @ 1..=ITERATIONS_MAX) => self.out.max_iterations = Some(turns as u32),
                _ => self.problem((
                    node.at,
                    "'max_iterations' must be a whole number from 1 to 10000".to_owned(),
                    "write \"max_iterations\": 5".to_owned(),
                )),
            }
        }
        if let Some(node) = settings.get("default_timeout_ms") {
            match node.number() {
                Some(ms) if ms > 0.0 && ms <= TIMEOUT_MS_MAX => {
                    self.out.default_timeout = Some(Duration::from_secs_f64(ms / 1000.0));
                }
                _ => self.problem((
                    node.at,
                    "'default_timeout_ms' must be a number of milliseconds, a day at most"
                        .to_owned(),
                    "write \"default_timeout_ms\": 30000".to_owned(),
                )),
            }
        }
    }

    fn tool(&self, entry: &Node) -> Result<FlexTool, Fault> {
        if entry.fields().is_none() {
            let message = format!("expected a table, found {}", entry.kind());
            return Err((entry.at, message, "write {\"name\": …}".to_owned()));
        }
        let text = |key: &str| match entry.get(key) {
            None => Ok(None),
            Some(node) => match node.text() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err((
                    node.at,
                    format!("'{key}' must be a text, not {}", node.kind()),
                    "put it in quotes".to_owned(),
                )),
            },
        };
        let name = text("name")?.filter(|name| !name.trim().is_empty());
        let Some(name) = name else {
            let message = "it has no name".to_owned();
            return Err((entry.at, message, "add \"name\": \"…\"".to_owned()));
        };
        let description = text("description")?.filter(|text| !text.trim().is_empty());
        let implementation = match entry.get("implementation") {
            Some(node) => implementation(node)?,
            None => by_name(&name, entry)?,
        };
        if description.is_none() && !matches!(implementation, Implementation::Builtin(_)) {
            let message = "it has no description: a model could not tell what it is for";
            let help = "add \"description\": \"…\"".to_owned();
            return Err((entry.at, message.to_owned(), help));
        }
        Ok(FlexTool {
            name,
            alias: text("lc_name")?,
            description,
            schema: schema(entry)?,
            implementation,
            place: self.document.place(entry.at),
        })
    }

    fn unknown_keys(&mut self, index: usize, entry: &Node) {
        const KNOWN: [&str; 6] = [
            "name",
            "lc_name",
            "description",
            "parameters",
            "schema",
            "implementation",
        ];
        let fields = entry.fields().unwrap_or_default();
        let unknown = fields
            .iter()
            .filter(|field| !KNOWN.contains(&field.name.as_str()));
        for Field { name, at, .. } in unknown {
            let message = format!(
                "{}: '{name}' means nothing to Steadyhand",
                label(index, entry)
            );
            self.note(*at, message);
        }
    }

    fn note(&mut self, at: usize, message: String) {
        if self.out.notes.len() >= REMARKS_MAX {
            return;
        }
        self.out.notes.push(FlexRemark {
            place: self.document.place(at),
            message,
            help: None,
        });
    }

    fn problem(&mut self, (at, message, help): Fault) {
        if self.out.problems.len() >= REMARKS_MAX {
            return;
        }
        self.out.problems.push(FlexRemark {
            place: self.document.place(at),
            message,
            help: Some(help),
        });
    }
}
