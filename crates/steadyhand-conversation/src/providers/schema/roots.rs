//! A plain object at the root of a schema, for providers that take no choice there.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// How many references at the root lead from one to the next.
const REFERENCES_MAX: usize = 16;

/// The schema without `oneOf`, `anyOf`, `allOf` at its root: their properties put together.
pub(crate) fn plain(schema: Value) -> Result<Value, String> {
    let Value::Object(mut root) = schema else {
        return Ok(schema);
    };
    let document = Value::Object(root.clone());
    unfold(&mut root, &document);
    for key in ["allOf", "anyOf", "oneOf"] {
        let Some(branches) = root.shift_remove(key) else {
            continue;
        };
        let Value::Array(branches) = branches else {
            continue;
        };
        let branches = distinct(branches.iter().map(|branch| follow(branch, &document)));
        let is_object = |branch: &Value| {
            branch.get("type").is_none_or(|kind| kind == "object") && branch.is_object()
        };
        if !branches.iter().all(|branch| is_object(branch)) {
            return Err(format!(
                "its arguments are a choice ({key}) in which not all are objects"
            ));
        }
        merge(&mut root, &branches, key);
    }
    if root.get("type").is_some_and(|kind| kind != "object") {
        return Err("its arguments are not an object".to_owned());
    }
    Ok(Value::Object(root))
}

/// A reference at the root says the same as what it refers to, beside what the root says itself.
fn unfold(root: &mut Map<String, Value>, document: &Value) {
    for _ in 0..REFERENCES_MAX {
        let Some(target) = root.shift_remove("$ref") else {
            return;
        };
        let reference = json!({ "$ref": target });
        let found = follow(&reference, document);
        if found.get("properties").is_some() || found.get("required").is_some() {
            merge(root, &[found], "allOf");
        }
        for (key, value) in found.as_object().into_iter().flatten() {
            root.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    root.shift_remove("$ref");
}

fn follow<'a>(branch: &'a Value, document: &'a Value) -> &'a Value {
    let target = branch.get("$ref").and_then(Value::as_str);
    let found = target
        .and_then(|target| target.strip_prefix('#'))
        .and_then(|pointer| document.pointer(pointer));
    found.unwrap_or(branch)
}

/// Each part once: a few bytes can refer to a large part a thousand times.
fn distinct<'a>(parts: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    let mut seen = HashSet::new();
    parts
        .filter(|part| seen.insert(std::ptr::from_ref(*part) as usize))
        .collect()
}

fn required_by(branch: &Value) -> impl Iterator<Item = &str> {
    let names = branch["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str)
}

fn merge(root: &mut Map<String, Value>, branches: &[&Value], key: &str) {
    let mut properties = take_object(root, "properties");
    let mut required = take_list(root, "required");
    for branch in branches {
        for (name, schema) in branch["properties"].as_object().into_iter().flatten() {
            properties
                .entry(name.clone())
                .or_insert_with(|| schema.clone());
        }
    }
    let mut wanted_by: HashMap<&str, usize> = HashMap::new();
    for branch in branches {
        let names: HashSet<&str> = required_by(branch).collect();
        for name in names {
            *wanted_by.entry(name).or_default() += 1;
        }
    }
    let known = required.iter().filter_map(Value::as_str);
    let mut known: HashSet<String> = known.map(str::to_owned).collect();
    for name in branches.iter().flat_map(|branch| required_by(branch)) {
        // All of `allOf` hold; of a choice only what every branch wants.
        let holds = key == "allOf" || wanted_by.get(name) == Some(&branches.len());
        if holds && known.insert(name.to_owned()) {
            required.push(json!(name));
        }
    }
    let wanted: Vec<String> = branches
        .iter()
        .map(|branch| required_by(branch).collect::<Vec<_>>().join(", "))
        .filter(|names| !names.is_empty())
        .collect();
    if key != "allOf" && !wanted.is_empty() {
        let note = format!("Give one of these: {}.", wanted.join("; or "));
        add_note(root, &note);
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
}

fn take_object(root: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match root.get_mut(key).map(Value::take) {
        Some(Value::Object(found)) => found,
        _ => Map::new(),
    }
}

fn take_list(root: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match root.get_mut(key).map(Value::take) {
        Some(Value::Array(found)) => found,
        _ => Vec::new(),
    }
}

/// Puts a sentence behind a description.
pub(crate) fn add_note(schema: &mut Map<String, Value>, note: &str) {
    let description = match schema.get("description") {
        Some(Value::String(text)) if text.contains(note) => return,
        Some(Value::String(text)) if !text.is_empty() => format!("{text} {note}"),
        _ => note.to_owned(),
    };
    schema.insert("description".to_owned(), json!(description));
}
