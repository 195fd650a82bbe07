//! What Ollama reads of a schema; the rest is put into descriptions, or the model would never see it.

use serde_json::{Map, Value, json};

use super::roots::add_note;

const ROOT: [&str; 5] = ["type", "$defs", "items", "required", "properties"];
const PROPERTY: [&str; 7] = [
    "anyOf",
    "type",
    "items",
    "description",
    "enum",
    "properties",
    "required",
];
/// They say nothing that a model could use.
const SILENT: [&str; 5] = ["title", "$schema", "$id", "$comment", "definitions"];

/// A function with nothing in its schema that Ollama drops; what it drops at the root is said in the description.
pub(super) fn function(name: &str, description: &str, schema: Value) -> Value {
    let (parameters, dropped) = keep_what_it_reads(schema);
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(name));
    function.insert("description".to_owned(), json!(description));
    for note in dropped.iter().filter(|note| !description.contains(*note)) {
        add_note(&mut function, note);
    }
    function.insert("parameters".to_owned(), parameters);
    json!({"type": "function", "function": function})
}

fn keep_what_it_reads(schema: Value) -> (Value, Vec<String>) {
    let Value::Object(mut root) = schema else {
        return (schema, Vec::new());
    };
    let mut dropped = Vec::new();
    let keys: Vec<String> = root.keys().cloned().collect();
    for key in keys.iter().filter(|key| !ROOT.contains(&key.as_str())) {
        let value = root.shift_remove(key).unwrap_or_default();
        match value {
            Value::String(text) if key == "description" => dropped.push(text),
            value => dropped.extend(note(key, value).map(|note| format!("({note})"))),
        }
    }
    fit_properties(&mut root);
    (Value::Object(root), dropped)
}

/// What a keyword says, if a model could use it.
fn note(key: &str, value: Value) -> Option<String> {
    let is_silent = SILENT.contains(&key) || (key == "additionalProperties" && !value.is_object());
    let value = match value {
        _ if is_silent => return None,
        Value::String(text) => text,
        other => other.to_string(),
    };
    Some(format!("{key}: {value}"))
}

fn fit_properties(fields: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for schema in properties.values_mut() {
            if let Value::Object(schema) = schema {
                fit(schema);
            }
        }
    }
}

fn fit(fields: &mut Map<String, Value>) {
    if let Some(choice) = fields.shift_remove("oneOf") {
        fields.entry("anyOf").or_insert(choice);
    }
    if let Some(Value::Array(all)) = fields.shift_remove("allOf") {
        for part in all {
            for (key, value) in part.as_object().into_iter().flatten() {
                fields.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if let Some(value) = fields.shift_remove("const") {
        fields.insert("enum".to_owned(), json!([value]));
    }
    fit_properties(fields);
    if let Some(Value::Array(branches)) = fields.get_mut("anyOf") {
        for branch in branches {
            if let Value::Object(branch) = branch {
                fit(branch);
            }
        }
    }
    let keys: Vec<String> = fields.keys().cloned().collect();
    let mut notes = Vec::new();
    for key in keys.iter().filter(|key| !PROPERTY.contains(&key.as_str())) {
        let Some(value) = fields.shift_remove(key) else {
            continue;
        };
        notes.extend(note(key, value));
    }
    if !notes.is_empty() {
        add_note(fields, &format!("({})", notes.join("; ")));
    }
}
