//! The definitions as they are kept: one file for all processes of a configuration, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::Pinned;
use super::kind::PinnedKind;
use crate::access::private_file;

const VERSION: u32 = 2;
/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Definitions of one server and kind: as many as a list may have.
const ENTRIES_MAX: usize = 10_000;
/// Definitions of one server, all together; what is beyond is known by its digest.
const DEFINITIONS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A longer key (a URI, say) is kept by its beginning and its digest.
const KEY_BYTES_MAX: usize = 256;

/// Which definition: server, kind, key.
pub(super) type Place = (String, PinnedKind, String);

type Entries = BTreeMap<PinnedKind, BTreeMap<String, Entry>>;

/// What is remembered of all servers.
pub(super) struct Store {
    path: PathBuf,
    servers: BTreeMap<String, Entries>,
    /// What this process has changed and not written yet.
    unsaved: BTreeSet<Place>,
    unsaved_kinds: BTreeSet<(String, PinnedKind)>,
    /// Room that the definitions of each server take.
    bytes: BTreeMap<String, usize>,
    seen: Option<Stamp>,
    /// The file is there and cannot be read: nothing counts as seen for the first time then.
    is_unreadable: bool,
}

/// What is remembered of one definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    /// The one that was seen first, or that somebody accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accepted: Option<Pinned>,
    /// Another one that is in use, and that nobody has accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) taken_over: Option<Pinned>,
    /// The digest of one that somebody rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rejected: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Written {
    version: u32,
    servers: BTreeMap<String, Entries>,
}

/// The file of 0.1.0: tools alone, their descriptions and schemas.
#[derive(Deserialize)]
struct WrittenBy010 {
    tools: BTreeMap<String, BTreeMap<String, PinnedBy010>>,
    #[serde(default)]
    rejected: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct PinnedBy010 {
    sha256: String,
    definition: Value,
}

/// Tells one state of a file from another.
#[derive(PartialEq)]
struct Stamp(u64, Option<SystemTime>);

impl Store {
    pub(super) fn open(path: PathBuf) -> Store {
        let mut store = Store {
            path,
            servers: BTreeMap::new(),
            unsaved: BTreeSet::new(),
            unsaved_kinds: BTreeSet::new(),
            bytes: BTreeMap::new(),
            seen: None,
            is_unreadable: false,
        };
        store.refresh();
        store
    }

    /// Takes over what other processes have written since.
    pub(super) fn refresh(&mut self) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        match read(&self.path) {
            Ok(written) => {
                let mine = std::mem::replace(&mut self.servers, written.unwrap_or_default());
                self.is_unreadable = false;
                for (server, kind) in &self.unsaved_kinds {
                    kind_of(&mut self.servers, server, *kind);
                }
                for place in &self.unsaved {
                    put(&mut self.servers, place, find(&mine, place).cloned());
                }
            }
            Err(error) => {
                let path = self.path.display();
                tracing::error!(
                    %error,
                    %path,
                    "the accepted definitions of MCP servers cannot be read: every definition counts as changed until it is accepted. Repair the file, or delete it to start anew"
                );
                self.is_unreadable = true;
            }
        }
        self.bytes.clear();
        for (server, entries) in &self.servers {
            let all = entries.values().flat_map(BTreeMap::values);
            self.bytes
                .insert(server.clone(), all.map(Entry::bytes).sum());
        }
    }

    /// Whether definitions of this kind were seen before: one that is not there then is new.
    pub(super) fn knows(&self, server: &str, kind: PinnedKind) -> bool {
        let entries = self.servers.get(server);
        self.is_unreadable || entries.is_some_and(|entries| entries.contains_key(&kind))
    }

    /// From here on, what is not there is new.
    pub(super) fn know(&mut self, server: &str, kind: PinnedKind) {
        if self.is_unreadable || self.knows(server, kind) {
            return;
        }
        kind_of(&mut self.servers, server, kind);
        self.unsaved_kinds.insert((server.to_owned(), kind));
    }

    pub(super) fn get(&self, place: &Place) -> Option<&Entry> {
        find(&self.servers, place)
    }

    /// The key of a definition that is accepted and not among those that are listed now.
    pub(super) fn unlisted(
        &self,
        server: &str,
        kind: PinnedKind,
        now: &Pinned,
        listed: &BTreeSet<&str>,
    ) -> Option<String> {
        let entries = self.servers.get(server)?.get(&kind)?;
        let is_it = |(key, entry): &(&String, &Entry)| {
            let accepted = entry.accepted.as_ref();
            accepted.is_some_and(|accepted| accepted.is(now)) && !listed.contains(key.as_str())
        };
        entries.iter().find(is_it).map(|(key, _)| key.clone())
    }

    /// Remembers it, as far as there is room. `listed`: keys that must stay.
    pub(super) fn put(&mut self, place: &Place, entry: Entry, listed: &BTreeSet<&str>) {
        let (server, kind, key) = place;
        if self.is_unreadable || self.get(place) == Some(&entry) {
            return;
        }
        let entries = kind_of(&mut self.servers, server, *kind);
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(key) {
            let gone = entries
                .keys()
                .find(|key| !listed.contains(key.as_str()))
                .cloned();
            let Some(gone) = gone else {
                return;
            };
            let entry = entries.remove(&gone).unwrap_or_default();
            let bytes = self.bytes.entry(server.clone()).or_default();
            *bytes = bytes.saturating_sub(entry.bytes());
            self.unsaved.insert((server.clone(), *kind, gone));
        }
        let before = entries.get(key).map_or(0, Entry::bytes);
        let bytes = self.bytes.entry(server.clone()).or_default();
        let others = bytes.saturating_sub(before);
        let entry = match others + entry.bytes() > DEFINITIONS_BYTES_MAX {
            true => entry.without_definitions(),
            false => entry,
        };
        *bytes = others + entry.bytes();
        entries.insert(key.clone(), entry);
        self.unsaved.insert(place.clone());
    }

    pub(super) fn remove(&mut self, place: &Place) {
        put(&mut self.servers, place, None);
        self.unsaved.insert(place.clone());
    }

    /// What has changed since it was last asked for, to be written.
    pub(super) fn unsaved(&mut self) -> Option<Unsaved> {
        if self.unsaved.is_empty() && self.unsaved_kinds.is_empty() {
            return None;
        }
        let places = std::mem::take(&mut self.unsaved).into_iter();
        let entries = places.map(|place| {
            let entry = self.get(&place).cloned();
            (place, entry)
        });
        Some(Unsaved {
            entries: entries.collect(),
            path: self.path.clone(),
            kinds: std::mem::take(&mut self.unsaved_kinds),
        })
    }

    /// It could not be written: the next one has it, too.
    pub(super) fn not_saved(&mut self, unsaved: Unsaved) {
        let places = unsaved.entries.into_iter().map(|(place, _)| place);
        self.unsaved.extend(places);
        self.unsaved_kinds.extend(unsaved.kinds);
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let both = [&self.accepted, &self.taken_over].into_iter().flatten();
        both.map(Pinned::bytes).sum()
    }

    fn without_definitions(self) -> Entry {
        Entry {
            accepted: self.accepted.map(Pinned::without_definition),
            taken_over: self.taken_over.map(Pinned::without_definition),
            rejected: self.rejected,
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let about = fs::symlink_metadata(path).ok()?;
        Some(Stamp(about.len(), about.modified().ok()))
    }
}

/// What the file should have besides what others have written.
pub(super) struct Unsaved {
    pub(super) path: PathBuf,
    entries: Vec<(Place, Option<Entry>)>,
    kinds: BTreeSet<(String, PinnedKind)>,
}

impl Unsaved {
    pub(super) fn write(&self) -> io::Result<()> {
        let _lock = private_file::lock(&self.path)?;
        let mut servers = read(&self.path)?.unwrap_or_default();
        for (server, kind) in &self.kinds {
            kind_of(&mut servers, server, *kind);
        }
        for (place, entry) in &self.entries {
            put(&mut servers, place, entry.clone());
        }
        let version = VERSION;
        let written = serde_json::to_vec(&Written { version, servers })?;
        private_file::replace(&self.path, &written)
    }
}

/// The key of a definition, of a bounded length.
pub(super) fn bounded(key: &str) -> String {
    use sha2::{Digest, Sha256};

    if key.len() <= KEY_BYTES_MAX {
        return key.to_owned();
    }
    let digest = Sha256::digest(key.as_bytes());
    let digest: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let beginning = &key[..key.floor_char_boundary(KEY_BYTES_MAX - 32)];
    format!("{beginning}…{digest}")
}

fn find<'a>(servers: &'a BTreeMap<String, Entries>, place: &Place) -> Option<&'a Entry> {
    let (server, kind, key) = place;
    servers.get(server)?.get(kind)?.get(key)
}

fn kind_of<'a>(
    servers: &'a mut BTreeMap<String, Entries>,
    server: &str,
    kind: PinnedKind,
) -> &'a mut BTreeMap<String, Entry> {
    let entries = servers.entry(server.to_owned()).or_default();
    entries.entry(kind).or_default()
}

fn put(servers: &mut BTreeMap<String, Entries>, place: &Place, entry: Option<Entry>) {
    let (server, kind, key) = place;
    let entries = kind_of(servers, server, *kind);
    match entry {
        Some(entry) => drop(entries.insert(key.clone(), entry)),
        None => drop(entries.remove(key)),
    }
}

/// What the file has; none if there is none.
fn read(path: &Path) -> io::Result<Option<BTreeMap<String, Entries>>> {
    let file = match private_file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let written: Value = serde_json::from_slice(&bytes)?;
    match written["version"].as_u64() {
        Some(1) => Ok(Some(upgraded(serde_json::from_value(written)?))),
        Some(version) if version == u64::from(VERSION) => {
            let written: Written = serde_json::from_value(written)?;
            Ok(Some(written.servers))
        }
        _ => Err(io::Error::other("it is not of this version of Steadyhand")),
    }
}

/// Definitions of 0.1.0 are completed when they are seen again and match as far as they go.
fn upgraded(written: WrittenBy010) -> BTreeMap<String, Entries> {
    let mut servers: BTreeMap<String, Entries> = BTreeMap::new();
    for (server, tools) in written.tools {
        let entries = kind_of(&mut servers, &server, PinnedKind::Tool);
        entries.extend(tools.into_iter().map(|(tool, pinned)| {
            let accepted = Pinned::as_of_0_1_0(pinned.sha256, pinned.definition);
            let entry = Entry {
                accepted: Some(accepted),
                ..Entry::default()
            };
            (tool, entry)
        }));
    }
    for (server, tools) in written.rejected {
        let entries = kind_of(&mut servers, &server, PinnedKind::Tool);
        for (tool, digest) in tools {
            entries.entry(tool).or_default().rejected = Some(digest);
        }
    }
    servers
}
