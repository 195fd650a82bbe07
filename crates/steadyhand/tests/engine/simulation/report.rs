//! What a simulation has been through, and the floors below which it proves nothing.

use std::collections::BTreeMap;
use std::io::Write;

/// Each of these must have happened this often, or the run is no proof.
const FLOOR: u64 = 100;

/// Everything that is counted, by name.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Report {
    counts: BTreeMap<String, u64>,
}

impl Report {
    pub(super) fn count(&mut self, what: impl Into<String>) {
        self.count_many(what, 1);
    }

    pub(super) fn count_many(&mut self, what: impl Into<String>, many: u64) {
        *self.counts.entry(what.into()).or_default() += many;
    }

    pub(super) fn add(&mut self, other: &Report) {
        for (what, many) in &other.counts {
            self.count_many(what.clone(), *many);
        }
    }

    fn get(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Writes to the real stderr, past the test runner's capture: the run must say what it covered.
    pub(super) fn print(&self) {
        let sum = |prefix: &str| -> u64 {
            let matching = self
                .counts
                .iter()
                .filter(|(what, _)| what.starts_with(prefix));
            matching.map(|(_, many)| many).sum()
        };
        let mut text = format!(
            "simulation: {} calls, {} attempts with faults, {} trips, {} probes, {} dropped at an await point, {} cancelled\n",
            self.get("calls"),
            sum("fault "),
            self.get("breaker closed → open") + self.get("breaker half-open → open"),
            self.get("breaker open → half-open") + self.get("breaker lease expired"),
            self.get("fate dropped") + self.get("fate frozen, then dropped"),
            self.get("fate cancelled"),
        );
        for (what, many) in &self.counts {
            text.push_str(&format!("  {many:>9}  {what}\n"));
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    pub(super) fn check_that_it_has_been_everywhere(&self) {
        assert!(
            self.get("calls") >= 2_000_000,
            "{} calls",
            self.get("calls")
        );
        let places = [
            "breaker closed → open",
            "breaker open → half-open",
            "breaker half-open → closed",
            "breaker half-open → open",
            "breaker trial handed on",
            "breaker lease expired",
            "breaker stale result",
            "breaker reset by hand",
            "fate dropped",
            "fate cancelled",
            "fate frozen, then dropped",
            "fate frozen, then resumed",
            "outcome success",
            "outcome NETWORK_ERROR",
            "outcome TIMEOUT",
            "outcome RATE_LIMIT_ERROR",
            "outcome TOOL_EXECUTION_ERROR",
            "outcome AUTHENTICATION_ERROR",
            "outcome VALIDATION_ERROR",
            "outcome CIRCUIT_OPEN",
            "outcome TOOL_NOT_FOUND",
            "outcome CANCELLED",
            "outcome OVERLOADED",
            "outcome IDEMPOTENCY_CONFLICT",
            "fallback answered",
            "fallback failed",
            "replayed by key",
            "attempts 1",
            "attempts 2",
            "attempts 3",
            "attempts 4",
            "effect none",
            "effect unknown",
        ];
        let missed: Vec<String> = places
            .iter()
            .filter(|place| self.get(place) < FLOOR)
            .map(|place| format!("{place}: {}", self.get(place)))
            .chain(super::world::Fault::ALL.iter().filter_map(|fault| {
                let name = format!("fault {fault:?}");
                (self.get(&name) < FLOOR).then(|| format!("{name}: {}", self.get(&name)))
            }))
            .collect();
        assert!(missed.is_empty(), "hardly or never been at: {missed:?}");
    }
}
