//! The JSON Schema of the configuration: made from the settings' own types, used for the checks, for
//! "did you mean", and printed for editors. So the three cannot drift apart.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::settings::{PolicySettings, Root};
use super::source_kind::{SERVER_KIND, SourceKind};
use super::units;

/// The schema of the whole file.
pub(crate) fn schema_of_file(kinds: &[&'static SourceKind], server: &SourceKind) -> Value {
    let mut root = of::<Root>();
    let kinds = kinds
        .iter()
        .map(|kind| hoisted(table(kind), kind.name, &mut root));
    let kinds: Vec<Value> = kinds.collect();
    let server = hoisted(table(server), server.name, &mut root);
    root["properties"]["mcp"]["additionalProperties"] = server;
    root["properties"]["tools"]["additionalProperties"] = json!({ "oneOf": kinds });
    root["title"] = json!("steadyhand.toml");
    root
}

pub struct Compiled {
    pub schema: Value,
    pub validator: Validator,
}

/// Everything but the tables of tools, which need their kind first.
pub static ROOT: LazyLock<Compiled> = LazyLock::new(|| {
    let mut root = of::<Root>();
    for section in ["tools", "mcp"] {
        root["properties"][section]["additionalProperties"] = json!({"type": "object"});
    }
    compile(root)
});

/// The policy alone, for a table whose kind is not known.
pub static POLICY: LazyLock<Compiled> = LazyLock::new(|| compile(of::<PolicySettings>()));

/// The schemas of the kinds of tools, each made when it is first needed: most programs start with a few of them.
pub struct KindSchemas(HashMap<&'static str, KindSchema>);

/// What tables of one kind of tool look like.
pub struct KindSchema {
    kind: &'static SourceKind,
    table: OnceLock<Compiled>,
    own_keys: OnceLock<Keys>,
}

impl KindSchemas {
    pub fn of(kinds: impl Iterator<Item = &'static SourceKind>) -> KindSchemas {
        let schema = |kind: &'static SourceKind| KindSchema {
            kind,
            table: OnceLock::new(),
            own_keys: OnceLock::new(),
        };
        KindSchemas(kinds.map(|kind| (kind.name, schema(kind))).collect())
    }

    /// That of a kind of the table.
    pub fn kind(&self, name: &str) -> &KindSchema {
        &self.0[name]
    }
}

impl KindSchema {
    /// The whole table: the kind's own keys and those of the policy.
    pub fn table(&self) -> &Compiled {
        self.table.get_or_init(|| compile(table(self.kind)))
    }

    /// The kind's own keys.
    pub fn own_keys(&self) -> &Keys {
        let own = || keys(&tidy((self.kind.schema)(&mut generator()).to_value()));
        self.own_keys.get_or_init(own)
    }
}

impl Compiled {
    /// The keys that the table at a pointer may have.
    pub fn keys_at(&self, pointer: &str) -> Vec<String> {
        let schema = self.schema_at(pointer);
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
        properties.map_or_else(Vec::new, |properties| properties.keys().cloned().collect())
    }

    /// The part of the schema that speaks about the value at a pointer.
    pub fn schema_at(&self, pointer: &str) -> Option<&Value> {
        let mut here = self.follow(&self.schema);
        for step in pointer.split('/').skip(1) {
            let key = step.replace("~1", "/").replace("~0", "~");
            let property = here
                .get("properties")
                .and_then(|properties| properties.get(&key));
            let next = property
                .or_else(|| here.get("additionalProperties"))
                .or_else(|| here.get("items"));
            here = self.follow(next?);
        }
        Some(here)
    }

    pub(super) fn follow<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let target = schema.get("$ref").and_then(Value::as_str);
        target
            .and_then(|target| self.schema.pointer(target.trim_start_matches('#')))
            .unwrap_or(schema)
    }
}

/// The table of a tool of this kind, or of a server: the kind's own keys and those of the policy.
fn table(row: &SourceKind) -> Value {
    let mut generator = generator();
    let kind = row.name;
    let is_server = kind == SERVER_KIND;
    let mut own = tidy((row.schema)(&mut generator).to_value());
    let mut policy = of::<PolicySettings>();
    let each = json!({
        "type": "object",
        "description": "Policy of single tools: a name, or a pattern such as search_*",
        "additionalProperties": {"$ref": "#/$defs/PolicySettings"}
    });
    let mut definitions = take_object(&mut policy, "$defs");
    definitions.insert(
        "PolicySettings".to_owned(),
        without(&policy, &["$schema", "title"]),
    );
    definitions.extend(take_object(&mut own, "$defs"));
    let mut properties = Map::new();
    let mut required = Vec::new();
    if !is_server {
        let what = json!({"const": kind, "description": "What runs it"});
        properties.insert("kind".to_owned(), what);
        required.push(json!("kind"));
    }
    for (key, value) in take_object(&mut own, "properties") {
        properties.insert(key, value);
    }
    for (key, value) in take_object(&mut policy, "properties") {
        match properties.get_mut(&key) {
            // Both have a word to say, as a command has about its limits: one table with the keys of both.
            Some(shared) => *shared = united(shared, &value, &definitions),
            None => drop(properties.insert(key, value)),
        }
    }
    properties.insert("each".to_owned(), each);
    required.extend(
        own.get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned(),
    );
    json!({
        "type": "object",
        "title": match is_server {
            true => "an MCP server".to_owned(),
            false => format!("a tool of kind {kind}"),
        },
        "properties": properties,
        "required": required,
        "additionalProperties": false,
        "$defs": definitions,
    })
}

/// Moves the definitions of a tool's schema to the root, where `#/$defs/…` looks for them; one whose
/// name is taken there by something else is renamed after its kind.
fn hoisted(mut tool: Value, kind: &str, root: &mut Value) -> Value {
    let definitions = take_object(&mut tool, "$defs");
    let mut text = tool.to_string();
    let mut moved = Vec::new();
    for (name, definition) in definitions {
        match root["$defs"].get(&name) {
            Some(taken) if *taken == definition => {}
            Some(_) => {
                let from = format!("\"#/$defs/{name}\"");
                text = text.replace(&from, &format!("\"#/$defs/{kind}-{name}\""));
                moved.push((format!("{kind}-{name}"), definition));
            }
            None => moved.push((name, definition)),
        }
    }
    for (name, definition) in moved {
        root["$defs"][name] = definition;
    }
    serde_json::from_str(&text).expect("what was JSON before")
}

/// Splits a tool's table into what is its kind's own and what is policy.
pub fn split(own: &Keys, table: &Map<String, Value>) -> Split {
    let policy = &*POLICY_KEYS;
    let mut split = Split::default();
    for (key, value) in table {
        match key.as_str() {
            "kind" => {}
            "each" => split.each = value.as_object().cloned().unwrap_or_default(),
            _ => match (own.get(key), policy.get(key)) {
                (Some(own_keys), Some(_)) => {
                    let fields = value.as_object().cloned().unwrap_or_default();
                    let (mine, theirs): (Map<_, _>, Map<_, _>) = fields
                        .into_iter()
                        .partition(|(key, _)| own_keys.contains(key));
                    if !mine.is_empty() {
                        split.own.insert(key.clone(), Value::Object(mine));
                    }
                    split.policy.insert(key.clone(), Value::Object(theirs));
                }
                (None, Some(_)) => drop(split.policy.insert(key.clone(), value.clone())),
                (_, None) => drop(split.own.insert(key.clone(), value.clone())),
            },
        }
    }
    split
}

/// A tool's table in parts.
#[derive(Debug, Default, Clone)]
pub struct Split {
    pub own: Map<String, Value>,
    pub policy: Map<String, Value>,
    pub each: Map<String, Value>,
}

/// The keys of a schema, each with the keys of the table it may hold.
pub type Keys = HashMap<String, Vec<String>>;

static POLICY_KEYS: LazyLock<Keys> = LazyLock::new(|| keys(&of::<PolicySettings>()));

fn keys(schema: &Value) -> Keys {
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let definitions = schema
        .get("$defs")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let inner = |property: &Value| {
        let fields = resolved(property, definitions)
            .get("properties")
            .and_then(Value::as_object);
        fields.map_or_else(Vec::new, |fields| fields.keys().cloned().collect())
    };
    properties
        .iter()
        .map(|(key, property)| (key.clone(), inner(property)))
        .collect()
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}

fn of<T: JsonSchema>() -> Value {
    tidy(generator().into_root_schema_for::<T>().to_value())
}

/// TOML has no null: an optional setting is its type, and may be left out. And `default: null`, and
/// the names of Rust's integer types, are of no use to the reader.
fn tidy(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else {
        return match schema {
            Value::Array(items) => Value::Array(items.into_iter().map(tidy).collect()),
            other => other,
        };
    };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({"type": "null"}));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            fields.extend(only);
        }
    }
    fields.remove("default");
    let format = fields.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| units::FORMATS.iter().all(|(known, _)| *known != format)) {
        fields.remove("format");
    }
    let tidied = |(key, value): (String, Value)| match (key.as_str(), value) {
        // What stands below has the names of settings, not of keywords.
        ("properties" | "$defs", Value::Object(named)) => {
            let named = named.into_iter().map(|(name, schema)| (name, tidy(schema)));
            (key, Value::Object(named.collect()))
        }
        ("examples" | "enum" | "const", value) => (key, value),
        (_, value) => (key, tidy(value)),
    };
    Value::Object(fields.into_iter().map(tidied).collect())
}

fn compile(schema: Value) -> Compiled {
    let mut options = jsonschema::options().should_validate_formats(true);
    for (name, check) in units::FORMATS {
        // A reference is replaced later; what it stands for is checked then.
        options = options.with_format(name, move |text: &str| {
            text.contains("${") || check(text).is_ok()
        });
    }
    let validator = options
        .build(&schema)
        .expect("a schema made from our own types");
    Compiled { schema, validator }
}

fn united(a: &Value, b: &Value, definitions: &Map<String, Value>) -> Value {
    let mut table = resolved(a, definitions).clone();
    let other = resolved(b, definitions);
    if let (Some(fields), Some(more)) = (
        table.get_mut("properties").and_then(Value::as_object_mut),
        other.get("properties").and_then(Value::as_object),
    ) {
        for (key, value) in more {
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    table
}

fn resolved<'a>(schema: &'a Value, definitions: &'a Map<String, Value>) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str);
    target
        .and_then(|target| definitions.get(target.trim_start_matches("#/$defs/")))
        .unwrap_or(schema)
}

fn take_object(schema: &mut Value, key: &str) -> Map<String, Value> {
    match schema.as_object_mut().and_then(|fields| fields.remove(key)) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn without(schema: &Value, keys: &[&str]) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        for key in keys {
            fields.remove(*key);
        }
    }
    schema
}
