//! The definitions as they are kept: one file, replaced as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadyhand::Tool;

use super::difference::{Difference, between};

/// A larger definition is known by its digest alone.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// What is remembered of all tools, by source and name.
pub(super) struct Store {
    path: PathBuf,
    written: Written,
    /// Definitions that wait to be accepted.
    proposed: BTreeMap<(String, String), Pinned>,
    /// What was before a definition that was taken over at once.
    previous: BTreeMap<(String, String), Pinned>,
    is_saved: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Written {
    version: u32,
    tools: BTreeMap<String, BTreeMap<String, Pinned>>,
    /// Digests of definitions that somebody rejected, by source and tool. Not in files of 0.1.0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rejected: BTreeMap<String, BTreeMap<String, String>>,
}

/// A definition.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Pinned {
    sha256: String,
    /// Null if it is too large to be kept.
    definition: Value,
}

impl Pinned {
    pub(super) fn of(tool: &Tool) -> Pinned {
        let definition = json!({"description": tool.description(), "schema": tool.schema()});
        let text = definition.to_string();
        let digest = Sha256::digest(text.as_bytes());
        Pinned {
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            definition: match text.len() > KEPT_BYTES_MAX {
                true => Value::Null,
                false => definition,
            },
        }
    }

    pub(super) fn is(&self, other: &Pinned) -> bool {
        self.sha256 == other.sha256
    }

    pub(super) fn differences(&self, now: &Pinned) -> Vec<Difference> {
        let mut found = Vec::new();
        for (name, at) in [("description", "description"), ("schema", "")] {
            let part = |of: &Pinned| of.definition.get(name).cloned().unwrap_or_default();
            between(at, &part(self), &part(now), &mut found);
        }
        if found.is_empty() {
            // Too large to be compared, or only in another order.
            found.push(Difference {
                at: "definition".to_owned(),
                before: json!(self.sha256),
                after: json!(now.sha256),
            });
        }
        found
    }
}

impl Store {
    /// A file that cannot be read is as good as none: everything is seen for the first time again, and that is said.
    pub(super) fn open(path: PathBuf) -> Store {
        let written = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                let path = path.display();
                tracing::error!(%error, %path, "the definitions of tools that were accepted cannot be read");
                Written::default()
            }),
            Err(_) => Written::default(),
        };
        Store {
            path,
            written,
            proposed: BTreeMap::new(),
            previous: BTreeMap::new(),
            is_saved: true,
        }
    }

    pub(super) fn get(&self, source: &str, tool: &str) -> Option<&Pinned> {
        self.written.tools.get(source)?.get(tool)
    }

    pub(super) fn count(&self) -> usize {
        self.written.tools.values().map(BTreeMap::len).sum()
    }

    pub(super) fn put(&mut self, source: &str, tool: &str, definition: Pinned) {
        let of_source = self.written.tools.entry(source.to_owned()).or_default();
        of_source.insert(tool.to_owned(), definition);
        self.is_saved = false;
    }

    pub(super) fn propose(&mut self, source: &str, tool: &str, definition: Pinned) {
        self.proposed
            .insert((source.to_owned(), tool.to_owned()), definition);
    }

    /// The definition of now is about to be replaced: a rejection goes back to it.
    pub(super) fn keep_previous(&mut self, source: &str, tool: &str) {
        if let Some(now) = self.get(source, tool).cloned() {
            self.previous
                .insert((source.to_owned(), tool.to_owned()), now);
        }
    }

    pub(super) fn is_rejected(&self, source: &str, tool: &str, definition: &Pinned) -> bool {
        let of_source = self.written.rejected.get(source);
        let digest = of_source.and_then(|tools| tools.get(tool));
        digest == Some(&definition.sha256)
    }

    /// The definition that waits, or was taken over last, is not wanted; the one before it counts again.
    pub(super) fn reject(&mut self, source: &str, tool: &str) {
        let key = (source.to_owned(), tool.to_owned());
        let proposed = self.proposed.get(&key);
        let Some(unwanted) = proposed.or_else(|| self.get(source, tool)).cloned() else {
            return;
        };
        let of_source = self.written.rejected.entry(source.to_owned()).or_default();
        of_source.insert(tool.to_owned(), unwanted.sha256.clone());
        self.is_saved = false;
        if let Some(before) = self.previous.remove(&key) {
            self.put(source, tool, before);
        }
        self.proposed.insert(key, unwanted);
    }

    pub(super) fn accept(&mut self, source: &str, tool: &str) {
        let key = (source.to_owned(), tool.to_owned());
        if let Some(of_source) = self.written.rejected.get_mut(source) {
            of_source.remove(tool);
            self.is_saved = false;
        }
        self.previous.remove(&key);
        if let Some(definition) = self.proposed.remove(&key) {
            self.put(source, tool, definition);
        }
    }

    /// What has changed since it was last asked for, to be written.
    pub(super) fn unsaved(&mut self) -> Option<Unsaved> {
        if self.is_saved {
            return None;
        }
        self.written.version = 1;
        self.is_saved = true;
        let bytes = serde_json::to_vec(&self.written).ok()?;
        Some(Unsaved {
            path: self.path.clone(),
            bytes,
        })
    }

    /// It could not be written: the next one has it, too.
    pub(super) fn not_saved(&mut self) {
        self.is_saved = false;
    }
}

/// The file as it should be.
pub(super) struct Unsaved {
    pub(super) path: PathBuf,
    bytes: Vec<u8>,
}

impl Unsaved {
    pub(super) fn write(&self) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let unfinished = self.path.with_extension("json.new");
        let mut file = fs::File::create(&unfinished)?;
        file.write_all(&self.bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, &self.path)
    }
}
