//! The last half minute of calls, a lane for each tool: single calls where they can be told apart, sums where not.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::RUNNING_MAX;
use crate::http::App;
use crate::live::{Ended, RECENT_MAX, Second, ToolPulse};
use steadyhand_store::history::Mark;

/// How far back.
pub(crate) const SPAN_MS: u64 = 30_000;
/// From so many calls in the span on they are summed up by second: single bars would hide each other.
const SINGLE_MAX: usize = 600;
/// Lanes that fit a screen.
const LANES_MAX: usize = 12;

/// The last half minute of calls
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub struct Lanes {
    /// How far back, in milliseconds
    pub span_ms: u64,
    /// There are too many to show each: seconds instead of calls, in every lane. One of a busy tool has them anyway
    pub is_summed: bool,
    /// The busiest tools, in the order of their names
    pub lanes: Vec<Lane>,
    /// Tools that have calls and no lane
    pub more: usize,
    /// What changed within the span
    pub marks: Vec<Mark>,
}

/// One tool's
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = TimelineLane)]
pub struct Lane {
    pub tool: String,
    /// Where it comes from
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub source: Option<String>,
    /// Calls that ended, the oldest first; empty where they are summed up
    pub ended: Vec<Ended>,
    /// Sums by second; empty where there are single calls
    pub seconds: Vec<Second>,
    pub running: Vec<RunningBar>,
}

/// A call that runs
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineRunningCall)]
pub struct RunningBar {
    pub id: String,
    pub started_ms: u64,
    pub deadline_ms: f64,
    pub attempts: u32,
    pub caller: String,
    /// How long it has waited for an approval, in milliseconds: its deadline does not count this time
    pub approval_ms: u64,
    /// It waits for an approval now
    pub waiting: bool,
}

pub(super) fn lanes(
    app: &App,
    pulse: &HashMap<String, ToolPulse>,
    now_ms: u64,
    marks: &[Mark],
) -> Lanes {
    let since_ms = now_ms.saturating_sub(SPAN_MS);
    let within = |second: &&Second| second.second * 1000 >= since_ms;
    let calls_of = |tool: &ToolPulse| -> u32 {
        let seconds = tool.seconds.iter().filter(within);
        seconds.map(|second| second.ok + second.failed).sum()
    };
    let is_summed = pulse.values().map(calls_of).sum::<u32>() as usize > SINGLE_MAX;
    let mut by_tool: HashMap<&str, Lane> = HashMap::new();
    for (tool, pulse) in pulse {
        // Of a busy tool not every call is kept.
        let is_summed = is_summed || calls_of(pulse) as usize >= RECENT_MAX;
        let lane = Lane {
            tool: tool.clone(),
            source: None,
            ended: match is_summed {
                true => Vec::new(),
                false => {
                    let ended = pulse.recent.iter();
                    ended
                        .filter(|it| it.started_ms + it.took_ms as u64 >= since_ms)
                        .cloned()
                        .collect()
                }
            },
            seconds: match is_summed {
                true => pulse.seconds.iter().filter(within).copied().collect(),
                false => Vec::new(),
            },
            running: Vec::new(),
        };
        if !lane.ended.is_empty() || !lane.seconds.is_empty() {
            by_tool.insert(tool, lane);
        }
    }
    let running = app.admission.running.list();
    for call in running.iter().take(RUNNING_MAX) {
        let lane = by_tool.entry(&call.tool).or_insert_with(|| Lane {
            tool: call.tool.clone(),
            ..Lane::default()
        });
        lane.running.push(RunningBar {
            id: call.id.clone(),
            started_ms: call.started_ms,
            deadline_ms: app.deadline_of(call).as_secs_f64() * 1e3,
            attempts: call.attempts(),
            caller: call.caller.to_string(),
            approval_ms: call.approval_time().as_millis() as u64,
            waiting: call.waits_for_approval(),
        });
    }
    let mut lanes: Vec<Lane> = by_tool.into_values().collect();
    // What runs is never left out for what is over.
    let weight = |lane: &Lane| (lane.running.len(), lane.ended.len() + lane.seconds.len());
    lanes.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.tool.cmp(&b.tool)));
    let more = lanes.len().saturating_sub(LANES_MAX);
    lanes.truncate(LANES_MAX);
    lanes.sort_by(|a, b| a.tool.cmp(&b.tool));
    let manager = app.runtime.manager();
    for lane in &mut lanes {
        let tool = manager.find(&lane.tool);
        lane.source = tool.and_then(|tool| tool.source().map(str::to_owned));
    }
    Lanes {
        span_ms: SPAN_MS,
        is_summed,
        lanes,
        more,
        marks: marks
            .iter()
            .filter(|mark| mark.at_ms >= since_ms)
            .cloned()
            .collect(),
    }
}
