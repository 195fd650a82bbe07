//! Which names a schema declares, and where: compiled once, so that a call only looks them up.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use regex::{RegexSet, RegexSetBuilder};
use serde_json::Value;

/// Names and subschemas that are read of one schema. Alternatives of alternatives can be combined in
/// more ways than anyone has memory for; what is not read is left as it comes.
const READ_MAX: usize = 50_000;
const PATTERN_BYTES_MAX: usize = 32 * 1024;
/// The patterns of one schema together: each set costs something whatever is in it.
const PATTERNS_BYTES_MAX: usize = 16 * 1024;
const PATTERN_SET_BYTES: usize = 100;
/// A longer name is not compared with patterns: it may be meant by one.
const PATTERN_NAME_BYTES_MAX: usize = 128;
const POINTER_BYTES_MAX: usize = 2_000;

pub(super) type NodeId = usize;

/// The objects and arrays that a schema describes.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    nodes: Vec<Node>,
}

/// One object or array, as all the schemas together see it that may apply to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    declared: HashMap<String, Option<NodeId>, RandomState>,
    patterns: Patterns,
    items: Option<NodeId>,
    /// Other names are declared to be data: `additionalProperties` with a schema.
    is_map: bool,
    leads_further: bool,
}

#[derive(Debug, Clone, Default)]
enum Patterns {
    #[default]
    None,
    Some(RegexSet),
    /// Not to be read by us, so every name may be meant.
    Unreadable,
}

impl Shape {
    pub(super) fn of(schema: &Value) -> Shape {
        let mut reader = Reader {
            document: schema,
            nodes: Vec::new(),
            known: HashMap::new(),
            unread: Vec::new(),
            read: 0,
            pattern_bytes_left: PATTERNS_BYTES_MAX,
        };
        let parts = reader.all_that_apply(vec![schema]);
        reader.add(parts);
        while let Some((id, parts)) = reader.unread.pop() {
            reader.nodes[id] = reader.node_of(&parts);
        }
        Shape {
            nodes: reader.nodes,
        }
    }

    pub(super) fn root_id(&self) -> NodeId {
        0
    }

    pub(super) fn root(&self) -> &Node {
        &self.nodes[0]
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }
}

impl Node {
    /// Whether the schema knows a field of this name here.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.declared.contains_key(name)
            || match &self.patterns {
                Patterns::None => false,
                Patterns::Some(patterns) => {
                    name.len() > PATTERN_NAME_BYTES_MAX || patterns.is_match(name)
                }
                Patterns::Unreadable => true,
            }
    }

    pub(super) fn has_patterns(&self) -> bool {
        matches!(self.patterns, Patterns::Some(_))
    }

    /// Other names than those it declares are not data of the caller's own.
    pub(super) fn is_fixed(&self) -> bool {
        !self.is_map
    }

    pub(super) fn inner(&self, name: &str) -> Option<NodeId> {
        *self.declared.get(name)?
    }

    pub(super) fn items(&self) -> Option<NodeId> {
        self.items
    }

    pub(super) fn leads_further(&self) -> bool {
        self.leads_further
    }
}

/// Schemas that apply to the same place.
type Parts<'a> = Vec<&'a Value>;

struct Reader<'a> {
    document: &'a Value,
    nodes: Vec<Node>,
    /// By the places of its parts in memory: schemas that refer to themselves come to an end.
    known: HashMap<Vec<usize>, NodeId>,
    unread: Vec<(NodeId, Parts<'a>)>,
    read: usize,
    pattern_bytes_left: usize,
}

impl<'a> Reader<'a> {
    /// The node of what these schemas describe together, if there is any name in it.
    fn id_of(&mut self, schemas: Parts<'a>) -> Option<NodeId> {
        let parts = self.all_that_apply(schemas);
        let says_something = |part: &&Value| {
            ["properties", "items", "prefixItems"]
                .iter()
                .any(|keyword| part.get(keyword).is_some())
        };
        if !parts.iter().any(says_something) {
            return None;
        }
        let key = addresses(&parts);
        if let Some(id) = self.known.get(&key) {
            return Some(*id);
        }
        (self.read < READ_MAX).then(|| self.add(parts))
    }

    fn add(&mut self, parts: Parts<'a>) -> NodeId {
        let id = self.nodes.len();
        self.known.insert(addresses(&parts), id);
        self.nodes.push(Node::default());
        self.unread.push((id, parts));
        id
    }

    fn node_of(&mut self, parts: &[&'a Value]) -> Node {
        let mut fields: HashMap<&'a str, Parts<'a>> = HashMap::new();
        let mut items = Parts::new();
        let mut patterns: Vec<&str> = Vec::new();
        let mut is_map = false;
        for part in parts {
            for (name, schema) in objects(part, "properties") {
                fields.entry(name).or_default().push(schema);
            }
            // A name that must be there is declared, whatever else is said about it.
            for name in list(part, "required").iter().filter_map(Value::as_str) {
                fields.entry(name).or_default();
            }
            patterns.extend(objects(part, "patternProperties").map(|(pattern, _)| pattern));
            items.extend(list(part, "prefixItems"));
            match part.get("items") {
                Some(Value::Array(each)) => items.extend(each),
                Some(schema) => items.push(schema),
                None => {}
            }
            is_map |= part
                .get("additionalProperties")
                .and_then(Value::as_object)
                .is_some_and(|schema| !schema.is_empty());
        }
        self.read += fields.len();
        let items = self.id_of(items);
        let declared: HashMap<_, _, _> = fields
            .into_iter()
            .map(|(name, schemas)| (name.to_owned(), self.id_of(schemas)))
            .collect();
        Node {
            leads_further: declared.values().any(Option::is_some),
            declared,
            patterns: self.patterns_of(&patterns),
            items,
            is_map,
        }
    }

    /// The schemas and all that they refer to for the same place.
    fn all_that_apply(&mut self, schemas: Parts<'a>) -> Parts<'a> {
        let mut parts = Parts::new();
        let mut seen: HashSet<usize> = HashSet::new();
        let mut open = schemas;
        while let Some(schema) = open.pop() {
            // The same large part can be meant by thousands of names.
            if self.read >= READ_MAX {
                return Parts::new();
            }
            self.read += 1;
            if !schema.is_object() || !seen.insert(address(schema)) {
                continue;
            }
            parts.push(schema);
            for keyword in ["allOf", "anyOf", "oneOf"] {
                open.extend(list(schema, keyword));
            }
            for keyword in ["if", "then", "else"] {
                open.extend(schema.get(keyword));
            }
            open.extend(objects(schema, "dependentSchemas").map(|(_, schema)| schema));
            let target = schema.get("$ref").and_then(Value::as_str);
            open.extend(target.and_then(|target| self.local(target)));
        }
        parts
    }

    /// What a reference within the schema itself points at. Others are never fetched.
    fn local(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        let is_short = pointer.len() <= POINTER_BYTES_MAX;
        is_short.then(|| self.document.pointer(pointer))?
    }
}

impl Reader<'_> {
    /// Compiled, as long as there are not too many to compile.
    fn patterns_of(&mut self, patterns: &[&str]) -> Patterns {
        let bytes: usize = patterns.iter().map(|pattern| pattern.len()).sum();
        if patterns.is_empty() {
            return Patterns::None;
        }
        match self
            .pattern_bytes_left
            .checked_sub(bytes + PATTERN_SET_BYTES)
        {
            Some(left) => {
                self.pattern_bytes_left = left;
                Patterns::of(patterns)
            }
            None => Patterns::Unreadable,
        }
    }
}

impl Patterns {
    fn of(patterns: &[&str]) -> Patterns {
        if patterns.is_empty() {
            return Patterns::None;
        }
        let set = RegexSetBuilder::new(patterns)
            .size_limit(PATTERN_BYTES_MAX)
            .build();
        set.map_or(Patterns::Unreadable, Patterns::Some)
    }
}

fn objects<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let fields = schema.get(keyword).and_then(Value::as_object);
    fields
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
}

fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    let items = schema.get(keyword).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

fn addresses(parts: &[&Value]) -> Vec<usize> {
    let mut addresses: Vec<usize> = parts.iter().map(|part| address(part)).collect();
    addresses.sort_unstable();
    addresses
}

fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}
