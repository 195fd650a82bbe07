//! The arguments of a tool while its operation is read.

use serde_json::{Map, Value, json};

use super::name;
use super::operation::Location;

/// The arguments a tool has so far.
#[derive(Default)]
pub(super) struct Arguments {
    properties: Map<String, Value>,
    required: Vec<String>,
    together: Map<String, Value>,
}

impl Arguments {
    pub(super) fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    pub(super) fn add(&mut self, name: &str, schema: Value, required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
    }

    /// Where one of `names` is given, all of `needed` must be.
    pub(super) fn need_together(&mut self, names: &[String], needed: &[String]) {
        for name in names {
            let others: Vec<&String> = needed.iter().filter(|other| *other != name).collect();
            if !others.is_empty() {
                self.together.insert(name.clone(), json!(others));
            }
        }
    }

    /// The name itself, or with its place before it, or with a number behind it.
    pub(super) fn free_name(&self, wire: &str, location: Location) -> String {
        let plain = name::argument_name(wire);
        let placed = match location {
            Location::Path => format!("path_{plain}"),
            Location::Query => format!("query_{plain}"),
            Location::Header => format!("header_{plain}"),
            Location::Cookie => format!("cookie_{plain}"),
        };
        self.first_free([plain, name::argument_name(&placed)])
    }

    pub(super) fn first_free<const N: usize>(&self, names: [String; N]) -> String {
        let last = names[N - 1].clone();
        let numbered = (2..).map(|count| format!("{last}_{count}"));
        let mut all = names.into_iter().chain(numbered);
        all.find(|name| !self.has(name)).unwrap_or(last)
    }

    pub(super) fn into_schema(self) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        if !self.together.is_empty() {
            schema.insert("dependentRequired".to_owned(), Value::Object(self.together));
        }
        // Nothing else is sent, so nothing else is promised.
        schema.insert("additionalProperties".to_owned(), json!(false));
        schema
    }
}
