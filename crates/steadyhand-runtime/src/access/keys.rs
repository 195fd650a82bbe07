//! API keys: a file of digests in the state folder. Every process of a configuration reads the same one, and sees a
//! key that was made or revoked by another at the next request.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use steadyhand::clock;
use tokio::time::Instant;

use super::identity::{By, Identity};
use super::key_file::{Kept, KeyFile, Stamp};
use super::pace::Pace;
use super::tools::{PATTERNS_MAX, Tools};
use super::{Digested, FOLDER, chance, random};
use steadyhand_config::role::Role;
use steadyhand_config::units::Rate;

/// What keys begin with, so that people and scanners know one when they see it.
const PREFIX: &str = "shk_";
const KEYS_MAX: usize = 10_000;
const NAME_CHARS_MAX: usize = 64;
/// The file is looked at so often at most: requests that come together ask once.
const LOOK: Duration = Duration::from_millis(1);

/// The keys of a configuration.
pub struct Keys {
    file: KeyFile,
    known: Mutex<Known>,
}

/// A key, without what it takes to use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub id: String,
    pub name: String,
    pub role: Role,
    #[serde(default)]
    pub tools: Tools,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    pub created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<u64>,
}

/// A key to be made.
pub struct NewKey {
    pub name: String,
    pub role: Role,
    pub tools: Tools,
    pub rate: Option<Rate>,
    pub expires_ms: Option<u64>,
}

/// Why a key does not let anybody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotLetIn {
    /// There is no such key.
    Unknown,
    /// There was; its name, and since when not any more.
    Revoked {
        name: String,
    },
    Expired {
        name: String,
    },
    /// The file cannot be read: nobody is let in by a guess.
    Unreadable(String),
}

/// Why the keys stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotKeep {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// There is no such key.
    #[error("there is no key {0:?} that is in use")]
    NoSuchKey(String),
    /// The file.
    #[error("{0}")]
    File(String),
}

#[derive(Default)]
struct Known {
    stamp: Option<Stamp>,
    /// When the file was last looked at.
    looked: Option<Instant>,
    /// Keys were seen here: from then on nobody gets in without credentials, whatever becomes of the file.
    was_in_force: bool,
    problem: Option<String>,
    by_id: HashMap<String, Entry>,
}

struct Entry {
    key: Key,
    digest: Digested,
    identity: Arc<Identity>,
}

impl Keys {
    /// The keys of a configuration; `name` is its name in the state folder.
    pub fn of(state: &Path, name: &str) -> Keys {
        Keys {
            file: KeyFile {
                path: state.join(FOLDER).join(format!("{name}.keys.json")),
            },
            known: Mutex::default(),
        }
    }

    /// Whether there are keys, or were: revoking the last one does not open the door.
    pub fn are_in_force(&self) -> bool {
        let known = self.known();
        known.was_in_force
    }

    /// Whether one of them lets somebody in now.
    pub fn has_a_usable_one(&self) -> bool {
        let now_ms = clock::wall_ms();
        let known = self.known();
        let mut entries = known.by_id.values();
        entries.any(|entry| entry.key.revoked_ms.is_none() && !entry.key.has_expired(now_ms))
    }

    /// Whether a credential means to be one of these.
    pub fn are_meant(credential: &str) -> bool {
        credential.starts_with(PREFIX)
    }

    /// The id of the key that a credential means to be.
    pub fn id_of(presented: &str) -> Option<&str> {
        let (id, _) = presented.strip_prefix(PREFIX)?.split_once('_')?;
        Some(id)
    }

    /// Who has this key.
    pub fn identify(&self, presented: &str) -> Result<Arc<Identity>, NotLetIn> {
        // Made before anything is looked up: an unknown id takes as long as a known one.
        let digest = Digested::of(presented);
        let id = Keys::id_of(presented).unwrap_or_default();
        let known = self.known();
        if let Some(problem) = &known.problem {
            return Err(NotLetIn::Unreadable(problem.clone()));
        }
        let entry = known.by_id.get(id);
        let of_nobody = Digested([0; 32]);
        let is_it = entry.map_or(&of_nobody, |entry| &entry.digest).is(&digest);
        let Some(entry) = entry.filter(|_| is_it) else {
            return Err(NotLetIn::Unknown);
        };
        let name = || entry.key.name.clone();
        if entry.key.revoked_ms.is_some() {
            return Err(NotLetIn::Revoked { name: name() });
        }
        if entry.key.has_expired(clock::wall_ms()) {
            return Err(NotLetIn::Expired { name: name() });
        }
        Ok(Arc::clone(&entry.identity))
    }

    /// The id of the key of this name that is in use.
    pub fn id_in_use(&self, name: &str) -> Option<String> {
        let known = self.known();
        let mut entries = known.by_id.values();
        let entry = entries.find(|entry| entry.key.name == name && entry.key.revoked_ms.is_none());
        entry.map(|entry| entry.key.id.clone())
    }

    /// All keys, the newest first; those that are revoked too.
    pub fn list(&self) -> Result<Vec<Key>, CannotKeep> {
        let mut keys: Vec<Key> = self.file.read()?.into_iter().map(|kept| kept.key).collect();
        keys.sort_by(|one, other| {
            let age = other.created_ms.cmp(&one.created_ms);
            age.then_with(|| one.id.cmp(&other.id))
        });
        Ok(keys)
    }

    /// Makes a key. What it takes to use it is given back this once, and kept nowhere.
    pub fn create(&self, new: NewKey) -> Result<(Key, SecretString), CannotKeep> {
        new.check()?;
        let _lock = self.file.lock()?;
        let mut keys = self.file.read()?;
        let now_ms = clock::wall_ms();
        let is_taken = |kept: &Kept| kept.key.name == new.name && kept.key.revoked_ms.is_none();
        if keys.iter().any(is_taken) {
            return Err(CannotKeep::Wrong(format!(
                "there is a key named {:?} already; revoke it first, or take another name",
                new.name
            )));
        }
        if keys.len() >= KEYS_MAX {
            // Those that are of no use any more make room.
            keys.retain(|kept| kept.key.revoked_ms.is_none() && !kept.key.has_expired(now_ms));
        }
        if keys.len() >= KEYS_MAX {
            return Err(CannotKeep::Wrong(format!(
                "there are {KEYS_MAX} keys, which is as many as may be; revoke one first"
            )));
        }
        let id: String = chance::<6>()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let secret = format!("{PREFIX}{id}_{}", random());
        let key = Key {
            id,
            name: new.name,
            role: new.role,
            tools: new.tools,
            rate: new.rate.map(|rate| rate.to_string()),
            created_ms: now_ms,
            expires_ms: new.expires_ms,
            revoked_ms: None,
        };
        keys.push(Kept {
            key: key.clone(),
            sha256: Digested::of(&secret).hex(),
        });
        self.write(keys)?;
        Ok((key, SecretString::from(secret)))
    }

    /// From here on this key, by its id or its name, lets nobody in.
    pub fn revoke(&self, id_or_name: &str) -> Result<Key, CannotKeep> {
        let _lock = self.file.lock()?;
        let mut keys = self.file.read()?;
        let is_it = |kept: &&mut Kept| {
            kept.key.revoked_ms.is_none()
                && (kept.key.id == id_or_name || kept.key.name == id_or_name)
        };
        let Some(kept) = keys.iter_mut().find(is_it) else {
            return Err(CannotKeep::NoSuchKey(id_or_name.to_owned()));
        };
        kept.key.revoked_ms = Some(clock::wall_ms());
        let revoked = kept.key.clone();
        self.write(keys)?;
        Ok(revoked)
    }

    fn write(&self, keys: Vec<Kept>) -> Result<(), CannotKeep> {
        self.file.write(keys)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.looked = None;
        Ok(())
    }

    /// What is known now: the file is read again when it is another one.
    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.looked.is_some_and(|looked| now - looked < LOOK) {
            return known;
        }
        known.looked = Some(now);
        let stamp = self.file.stamp();
        if stamp == known.stamp && known.problem.is_none() {
            return known;
        }
        match self.file.read() {
            Ok(keys) => known.take_over(keys),
            Err(error) => {
                known.was_in_force = true;
                known.problem = Some(error.to_string());
            }
        }
        known.stamp = stamp;
        known
    }
}

impl Known {
    fn take_over(&mut self, keys: Vec<Kept>) {
        self.was_in_force |= !keys.is_empty();
        self.problem = None;
        let before = std::mem::take(&mut self.by_id);
        for kept in keys {
            let Some(digest) = Digested::parse(&kept.sha256) else {
                continue;
            };
            let old = before.get(&kept.key.id);
            let identity = match old.filter(|old| old.key.is_limited_like(&kept.key)) {
                // Its pace goes on: another key that is made is no reason to begin again.
                Some(old) => Arc::clone(&old.identity),
                None => Arc::new(kept.key.identity()),
            };
            let entry = Entry {
                key: kept.key.clone(),
                digest,
                identity,
            };
            self.by_id.insert(kept.key.id, entry);
        }
    }
}

impl Key {
    fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at <= now_ms)
    }

    /// `in use`, `revoked`, `expired`
    pub fn state(&self, now_ms: u64) -> &'static str {
        match (self.revoked_ms, self.has_expired(now_ms)) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "in use",
        }
    }

    fn is_limited_like(&self, other: &Key) -> bool {
        (&self.name, self.role, &self.tools, &self.rate)
            == (&other.name, other.role, &other.tools, &other.rate)
    }

    fn identity(&self) -> Identity {
        let rate = self.rate.as_deref().and_then(|rate| rate.parse().ok());
        Identity {
            name: Some(format!("@{}", self.name).into()),
            by: By::Key,
            role: self.role,
            tools: self.tools.clone(),
            pace: rate.map(|rate| Arc::new(Pace::new(rate))),
        }
    }
}

impl NewKey {
    fn check(&self) -> Result<(), CannotKeep> {
        let is_plain = |c: char| c.is_alphanumeric() || "_-. ".contains(c);
        let chars = self.name.chars().count();
        let is_name = (1..=NAME_CHARS_MAX).contains(&chars)
            && self.name.chars().all(is_plain)
            && self.name.trim() == self.name;
        if !is_name {
            return Err(CannotKeep::Wrong(format!(
                "{:?} is no name for a key; take 1 to {NAME_CHARS_MAX} letters, digits, - _ . or spaces between them",
                self.name
            )));
        }
        let patterns = self.tools.allow.len() + self.tools.deny.len();
        if patterns > PATTERNS_MAX {
            return Err(CannotKeep::Wrong(format!(
                "{patterns} patterns of tools are too many; {PATTERNS_MAX} at most"
            )));
        }
        if self
            .tools
            .allow
            .iter()
            .chain(&self.tools.deny)
            .any(String::is_empty)
        {
            return Err(CannotKeep::Wrong("a pattern of tools is empty".to_owned()));
        }
        Ok(())
    }
}
