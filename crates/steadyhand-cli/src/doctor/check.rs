//! One thing that was looked at: how it fares, and what to do about it.

use serde_json::{Map, Value, json};

/// Where it belongs; in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Config,
    Servers,
    Models,
    Running,
    State,
    Machine,
}

/// How it fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// Works, and deserves a look.
    Note,
    /// Does not work.
    Fix,
    /// Nothing was found out about it.
    Info,
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pub(super) group: Group,
    /// Stable, for machines and for the docs.
    pub(super) id: &'static str,
    /// What it is about: a server, a model, or the check itself.
    pub(super) name: String,
    pub(super) state: State,
    pub(super) text: String,
    /// Further lines that show why.
    pub(super) evidence: Vec<String>,
    /// What to do about it.
    pub(super) next: Vec<String>,
    /// More for machines.
    pub(super) details: Map<String, Value>,
}

impl Group {
    pub(super) fn title(self) -> &'static str {
        match self {
            Group::Config => "Config",
            Group::Servers => "Servers",
            Group::Models => "Models",
            Group::Running => "Running server",
            Group::State => "State",
            Group::Machine => "Machine",
        }
    }
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Note => "note",
            State::Fix => "fix",
            State::Info => "info",
        }
    }
}

impl Check {
    pub(super) fn new(
        group: Group,
        id: &'static str,
        name: impl Into<String>,
        state: State,
        text: impl Into<String>,
    ) -> Check {
        Check {
            group,
            id,
            name: name.into(),
            state,
            text: text.into(),
            evidence: Vec::new(),
            next: Vec::new(),
            details: Map::new(),
        }
    }

    /// What to do about it; lines of one text are steps of their own.
    #[must_use]
    pub(super) fn next(mut self, next: impl AsRef<str>) -> Check {
        let lines = next.as_ref().lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty());
        self.next.extend(lines.map(str::to_owned));
        self
    }

    #[must_use]
    pub(super) fn because(mut self, evidence: impl IntoIterator<Item = String>) -> Check {
        self.evidence.extend(evidence);
        self
    }

    #[must_use]
    pub(super) fn detail(mut self, name: &str, value: Value) -> Check {
        self.details.insert(name.to_owned(), value);
        self
    }

    pub(super) fn to_json(&self) -> Value {
        let mut view = json!({
            "id": self.id,
            "group": self.group.title(),
            "name": self.name,
            "state": self.state.word(),
            "text": self.text,
        });
        if !self.evidence.is_empty() {
            view["evidence"] = json!(self.evidence);
        }
        if !self.next.is_empty() {
            view["next"] = json!(self.next);
        }
        if !self.details.is_empty() {
            view["details"] = Value::Object(self.details.clone());
        }
        view
    }
}
