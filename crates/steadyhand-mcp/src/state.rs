//! Where a server stands, as everyone may see it.

use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use crate::catalogue::Greeting;
use crate::definition::Unusable;
use crate::failure::{StartFailure, Step};
use crate::settings::ServerSettings;

/// Where a server stands.
#[derive(Debug, Clone, Serialize)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// `stdio`, `http` or `sse`.
    pub transport: &'static str,
    /// What it is doing.
    pub phase: Phase,
    /// The step of its start, or the one it failed at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The steps of its last start that it has done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepDone>,
    /// Since when it is at its step.
    #[serde(skip)]
    pub step_since: Instant,
    /// The attempt to connect, from 1; 0 before the first.
    pub attempt: u32,
    /// So many attempts there are, before it is known to be down.
    pub attempts_max: u32,
    /// The file that was started last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The program, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was tried to start it, be it in vain.
    pub tries: u64,
    /// How often it was up.
    pub starts: u64,
    /// How often it ended by itself after it had been up.
    pub deaths: u64,
    /// How many tools it offers.
    pub tools: usize,
    /// When it last said which tools it has, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_seen_ms: Option<u64>,
    /// Counts changes of its tools.
    pub tools_version: u64,
    /// Counts changes of its prompts.
    #[serde(skip)]
    pub prompts_version: u64,
    /// Counts changes of its resources and their templates.
    #[serde(skip)]
    pub resources_version: u64,
    /// Tools it lists that cannot be used, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<Unusable>,
    /// What deserves a look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it is not up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Arc<StartFailure>>,
    /// When it is tried again.
    #[serde(skip)]
    pub next_try: Option<Instant>,
    /// How long its last start took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<f64>,
    /// Since when this phase lasts.
    #[serde(skip)]
    pub since: Instant,
    /// What it said at the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greeting: Option<Greeting>,
    /// Lines on its stdout that were no messages.
    pub noise_lines: u64,
    /// Its command or its address, without secrets.
    pub command: String,
    /// Where it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl ServerState {
    /// Of a server that is not started yet.
    pub(crate) fn of(settings: &ServerSettings) -> ServerState {
        ServerState {
            name: settings.name.clone(),
            transport: settings.transport.word(),
            phase: Phase::Idle,
            step: None,
            steps: Vec::new(),
            step_since: Instant::now(),
            attempt: 0,
            attempts_max: u32::try_from(settings.start.waits.len().max(1)).unwrap_or(u32::MAX),
            program: None,
            pid: None,
            tries: 0,
            starts: 0,
            deaths: 0,
            tools: 0,
            tools_seen_ms: None,
            tools_version: 0,
            prompts_version: 0,
            resources_version: 0,
            unusable: Vec::new(),
            notes: Vec::new(),
            failure: None,
            next_try: None,
            start_ms: None,
            since: Instant::now(),
            greeting: None,
            noise_lines: 0,
            command: settings.transport.shown().to_owned(),
            place: settings.place.clone(),
        }
    }
}

/// A step of a start, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDone {
    /// Which.
    pub step: Step,
    /// In milliseconds.
    pub took_ms: f64,
}

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not wanted yet.
    Idle,
    /// On its way up, for the first time.
    Starting,
    /// Up.
    Running,
    /// On its way up again.
    Restarting,
    /// Known to be down; tried again in the background.
    Down,
    /// Stopped for good.
    Stopped,
}

impl Phase {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Restarting => "restarting",
            Phase::Down => "not running",
            Phase::Stopped => "stopped",
        }
    }

    /// Whether waiting helps: it is on its way.
    pub fn is_on_its_way(self) -> bool {
        matches!(self, Phase::Starting | Phase::Restarting)
    }
}
