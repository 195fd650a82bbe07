//! Leaves wrong values out of a document, so that what else is wrong can be seen at the same time.

use serde_json::{Map, Value, json};

use super::schema::Compiled;

/// A text that passes for an address, a path and a name of a program.
const ANY_TEXT: &str = "http://localhost/";
/// How deep a stand-in is built.
const DEPTH_MAX: usize = 8;

/// Takes the value at a pointer out of the tree: an entry of a table is removed, or replaced where the table must have it; an
/// item of a list is replaced, so that the others keep their places. Where nothing is, a stand-in is put. False if the tree
/// stays as it was.
pub(super) fn leave_out(tree: &mut Value, compiled: &Compiled, within: &str) -> bool {
    let Some((parent, key)) = split(within) else {
        return false;
    };
    let stand_in = || stand_in(compiled, compiled.schema_at(within), 0);
    let is_required = || {
        let required = compiled.schema_at(parent).and_then(|it| it.get("required"));
        let names = required.and_then(Value::as_array).into_iter().flatten();
        names.into_iter().any(|name| *name == key)
    };
    match tree.pointer_mut(parent) {
        Some(Value::Object(fields)) => match fields.contains_key(&key) && !is_required() {
            true => fields.remove(&key).is_some(),
            false => replace(fields.entry(key).or_insert(Value::Null), stand_in()),
        },
        Some(Value::Array(items)) => match key.parse().ok().and_then(|at: usize| items.get_mut(at))
        {
            Some(item) => replace(item, stand_in()),
            None => false,
        },
        // The place is within something that is neither: that is what is wrong.
        Some(_) => leave_out(tree, compiled, parent),
        None => false,
    }
}

/// Puts a value that fits in the place of one that is wrong or missing: what else is looked at sees that something is
/// there. False if the tree stays as it was.
pub(super) fn put_stand_in(tree: &mut Value, compiled: &Compiled, within: &str) -> bool {
    let stand_in = stand_in(compiled, compiled.schema_at(within), 0);
    let is_new = tree.pointer(within) != Some(&stand_in);
    let Some((parent, key)) = split(within).filter(|_| is_new && !stand_in.is_null()) else {
        return leave_out(tree, compiled, within);
    };
    match tree.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.insert(key, stand_in.clone()) != Some(stand_in),
        Some(Value::Array(_)) => leave_out(tree, compiled, within),
        _ => false,
    }
}

/// Removes the value at a pointer, an item of a list with the whole list. False if the tree stays as it was.
pub(super) fn remove(tree: &mut Value, within: &str) -> bool {
    let Some((parent, key)) = split(within) else {
        return false;
    };
    match tree.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&key).is_some(),
        Some(_) => remove(tree, parent),
        None => false,
    }
}

fn split(pointer: &str) -> Option<(&str, String)> {
    let (parent, key) = pointer.rsplit_once('/')?;
    Some((parent, key.replace("~1", "/").replace("~0", "~")))
}

fn replace(place: &mut Value, with: Value) -> bool {
    let is_other = *place != with;
    *place = with;
    is_other
}

/// A value that fits a schema, as far as our own settings need it.
fn stand_in(compiled: &Compiled, schema: Option<&Value>, depth: usize) -> Value {
    let Some(schema) = schema.filter(|_| depth < DEPTH_MAX) else {
        return Value::Null;
    };
    let schema = compiled.follow(schema);
    let first = |keyword: &str| schema.get(keyword)?.as_array()?.first();
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(choice) = first("oneOf").or_else(|| first("anyOf")) {
        return stand_in(compiled, Some(choice), depth + 1);
    }
    if let Some(example) = first("examples") {
        return example.clone();
    }
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.as_array()?.first()?.as_str()));
    match kind {
        Some("string") => json!(ANY_TEXT),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => {
            let mut fields = Map::new();
            let required = schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                let property = schema.get("properties").and_then(|all| all.get(name));
                fields.insert(name.to_owned(), stand_in(compiled, property, depth + 1));
            }
            Value::Object(fields)
        }
        _ => Value::Null,
    }
}
