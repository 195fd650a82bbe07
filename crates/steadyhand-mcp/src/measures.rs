//! How long requests and sessions take, as OpenTelemetry's conventions for MCP measure them. There is one collection for
//! the process: whoever exports metrics reads it.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::Mutex;

/// The bounds that the conventions name, in seconds; what takes longer counts behind the last one.
pub const BOUNDS_SECONDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Series that are kept apart; what comes beyond them is counted without the names of tools and prompts.
const SERIES_MAX: usize = 2000;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// A request to a server.
    ClientOperation,
    /// A request to us.
    ServerOperation,
    /// A session at a server.
    ClientSession,
    /// A session of a client at ours.
    ServerSession,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 4] = [
        Measure::ClientOperation,
        Measure::ServerOperation,
        Measure::ClientSession,
        Measure::ServerSession,
    ];

    /// As the conventions call it.
    pub fn name(self) -> &'static str {
        match self {
            Measure::ClientOperation => "mcp.client.operation.duration",
            Measure::ServerOperation => "mcp.server.operation.duration",
            Measure::ClientSession => "mcp.client.session.duration",
            Measure::ServerSession => "mcp.server.session.duration",
        }
    }
}

/// Attributes under the names of the conventions.
pub type Attributes = Vec<(&'static str, String)>;

/// How often it took how long.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Durations {
    /// By bound; the last one is for what took longer than all of them.
    pub counts: [u64; BOUNDS_SECONDS.len() + 1],
    /// All of them together, in seconds.
    pub sum_seconds: f64,
}

impl Durations {
    /// How many.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

type Series = HashMap<(Measure, Attributes), Durations, RandomState>;

static SERIES: LazyLock<Mutex<Series>> = LazyLock::new(Mutex::default);

/// Counts one.
pub(crate) fn record(measure: Measure, attributes: Attributes, took: Duration) {
    let seconds = took.as_secs_f64();
    let place = BOUNDS_SECONDS.partition_point(|bound| *bound < seconds);
    let mut key = (measure, attributes);
    let mut series = SERIES.lock();
    if series.len() >= SERIES_MAX && !series.contains_key(&key) {
        let is_a_name = |name: &str| matches!(name, "gen_ai.tool.name" | "gen_ai.prompt.name");
        key.1.retain(|(name, _)| !is_a_name(name));
    }
    let durations = series.entry(key).or_default();
    durations.counts[place] += 1;
    durations.sum_seconds += seconds;
}

/// What was counted so far, in a fixed order.
pub fn durations(measure: Measure) -> Vec<(Attributes, Durations)> {
    let series = SERIES.lock();
    let of_it = series.iter().filter(|((it, _), _)| *it == measure);
    let mut all: Vec<_> = of_it
        .map(|((_, attributes), durations)| (attributes.clone(), durations.clone()))
        .collect();
    drop(series);
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}
