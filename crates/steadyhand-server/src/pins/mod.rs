//! Definitions of tools that come from MCP servers, remembered as they were first seen: what a server changes later is
//! shown, told, and – where wanted – kept away from models until somebody accepts it.

mod difference;
mod store;
mod suspicious;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use steadyhand::{Tool, clock};
use utoipa::ToSchema;

use crate::source::mcp::PinMode;
pub(crate) use difference::Difference;
use store::{Pinned, Store};
pub(crate) use suspicious::{found as suspicious_in, marked as suspicious_passages};

/// Tools that are remembered.
const TOOLS_MAX: usize = 20_000;
/// Changes that are listed.
const CHANGES_MAX: usize = 1_000;

/// What is remembered, over all servers of a configuration. Cheap to clone: clones are the same.
#[derive(Clone)]
pub struct Pins {
    inner: Arc<Mutex<State>>,
    /// Held while the file is written: one after the other, and nobody who looks waits for it.
    writing: Arc<Mutex<()>>,
}

struct State {
    store: Store,
    changes: BTreeMap<String, Change>,
    /// Changes nobody was told of yet.
    untold: Vec<String>,
    /// Tools whose change is over, and what ended it.
    settled: Vec<(String, String)>,
}

/// A tool whose definition is another one than before, or not what it seems
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ToolChange)]
pub(crate) struct Change {
    /// The tool
    pub(crate) tool: String,
    /// The server it comes from
    pub(crate) source: String,
    /// When that was seen, in milliseconds since 1970
    pub(crate) at_ms: u64,
    /// It is kept away until somebody accepts it
    pub(crate) quarantined: bool,
    /// Somebody rejected it: it stays away, and nobody is asked again until it is another one
    pub(crate) rejected: bool,
    /// What is another than before; empty for a tool that is new
    pub(crate) differences: Vec<Difference>,
    /// What people do not see, or what speaks to the model and not of the tool
    pub(crate) suspicious: Vec<String>,
}

impl Change {
    /// In words.
    pub(crate) fn words(&self) -> String {
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
        }
        words
    }
}

impl Pins {
    /// Kept in this file.
    pub(crate) fn open(path: PathBuf) -> Pins {
        Pins {
            inner: Arc::new(Mutex::new(State {
                store: Store::open(path),
                changes: BTreeMap::new(),
                untold: Vec::new(),
                settled: Vec::new(),
            })),
            writing: Arc::default(),
        }
    }

    /// Looks at the tools a server has now. Gives back those that are kept away, and why.
    pub(crate) fn look(
        &self,
        source: &str,
        mode: PinMode,
        tools: &[Tool],
    ) -> Vec<(String, String)> {
        if mode == PinMode::Off {
            return Vec::new();
        }
        let mut state = self.state();
        let mut kept_away = Vec::new();
        for tool in tools {
            let name = tool.name();
            let reason = match state.look_at(source, mode, tool) {
                Standing::Offered => continue,
                Standing::KeptAway => format!(
                    "its definition is not the one that was accepted; steadyhand tools changes shows it, steadyhand tools accept {name} takes it over"
                ),
                Standing::Rejected => format!(
                    "its definition was rejected; steadyhand tools changes shows it, steadyhand tools accept {name} takes it over all the same"
                ),
            };
            kept_away.push((name.to_owned(), reason));
        }
        kept_away
    }

    /// Writes down what was seen. Nobody waits for it: a definition that is lost is seen for the first time again.
    pub(crate) fn save_soon(&self) {
        let pins = self.clone();
        tokio::task::spawn_blocking(move || pins.save());
    }

    fn save(&self) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unsaved) = self.state().store.unsaved() else {
            return;
        };
        if let Err(error) = unsaved.write() {
            let path = unsaved.path.display();
            tracing::error!(%error, %path, "the definitions of tools cannot be kept");
            self.state().store.not_saved();
        }
    }

    /// The definition as it is now is the one that counts. The server it comes from; none if nothing waits.
    pub(crate) fn accept(&self, tool: &str) -> Option<String> {
        let mut state = self.state();
        let change = state.changes.remove(tool)?;
        state.store.accept(&change.source, tool);
        state.settle(tool, "it was accepted");
        drop(state);
        self.save();
        Some(change.source)
    }

    /// The definition as it is now is not wanted: the tool stays away until it has another one, or until this one is
    /// accepted. The server it comes from; none if there is no such change.
    pub(crate) fn reject(&self, tool: &str) -> Option<String> {
        let mut state = self.state();
        let change = state.changes.get_mut(tool)?;
        change.rejected = true;
        change.quarantined = true;
        let source = change.source.clone();
        state.store.reject(&source, tool);
        state.settle(tool, "it was rejected");
        drop(state);
        self.save();
        Some(source)
    }

    /// What is another about this tool.
    pub(crate) fn change_of(&self, tool: &str) -> Option<Change> {
        self.state().changes.get(tool).cloned()
    }

    /// All that are listed.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.state().changes.values().cloned().collect()
    }

    /// Changes that nobody was told of yet, and those that are kept away.
    pub(crate) fn to_be_told(&self) -> Vec<Change> {
        let mut state = self.state();
        let untold = std::mem::take(&mut state.untold);
        let is_due = |change: &&Change| {
            !change.rejected && (change.quarantined || untold.contains(&change.tool))
        };
        state.changes.values().filter(is_due).cloned().collect()
    }

    /// Tools whose change is over since this was last asked, and what ended it.
    pub(crate) fn take_settled(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.state().settled)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(PartialEq, Eq)]
enum Standing {
    Offered,
    /// Until somebody decides.
    KeptAway,
    /// Somebody has decided.
    Rejected,
}

impl State {
    fn look_at(&mut self, source: &str, mode: PinMode, tool: &Tool) -> Standing {
        let now = Pinned::of(tool);
        let known = self.store.get(source, tool.name());
        let rejected = self.store.is_rejected(source, tool.name(), &now);
        if known.is_some_and(|known| known.is(&now)) && !rejected {
            if self
                .changes
                .remove(tool.name())
                .is_some_and(|it| it.quarantined)
            {
                self.settle(tool.name(), "it is as it was before");
            }
            return Standing::Offered;
        }
        let differences = known
            .filter(|known| !known.is(&now))
            .map(|known| known.differences(&now))
            .unwrap_or_default();
        let suspicious = suspicious::found_in(tool);
        let is_new = known.is_none();
        if is_new && suspicious.is_empty() && !rejected {
            self.remember(source, tool.name(), now);
            return Standing::Offered;
        }
        let quarantined = rejected || mode == PinMode::Quarantine;
        match quarantined {
            true => self.store.propose(source, tool.name(), now),
            false => {
                self.store.keep_previous(source, tool.name());
                self.remember(source, tool.name(), now);
            }
        }
        let change = Change {
            tool: tool.name().to_owned(),
            source: source.to_owned(),
            at_ms: clock::wall_ms(),
            quarantined,
            rejected,
            differences,
            suspicious,
        };
        let before = self.changes.get(tool.name());
        let is_known = before.is_some_and(|before| {
            before.quarantined
                && (&before.differences, &before.suspicious)
                    == (&change.differences, &change.suspicious)
        });
        if !is_known && (self.changes.len() < CHANGES_MAX || before.is_some()) {
            if !rejected {
                tracing::warn!(tool = change.tool, source, "{}", change.words());
                self.untold.push(change.tool.clone());
            }
            self.changes.insert(change.tool.clone(), change);
        }
        match (rejected, quarantined) {
            (true, _) => Standing::Rejected,
            (false, true) => Standing::KeptAway,
            (false, false) => Standing::Offered,
        }
    }

    fn remember(&mut self, source: &str, tool: &str, definition: Pinned) {
        if self.store.count() < TOOLS_MAX || self.store.get(source, tool).is_some() {
            self.store.put(source, tool, definition);
        }
    }

    fn settle(&mut self, tool: &str, because: &str) {
        if self.settled.len() < CHANGES_MAX {
            self.settled.push((tool.to_owned(), because.to_owned()));
        }
    }
}
