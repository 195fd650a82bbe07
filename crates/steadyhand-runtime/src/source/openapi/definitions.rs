//! The converted schemas that the tools of a document share, and the `$defs` that one tool gets of them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::circle;
use super::mend::{bytes, strip};

/// The engine takes schemas up to 256 KiB; this leaves room for what it counts differently.
const SCHEMA_BYTES_MAX: usize = 250_000;
/// Schemas that are this many references away from the arguments are not followed.
const LEVELS_MAX: usize = 24;
/// A tool gets not more definitions than this.
const DEFS_MAX: usize = 2_000;

/// All definitions of a document, by name.
pub(super) struct Definitions(HashMap<String, Definition>);

struct Definition {
    schema: Value,
    links: Vec<String>,
    bytes: usize,
    /// Without descriptions and examples.
    bare: Value,
    bare_bytes: usize,
}

impl Definitions {
    pub(super) fn new(defs: Map<String, Value>) -> Definitions {
        let measured = defs.into_iter().map(|(name, schema)| {
            let mut links = Vec::new();
            circle::links(&schema, &mut links);
            let mut bare = schema.clone();
            strip(&mut bare);
            // The name itself, its quotes and the comma.
            let around = name.len() + 4;
            let definition = Definition {
                links,
                bytes: bytes(&schema) + around,
                bare_bytes: bytes(&bare) + around,
                bare,
                schema,
            };
            (name, definition)
        });
        Definitions(measured.collect())
    }

    /// A tool's schema with the definitions it needs, within its limits: words are left out first, the
    /// deepest parts last. The note says so.
    pub(super) fn put_into(&self, root: Map<String, Value>) -> (Value, Option<&'static str>) {
        let mut root = Value::Object(root);
        let mut levels = self.levels(&root);
        let mut note = None;
        let mut is_bare = false;
        if bytes(&root) + self.bytes(&levels, is_bare) > SCHEMA_BYTES_MAX {
            note = Some("its descriptions are left out: it would be too large");
            is_bare = true;
            strip(&mut root);
        }
        let root_bytes = bytes(&root);
        while root_bytes + self.bytes(&levels, is_bare) > SCHEMA_BYTES_MAX && levels.pop().is_some()
        {
            note = Some(
                "its descriptions and deepest parts are left out, and those are not checked: it would be too large",
            );
        }
        let kept: HashSet<&str> = levels.iter().flatten().copied().collect();
        circle::forget(&mut root, &kept);
        let mut defs = Map::new();
        for name in levels.iter().flatten() {
            let definition = &self.0[*name];
            let mut schema = match is_bare {
                true => definition.bare.clone(),
                false => definition.schema.clone(),
            };
            if !definition
                .links
                .iter()
                .all(|link| kept.contains(link.as_str()))
            {
                circle::forget(&mut schema, &kept);
            }
            defs.insert((*name).to_owned(), schema);
        }
        if !defs.is_empty() {
            root["$defs"] = Value::Object(defs);
        }
        (root, note)
    }

    /// What the root leads to, by the number of references on the way.
    fn levels(&self, root: &Value) -> Vec<Vec<&str>> {
        let mut first = Vec::new();
        circle::links(root, &mut first);
        let mut seen: HashSet<&str> = HashSet::new();
        let mut levels: Vec<Vec<&str>> = Vec::new();
        let mut next: Vec<&str> = self.fresh(&first, &mut seen);
        while !next.is_empty() && levels.len() < LEVELS_MAX {
            let after: Vec<&str> = next
                .iter()
                .flat_map(|name| self.fresh(&self.0[*name].links, &mut seen))
                .collect();
            levels.push(next);
            next = after;
        }
        levels
    }

    /// Those of the names that have not been seen, with the words of our own map.
    fn fresh<'a>(&'a self, names: &[String], seen: &mut HashSet<&'a str>) -> Vec<&'a str> {
        let known = names.iter().filter_map(|name| self.0.get_key_value(name));
        let mut fresh = Vec::new();
        for (name, _) in known {
            if seen.len() < DEFS_MAX && seen.insert(name) {
                fresh.push(name.as_str());
            }
        }
        fresh
    }

    fn bytes(&self, levels: &[Vec<&str>], is_bare: bool) -> usize {
        let sizes = levels.iter().flatten().map(|name| &self.0[*name]);
        match is_bare {
            true => sizes.map(|definition| definition.bare_bytes).sum(),
            false => sizes.map(|definition| definition.bytes).sum(),
        }
    }
}
