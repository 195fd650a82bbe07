//! The last minute of every tool, in memory of a fixed size: what lanes of calls are drawn from, however many there are.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use steadyhand::{Event, FailureCode, Status};
use utoipa::ToSchema;

use super::event::{NAME_BYTES_MAX, TEXT_BYTES_MAX, bounded};

/// Tools that are followed; more than that nobody looks at.
const TOOLS_MAX: usize = 512;
/// Ended calls kept of one tool: more in half a minute could not be told apart.
pub const RECENT_MAX: usize = 256;
/// How far back seconds are counted.
const SECONDS: usize = 64;

/// The last minute of every tool.
#[derive(Default)]
pub(super) struct Pulse {
    tools: HashMap<String, Beat>,
}

struct Beat {
    recent: VecDeque<Ended>,
    seconds: [Second; SECONDS],
    last_error: Option<LastError>,
    /// The last error is one of the tool itself, and no call has worked since: a refusal does not replace it.
    is_ill: bool,
}

impl Default for Beat {
    fn default() -> Beat {
        Beat {
            recent: VecDeque::new(),
            seconds: [Second::default(); SECONDS],
            last_error: None,
            is_ill: false,
        }
    }
}

/// What ended within one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TimelineSecond)]
pub struct Second {
    /// In seconds since 1970.
    pub second: u64,
    /// Calls that were answered.
    pub ok: u32,
    /// Calls that were not.
    pub failed: u32,
}

/// A call that ended a moment ago.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = TimelineEndedCall)]
pub struct Ended {
    /// Its id.
    pub id: String,
    /// When it came in, in milliseconds since 1970.
    pub started_ms: u64,
    /// All of it.
    pub took_ms: f64,
    /// How it ended.
    #[schema(value_type = String, example = "success")]
    pub status: Status,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = String)]
    pub code: Option<FailureCode>,
    /// A fallback answered.
    pub fallback_used: bool,
}

/// The last failure of a tool. A refusal that follows does not replace what the tool itself said.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = LastToolError)]
pub struct LastError {
    /// In milliseconds since 1970.
    pub at_ms: u64,
    /// For programs.
    #[schema(value_type = String, example = "TIMEOUT")]
    pub code: FailureCode,
    /// What the tool said; the first of it.
    pub message: String,
    /// The call.
    pub call: String,
}

/// One tool's last minute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolPulse {
    /// Calls that ended a moment ago, the oldest first; at most 256.
    pub recent: Vec<Ended>,
    /// Seconds in which some ended, the oldest first.
    pub seconds: Vec<Second>,
    /// Its last failure.
    pub last_error: Option<LastError>,
}

impl Pulse {
    pub(super) fn observe(&mut self, event: &Event) {
        let Event::Finished {
            at_ms,
            outcome,
            kind: Some(_),
            ..
        } = event
        else {
            return;
        };
        let is_known = self.tools.contains_key(&outcome.tool_name);
        if !is_known && self.tools.len() >= TOOLS_MAX {
            return;
        }
        let name = bounded(&outcome.tool_name, NAME_BYTES_MAX);
        let beat = self.tools.entry(name).or_default();
        let took_ms = outcome.execution_time.as_secs_f64() * 1e3;
        let failure = outcome.failure();
        let second = at_ms / 1000;
        let slot = &mut beat.seconds[second as usize % SECONDS];
        if slot.second != second {
            *slot = Second {
                second,
                ..Second::default()
            };
        }
        match failure {
            None => slot.ok = slot.ok.saturating_add(1),
            Some(_) => slot.failed = slot.failed.saturating_add(1),
        }
        let id = bounded(&outcome.call_id, NAME_BYTES_MAX);
        let is_refusal = outcome.attempts == 0;
        match failure {
            None => beat.is_ill &= is_refusal,
            Some(_) => beat.is_ill |= !is_refusal,
        }
        if let Some(failure) = failure.filter(|_| !is_refusal || !beat.is_ill) {
            beat.last_error = Some(LastError {
                at_ms: *at_ms,
                code: failure.code,
                message: bounded(&failure.message_with_effect(), TEXT_BYTES_MAX),
                call: id.clone(),
            });
        }
        if beat.recent.len() >= RECENT_MAX {
            beat.recent.pop_front();
        }
        beat.recent.push_back(Ended {
            id,
            started_ms: at_ms.saturating_sub(took_ms as u64),
            took_ms: (took_ms * 1e3).round() / 1e3,
            status: outcome.status(),
            code: failure.map(|failure| failure.code),
            fallback_used: outcome.fallback.is_some(),
        });
    }

    /// What ended since a moment; the last failure, whenever it was.
    pub(super) fn since(&self, since_ms: u64) -> HashMap<String, ToolPulse> {
        let beats = self.tools.iter().map(|(name, beat)| {
            let ended = |ended: &&Ended| ended.started_ms + ended.took_ms as u64 >= since_ms;
            let mut seconds: Vec<Second> = beat
                .seconds
                .iter()
                .filter(|slot| slot.second * 1000 >= since_ms && slot.ok + slot.failed > 0)
                .copied()
                .collect();
            seconds.sort_unstable_by_key(|slot| slot.second);
            let pulse = ToolPulse {
                recent: beat.recent.iter().filter(ended).cloned().collect(),
                seconds,
                last_error: beat.last_error.clone(),
            };
            (name.clone(), pulse)
        });
        beats.collect()
    }
}
