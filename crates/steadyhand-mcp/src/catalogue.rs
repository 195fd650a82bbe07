//! What a server said about itself and its tools; kept on disk, so that a restart can answer at once.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use steadyhand::clock;

use crate::definition::{self, Definition, Unusable};
use crate::failure::What;

/// A larger list is not kept.
const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
const VERSION: u32 = 1;

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

#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    fingerprint: String,
    seen_ms: u64,
    tools: Vec<Box<RawValue>>,
}

impl Catalogue {
    /// Each tool by itself: an odd one costs that tool, not the list.
    pub(crate) fn read(raw: Vec<Box<RawValue>>, mut notes: Vec<String>) -> Catalogue {
        let mut definitions: Vec<Definition> = Vec::with_capacity(raw.len());
        let mut names: HashSet<String> = HashSet::with_capacity(raw.len());
        let mut unusable = Vec::new();
        for (position, tool) in raw.iter().enumerate() {
            match definition::read_raw(tool, position) {
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
        }
    }

    /// What was kept, if it is of the same server.
    pub(crate) fn load(path: &Path, fingerprint: &str) -> Option<Catalogue> {
        // Opening anything but a file could wait for ever.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let kept: Kept = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        if kept.version != VERSION || kept.fingerprint != fingerprint {
            return None;
        }
        let mut catalogue = Catalogue::read(kept.tools, Vec::new());
        catalogue.seen_ms = kept.seen_ms;
        Some(catalogue)
    }

    /// Keeps it, in one step: a reader sees the old one or the new one.
    pub(crate) fn save(&self, path: &Path, fingerprint: &str) -> io::Result<()> {
        let kept = Kept {
            version: VERSION,
            fingerprint: fingerprint.to_owned(),
            seen_ms: self.seen_ms,
            tools: self.raw.clone(),
        };
        let text = serde_json::to_vec(&kept)?;
        if text.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("it is too large to be kept"));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        std::fs::write(&new, text)?;
        std::fs::rename(&new, path)
    }

    /// Whether the tools are the same as the other's.
    pub(crate) fn is_like(&self, other: &Catalogue) -> bool {
        let mine = self.raw.iter().map(|tool| tool.get());
        mine.eq(other.raw.iter().map(|tool| tool.get()))
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
