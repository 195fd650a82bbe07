//! Finds the parameters a schema forbids and no part of it declares: they are dropped (SPEC D6).

use std::collections::HashSet;

use serde_json::{Map, Value};

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
        let mut seen = HashSet::new();
        let mut open = vec![document];
        while let Some(schema) = open.pop() {
            // References can lead to the same part many times over, and around in circles.
            if seen.insert(std::ptr::from_ref(schema) as usize) {
                declared.read(schema);
                open.extend(parts_for_the_same_value(schema, document));
            }
        }
        declared
    }

    /// Names among the arguments that nothing in the schema knows, and that it forbids.
    pub(super) fn surplus(&self, args: &Map<String, Value>) -> HashSet<String> {
        if !self.forbids_others || self.has_patterns {
            return HashSet::new();
        }
        let unknown = args.keys().filter(|name| !self.names.contains(*name));
        unknown.cloned().collect()
    }

    fn read(&mut self, schema: &Value) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.names.extend(properties.keys().cloned());
        }
        self.has_patterns |= schema.get("patternProperties").is_some();
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            self.forbids_others |= schema.get(keyword) == Some(&Value::Bool(false));
        }
    }
}

/// The parts of a schema that apply to the same value as the schema itself.
fn parts_for_the_same_value<'a>(
    schema: &'a Value,
    document: &'a Value,
) -> impl Iterator<Item = &'a Value> {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter();
    let listed = lists
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    let conditions = ["if", "then", "else"].into_iter();
    let conditional = conditions.filter_map(|keyword| schema.get(keyword));
    let target = super::example::follow(schema, document);
    listed.chain(conditional).chain(std::iter::once(target))
}
