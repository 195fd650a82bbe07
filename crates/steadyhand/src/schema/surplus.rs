//! Finds the parameters a schema forbids and no part of it declares: they are dropped (SPEC D6).

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Alternatives and references are followed this deep.
const DEPTH_MAX: usize = 16;

/// The top-level names a schema declares, where it forbids others.
#[derive(Debug, Default)]
pub(super) struct Declared {
    names: HashSet<String>,
    forbids_others: bool,
    /// Names may also match a pattern: what is surplus then only the validator can tell.
    has_patterns: bool,
}

impl Declared {
    /// What the schema says about names, in all its alternatives together.
    pub(super) fn by(document: &Value) -> Declared {
        let mut declared = Declared::default();
        declared.read(document, document, 0);
        declared
    }

    /// Names among the arguments that nothing in the schema knows, and that it forbids.
    pub(super) fn surplus(&self, args: &Map<String, Value>) -> Vec<String> {
        if !self.forbids_others || self.has_patterns {
            return Vec::new();
        }
        let unknown = args.keys().filter(|name| !self.names.contains(*name));
        unknown.cloned().collect()
    }

    fn read(&mut self, schema: &Value, document: &Value, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.names.extend(properties.keys().cloned());
        }
        self.has_patterns |= schema.get("patternProperties").is_some();
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            self.forbids_others |= schema.get(keyword) == Some(&Value::Bool(false));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(keyword).and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.read(part, document, depth + 1);
            }
        }
        for keyword in ["if", "then", "else"] {
            if let Some(part) = schema.get(keyword) {
                self.read(part, document, depth + 1);
            }
        }
        let target = super::example::follow(schema, document);
        if !std::ptr::eq(target, schema) {
            self.read(target, document, depth + 1);
        }
    }
}
