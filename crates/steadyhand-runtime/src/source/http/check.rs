//! Do the places in an endpoint's settings and the arguments of its schema fit together?

use serde_json::{Map, Value, json};
use steadyhand::near_names::{COMPARED_NAMES_MAX, compared};

use super::plan::Plan;
use super::{Fault, HttpSettings};

/// All faults that can be seen without reaching for anything outside.
pub(super) fn faults(settings: &HttpSettings) -> Vec<Fault> {
    let (plan, mut faults) = Plan::read(settings);
    if let (Some(plan), Some(schema)) = (&plan, &settings.input) {
        faults.extend(undeclared_places(plan, schema));
    }
    faults
}

/// Places that no argument can fill.
pub(super) fn undeclared_places(plan: &Plan, schema: &Value) -> Vec<Fault> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    // Other keywords may declare arguments too; then we cannot know.
    let can_know = !["$ref", "allOf", "anyOf", "oneOf", "patternProperties"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some());
    if !can_know {
        return Vec::new();
    }
    let names = || {
        properties
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
    };
    plan.places
        .iter()
        .filter(|place| !known(&place.name))
        .map(|place| Fault {
            at: place.at.clone(),
            message: format!(
                "{{{}}} is no argument: input has no property of that name",
                place.name
            ),
            help: Some(match nearest(&place.name, names()) {
                Some(near) => format!("Did you mean {{{near}}}?"),
                None => format!(
                    "Add it to input.properties, or write {{{{{}}}}} for the text itself",
                    place.name
                ),
            }),
        })
        .collect()
}

/// A schema for settings that have none: every place is a text, those in the path are required.
pub(super) fn schema_from_places(plan: &Plan) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for place in &plan.places {
        properties.insert(place.name.clone(), json!({ "type": "string" }));
        if place.in_path && !required.contains(&place.name) {
            required.push(place.name.clone());
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The known name that someone who wrote `name` may have meant.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = compared(name);
    known
        .take(COMPARED_NAMES_MAX)
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&lower, &compared(candidate)),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().min(name.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
