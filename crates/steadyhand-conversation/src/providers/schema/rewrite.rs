//! Small rewrites of schemas that several providers need.

use serde_json::{Map, Value, json};

use steadyhand::cut;

/// What a reason shows of a name.
const NAME_SHOWN_BYTES_MAX: usize = 200;

/// Where a schema has schemas by name.
const BY_NAME: [&str; 3] = ["properties", "$defs", "definitions"];
/// Where it has one.
const ONE: [&str; 5] = [
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
];
/// Where it has a list.
const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Calls `visit` for each schema in a schema, the innermost first.
pub(crate) fn each(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for key in BY_NAME {
        if let Some(Value::Object(inner)) = fields.get_mut(key) {
            inner.values_mut().for_each(|schema| each(schema, visit));
        }
    }
    for key in ONE {
        if let Some(inner) = fields.get_mut(key) {
            each(inner, visit);
        }
    }
    for key in LIST {
        if let Some(Value::Array(inner)) = fields.get_mut(key) {
            inner.iter_mut().for_each(|schema| each(schema, visit));
        }
    }
    visit(fields);
}

/// What older drafts wrote otherwise, as draft 2020-12 writes it.
pub(crate) fn modern(mut schema: Value) -> Value {
    each(&mut schema, &mut |fields| {
        for (key, limit) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            match fields.get(key) {
                Some(Value::Bool(true)) => {
                    if let Some(value) = fields.shift_remove(limit) {
                        fields.insert(key.to_owned(), value);
                    } else {
                        fields.shift_remove(key);
                    }
                }
                Some(Value::Bool(false)) => {
                    fields.shift_remove(key);
                }
                _ => {}
            }
        }
        if let Some(Value::Array(_)) = fields.get("items")
            && let Some(tuple) = fields.shift_remove("items")
        {
            fields.insert("prefixItems".to_owned(), tuple);
            let rest = fields.shift_remove("additionalItems");
            fields.insert("items".to_owned(), rest.unwrap_or_else(|| json!({})));
        }
        // Anthropic takes this for no schema at all; it says nothing.
        let says_nothing = |patterns: &Value| {
            patterns.as_object().is_some_and(|patterns| {
                patterns.iter().all(|(key, schema)| {
                    matches!(key.as_str(), "^(.*)$" | ".*" | "^.*$") && schema == &json!({})
                })
            })
        };
        if fields.get("patternProperties").is_some_and(says_nothing) {
            fields.shift_remove("patternProperties");
        }
        if let Some(Value::Array(required)) = fields.get("required")
            && required.is_empty()
        {
            fields.shift_remove("required");
        }
    });
    if let Some(root) = schema.as_object_mut() {
        let is_old = |draft: &Value| {
            draft
                .as_str()
                .is_some_and(|draft| !draft.contains("2020-12"))
        };
        if root.get("$schema").is_some_and(is_old) {
            root.shift_remove("$schema");
        }
    }
    schema
}

/// Arrays that do not say of what are arrays of this.
pub(crate) fn give_items(schema: &mut Value, of: &Value) {
    each(schema, &mut |fields| {
        let is_array = match fields.get("type") {
            Some(Value::String(kind)) => kind == "array",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            _ => false,
        };
        if is_array && !fields.contains_key("items") {
            fields.insert("items".to_owned(), of.clone());
        }
    });
}

/// Anthropic refuses some names of properties, and nobody can rename what a tool wants.
pub(crate) fn check_keys(schema: &Value) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let names = schema["properties"].as_object().into_iter().flatten();
    for (name, _) in names {
        if name.is_empty() || name.len() > 64 || !name.bytes().all(legal) {
            let name = cut::text(name, NAME_SHOWN_BYTES_MAX);
            return Err(format!(
                "its argument {name:?} has a name the provider refuses"
            ));
        }
    }
    Ok(())
}
