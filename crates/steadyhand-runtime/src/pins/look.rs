//! One look at what a server says now, beside what was accepted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;
use steadyhand::{Tool, clock};
use steadyhand_mcp::{Entries, Listed, OfferedTool, hide_in_value};

use super::definition::Pinned;
use super::kind::PinnedKind;
use super::store::{Entry, Place, Store, bounded};
use super::{CHANGES_MAX, Change, State, suspicious};
use crate::runtime::key_of;
use crate::source::mcp::PinMode;

/// What a server says now. What is not known yet is none.
pub struct Said {
    pub tools: Option<Vec<OfferedTool>>,
    pub lists: Vec<(Listed, Entries)>,
    pub instructions: Option<Option<String>>,
    /// Takes secrets out of what was kept before they were.
    pub hide: Option<steadyhand_mcp::Hide>,
}

/// What of it is to be used.
#[derive(Default)]
pub struct Reviewed {
    /// Tools that are kept away, and why.
    pub kept_away: Vec<(String, String)>,
    /// Tools whose hints promise more than somebody has accepted, with the definition that does not.
    pub hints_held: BTreeMap<String, Option<Box<RawValue>>>,
    /// Entries that are kept away, by what tells them from others.
    pub withheld: HashSet<(Listed, String)>,
    /// Instructions in the place of those it has now.
    pub instructions: Option<Option<String>>,
}

/// One definition as it is now.
struct Now<'a> {
    place: Place,
    raw: &'a RawValue,
    tool: Option<&'a Tool>,
    /// Others of its kind were seen at an earlier look: one that was not there then is new.
    is_known_kind: bool,
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
    pub(super) fn look(&mut self, server: &str, mode: PinMode, said: &Said) -> Reviewed {
        let mut reviewed = Reviewed::default();
        if let Some(tools) = &said.tools {
            let is_known_kind = self.store.knows(server, PinnedKind::Tool);
            let keys: Vec<String> = tools.iter().map(|it| bounded(it.tool.name())).collect();
            let listed: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
            for offered in tools {
                let name = offered.tool.name();
                let now = Now {
                    place: (server.to_owned(), PinnedKind::Tool, bounded(name)),
                    raw: &offered.own,
                    tool: Some(&offered.tool),
                    is_known_kind,
                };
                let standing = self.look_at(&now, mode, said, &listed);
                if let Some(reason) = standing.reason(name) {
                    reviewed.kept_away.push((name.to_owned(), reason));
                } else if let Some(accepted) = self.held_hints(&now) {
                    let definition = accepted.lay_over(&offered.definition);
                    reviewed.hints_held.insert(name.to_owned(), definition);
                }
            }
            self.store.know(server, PinnedKind::Tool);
        }
        if mode == PinMode::Off {
            return reviewed;
        }
        for (list, entries) in &said.lists {
            self.look_at_list(server, mode, said, (*list, entries), &mut reviewed);
        }
        if let Some(instructions) = &said.instructions {
            reviewed.instructions = self.look_at_instructions(server, mode, said, instructions);
        }
        reviewed
    }

    fn look_at_list(
        &mut self,
        server: &str,
        mode: PinMode,
        said: &Said,
        (list, entries): (Listed, &Entries),
        reviewed: &mut Reviewed,
    ) {
        let kind = PinnedKind::of(list);
        let is_known_kind = self.store.knows(server, kind);
        let named = entries.iter();
        let named = named.filter_map(|entry| Some((key_of(list, entry)?, entry)));
        let named: Vec<(String, _)> = named.collect();
        let bounded_keys: Vec<String> = named.iter().map(|(key, _)| bounded(key)).collect();
        let listed: BTreeSet<&str> = bounded_keys.iter().map(String::as_str).collect();
        for ((key, raw), bounded) in named.iter().zip(&bounded_keys) {
            let now = Now {
                place: (server.to_owned(), kind, bounded.clone()),
                raw,
                tool: None,
                is_known_kind,
            };
            if self.look_at(&now, mode, said, &listed) != Standing::Offered {
                reviewed.withheld.insert((list, key.clone()));
            }
        }
        self.store.know(server, kind);
    }

    /// What is said instead of the instructions, if they are kept away: those that were accepted.
    fn look_at_instructions(
        &mut self,
        server: &str,
        mode: PinMode,
        said: &Said,
        instructions: &Option<String>,
    ) -> Option<Option<String>> {
        let kind = PinnedKind::Instructions;
        let place = (server.to_owned(), kind, String::new());
        let text = instructions.as_deref().unwrap_or_default();
        let is_known_kind = self.store.knows(server, kind);
        let has_entry = self.store.get(&place).is_some();
        let mut instead = None;
        // None at all cannot mislead anybody; from then on, any are new.
        if !text.is_empty() || has_entry {
            let raw = serde_json::value::to_raw_value(&serde_json::json!({ "instructions": text }));
            let raw = raw.unwrap_or_else(|_| RawValue::NULL.to_owned());
            let now = Now {
                place: place.clone(),
                raw: &raw,
                tool: None,
                is_known_kind,
            };
            let listed = BTreeSet::from([""]);
            let standing = match text.is_empty() && is_known_kind {
                true => Standing::Offered,
                false => self.look_at(&now, mode, said, &listed),
            };
            if standing != Standing::Offered {
                let accepted = self.store.get(&place).and_then(|it| it.accepted.as_ref());
                let accepted = accepted.and_then(|it| it.definition()["instructions"].as_str());
                instead = Some(accepted.map(str::to_owned));
            }
        }
        self.store.know(server, kind);
        instead
    }

    /// The hints that count for a tool, where it promises more now.
    fn held_hints(&self, now: &Now<'_>) -> Option<super::definition::Hints> {
        let entry = self.store.get(&now.place);
        let accepted = entry.and_then(|entry| entry.accepted.as_ref());
        let accepted = accepted.map(Pinned::hints).unwrap_or_default();
        Pinned::of(now.raw)
            .hints()
            .loosen(accepted)
            .then_some(accepted)
    }

    fn look_at(
        &mut self,
        seen: &Now<'_>,
        mode: PinMode,
        said: &Said,
        listed: &BTreeSet<&str>,
    ) -> Standing {
        let (server, kind, key) = &seen.place;
        let now = Pinned::of(seen.raw);
        let before = self.store.get(&seen.place).cloned();
        let mut entry = before.clone().unwrap_or_default();
        let mut rejected = entry.rejected.as_deref() == Some(now.sha256());
        if let (Some(accepted), Some(tool)) = (&entry.accepted, seen.tool)
            && accepted.is_partial()
        {
            let partial = Pinned::partial(tool);
            let hide = |value: &mut Value| {
                if let Some(hide) = &said.hide {
                    hide_in_value(value, hide);
                }
            };
            if accepted.is_but_for(&partial, hide) {
                // It is what it was, as far as 0.1.0 looked: the rest is seen for the first time.
                entry.accepted = Some(now.clone());
                self.store.put(&seen.place, entry.clone(), listed);
            }
        }
        if let Some(tool) = seen.tool
            && entry.rejected.is_some()
        {
            rejected |= entry.rejected.as_deref() == Some(Pinned::partial(tool).sha256());
        }
        if entry.accepted.is_none() && *kind == PinnedKind::Tool && seen.is_known_kind {
            // Another name that the configuration has given to the same tool.
            if let Some(old) = self.store.unlisted(server, *kind, &now, listed) {
                let old = (server.clone(), *kind, old);
                entry = self.store.get(&old).cloned().unwrap_or_default();
                self.store.remove(&old);
                self.store.put(&seen.place, entry.clone(), listed);
            }
        }
        rejected &= mode != PinMode::Off;
        let subject = kind.subject(server, key);
        if !rejected && entry.accepted.as_ref().is_some_and(|it| it.is(&now)) {
            entry.taken_over = None;
            self.store.put(&seen.place, entry, listed);
            if self
                .changes
                .remove(&subject)
                .is_some_and(|it| it.quarantined)
            {
                self.settle(&subject, "it is as it was before");
            }
            return Standing::Offered;
        }
        let definition: Value = serde_json::from_str(seen.raw.get()).unwrap_or_default();
        let suspicious = match mode {
            PinMode::Off => Vec::new(),
            _ => suspicious::found_in(*kind, &definition),
        };
        let accepted_hints = entry.accepted.as_ref().map(Pinned::hints);
        let loosens =
            *kind == PinnedKind::Tool && now.hints().loosen(accepted_hints.unwrap_or_default());
        let is_first_sight = before.is_none() && !seen.is_known_kind;
        // Lists of resources come and go by their nature: a new entry is told only where it waits for somebody.
        let may_be_new =
            entry.accepted.is_none() && *kind != PinnedKind::Tool && mode == PinMode::Warn;
        let passes = match mode {
            PinMode::Off => is_first_sight || !loosens,
            _ => (is_first_sight || may_be_new) && suspicious.is_empty(),
        };
        if passes && !rejected {
            self.store.put(&seen.place, Entry::of(now), listed);
            self.changes.remove(&subject);
            return Standing::Offered;
        }
        let quarantined = rejected || mode == PinMode::Quarantine;
        let definition_hash = now.hash();
        let was_told = entry.taken_over.as_ref() == Some(&now);
        let differences = match &entry.accepted {
            Some(accepted) if accepted.is_partial() => {
                let partial = seen.tool.map(Pinned::partial);
                accepted.differences(partial.as_ref().unwrap_or(&now))
            }
            Some(accepted) if !accepted.is(&now) => accepted.differences(&now),
            Some(_) | None => Vec::new(),
        };
        match quarantined {
            true => drop(self.proposed.insert(seen.place.clone(), now)),
            false => {
                // It waited under a stricter setting.
                self.proposed.remove(&seen.place);
                entry.taken_over = Some(now);
                self.store.put(&seen.place, entry, listed);
            }
        }
        self.list(
            Change {
                tool: subject,
                kind: *kind,
                source: server.clone(),
                at_ms: clock::wall_ms(),
                quarantined,
                rejected,
                is_new: differences.is_empty() && accepted_hints.is_none() && !is_first_sight,
                hints_held: loosens,
                differences,
                suspicious,
                definition_hash,
                number: 0,
                key: key.clone(),
            },
            was_told,
        );
        match (rejected, quarantined) {
            (true, _) => Standing::Rejected,
            (false, true) => Standing::KeptAway,
            (false, false) => Standing::Offered,
        }
    }

    /// Lists a change, and tells of it unless somebody was told before.
    fn list(&mut self, mut change: Change, was_told: bool) {
        let before = self.changes.get(&change.tool);
        let is_known = before.is_some_and(|before| before.is_like(&change));
        if is_known || (self.changes.len() >= CHANGES_MAX && before.is_none()) {
            return;
        }
        self.listed += 1;
        change.number = self.listed;
        if !change.rejected && !was_told {
            tracing::warn!(
                subject = change.tool,
                server = change.source,
                "{}",
                change.words()
            );
            self.untold.push(change.tool.clone());
        }
        self.changes.insert(change.tool.clone(), change);
    }
}

impl Standing {
    fn reason(&self, tool: &str) -> Option<String> {
        match self {
            Standing::Offered => None,
            Standing::KeptAway => Some(format!(
                "its definition is not the one that was accepted; steadyhand tools changes shows it, steadyhand tools accept {tool} takes it over"
            )),
            Standing::Rejected => Some(format!(
                "its definition was rejected; steadyhand tools changes shows it, steadyhand tools accept {tool} takes it over all the same"
            )),
        }
    }
}

impl Entry {
    /// Of a definition that counts.
    pub(super) fn of(accepted: Pinned) -> Entry {
        Entry {
            accepted: Some(accepted),
            ..Entry::default()
        }
    }
}

impl Store {
    /// The definition with this digest, which waits or was taken over, counts from here on.
    pub(super) fn accept(&mut self, place: &Place, proposed: Option<Pinned>, hash: &str) {
        let entry = self.get(place).cloned().unwrap_or_default();
        let known = [proposed, entry.taken_over, entry.accepted];
        let mut known = known.into_iter().flatten();
        if let Some(accepted) = known.find(|it| it.hash() == hash) {
            self.put(place, Entry::of(accepted), &BTreeSet::new());
        }
    }

    /// It is not wanted; the one before it counts again. The one that is not wanted.
    pub(super) fn reject(
        &mut self,
        place: &Place,
        proposed: Option<Pinned>,
        hash: &str,
    ) -> Option<Pinned> {
        let mut entry = self.get(place).cloned().unwrap_or_default();
        let known = [proposed, entry.taken_over.take()];
        let mut known = known.into_iter().flatten();
        let unwanted = known.find(|it| it.hash() == hash)?;
        entry.rejected = Some(unwanted.sha256().to_owned());
        self.put(place, entry, &BTreeSet::new());
        Some(unwanted)
    }
}
