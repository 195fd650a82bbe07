//! Every key of the configuration, from the JSON Schema that the program checks files by.

use serde_json::{Map, Value};

use super::{Made, cell};

const PAGE: &str = "docs/reference/configuration.md";
/// No table of ours lies deeper.
const DEPTH_MAX: usize = 5;

pub(super) fn page(schema: &Value) -> Made {
    let book = Book { schema };
    let mut text = String::from(
        "All keys of `steadyhand.toml`, from `steadyhand config schema`. The file is looked for in this order: `--config`, `STEADYHAND_CONFIG`, `steadyhand.toml` in this folder or one above, the user's configuration folder; \
         `steadyhand config path` says which applies, `config show` where each value comes from. Durations are written `\"250ms\"`, `\"30s\"`, `\"5m\"`; sizes `\"64KiB\"`; rates `\"10/s\"`, `\"60/min\"`. \
         Any text may hold `${env:NAME}`, `${env:NAME:-otherwise}`, `${file:PATH}`, `${keyring:SERVICE/NAME}`. A file that somebody else could have written is used only with consent ([Security](../security.md)). [docs/sample](../sample/steadyhand.toml) has one of everything.\n",
    );
    let empty = Map::new();
    let root = schema["properties"].as_object().unwrap_or(&empty);
    let policy = book.properties(&root["defaults"]);
    text += &book.at_the_top(schema);
    for (name, section) in root {
        let section_schema = book.follow(section);
        let said = section["description"]
            .as_str()
            .or(section_schema["description"].as_str());
        let said = said.unwrap_or_default();
        match name.as_str() {
            "tools" => {
                text += &format!(
                    "\n## `[tools.NAME]`\n\n{said}\n\nBesides the keys of its kind, each takes every key of [`[defaults]`](#defaults), for itself alone.\n"
                );
                let kinds = section_schema["additionalProperties"]["oneOf"].as_array();
                for kind in kinds.into_iter().flatten() {
                    let title = kind["title"].as_str().unwrap_or_default();
                    text += &book.section(&capital(title), "###", kind, &policy, 1);
                }
            }
            "mcp" => {
                text += &format!(
                    "\n## `[mcp.NAME]`\n\n{said}\n\nBesides these, each takes every key of [`[defaults]`](#defaults), for all tools of the server; `each.TOOL` for one of them.\n"
                );
                text += &book.rows_below(
                    "mcp.NAME",
                    &section_schema["additionalProperties"],
                    &policy,
                    1,
                );
            }
            _ => {
                let table = book.inside(section_schema);
                let Some((title, table)) =
                    table.map(|(form, table)| (form.replace("NAME", name), table))
                else {
                    continue;
                };
                let title = match title.as_str() {
                    "list" => format!("`[[{name}]]`"),
                    "map" => format!("`[{name}.NAME]`"),
                    _ => format!("`[{name}]`"),
                };
                text += &format!("\n## {title}\n\n");
                if !said.is_empty() {
                    text += &format!("{said}\n\n");
                }
                text += &book.rows_below(name, table, &Map::new(), 1);
            }
        }
    }
    Made::new(PAGE, "Configuration", &text)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

struct Book<'a> {
    schema: &'a Value,
}

impl<'a> Book<'a> {
    fn follow(&self, value: &'a Value) -> &'a Value {
        let target = value["$ref"].as_str();
        // An optional table is the only one of its choices.
        let only = ["anyOf", "allOf"]
            .iter()
            .find_map(|key| match value[*key].as_array() {
                Some(choices) if choices.len() == 1 => choices.first(),
                _ => None,
            });
        match (target, only) {
            (Some(target), _) => {
                let found = self.schema.pointer(target.trim_start_matches('#'));
                self.follow(found.unwrap_or(&Value::Null))
            }
            (None, Some(only)) => self.follow(only),
            (None, None) => value,
        }
    }

    fn properties(&self, value: &'a Value) -> Map<String, Value> {
        let found = self.follow(value)["properties"].as_object();
        found.cloned().unwrap_or_default()
    }

    /// A table, the tables of a list, or those of a map, and which of these it is.
    fn inside(&self, schema: &'a Value) -> Option<(String, &'a Value)> {
        let has_keys = |value: &Value| value["properties"].is_object();
        let candidates = [
            ("table", schema),
            ("list", self.follow(&schema["items"])),
            ("map", self.follow(&schema["additionalProperties"])),
        ];
        let found = candidates.into_iter().find(|(_, value)| has_keys(value));
        found.map(|(form, value)| (form.to_owned(), value))
    }

    fn section(
        &self,
        title: &str,
        depth: &str,
        table: &'a Value,
        but: &Map<String, Value>,
        level: usize,
    ) -> String {
        let text = format!("\n{depth} {title}\n\n");
        let name = table["properties"]["kind"]["const"]
            .as_str()
            .unwrap_or("NAME");
        text + &self.rows_below(name, table, but, level)
    }

    /// The keys of a table, and those of the tables in it.
    fn rows_below(
        &self,
        name: &str,
        table: &'a Value,
        but: &Map<String, Value>,
        level: usize,
    ) -> String {
        let empty = Map::new();
        let table = self.follow(table);
        let all = table["properties"].as_object().unwrap_or(&empty);
        let keys: Vec<(&String, &'a Value)> = match table["properties"].as_object() {
            Some(_) => self.own(table, but),
            None => Vec::new(),
        };
        let required = table["required"].as_array();
        let mut text = String::from("| key | type | |\n|---|---|---|\n");
        let mut deeper = String::new();
        for (key, value) in &keys {
            let needs = required.is_some_and(|all| all.iter().any(|one| one == key.as_str()));
            let needs = if needs { "required. " } else { "" };
            let resolved = self.follow(value);
            let said = value["description"]
                .as_str()
                .or(resolved["description"].as_str());
            text += &format!(
                "| `{key}` | {} | {needs}{} |\n",
                self.kind(value, 0),
                cell(said.unwrap_or_default())
            );
            let inner = self.inside(resolved).filter(|_| level < DEPTH_MAX);
            if let Some((form, inner)) = inner {
                let path = match form.as_str() {
                    "map" => format!("{key}.NAME"),
                    "list" => format!("{key}[]"),
                    _ => (*key).clone(),
                };
                // A policy within a table is that of [defaults] once more.
                let is_policy = all.len() > 1
                    && inner["properties"]["idempotent"].is_object()
                    && inner["properties"]["deadline"].is_object();
                if is_policy {
                    continue;
                }
                let place = format!("{name}.{path}")
                    .trim_start_matches("NAME.")
                    .to_owned();
                deeper += &format!("\n**`{place}`**\n\n");
                deeper += &self.rows_below(&place, inner, &Map::new(), level + 1);
            }
        }
        text + &deeper
    }

    /// The keys that are not the same somewhere else.
    fn own(&self, table: &'a Value, but: &Map<String, Value>) -> Vec<(&'a String, &'a Value)> {
        let keys = table["properties"].as_object();
        let keys = keys.into_iter().flatten();
        keys.filter(|(key, value)| but.get(*key) != Some(*value))
            .collect()
    }

    /// The keys at the top that are no tables.
    fn at_the_top(&self, table: &'a Value) -> String {
        let keys = table["properties"].as_object();
        let plain = keys.into_iter().flatten().filter(|(_, value)| {
            let resolved = self.follow(value);
            resolved["type"] != "object" && self.inside(resolved).is_none()
        });
        let rows = plain.map(|(key, value)| {
            let said = value["description"].as_str().unwrap_or_default();
            format!("| `{key}` | {} | {} |\n", self.kind(value, 0), cell(said))
        });
        let rows: String = rows.collect();
        format!("\n## At the top\n\n| key | type | |\n|---|---|---|\n{rows}")
    }

    /// What a value may be, in a few words.
    fn kind(&self, value: &'a Value, depth: usize) -> String {
        if let Some(only) = value.get("const") {
            return format!("`{only}`");
        }
        if let Some(values) = value["enum"].as_array() {
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            return values.join(", ");
        }
        let choices = value["oneOf"].as_array().or(value["anyOf"].as_array());
        if let Some(choices) = choices.filter(|_| depth < DEPTH_MAX) {
            let mut kinds: Vec<String> = choices
                .iter()
                .map(|one| self.kind(one, depth + 1))
                .collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
        let resolved = self.follow(value);
        if !std::ptr::eq(resolved, value) && depth < DEPTH_MAX {
            return self.kind(resolved, depth + 1);
        }
        match value["type"].as_str() {
            Some("array") => format!("list of {}", self.kind(&value["items"], depth + 1)),
            Some("object") if value["properties"].is_object() => "table".to_owned(),
            Some("object") => match &value["additionalProperties"] {
                Value::Object(_) => format!(
                    "table of {}",
                    self.kind(&value["additionalProperties"], depth + 1)
                ),
                _ => "table".to_owned(),
            },
            Some("string") => match value["examples"][0].as_str() {
                Some(example) => format!("text such as `\"{example}\"`"),
                None => "text".to_owned(),
            },
            Some("integer") => "whole number".to_owned(),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some(other) => other.to_owned(),
            None => "anything".to_owned(),
        }
    }
}
