//! What a server said about itself and its tools.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use steadyhand::clock;

use crate::definition::{self, Definition, Unusable};
use crate::failure::What;
use crate::http::headers::ParamHeaders;
use crate::lists::is_like;
use crate::wire::Members;

/// The tools of a server, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) unusable: Vec<Unusable>,
    pub(crate) notes: Vec<String>,
    /// When the server last said so, in milliseconds since 1970.
    pub(crate) seen_ms: u64,
    /// As they came: what is kept.
    raw: Vec<Box<RawValue>>,
    /// Where each definition stands among them.
    positions: Vec<usize>,
}

/// What a server said at the handshake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Greeting {
    /// The protocol it speaks.
    pub protocol_version: String,
    /// What it can do, as it said.
    pub capabilities: Value,
    /// Its name and version, as it said.
    pub server_info: Value,
    /// How to use it, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl Catalogue {
    /// Each tool by itself: an odd one costs that tool, not the list.
    /// `has_headers`: parameters may have to stand in headers, and a tool that says so wrongly must not be used.
    pub(crate) fn read(
        raw: Vec<Box<RawValue>>,
        mut notes: Vec<String>,
        has_headers: bool,
    ) -> Catalogue {
        let mut definitions: Vec<Definition> = Vec::with_capacity(raw.len());
        let mut names: HashSet<String> = HashSet::with_capacity(raw.len());
        let mut unusable = Vec::new();
        let mut positions = Vec::with_capacity(raw.len());
        for (position, tool) in raw.iter().enumerate() {
            let read = definition::read_raw(tool, position);
            let read = read.and_then(|definition| match ParamHeaders::of(&definition.schema) {
                Err(reason) if has_headers => Err(Unusable {
                    name: definition.name,
                    reason,
                    is_named: true,
                }),
                _ => Ok(definition),
            });
            match read {
                Ok(definition) => {
                    if !names.insert(definition.name.clone()) {
                        notes.push(format!(
                            "it lists {} twice; the first one is used",
                            definition.name
                        ));
                        continue;
                    }
                    notes.extend(
                        definition
                            .notes
                            .iter()
                            .map(|note| format!("{}: {note}", definition.name)),
                    );
                    definitions.push(definition);
                    positions.push(position);
                }
                Err(not_usable) => unusable.push(not_usable),
            }
        }
        Catalogue {
            definitions,
            unusable,
            notes,
            seen_ms: clock::wall_ms(),
            raw,
            positions,
        }
    }

    /// As they came.
    pub(crate) fn raw(&self) -> &[Box<RawValue>] {
        &self.raw
    }

    /// One as it came, but for its name.
    pub(crate) fn renamed(&self, place: usize, name: &str) -> Option<Box<RawValue>> {
        let raw = self.raw.get(*self.positions.get(place)?)?;
        let name = serde_json::value::to_raw_value(name).ok()?;
        Some(Members::of(raw)?.with("name", &name).to_raw())
    }

    /// Whether the tools are the same as the other's.
    pub(crate) fn is_like(&self, other: &Catalogue) -> bool {
        is_like(&self.raw, &other.raw)
    }
}

impl Greeting {
    pub(crate) fn read(result: &RawValue) -> Result<Greeting, What> {
        let malformed = |text: &str| What::Malformed(text.to_owned());
        let fields: Map<String, Value> = serde_json::from_str(result.get())
            .map_err(|_| malformed("its answer to initialize is no object"))?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Greeting {
            protocol_version: text("protocolVersion")
                .ok_or_else(|| malformed("its answer to initialize has no protocolVersion"))?,
            capabilities: fields.get("capabilities").cloned().unwrap_or_default(),
            server_info: fields.get("serverInfo").cloned().unwrap_or_default(),
            instructions: text("instructions"),
        })
    }
}
