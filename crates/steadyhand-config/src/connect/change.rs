//! Changes to another program's file: our entry comes in or is brought up to date, everything else stays as it is,
//! comments and order included.

use std::fmt;

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use super::Client;
use crate::foreign::jsonc;

/// Keys that say how we are reached over HTTP, and as a program. Others belong to the client or its user: they stay.
const BY_ADDRESS: [&str; 7] = [
    "type",
    "transport",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "bearer_token_env_var",
];
const BY_COMMAND: [&str; 4] = ["type", "transport", "command", "args"];

/// What a file shall say.
pub struct Change<'a> {
    pub client: Client,
    /// The name of our entry.
    pub name: &'a str,
    pub entry: &'a Map<String, Value>,
    /// What VS Code is to ask its user for.
    pub input: Option<&'a Value>,
}

/// Why a file is not changed.
#[derive(Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// It cannot be read: what is wrong, and in which line.
    Unreadable { why: String, line: usize },
    /// Something else stands where a table or a list is expected.
    Unexpected(String),
}

impl fmt::Display for NotChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotChanged::Unreadable { why, line } => write!(f, "line {line}: {why}"),
            NotChanged::Unexpected(what) => write!(f, "{what}"),
        }
    }
}

impl Change<'_> {
    /// The text with our entry in it; the same text where it is there already.
    pub fn of(&self, text: &str) -> Result<String, NotChanged> {
        match self.client {
            Client::Codex => self.of_toml(text),
            _ => self.of_json(text),
        }
    }

    fn of_json(&self, text: &str) -> Result<String, NotChanged> {
        let root = read_json(text)?;
        let whole = match root.value() {
            None => root.object_value_or_set(),
            Some(_) => root
                .object_value()
                .ok_or_else(|| unexpected("the file holds something else than an object"))?,
        };
        let section = match self.client {
            Client::VsCode => "servers",
            _ => "mcpServers",
        };
        let mut is_changed = false;
        let servers = object_in(&whole, section, &mut is_changed)?;
        match servers.get(self.name) {
            None => {
                let entry = self.entry.iter();
                let entry = entry.map(|(key, value)| (key.clone(), input_of(value)));
                servers.append(self.name, CstInputValue::Object(entry.collect()));
                is_changed = true;
            }
            Some(ours) => {
                let ours = ours.object_value();
                let ours = ours
                    .ok_or_else(|| unexpected(&format!("{section}.{} is no object", self.name)))?;
                self.bring_up_to_date(&ours, &mut is_changed);
            }
        }
        if let Some(input) = self.input {
            let asks = |value: &Value| value["id"] == input["id"];
            let inputs = match whole.get("inputs") {
                None => whole.array_value_or_set("inputs"),
                Some(inputs) => inputs
                    .array_value()
                    .ok_or_else(|| unexpected("inputs is no list"))?,
            };
            let there = inputs.to_serde_value().unwrap_or_default();
            if !there.as_array().into_iter().flatten().any(asks) {
                inputs.append(input_of(input));
                is_changed = true;
            }
        }
        match is_changed {
            false => Ok(text.to_owned()),
            true => Ok(with_end(root.to_string())),
        }
    }

    /// What is said otherwise is said as we want it; headers that are there may hold what its user put in.
    fn bring_up_to_date(&self, ours: &CstObject, is_changed: &mut bool) {
        for property in ours.properties() {
            let key = property.decoded_name().unwrap_or_default();
            if self.is_in_the_way(&key) {
                property.remove();
                *is_changed = true;
            }
        }
        for (key, wanted) in self.entry {
            let Some(property) = ours.get(key) else {
                ours.append(key, input_of(wanted));
                *is_changed = true;
                continue;
            };
            let there = property.value().and_then(|value| value.to_serde_value());
            if there.as_ref() == Some(wanted) || has_all(there.as_ref(), wanted) {
                continue;
            }
            match (property.object_value(), wanted.as_object()) {
                (Some(object), Some(wanted)) => {
                    for (key, value) in wanted {
                        if object.get(key).is_none() {
                            object.append(key, input_of(value));
                        }
                    }
                }
                _ => property.set_value(input_of(wanted)),
            }
            *is_changed = true;
        }
    }

    fn of_toml(&self, text: &str) -> Result<String, NotChanged> {
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            let at = error.span().map_or(0, |span| span.start);
            NotChanged::Unreadable {
                why: error.message().to_owned(),
                line: line_of(text, at),
            }
        })?;
        let servers = document.get("mcp_servers");
        let is_table = |item: &Item| item.as_table_like().is_some();
        if servers.is_some_and(|servers| !is_table(servers)) {
            return Err(unexpected("mcp_servers is no table"));
        }
        let ours = servers.and_then(|servers| servers.get(self.name));
        if ours.is_none() && servers.is_none_or(|servers| servers.as_inline_table().is_none()) {
            let mut after = text.trim_end().to_owned();
            if !after.is_empty() {
                after.push_str("\n\n");
            }
            // At its end: what comes below a header of another table would belong to that.
            return Ok(after + &self.written_toml());
        }
        let servers = document["mcp_servers"].as_table_like_mut();
        let servers = servers.ok_or_else(|| unexpected("mcp_servers is no table"))?;
        let ours = servers
            .entry(self.name)
            .or_insert_with(|| toml_edit::value(toml_edit::InlineTable::new()));
        let ours = ours
            .as_table_like_mut()
            .ok_or_else(|| unexpected(&format!("mcp_servers.{} is no table", self.name)))?;
        let mut is_changed = false;
        for key in BY_ADDRESS.iter().chain(&BY_COMMAND) {
            is_changed |= self.is_in_the_way(key) && ours.remove(key).is_some();
        }
        for (key, wanted) in self.entry {
            let wanted = toml_of(wanted);
            let is_same = |there: &Item| there.to_string().trim() == wanted.to_string().trim();
            if !ours.get(key).is_some_and(is_same) {
                ours.insert(key, wanted);
                is_changed = true;
            }
        }
        match is_changed {
            false => Ok(text.to_owned()),
            true => Ok(document.to_string()),
        }
    }

    /// Whether a key says that we are reached another way.
    fn is_in_the_way(&self, key: &str) -> bool {
        let others = match self.entry.contains_key("url") {
            true => &BY_COMMAND[..],
            false => &BY_ADDRESS[..],
        };
        others.contains(&key) && !self.entry.contains_key(key)
    }

    fn written_toml(&self) -> String {
        let mut entry = Table::new();
        for (key, value) in self.entry {
            entry.insert(key, toml_of(value));
        }
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.insert(self.name, Item::Table(entry));
        let mut document = DocumentMut::new();
        document.insert("mcp_servers", Item::Table(servers));
        document.to_string().trim_start().to_owned()
    }
}

fn read_json(text: &str) -> Result<CstRootNode, NotChanged> {
    CstRootNode::parse(text, &jsonc()).map_err(|error| NotChanged::Unreadable {
        why: error.kind().to_string(),
        line: line_of(text, error.range().start),
    })
}

fn object_in(whole: &CstObject, key: &str, is_changed: &mut bool) -> Result<CstObject, NotChanged> {
    let Some(property) = whole.get(key) else {
        *is_changed = true;
        return Ok(whole.object_value_or_set(key));
    };
    property
        .object_value()
        .ok_or_else(|| unexpected(&format!("{key} is no object")))
}

/// Whether an object has every key of another.
fn has_all(there: Option<&Value>, wanted: &Value) -> bool {
    let (Some(Value::Object(there)), Value::Object(wanted)) = (there, wanted) else {
        return false;
    };
    wanted.keys().all(|key| there.contains_key(key))
}

fn unexpected(what: &str) -> NotChanged {
    NotChanged::Unexpected(what.to_owned())
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn with_end(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn input_of(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(bool) => CstInputValue::Bool(*bool),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_of).collect()),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(key, value)| (key.clone(), input_of(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}

/// Texts and lists of texts: entries hold nothing else.
fn toml_of(value: &Value) -> Item {
    match value {
        Value::Array(items) => {
            let items = items.iter().filter_map(Value::as_str);
            toml_edit::value(items.collect::<toml_edit::Array>())
        }
        Value::String(text) => toml_edit::value(text),
        other => toml_edit::value(other.to_string()),
    }
}
