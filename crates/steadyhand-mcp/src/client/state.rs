//! Where a server stands, as everyone may see it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::client::catalogue::Greeting;
use crate::client::catalogue::definition::Unusable;
use crate::client::catalogue::lists::Listed;
use crate::client::lifecycle::failure::{StartFailure, Step};
use crate::client::settings::ServerSettings;

/// A server that ended so often within such a time is unstable, even if it is up again.
const UNSTABLE_DEATHS: usize = 3;
const UNSTABLE_WITHIN: Duration = Duration::from_secs(5 * 60);
/// Deaths whose times are kept.
const DEATHS_KEPT: usize = 100;

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
    /// How it ended the last time, with its last words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_death: Option<String>,
    /// When it ended lately.
    #[serde(skip)]
    pub(crate) died_at: VecDeque<Instant>,
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
    /// Tools it lists that cannot be used, and why. There can be thousands: whoever shows them says how many.
    #[serde(skip)]
    pub unusable: Arc<[Unusable]>,
    /// What deserves a look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The same by list: tools, then the others.
    #[serde(skip)]
    pub(crate) notes_of: [Vec<String>; 4],
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
            last_death: None,
            died_at: VecDeque::new(),
            tools: 0,
            tools_seen_ms: None,
            tools_version: 0,
            prompts_version: 0,
            resources_version: 0,
            unusable: Arc::default(),
            notes: Vec::new(),
            notes_of: Default::default(),
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

    /// What there is to say about a list: none is about the tools.
    pub(crate) fn note(&mut self, list: Option<Listed>, notes: Vec<String>) {
        let place = list.map_or(0, |list| 1 + list as usize);
        self.notes_of[place] = notes;
        self.notes = self.notes_of.concat();
    }

    /// It ended by itself; how, with its last words.
    pub(crate) fn died(&mut self, how: String) {
        self.deaths += 1;
        self.last_death = Some(how);
        if self.died_at.len() >= DEATHS_KEPT {
            self.died_at.pop_front();
        }
        self.died_at.push_back(Instant::now());
    }

    /// Whether it ends again and again, and is started again each time.
    pub fn unstable(&self) -> Option<Unstable> {
        let now = Instant::now();
        let lately = self.died_at.iter();
        let lately = lately.filter(|at| now.duration_since(**at) < UNSTABLE_WITHIN);
        let lately: Vec<&Instant> = lately.collect();
        let first = lately.first().filter(|_| lately.len() >= UNSTABLE_DEATHS)?;
        Some(Unstable {
            deaths: lately.len(),
            within: now.duration_since(**first),
            how: self.last_death.clone().unwrap_or_default(),
        })
    }

    /// What is known about a start that is not over, or not to succeed: how often it failed, and how.
    pub fn so_far(&self) -> Option<String> {
        match (&self.failure, &self.last_death) {
            (Some(failure), _) => Some(failure.so_far()),
            (None, Some(how)) if self.phase == Phase::Restarting => Some(format!("it {how}")),
            (None, _) => None,
        }
    }
}

/// A server that ends again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unstable {
    /// How often.
    pub deaths: usize,
    /// Since the first of these.
    pub within: Duration,
    /// How it ended the last time.
    pub how: String,
}

/// `ended 7 times in 2 min; the last time, it exited with code 1: out of memory`
impl fmt::Display for Unstable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (deaths, how) = (self.deaths, &self.how);
        let within = match self.within.as_secs() {
            seconds @ 0..=99 => format!("{} s", seconds.max(1)),
            seconds => format!("{} min", (seconds + 30) / 60),
        };
        write!(
            f,
            "ended {deaths} times in {within}; the last time, it {how}"
        )
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
