//! What MCP servers say of themselves – tools, prompts, resources, instructions – remembered as it was first seen: what a
//! server changes later is shown, told, and – where wanted – kept away from models until somebody accepts it.

mod definition;
mod difference;
mod kind;
mod look;
mod store;
mod suspicious;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

use crate::source::mcp::PinMode;
use definition::Pinned;
pub use difference::Difference;
pub use kind::PinnedKind;
pub use look::{Reviewed, Said};
use store::{Place, Store};
pub use suspicious::{found as suspicious_in, marked as suspicious_passages};

/// Changes that are listed.
const CHANGES_MAX: usize = 1_000;
/// Readers of the list that are remembered.
const READERS_MAX: usize = 256;

/// What is remembered, over all servers of a configuration. Cheap to clone: clones are the same.
#[derive(Clone)]
pub struct Pins {
    inner: Arc<Mutex<State>>,
    /// Held while the file is written: one after the other, and nobody who looks waits for it.
    writing: Arc<Mutex<()>>,
}

struct State {
    store: Store,
    /// By what they are about.
    changes: BTreeMap<String, Change>,
    /// Definitions that wait to be accepted.
    proposed: BTreeMap<Place, Pinned>,
    /// Changes nobody was told of yet.
    untold: Vec<String>,
    /// Tools whose change is over, and what ended it.
    settled: Vec<(String, String)>,
    /// Counts the changes that were listed.
    listed: u64,
    /// Up to which change everyone has seen the list, as far as that is remembered.
    shown: BTreeMap<String, u64>,
}

/// Why a definition is neither accepted nor rejected.
#[derive(Debug, PartialEq, Eq)]
pub enum NotDecided {
    /// No change has this name.
    NoSuchChange,
    /// It is not the definition that was seen.
    AnotherDefinition {
        /// The digest of the one there is now.
        definition_hash: String,
        /// Whether a digest was given at all.
        is_named: bool,
    },
}

/// Which definition a decision is about.
#[derive(Debug, Clone, Copy)]
pub enum SeenDefinition<'a> {
    /// The one with this digest.
    Hash(&'a str),
    /// The one that was on the list when this reader saw it last. Nobody is sure of what it says but who has seen it.
    AsShownTo(&'a str),
    /// Whatever it is now.
    Any,
}

/// A definition that is another one than before, new, or not what it seems
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ToolChange)]
pub struct Change {
    /// What changed, as it is accepted or rejected: the name of a tool, or for example `github/prompts/review`,
    /// `github/resources/file:///notes.md`, `github/templates/file:///{path}`, `github/instructions`
    pub tool: String,
    /// What that is
    pub kind: PinnedKind,
    /// The server it comes from
    pub source: String,
    /// When that was seen, in milliseconds since 1970
    pub at_ms: u64,
    /// It is kept away until somebody accepts it
    pub quarantined: bool,
    /// Somebody rejected it: it stays away, and nobody is asked again until it is another one
    pub rejected: bool,
    /// Its server was known before, and this is new
    pub is_new: bool,
    /// What it says about being safe to repeat, read-only or harmless is not believed until somebody accepts it
    pub hints_held: bool,
    /// What is another than before; empty for what is new
    pub differences: Vec<Difference>,
    /// What people do not see, or what speaks to the model and not of the tool
    pub suspicious: Vec<String>,
    /// The digest of the definition as it is now: who accepts it says this, and accepts nothing else
    #[schema(example = "sha256:5d41402abc4b2a76b9719d911017c592ae6b1b8c3e6b7f0d6c8a3f0f4f0c2b1a")]
    pub definition_hash: String,
    /// Which of the changes that were listed it is.
    #[serde(skip)]
    number: u64,
    /// What tells it from others of its kind at its server.
    #[serde(skip)]
    key: String,
}

impl Change {
    /// In words.
    pub fn words(&self) -> String {
        let mut words = match self.differences.as_slice() {
            [] => format!("{} is new", self.tool),
            [only] => format!("{}: its {} changed", self.tool, only.at),
            [first, others @ ..] => {
                let places = match others.len() {
                    1 => "1 more place".to_owned(),
                    count => format!("{count} more places"),
                };
                format!("{}: its {} and {places} changed", self.tool, first.at)
            }
        };
        if let Some(first) = self.suspicious.first() {
            words.push_str(&format!("; suspicious: {first}"));
        }
        if self.quarantined {
            words.push_str("; it is kept away until it is accepted");
        } else if self.hints_held {
            words.push_str("; its hints are not used until it is accepted");
        }
        words
    }

    /// Whether it says the same as another one about the same.
    fn is_like(&self, other: &Change) -> bool {
        (self.quarantined, self.rejected, self.hints_held)
            == (other.quarantined, other.rejected, other.hints_held)
            && (&self.differences, &self.suspicious) == (&other.differences, &other.suspicious)
            && self.definition_hash == other.definition_hash
    }

    fn place(&self) -> Place {
        (self.source.clone(), self.kind, self.key.clone())
    }
}

impl Pins {
    /// Kept in this file.
    pub fn open(path: PathBuf) -> Pins {
        Pins {
            inner: Arc::new(Mutex::new(State {
                store: Store::open(path),
                changes: BTreeMap::new(),
                proposed: BTreeMap::new(),
                untold: Vec::new(),
                settled: Vec::new(),
                listed: 0,
                shown: BTreeMap::new(),
            })),
            writing: Arc::default(),
        }
    }

    /// Looks at what a server says now. Reads the file, if another process has written it.
    pub fn look(&self, source: &str, mode: PinMode, said: &Said) -> Reviewed {
        let mut state = self.state();
        state.store.refresh();
        state.look(source, mode, said)
    }

    /// Writes down what was seen. Nobody waits for it: a definition that is lost is seen for the first time again.
    pub fn save_soon(&self) {
        let pins = self.clone();
        tokio::task::spawn_blocking(move || pins.save());
    }

    /// Writes down what was seen.
    pub fn save(&self) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unsaved) = self.state().store.unsaved() else {
            return;
        };
        if let Err(error) = unsaved.write() {
            let path = unsaved.path.display();
            tracing::error!(%error, %path, "the definitions of MCP servers cannot be kept");
            self.state().store.not_saved(unsaved);
        }
    }

    /// The definition that was seen is the one that counts, if it is the one there is now. What was accepted.
    pub fn accept(&self, tool: &str, seen: SeenDefinition<'_>) -> Result<Change, NotDecided> {
        let mut state = self.state();
        state.check_seen(tool, seen)?;
        let Some(change) = state.changes.remove(tool) else {
            return Err(NotDecided::NoSuchChange);
        };
        let place = change.place();
        let proposed = state.proposed.remove(&place);
        state
            .store
            .accept(&place, proposed, &change.definition_hash);
        state.settle(tool, "it was accepted");
        drop(state);
        self.save();
        Ok(change)
    }

    /// The definition that was seen is not wanted: the tool stays away until it has another one, or until this one is
    /// accepted. What was rejected.
    pub fn reject(&self, tool: &str, seen: SeenDefinition<'_>) -> Result<Change, NotDecided> {
        let mut state = self.state();
        state.check_seen(tool, seen)?;
        let Some(change) = state.changes.get_mut(tool) else {
            return Err(NotDecided::NoSuchChange);
        };
        change.rejected = true;
        change.quarantined = true;
        let (change, place) = (change.clone(), change.place());
        let proposed = state.proposed.get(&place).cloned();
        let hash = &change.definition_hash;
        if let Some(unwanted) = state.store.reject(&place, proposed, hash) {
            state.proposed.insert(place, unwanted);
        }
        state.settle(tool, "it was rejected");
        drop(state);
        self.save();
        Ok(change)
    }

    /// What is another about this tool.
    pub fn change_of(&self, tool: &str) -> Option<Change> {
        self.state().changes.get(tool).cloned()
    }

    /// All that are listed, for someone who may decide about them afterwards without saying what they have seen.
    pub fn changes_shown_to(&self, reader: &str) -> Vec<Change> {
        let mut state = self.state();
        let listed = state.listed;
        state.shown.insert(reader.to_owned(), listed);
        if state.shown.len() > READERS_MAX {
            // Whoever saw the list first is asked to look again.
            let oldest = state.shown.iter().min_by_key(|(_, listed)| **listed);
            let oldest = oldest.map(|(reader, _)| reader.clone());
            oldest.and_then(|oldest| state.shown.remove(&oldest));
        }
        state.changes.values().cloned().collect()
    }

    /// All that are listed.
    pub fn changes(&self) -> Vec<Change> {
        self.state().changes.values().cloned().collect()
    }

    /// Changes that nobody was told of yet, and those that are kept away.
    pub fn to_be_told(&self) -> Vec<Change> {
        let mut state = self.state();
        let untold = std::mem::take(&mut state.untold);
        let is_due = |change: &&Change| {
            !change.rejected && (change.quarantined || untold.contains(&change.tool))
        };
        state.changes.values().filter(is_due).cloned().collect()
    }

    /// Changes that this process saw first, and told nobody of.
    pub fn take_untold(&self) -> Vec<Change> {
        let mut state = self.state();
        let untold = std::mem::take(&mut state.untold);
        let changes = untold.iter().filter_map(|it| state.changes.get(it));
        changes.cloned().collect()
    }

    /// Tools whose change is over since this was last asked, and what ended it.
    pub fn take_settled(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.state().settled)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether what was seen is what there is now.
    fn check_seen(&self, tool: &str, seen: SeenDefinition<'_>) -> Result<(), NotDecided> {
        let change = self.changes.get(tool).ok_or(NotDecided::NoSuchChange)?;
        let (is_it, is_named) = match seen {
            SeenDefinition::Hash(hash) => (change.definition_hash == hash, true),
            SeenDefinition::AsShownTo(reader) => {
                let shown = self.shown.get(reader);
                (shown.is_some_and(|shown| *shown >= change.number), false)
            }
            SeenDefinition::Any => (true, false),
        };
        match is_it {
            true => Ok(()),
            false => Err(NotDecided::AnotherDefinition {
                definition_hash: change.definition_hash.clone(),
                is_named,
            }),
        }
    }

    fn settle(&mut self, tool: &str, because: &str) {
        if self.settled.len() < CHANGES_MAX {
            self.settled.push((tool.to_owned(), because.to_owned()));
        }
    }
}
