//! What a server says of itself, looked at beside what was accepted: what of it is used, and what clients see.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadyhand::Tool;
use steadyhand_mcp::{Entries, Listed, OfferedTool, Server};

use super::Runtime;
use crate::pins::{Pins, Reviewed, Said};
use crate::source::mcp::PinMode;

/// A server as it was looked at last.
#[derive(Default)]
pub(super) struct Review {
    pub(super) tools: Vec<Tool>,
    /// Tools that are kept away, and why.
    pub(super) kept_away: Vec<(String, String)>,
    /// Tools whose hints nobody has accepted.
    pub(super) hints_held: BTreeSet<String>,
    definitions: HashMap<String, Box<RawValue>>,
    lists: HashMap<Listed, Entries>,
    instructions: Option<String>,
}

impl Review {
    /// Looks at what a server says now.
    pub(super) async fn of(server: &Server, mode: PinMode, pins: Option<&Pins>) -> Review {
        let said = Said {
            tools: server.knows_tools().then(|| server.offered()),
            lists: Listed::ALL
                .into_iter()
                .filter_map(|kind| Some((kind, server.known(kind)?)))
                .collect(),
            instructions: server.greeting().map(|greeting| greeting.instructions),
            hide: server.settings().hide_listed.clone(),
        };
        let Some(pins) = pins.cloned() else {
            return Review::new(said, Reviewed::default());
        };
        let name = server.name().to_owned();
        // Thousands of definitions take their time.
        let looking = move || {
            let reviewed = pins.look(&name, mode, &said);
            Review::new(said, reviewed)
        };
        tokio::task::spawn_blocking(looking)
            .await
            .unwrap_or_default()
    }

    fn new(said: Said, reviewed: Reviewed) -> Review {
        let offered = said.tools.unwrap_or_default();
        let mut held: BTreeMap<String, Option<Box<RawValue>>> = reviewed.hints_held;
        let hints_held = held.keys().cloned().collect();
        let tools = offered.iter().map(|it| it.tool.clone()).collect();
        let mut definitions = HashMap::with_capacity(offered.len());
        for OfferedTool {
            tool, definition, ..
        } in offered
        {
            let bounded = held.remove(tool.name()).flatten();
            definitions.insert(tool.name().to_owned(), bounded.unwrap_or(definition));
        }
        let lists = said.lists.into_iter().map(|(kind, entries)| {
            let is_withheld = |entry: &RawValue| {
                let key = key_of(kind, entry);
                key.is_some_and(|key| reviewed.withheld.contains(&(kind, key)))
            };
            let has_withheld = reviewed.withheld.iter().any(|(of, _)| *of == kind);
            let entries = match has_withheld {
                false => entries,
                true => {
                    let kept = entries.iter().filter(|entry| !is_withheld(entry));
                    Arc::new(kept.cloned().collect())
                }
            };
            (kind, entries)
        });
        Review {
            tools,
            kept_away: reviewed.kept_away,
            hints_held,
            definitions,
            lists: lists.collect(),
            instructions: match reviewed.instructions {
                Some(instead) => instead,
                None => said.instructions.flatten(),
            },
        }
    }

    /// Whether a tool says of itself that it changes nothing, and that is believed.
    pub(super) fn only_reads(&self, tool: &str) -> bool {
        let definition = self.definitions.get(tool);
        let definition = definition.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let says = |it: Value| it["annotations"]["readOnlyHint"] == json!(true);
        !self.hints_held.contains(tool) && definition.is_some_and(says)
    }
}

/// What tells an entry of a list from others.
pub fn key_of(kind: Listed, entry: &RawValue) -> Option<String> {
    let entry: Value = serde_json::from_str(entry.get()).ok()?;
    let key = match kind {
        Listed::Prompts => "name",
        Listed::Resources => "uri",
        Listed::ResourceTemplates => "uriTemplate",
    };
    Some(entry.get(key)?.as_str()?.to_owned())
}

impl Runtime {
    /// A tool of a server as clients see it.
    pub fn definition(&self, tool: &Tool) -> Option<Box<RawValue>> {
        let server = tool.source().filter(|_| tool.kind() == "mcp")?;
        self.review_of(server, |review| {
            review.definitions.get(tool.name()).cloned()
        })?
    }

    /// What clients see of a list of a server.
    pub fn listed(&self, server: &Server, kind: Listed) -> Entries {
        let listed = self.review_of(server.name(), |review| review.lists.get(&kind).cloned());
        listed.flatten().unwrap_or_default()
    }

    /// What clients are told about how to use a server.
    pub fn instructions(&self, server: &Server) -> Option<String> {
        self.review_of(server.name(), |review| review.instructions.clone())?
    }

    fn review_of<T>(&self, server: &str, read: impl FnOnce(&Review) -> T) -> Option<T> {
        let generation = self.generation();
        let mut sources = generation.sources.iter();
        let source = sources.find(|source| source.server().is_some() && source.name == server)?;
        Some(read(&source.review))
    }
}
