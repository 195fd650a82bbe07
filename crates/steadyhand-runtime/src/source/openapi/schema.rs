//! From a document's schemas to JSON Schema 2020-12 that stands by itself: references become `$defs`.
//!
//! Every `$ref` becomes `#/$defs/…` (small ones of one value are written in their place), so circles
//! through properties and items stay circles. What a validator would stumble over is left out: a
//! keyword whose value is not of its type, a pattern that cannot be compiled, a circle that never
//! gets to a part of the value ([`super::circle`]).

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::circle;
use super::definitions::Definitions;
use super::document::{At, Dialect, Document, Place};
use super::mend::{count, described, is_small, mend_bounds, mend_texts, nullable, types};

const DEFS_MAX: usize = 50_000;
const NOTES_MAX: usize = 200;

/// Patterns that have been tried: many schemas of a document share a few.
#[derive(Default)]
struct Patterns(RefCell<HashMap<String, bool>>);

impl Patterns {
    fn can_be_compiled(&self, pattern: &str) -> bool {
        if let Some(known) = self.0.borrow().get(pattern) {
            return *known;
        }
        // With the limits of where the tool's arguments are checked.
        let schema = json!({"type": "object", "additionalProperties": { "pattern": pattern }});
        let compiled = steadyhand::check_schema(&schema).is_ok();
        self.0.borrow_mut().insert(pattern.to_owned(), compiled);
        compiled
    }
}

/// Converts the schemas of one document. What tools share is converted once: large documents have hundreds
/// of tools that all take the same large object.
pub(super) struct Converter<'d> {
    document: &'d Document,
    patterns: Patterns,
    names: HashMap<Place, String>,
    taken: HashSet<String>,
    defs: Map<String, Value>,
    waiting: VecDeque<(Place, String)>,
    notes: Vec<String>,
}

impl<'d> Converter<'d> {
    pub(super) fn new(document: &'d Document) -> Converter<'d> {
        Converter {
            document,
            patterns: Patterns::default(),
            names: HashMap::new(),
            taken: HashSet::new(),
            defs: Map::new(),
            waiting: VecDeque::new(),
            notes: Vec::new(),
        }
    }

    /// One schema; what it refers to follows in [`Converter::finish`].
    pub(super) fn schema(&mut self, at: At<'d>) -> Value {
        match at.value {
            Value::Bool(all) => Value::Bool(*all),
            Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.reference(at, reference, members),
                None => self.object(at, members),
            },
            _ => json!({}),
        }
    }

    /// All definitions that the converted schemas lead to, and what had to be left out.
    pub(super) fn finish(mut self) -> (Definitions, Vec<String>) {
        while let Some((place, name)) = self.waiting.pop_front() {
            let document = self.document;
            let converted = document.at(&place).map(|at| self.schema(at));
            self.defs.insert(name, converted.unwrap_or(json!({})));
        }
        circle::open(&mut self.defs);
        (Definitions::new(self.defs), self.notes)
    }

    fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn reference(&mut self, at: At<'d>, reference: &str, members: &'d Map<String, Value>) -> Value {
        let document = self.document;
        let target = match document.place(at.file, reference) {
            Ok(place) => document.at(&place).map(|found| (place, found)),
            Err(fault) => {
                self.note(format!("{fault}; anything is accepted there"));
                return described(json!({}), members);
            }
        };
        let Some((place, found)) = target else {
            self.note(format!(
                "{reference} leads nowhere; anything is accepted there"
            ));
            return described(json!({}), members);
        };
        if is_small(found.value) {
            let inline = self.schema(found);
            return described(inline, members);
        }
        let Some(name) = self.name_of(place) else {
            self.note(format!(
                "more than {DEFS_MAX} schemas; others are not checked"
            ));
            return described(json!({}), members);
        };
        let mut beside = match document.dialect() {
            // Nothing else counts beside a reference there; `nullable` is written nevertheless.
            Dialect::V30 => Map::new(),
            Dialect::V31 => match self.object(at, members) {
                Value::Object(beside) => beside,
                _ => Map::new(),
            },
        };
        let link = json!(format!("#/$defs/{name}"));
        if members.get("nullable") == Some(&Value::Bool(true)) {
            beside.clear();
            beside.insert(
                "anyOf".to_owned(),
                json!([{ "$ref": link }, { "type": "null" }]),
            );
        } else {
            beside.insert("$ref".to_owned(), link);
        }
        described(Value::Object(beside), members)
    }

    fn name_of(&mut self, place: Place) -> Option<String> {
        if let Some(name) = self.names.get(&place) {
            return Some(name.clone());
        }
        if self.names.len() >= DEFS_MAX {
            return None;
        }
        let last = place.pointer.rsplit('/').next().unwrap_or_default();
        let plain: String = last
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
            .collect();
        let stem = if plain.is_empty() { "Part" } else { &plain };
        let mut name = stem.to_owned();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{stem}_{count}");
        }
        self.names.insert(place.clone(), name.clone());
        self.waiting.push_back((place, name.clone()));
        Some(name)
    }

    fn object(&mut self, at: At<'d>, members: &'d Map<String, Value>) -> Value {
        let mut out = Map::new();
        let read_only = self.read_only(at);
        for (key, value) in members {
            if let Some((key, value)) = self.keyword(at, key, value, &read_only) {
                out.insert(key, value);
            }
        }
        mend_bounds(members, &mut out);
        mend_texts(&mut out);
        // Model providers refuse an array that does not say what it holds.
        if out.get("type") == Some(&json!("array")) && !out.contains_key("prefixItems") {
            out.entry("items").or_insert(json!({}));
        }
        // The discriminator decides there; as plain schemas several may fit, and oneOf would refuse that.
        if members.contains_key("discriminator")
            && !out.contains_key("anyOf")
            && let Some(choices) = out.shift_remove("oneOf")
        {
            out.insert("anyOf".to_owned(), choices);
        }
        match members.get("nullable") {
            Some(Value::Bool(true)) => Value::Object(nullable(out)),
            _ => Value::Object(out),
        }
    }

    /// A keyword as 2020-12 has it, or none where it says nothing or nothing valid.
    fn keyword(
        &mut self,
        at: At<'d>,
        key: &str,
        value: &'d Value,
        read_only: &[&str],
    ) -> Option<(String, Value)> {
        let converted = match key {
            "title" | "description" | "format" | "contentEncoding" | "contentMediaType" => {
                value.is_string().then(|| value.clone())?
            }
            "default" | "const" => value.clone(),
            "type" => types(value)?,
            "enum" => value.as_array().filter(|it| !it.is_empty())?.clone().into(),
            "example" => return Some(("examples".to_owned(), json!([value]))),
            "examples" => value.is_array().then(|| value.clone())?,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                value.is_number().then(|| value.clone())?
            }
            "multipleOf" => value
                .as_f64()
                .filter(|it| *it > 0.0)
                .map(|_| value.clone())?,
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" | "minContains" | "maxContains" => json!(count(value)?),
            "uniqueItems" | "deprecated" => value.is_boolean().then(|| value.clone())?,
            "required" => {
                let mut names: Vec<&str> =
                    value.as_array()?.iter().filter_map(Value::as_str).collect();
                names.retain(|name| !read_only.contains(name));
                names.sort_unstable();
                names.dedup();
                (!names.is_empty()).then(|| json!(names))?
            }
            "pattern" => {
                let pattern = value.as_str()?;
                if !self.patterns.can_be_compiled(pattern) {
                    self.note(format!(
                        "the pattern {pattern} cannot be compiled and is not checked"
                    ));
                    return None;
                }
                value.clone()
            }
            "properties" | "dependentSchemas" => {
                let mut parts = Map::new();
                for (name, part) in value.as_object()? {
                    if key == "dependentSchemas" || !read_only.contains(&name.as_str()) {
                        parts.insert(name.clone(), self.schema(at.with(part)));
                    }
                }
                parts.into()
            }
            "patternProperties" => {
                let mut parts = Map::new();
                for (name, part) in value.as_object()? {
                    if self.patterns.can_be_compiled(name) {
                        parts.insert(name.clone(), self.schema(at.with(part)));
                    }
                }
                parts.into()
            }
            "dependentRequired" => {
                let mut lists = value.as_object()?.values();
                let all_texts = |list: &Value| {
                    list.as_array()
                        .is_some_and(|it| it.iter().all(Value::is_string))
                };
                lists.all(all_texts).then(|| value.clone())?
            }
            "items" if value.is_array() => {
                return Some(("prefixItems".to_owned(), self.many(at, value)?));
            }
            "prefixItems" | "allOf" | "anyOf" | "oneOf" => self.many(at, value)?,
            "items"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames" => {
                (value.is_object() || value.is_boolean()).then(|| self.schema(at.with(value)))?
            }
            // Extensions, xml, discriminator, and names of places that mean nothing elsewhere.
            _ => return None,
        };
        Some((key.to_owned(), converted))
    }

    fn many(&mut self, at: At<'d>, value: &'d Value) -> Option<Value> {
        let parts = value.as_array().filter(|parts| !parts.is_empty())?;
        Some(
            parts
                .iter()
                .map(|part| self.schema(at.with(part)))
                .collect(),
        )
    }

    /// What only comes back from the service has no place in what is sent to it.
    fn read_only(&self, at: At<'d>) -> Vec<&'d str> {
        let Some(properties) = at.value.get("properties").and_then(Value::as_object) else {
            return Vec::new();
        };
        let is_read_only = |part: &'d Value| {
            let part = at.with(part);
            part.flag("readOnly") == Some(true)
                || self
                    .document
                    .resolve(part)
                    .is_ok_and(|it| it.flag("readOnly") == Some(true))
        };
        let names = properties.iter().filter(|(_, part)| is_read_only(part));
        names.map(|(name, _)| name.as_str()).collect()
    }
}
