//! References that lead into a schema with an address of its own, written with that address.
//!
//! `$recursiveRef` and `$dynamicRef` look at the way on which they were reached. The validator forgets a step of that
//! way when a pointer (`#/$defs/part`) crosses into a part with an `$id`; by the part's own address it does not.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Their values are data, whatever it looks like.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The schema as the validator needs it: nearly always the same.
pub(super) fn addressed(schema: &Value) -> Cow<'_, Value> {
    if !mentions(schema, &["$recursiveRef", "$dynamicRef"]) {
        return Cow::Borrowed(schema);
    }
    let mut own = schema.clone();
    rewrite(&mut own, schema, schema);
    Cow::Owned(own)
}

/// Whether a member of one of these names stands anywhere in it.
fn mentions(schema: &Value, names: &[&str]) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, part)| names.contains(&name.as_str()) || mentions(part, names)),
        Value::Array(items) => items.iter().any(|item| mentions(item, names)),
        _ => false,
    }
}

/// Walks a schema and its original side by side; `resource` is what `#` means there.
fn rewrite(schema: &mut Value, original: &Value, resource: &Value) {
    match (schema, original) {
        (Value::Object(members), Value::Object(originals)) => {
            let resource = match id_of(originals) {
                Some(_) => original,
                None => resource,
            };
            for (name, part) in members.iter_mut() {
                if name == "$ref"
                    && let Some(pointer) = part.as_str().and_then(|text| text.strip_prefix('#'))
                    && let Some(address) = address_of(resource, pointer)
                {
                    *part = Value::String(address);
                } else if !DATA.contains(&name.as_str())
                    && let Some(original) = originals.get(name)
                {
                    rewrite(part, original, resource);
                }
            }
        }
        (Value::Array(items), Value::Array(originals)) => {
            for (item, original) in items.iter_mut().zip(originals) {
                rewrite(item, original, resource);
            }
        }
        _ => {}
    }
}

/// The address of the first part with one on the way of a pointer, and the rest of the way.
fn address_of(resource: &Value, pointer: &str) -> Option<String> {
    let mut part = resource;
    let mut rest = pointer;
    while let Some(path) = rest.strip_prefix('/') {
        let end = path.find('/').unwrap_or(path.len());
        let name = path[..end].replace("~1", "/").replace("~0", "~");
        part = match part {
            Value::Object(members) => members.get(&name)?,
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
        rest = &path[end..];
        if let Some(id) = part.as_object().and_then(id_of) {
            return Some(match rest.is_empty() {
                true => id.to_owned(),
                false => format!("{id}#{rest}"),
            });
        }
    }
    None
}

fn id_of(members: &Map<String, Value>) -> Option<&str> {
    let id = members.get("$id")?.as_str()?;
    (!id.is_empty() && !id.contains('#')).then_some(id)
}
