//! Circles among `$defs`: those a validator can walk stay, those it would never get out of are opened.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// Keywords whose schemas look at the same value as the schema they stand in.
const SAME_VALUE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords that hold schemas of the parts of a value: one, or a list of them.
const PARTS: [&str; 7] = [
    "items",
    "prefixItems",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "propertyNames",
];
/// Keywords that hold schemas by name.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
/// Not more schemas than this look at the same value one inside the other.
const CHAIN_MAX: usize = 64;
const PREFIX: &str = "#/$defs/";

/// Opens circles that stay at the same value. The reference that closes one is replaced by what its target
/// says by itself. First where children extend the parent that lists them (`Pet: oneOf [Dog]`,
/// `Dog: allOf [Pet]`): a dog keeps the fields of a pet, a pet is still a dog or a cat.
pub(super) fn open(defs: &mut Map<String, Value>) {
    let mut edges = Edges::new();
    for (name, schema) in defs.iter() {
        let mut found = Vec::new();
        same_value_links(schema, Way::Extends, &mut found);
        found.retain(|(_, to)| defs.contains_key(to));
        if !found.is_empty() {
            edges.insert(name.clone(), found);
        }
    }
    let names: Vec<String> = defs
        .keys()
        .filter(|name| edges.contains_key(*name))
        .cloned()
        .collect();
    let mut closing: Vec<(String, String)> = Vec::new();
    for parent in &names {
        closing.extend(extended_parent(parent, &edges));
    }
    for (from, to) in &closing {
        if let Some(targets) = edges.get_mut(from) {
            targets.retain(|(_, target)| target != to);
        }
    }
    closing.extend(closing_edges(&names, &edges));
    let own: HashMap<String, Value> = closing
        .iter()
        .map(|(_, to)| (to.clone(), own_part(&defs[to])))
        .collect();
    for (from, to) in &closing {
        if let Some(schema) = defs.get_mut(from) {
            replace_same_value(schema, to, &own[to]);
        }
    }
}

/// Which schemas look at the same value as a schema, and how.
type Edges = HashMap<String, Vec<(Way, String)>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `$ref` and `allOf`: all of it holds.
    Extends,
    /// `anyOf`, `oneOf` and the rest: it may hold.
    Chooses,
}

/// References to `parent` from the schemas it chooses from, and from what those extend.
fn extended_parent(parent: &str, edges: &Edges) -> Vec<(String, String)> {
    let targets = |name: &str, wanted: Way| {
        let all = edges.get(name).into_iter().flatten();
        all.filter(move |(way, _)| *way == wanted)
            .map(|(_, to)| to.as_str())
    };
    let mut closing = Vec::new();
    let mut waiting: Vec<&str> = targets(parent, Way::Chooses).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    while let Some(child) = waiting.pop() {
        if child == parent || !seen.insert(child) {
            continue;
        }
        for to in targets(child, Way::Extends) {
            match to == parent {
                true => closing.push((child.to_owned(), to.to_owned())),
                false => waiting.push(to),
            }
        }
    }
    closing
}

/// Calls `visit` with every schema that stands directly in this one: never with data that looks like one.
pub(super) fn for_each_part(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for (key, member) in members.iter_mut() {
        let key = key.as_str();
        match member {
            Value::Object(parts) if NAMED.contains(&key) => {
                parts.values_mut().for_each(&mut *visit);
            }
            Value::Array(parts) if SAME_VALUE.contains(&key) || PARTS.contains(&key) => {
                parts.iter_mut().for_each(&mut *visit);
            }
            part if SAME_VALUE.contains(&key) || PARTS.contains(&key) => visit(part),
            _ => {}
        }
    }
}

/// Edges that lead back to a schema that is being walked, or make a chain too long. Without recursion:
/// the document decides how long the way is.
fn closing_edges(names: &[String], edges: &Edges) -> Vec<(String, String)> {
    struct Step<'a> {
        name: &'a str,
        next: usize,
        height: usize,
    }
    let mut closing = Vec::new();
    let mut heights: HashMap<&str, usize> = HashMap::new();
    for start in names {
        if heights.contains_key(start.as_str()) {
            continue;
        }
        let mut on_path: HashSet<&str> = HashSet::from([start.as_str()]);
        let mut path = vec![Step {
            name: start,
            next: 0,
            height: 0,
        }];
        while let Some(step) = path.last_mut() {
            if let Some((_, to)) = edges
                .get(step.name)
                .and_then(|targets| targets.get(step.next))
            {
                step.next += 1;
                if on_path.contains(to.as_str()) {
                    closing.push((step.name.to_owned(), to.clone()));
                } else if let Some(height) = heights.get(to.as_str()) {
                    match height + 1 < CHAIN_MAX {
                        true => step.height = step.height.max(height + 1),
                        false => closing.push((step.name.to_owned(), to.clone())),
                    }
                } else {
                    on_path.insert(to);
                    path.push(Step {
                        name: to,
                        next: 0,
                        height: 0,
                    });
                }
                continue;
            }
            let Step { name, height, .. } = *step;
            heights.insert(name, height);
            on_path.remove(name);
            path.pop();
            // Walked again from the step before, now that its height is known.
            if let Some(before) = path.last_mut() {
                before.next -= 1;
            }
        }
    }
    closing
}

fn target(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(PREFIX)
}

fn same_value_links(schema: &Value, way: Way, found: &mut Vec<(Way, String)>) {
    found.extend(target(schema).map(|name| (way, name.to_owned())));
    for key in SAME_VALUE {
        let way = if key == "allOf" { way } else { Way::Chooses };
        match schema.get(key) {
            Some(Value::Array(parts)) => {
                parts
                    .iter()
                    .for_each(|part| same_value_links(part, way, found));
            }
            Some(part) => same_value_links(part, way, found),
            None => {}
        }
    }
    if let Some(Value::Object(parts)) = schema.get("dependentSchemas") {
        parts
            .values()
            .for_each(|part| same_value_links(part, Way::Chooses, found));
    }
}

fn replace_same_value(schema: &mut Value, to: &str, own: &Value) {
    if target(schema) == Some(to) {
        *schema = own.clone();
        return;
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for key in SAME_VALUE {
        match members.get_mut(key) {
            Some(Value::Array(parts)) => {
                parts
                    .iter_mut()
                    .for_each(|it| replace_same_value(it, to, own));
            }
            Some(part) => replace_same_value(part, to, own),
            None => {}
        }
    }
    if let Some(Value::Object(parts)) = members.get_mut("dependentSchemas") {
        parts
            .values_mut()
            .for_each(|it| replace_same_value(it, to, own));
    }
}

/// A schema without what looks at the same value through another one.
fn own_part(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else {
        return schema.clone();
    };
    let foreign =
        |key: &str| SAME_VALUE.contains(&key) || key == "$ref" || key == "dependentSchemas";
    let own = members.iter().filter(|(key, _)| !foreign(key));
    Value::Object(
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// The definitions that a schema names, itself or in its parts.
pub(super) fn links(schema: &Value, found: &mut Vec<String>) {
    found.extend(target(schema).map(str::to_owned));
    let Some(members) = schema.as_object() else {
        return;
    };
    for (key, member) in members {
        let key = key.as_str();
        match member {
            Value::Object(parts) if NAMED.contains(&key) => {
                parts.values().for_each(|part| links(part, found));
            }
            Value::Array(parts) if SAME_VALUE.contains(&key) || PARTS.contains(&key) => {
                parts.iter().for_each(|part| links(part, found));
            }
            part if SAME_VALUE.contains(&key) || PARTS.contains(&key) => links(part, found),
            _ => {}
        }
    }
}

/// Anything is accepted where a definition is meant that is not kept.
pub(super) fn forget(schema: &mut Value, kept: &HashSet<&str>) {
    if target(schema).is_some_and(|name| !kept.contains(name)) {
        let description = schema.get("description").cloned();
        *schema = json!({});
        if let Some(description) = description {
            schema["description"] = description;
        }
        return;
    }
    for_each_part(schema, &mut |part| forget(part, kept));
}
