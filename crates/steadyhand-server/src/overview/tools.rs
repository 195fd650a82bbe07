//! Every tool in a line: its breaker, its last hour against the one before, its last error. Those in trouble first.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;
use steadyhand::{BreakerState, BreakerView};
use utoipa::ToSchema;

use crate::http::App;
use crate::live::{LastError, ToolPulse};
use steadyhand_store::history::{Counts, Fleet};

/// A tool is slower than before from this factor on.
const SLOWER: f64 = 1.5;
/// And by at least this much: nobody notices less.
const SLOWER_MS: f64 = 20.0;
/// From here on a call is slow (SPEC V08).
const SLOW_MS: f64 = 1000.0;
/// Fewer calls say nothing about a tool's speed.
const CALLS_MIN: u64 = 5;

/// One tool
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OverviewTool)]
pub struct ToolRow {
    pub name: String,
    pub description: String,
    /// What runs it
    pub kind: String,
    /// Where it comes from
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub source: Option<String>,
    /// ready, breaker open, breaker half-open, starting, not running, disabled
    pub state: String,
    /// Why it cannot be called
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub reason: Option<String>,
    /// closed, open, half-open; absent where there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = String)]
    pub breaker: Option<BreakerState>,
    /// Failed calls in a row
    pub failures: u64,
    /// When an open breaker lets a trial through, in milliseconds since 1970
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub trial_at_ms: Option<u64>,
    pub in_flight: u64,
    pub queued: u64,
    /// The last hour
    pub hour: Counts,
    /// The hour before it
    pub previous: Counts,
    /// The last five minutes
    pub recent: Counts,
    /// Errors and time-outs among the hour's calls whose tool ran, 0 to 1
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub error_rate: Option<f64>,
    /// p95 against the hour before: 2 is twice as slow; absent where too few calls tell
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub slower: Option<f64>,
    /// Calls by minute, the oldest first
    pub trend: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub last_error: Option<LastError>,
}

impl ToolRow {
    /// Its breaker is not closed.
    pub fn is_guarded(&self) -> bool {
        self.breaker
            .is_some_and(|state| state != BreakerState::Closed)
    }

    pub fn is_slower(&self) -> bool {
        let by_ms = self.hour.p95.unwrap_or(0.0) - self.previous.p95.unwrap_or(0.0);
        self.slower.is_some_and(|factor| factor >= SLOWER) && by_ms >= SLOWER_MS
    }

    pub fn is_slow(&self) -> bool {
        self.hour.p50.is_some_and(|ms| ms > SLOW_MS)
    }

    /// The more, the worse.
    fn trouble(&self) -> f64 {
        let state = match self.breaker {
            _ if self.reason.is_some() => 400.0,
            Some(BreakerState::Open) => 300.0,
            Some(BreakerState::HalfOpen) => 200.0,
            _ => 0.0,
        };
        let slower = if self.is_slower() { 5.0 } else { 0.0 };
        state + 100.0 * self.error_rate.unwrap_or(0.0) + slower
    }
}

pub(super) fn rows(app: &App, fleet: &Fleet, pulse: &HashMap<String, ToolPulse>) -> Vec<ToolRow> {
    let manager = app.runtime.manager();
    let now_ms = steadyhand::clock::wall_ms();
    let mut metrics: HashMap<String, _> = manager.all_metrics().into_iter().collect();
    let mut rows: Vec<ToolRow> = manager
        .list()
        .iter()
        .map(|tool| {
            let name = tool.name();
            let hour = fleet.tools.get(name).cloned().unwrap_or_default();
            let metrics = metrics.remove(name);
            let breaker = metrics
                .as_ref()
                .and_then(|metrics| metrics.breaker.as_ref());
            let rest = manager.rest_of_breaker(name);
            ToolRow {
                name: name.to_owned(),
                description: tool.description().to_owned(),
                kind: tool.kind().to_owned(),
                source: tool.source().map(str::to_owned),
                state: app.runtime.state_of(name).to_owned(),
                reason: app.runtime.unavailable(name),
                breaker: breaker.map(|breaker| breaker.state),
                failures: breaker.map_or(0, |breaker| breaker.failures),
                trial_at_ms: rest.map(|rest| now_ms + rest.as_millis() as u64),
                in_flight: metrics.as_ref().map_or(0, |metrics| metrics.in_flight),
                queued: metrics.as_ref().map_or(0, |metrics| metrics.queued),
                error_rate: hour.total.error_rate(),
                slower: slower(&hour.total, &hour.previous),
                last_error: last_error(breaker, pulse.get(name)),
                hour: hour.total,
                previous: hour.previous,
                recent: hour.recent,
                trend: hour.calls,
            }
        })
        .collect();
    let by_trouble = |a: &ToolRow, b: &ToolRow| {
        let trouble = b
            .trouble()
            .partial_cmp(&a.trouble())
            .unwrap_or(Ordering::Equal);
        trouble
            .then_with(|| b.hour.calls.cmp(&a.hour.calls))
            .then_with(|| a.name.cmp(&b.name))
    };
    rows.sort_by(by_trouble);
    rows
}

/// What the tool last said. While its breaker is not closed, that is what the breaker is open for.
fn last_error(breaker: Option<&BreakerView>, pulse: Option<&ToolPulse>) -> Option<LastError> {
    let open = breaker.filter(|breaker| breaker.state != BreakerState::Closed);
    let cause = open.and_then(|breaker| breaker.last_error.as_ref());
    match cause {
        Some(cause) => Some(LastError {
            at_ms: cause.at_ms,
            code: cause.code,
            message: cause.message.clone(),
            call: cause.call_id.clone(),
        }),
        None => pulse?.last_error.clone(),
    }
}

fn slower(now: &Counts, before: &Counts) -> Option<f64> {
    if now.calls < CALLS_MIN || before.calls < CALLS_MIN {
        return None;
    }
    let factor = now.p95? / before.p95.filter(|ms| *ms > 0.0)?;
    Some((factor * 100.0).round() / 100.0)
}
