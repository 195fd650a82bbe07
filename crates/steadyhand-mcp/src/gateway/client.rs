//! A client: what it speaks, what it can be asked, what it wants to hear.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::era::Era;
use super::news::Versions;
use crate::wire::{Members, RpcError};

/// What a client may say about one capability; what is longer counts as said without details.
const CAPABILITY_BYTES_MAX: usize = 1024;
/// The capabilities of a client that are of any use to us, or to a server behind us. No other is kept.
const CAPABILITIES: [&str; 3] = ["roots", "sampling", "elicitation"];
/// Questions one client may have open at the same time.
const QUESTIONS_MAX: usize = 64;

/// How severe a message of a log is, the least severe first.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];
const UNSAID: u8 = u8::MAX;
/// The place of `warning`.
const WARNING: u8 = 3;

/// Who asks.
pub(super) struct Client {
    pub(super) era: Era,
    /// For histories: `mcp NAME`.
    pub(super) name: Arc<str>,
    pub(super) capabilities: Value,
    /// What it wants to hear of logs, as a place among the levels.
    level: AtomicU8,
    /// It has asked for the list of tools.
    has_listed: AtomicBool,
    listed: Mutex<ListedVersions>,
    pub(super) questions: Questions,
}

/// The versions of the lists that a client has got, where it has asked for them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListedVersions {
    pub(super) tools: Option<u64>,
    pub(super) prompts: Option<u64>,
    pub(super) resources: Option<u64>,
}

impl Client {
    pub(super) fn new(era: Era, name: Option<String>, capabilities: Value) -> Client {
        let name = match name {
            Some(name) => format!("mcp {name}").into(),
            None => "mcp".into(),
        };
        Client {
            era,
            name,
            capabilities,
            level: AtomicU8::new(UNSAID),
            has_listed: AtomicBool::new(false),
            listed: Mutex::default(),
            questions: Questions::default(),
        }
    }

    /// The versions of the lists that it has got.
    pub(super) fn listed(&self) -> ListedVersions {
        *self.listed.lock()
    }

    /// It gets a list that is at least as new as `versions`.
    pub(super) fn gets_list(&self, method: &str, versions: Versions) {
        let mut listed = self.listed.lock();
        match method {
            "tools/list" => listed.tools = Some(versions.tools),
            "prompts/list" => listed.prompts = Some(versions.prompts),
            "resources/list" | "resources/templates/list" => {
                listed.resources = Some(versions.resources);
            }
            _ => {}
        }
    }

    /// It asks for the list of tools. Whether that is the first time.
    pub(super) fn lists_first(&self) -> bool {
        !self.has_listed.swap(true, Ordering::AcqRel)
    }

    /// Sets the least severe level it wants to hear. False if there is no such level.
    pub(super) fn set_level(&self, level: &str) -> bool {
        let place = level_of(level);
        if let Some(place) = place {
            self.level.store(place, Ordering::Relaxed);
        }
        place.is_some()
    }

    pub(super) fn level(&self) -> Option<&'static str> {
        Client::level_at(self.level.load(Ordering::Relaxed))
    }

    /// The place of its level, the least severe first; none if it has said nothing.
    pub(super) fn level_place(&self) -> Option<u8> {
        let place = self.level.load(Ordering::Relaxed);
        (place != UNSAID).then_some(place)
    }

    pub(super) fn level_at(place: u8) -> Option<&'static str> {
        LEVELS.get(usize::from(place)).copied()
    }

    /// The level at which it hears that messages for it were dropped. None if it wants to hear nothing.
    pub(super) fn loss_level(&self) -> Option<&'static str> {
        match self.level_place() {
            None if self.era.is_modern() => None,
            place => Client::level_at(place.unwrap_or(WARNING).max(WARNING)),
        }
    }

    /// Whether it wants to hear a message of this level. Who has said nothing hears everything in the older
    /// protocols, and nothing in the newer one.
    pub(super) fn hears(&self, level: Option<&str>) -> bool {
        let wanted = self.level.load(Ordering::Relaxed);
        if wanted == UNSAID {
            return !self.era.is_modern();
        }
        // A level nobody knows is told: better once too often.
        level.and_then(level_of).is_none_or(|level| level >= wanted)
    }
}

/// What is kept of the capabilities that a client announces. None where that is no object.
pub(super) fn capabilities(announced: Option<&RawValue>) -> Option<Value> {
    let announced = Members::of(announced?)?;
    let mut kept = Map::new();
    for name in CAPABILITIES {
        let Some(raw) = announced.get(name) else {
            continue;
        };
        let details = match raw.get().len() <= CAPABILITY_BYTES_MAX {
            true => serde_json::from_str(raw.get()).unwrap_or_else(|_| json!({})),
            false => json!({}),
        };
        kept.insert(name.to_owned(), details);
    }
    Some(Value::Object(kept))
}

fn level_of(name: &str) -> Option<u8> {
    let place = LEVELS.iter().position(|level| *level == name);
    place.and_then(|place| u8::try_from(place).ok())
}

/// Requests of ours that wait for the client's answer: the older protocols have such.
#[derive(Default)]
pub(super) struct Questions {
    last: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Answered>>>,
}

/// What the client said.
pub(super) type Answered = Result<Box<RawValue>, RpcError>;

impl Questions {
    /// A new one: its id, and where the answer will be. None if too many are open.
    pub(super) fn open(&self) -> Option<(u64, oneshot::Receiver<Answered>)> {
        let mut open = self.lock();
        if open.len() >= QUESTIONS_MAX {
            return None;
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, receiver) = oneshot::channel();
        open.insert(id, answer);
        Some((id, receiver))
    }

    /// The client has answered. Nothing happens if nobody has asked, or nobody waits any more.
    pub(super) fn answer(&self, id: Option<u64>, answer: Result<&RawValue, RpcError>) {
        let waiting = id.and_then(|id| self.lock().remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer.map(RawValue::to_owned));
        }
    }

    pub(super) fn are_open(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Nobody waits for it any more. False if it was answered before.
    pub(super) fn withdraw(&self, id: u64) -> bool {
        self.lock().remove(&id).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answered>>> {
        self.open.lock()
    }
}
