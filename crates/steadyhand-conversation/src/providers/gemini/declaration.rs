//! Google's part of OpenAPI's schemas; what does not fit in goes as a JSON Schema.

use serde_json::{Map, Value, json};

use crate::providers::schema::rewrite::{each, give_items};
use crate::providers::schema::roots::add_note;
use steadyhand::cut;

/// What `parameters` may say.
const KEPT: [&str; 20] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "anyOf",
    "propertyOrdering",
];

/// What a note says of a keyword that does not fit. Notes stand in notes, and each is quoted once more in the next one.
const NOTE_BYTES_MAX: usize = 1_000;

/// One function of a request's tools.
pub(super) fn declaration(name: &str, description: &str, mut schema: Value) -> Value {
    let mut function = json!({"name": name, "description": description});
    let has_properties = schema["properties"]
        .as_object()
        .is_some_and(|properties| !properties.is_empty());
    let is_map = ["additionalProperties", "patternProperties"]
        .iter()
        .any(|key| schema.get(key).is_some_and(Value::is_object));
    if !has_properties && !is_map {
        // An object without properties is refused; no parameters are not.
        return function;
    }
    if is_map || has_free_object(&schema) {
        function["parametersJsonSchema"] = schema;
        return function;
    }
    give_items(&mut schema, &json!({"type": "string"}));
    each(&mut schema, &mut fit);
    function["parameters"] = schema;
    function
}

/// Whether an object inside may have any properties, which `parameters` cannot say.
fn has_free_object(schema: &Value) -> bool {
    let mut copy = schema.clone();
    let mut found = false;
    each(&mut copy, &mut |fields| {
        let is_object = match fields.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            kind => kind.is_some_and(|kind| kind == "object"),
        };
        let has_properties = fields
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| !properties.is_empty());
        found |= is_object && !has_properties;
        // A value of no known type cannot be said either.
        let says_type = ["type", "anyOf", "oneOf", "allOf", "enum", "const"]
            .iter()
            .any(|key| fields.contains_key(*key));
        found |= !says_type;
    });
    found
}

fn fit(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(all)) = fields.shift_remove("allOf") {
        for part in all {
            for (key, value) in part.as_object().into_iter().flatten() {
                fields.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if let Some(choice) = fields.shift_remove("oneOf") {
        fields.entry("anyOf").or_insert(choice);
    }
    if let Some(value) = fields.shift_remove("const") {
        fields.insert("enum".to_owned(), json!([value]));
    }
    fit_type(fields);
    fit_enum(fields);
    let mut notes = Vec::new();
    let format = fields.get("format").and_then(Value::as_str);
    let known = ["date-time", "enum", "int32", "int64", "float", "double"];
    if let Some(format) = format.filter(|format| !known.contains(format)) {
        notes.push(format!("format: {format}"));
        fields.shift_remove("format");
    }
    let keys: Vec<String> = fields.keys().cloned().collect();
    for key in keys.iter().filter(|key| !KEPT.contains(&key.as_str())) {
        let Some(value) = fields.shift_remove(key) else {
            continue;
        };
        let is_silent = key.starts_with('$') || key == "additionalProperties";
        if !is_silent {
            let key = cut::text(key, NOTE_BYTES_MAX);
            let said = match cut::json_bytes(&value, NOTE_BYTES_MAX) > NOTE_BYTES_MAX {
                true => format!("{}…", cut::json_beginning(&value, NOTE_BYTES_MAX)),
                false => value.to_string(),
            };
            notes.push(format!("{key}: {said}"));
        }
    }
    if !notes.is_empty() {
        add_note(fields, &format!("({})", notes.join("; ")));
    }
}

/// What belongs to arrays and to objects goes with them where a value may be one of several kinds.
const KINDS_MAX: usize = 7;
const OF_KINDS: [&str; 3] = ["items", "properties", "required"];

fn of_kind(kind: &Value, fields: &Map<String, Value>) -> Value {
    let own: &[&str] = match kind.as_str() {
        Some("array") => &OF_KINDS[..1],
        Some("object") => &OF_KINDS[1..],
        _ => &[],
    };
    let mut schema = json!({ "type": kind });
    for key in own {
        if let Some(value) = fields.get(*key) {
            schema[*key] = value.clone();
        }
    }
    schema
}

/// One type, and whether it may be null.
fn fit_type(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = fields.get("type").cloned() {
        // Each takes a copy of what belongs to it.
        let mut real: Vec<Value> = Vec::new();
        for kind in kinds.iter().filter(|kind| *kind != "null") {
            if real.len() < KINDS_MAX && !real.contains(kind) {
                real.push(kind.clone());
            }
        }
        if kinds.contains(&json!("null")) {
            fields.insert("nullable".to_owned(), json!(true));
        }
        match real.as_slice() {
            [only] => {
                fields.insert("type".to_owned(), only.clone());
            }
            several => {
                fields.shift_remove("type");
                let choice = several.iter().map(|kind| of_kind(kind, fields)).collect();
                fields.entry("anyOf").or_insert(Value::Array(choice));
                for key in OF_KINDS {
                    fields.shift_remove(key);
                }
            }
        }
    }
    if let Some(Value::Array(branches)) = fields.get_mut("anyOf") {
        let before = branches.len();
        branches.retain(|branch| branch["type"] != "null");
        let is_nullable = branches.len() < before;
        if let [only] = branches.as_slice() {
            let only = only.clone();
            fields.shift_remove("anyOf");
            for (key, value) in only.as_object().into_iter().flatten() {
                fields.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        if is_nullable {
            fields.insert("nullable".to_owned(), json!(true));
        }
    }
}

/// Choices are of strings only.
fn fit_enum(fields: &mut Map<String, Value>) {
    let Some(Value::Array(values)) = fields.get("enum") else {
        return;
    };
    if values.iter().all(Value::is_string) {
        fields.entry("type").or_insert_with(|| json!("string"));
        return;
    }
    let kind = match values.first() {
        Some(Value::Number(number)) if number.is_f64() => "number",
        Some(Value::Number(_)) => "integer",
        Some(Value::Bool(_)) => "boolean",
        _ => "string",
    };
    let note = format!("(one of {})", Value::Array(values.clone()));
    fields.shift_remove("enum");
    fields.entry("type").or_insert_with(|| json!(kind));
    add_note(fields, &note);
}
