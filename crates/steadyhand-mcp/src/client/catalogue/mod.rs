//! What a server said about itself and its tools.

pub(crate) mod catalogue_cache;
pub mod definition;
pub(crate) mod lists;
pub mod names;
pub(crate) mod offer;
pub(crate) mod subscriptions;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use steadyhand::{ReservedBytes, SchemaBudget, clock};
use tokio::time::Instant;

use crate::client::catalogue::definition::{Definition, Unusable};
use crate::client::catalogue::lists::is_like;
use crate::client::hidden::hide_in_value;
use crate::client::http::headers::ParamHeaders;
use crate::client::lifecycle::failure::What;
use crate::client::settings::Hide;
use crate::wire::Members;

/// How long looking at all tools of a server may take: one alone is bounded, ten thousand of the worst are not.
const CHECKING_LIMIT: Duration = Duration::from_secs(30);
/// Notes that are kept about a list.
const NOTES_MAX: usize = 100;
/// What a server may say at the handshake. Its name and version are cut, how to use it is cut, and what it can do must fit.
const INSTRUCTIONS_BYTES_MAX: usize = 64 * 1024;
const SERVER_INFO_BYTES_MAX: usize = 64 * 1024;
const CAPABILITIES_BYTES_MAX: usize = 256 * 1024;
const VERSION_BYTES_MAX: usize = 256;
const WORD_CHARS_MAX: usize = 256;

/// The tools of a server, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) unusable: Arc<[Unusable]>,
    pub(crate) notes: Vec<String>,
    /// When the server last said so, in milliseconds since 1970.
    pub(crate) seen_ms: u64,
    /// As they came: what is kept.
    raw: Vec<Box<RawValue>>,
    /// Where each definition stands among them.
    positions: Vec<usize>,
    /// The memory of all that.
    held: Option<Arc<ReservedBytes>>,
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
        let mut budget = SchemaBudget::default();
        let until = Instant::now() + CHECKING_LIMIT;
        for (position, tool) in raw.iter().enumerate() {
            if Instant::now() > until {
                let left = raw.len() - position;
                notes.push(format!(
                    "checking its tools takes longer than {CHECKING_LIMIT:?}; the last {left} of {} are not used",
                    raw.len()
                ));
                break;
            }
            let read = definition::read_raw(tool, position, &mut budget);
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
        if notes.len() > NOTES_MAX {
            let more = notes.len() - NOTES_MAX;
            notes.truncate(NOTES_MAX);
            notes.push(format!("and {more} more"));
        }
        Catalogue {
            definitions,
            unusable: unusable.into(),
            notes,
            seen_ms: clock::wall_ms(),
            raw,
            positions,
            held: None,
        }
    }

    /// The same with the memory that is reserved for it.
    pub(crate) fn holding(mut self, held: ReservedBytes) -> Catalogue {
        self.held = Some(Arc::new(held));
        self
    }

    /// As they came.
    pub(crate) fn raw(&self) -> &[Box<RawValue>] {
        &self.raw
    }

    /// One as it came.
    pub(crate) fn own(&self, place: usize) -> Option<&RawValue> {
        Some(self.raw.get(*self.positions.get(place)?)?)
    }

    /// One as it came, but for its name.
    pub(crate) fn renamed(&self, place: usize, name: &str) -> Option<Box<RawValue>> {
        let raw = self.own(place)?;
        let name = serde_json::value::to_raw_value(name).ok()?;
        Some(Members::of(raw)?.with("name", &name).to_raw())
    }

    /// Whether the tools are the same as the other's.
    pub(crate) fn is_like(&self, other: &Catalogue) -> bool {
        is_like(&self.raw, &other.raw)
    }
}

impl Greeting {
    /// Takes secrets out of all it said.
    pub(crate) fn hide(&mut self, hide: &Hide) {
        hide_in_value(&mut self.capabilities, hide);
        hide_in_value(&mut self.server_info, hide);
        self.instructions = self.instructions.take().map(|text| hide(text));
    }

    pub(crate) fn read(result: &RawValue) -> Result<Greeting, What> {
        let malformed = |text: &str| What::Malformed(text.to_owned());
        let members = Members::of(result)
            .ok_or_else(|| malformed("its answer to initialize is no object"))?;
        let version = members.text("protocolVersion");
        let version = version.filter(|version| version.len() <= VERSION_BYTES_MAX);
        Ok(Greeting {
            protocol_version: version
                .ok_or_else(|| malformed("its answer to initialize has no protocolVersion"))?
                .into_owned(),
            capabilities: capabilities(members.get("capabilities"))?,
            server_info: server_info(members.get("serverInfo")),
            instructions: instructions(&members),
        })
    }
}

/// What a server can do. What nobody could keep is not taken for nothing: it is said so.
pub(crate) fn capabilities(said: Option<&RawValue>) -> Result<Value, What> {
    let said = said.map_or("null", RawValue::get);
    if said.len() > CAPABILITIES_BYTES_MAX {
        return Err(What::Malformed(format!(
            "its capabilities have {} bytes; at most {CAPABILITIES_BYTES_MAX} are read",
            said.len()
        )));
    }
    serde_json::from_str(said)
        .map_err(|_| What::Malformed("its capabilities cannot be read".to_owned()))
}

/// Its name and version; if there is far more, these alone.
pub(crate) fn server_info(said: Option<&RawValue>) -> Value {
    let Some(said) = said else {
        return Value::Null;
    };
    if said.get().len() <= SERVER_INFO_BYTES_MAX {
        return serde_json::from_str(said.get()).unwrap_or_default();
    }
    let members = Members::of(said).unwrap_or_default();
    let words = ["name", "title", "version"].into_iter().filter_map(|name| {
        let word: String = members.text(name)?.chars().take(WORD_CHARS_MAX).collect();
        Some((name.to_owned(), Value::String(word)))
    });
    Value::Object(words.collect())
}

/// How to use it, in its own words.
pub(crate) fn instructions(members: &Members<'_>) -> Option<String> {
    let said = members.text("instructions")?;
    Some(steadyhand::cut::text(&said, INSTRUCTIONS_BYTES_MAX))
}
