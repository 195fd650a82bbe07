//! From the engine's events to live ones: which calls run, what of them is worth telling, and how often.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use steadyhand::Event;
use tokio::time::Instant;

use super::event::{
    AttemptFailed, BreakerChanged, CallFinished, CallProgress, CallStarted, FallbackStarted,
    LiveEvent, NAME_BYTES_MAX, TEXT_BYTES_MAX, bounded,
};
use super::ring::{Frame, Ring};
use steadyhand_store::history::state_of_outcome;

/// Progress of one call is told this often at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// Calls that are followed at the same time. There are more only when their ends were lost.
const FOLLOWED_MAX: usize = 16_384;

/// The calls that run now.
#[derive(Default)]
pub(super) struct Calls {
    open: HashMap<u64, Open>,
    /// Calls whose last progress was not told yet, and when it may be.
    held: HashMap<u64, (Instant, CallProgress)>,
}

struct Open {
    started: CallStarted,
    /// What was told of it: void once its end is told.
    told: Vec<Arc<Frame>>,
    progress: Option<(Instant, Arc<Frame>)>,
}

impl Calls {
    pub(super) fn observe(&mut self, event: &Event, ring: &mut Ring, now: Instant) {
        match event {
            Event::Started {
                number,
                call_id,
                tool_name,
                at_ms,
                caller,
                ..
            } => {
                let started = CallStarted {
                    number: *number,
                    id: bounded(call_id, NAME_BYTES_MAX),
                    tool: bounded(tool_name, NAME_BYTES_MAX),
                    started_ms: *at_ms,
                    caller: caller
                        .as_ref()
                        .map(|caller| bounded(caller, TEXT_BYTES_MAX)),
                };
                self.started(started, ring);
            }
            Event::AttemptFailed {
                number,
                attempt,
                code,
                retry_in_ms: Some(retry_in_ms),
                ..
            } => {
                let (attempt, code, retry_in_ms) = (*attempt, *code, rounded(*retry_in_ms));
                self.tell(*number, ring, |number, id, tool| {
                    LiveEvent::AttemptFailed(AttemptFailed {
                        number,
                        id,
                        tool,
                        attempt,
                        code,
                        retry_in_ms,
                    })
                });
            }
            Event::FallbackStarted {
                number, fallback, ..
            } => {
                let fallback = fallback.as_ref().map(|name| bounded(name, NAME_BYTES_MAX));
                self.tell(*number, ring, |number, id, tool| {
                    LiveEvent::FallbackStarted(FallbackStarted {
                        number,
                        id,
                        tool,
                        fallback,
                    })
                });
            }
            Event::Progress {
                number,
                done,
                total,
                message,
                ..
            } => self.progress(*number, *done, *total, message, ring, now),
            Event::BreakerChanged {
                tool_name,
                from,
                to,
                at_ms,
                ..
            } => {
                ring.push(LiveEvent::BreakerChanged(BreakerChanged {
                    tool: tool_name.clone(),
                    from: *from,
                    to: *to,
                    at_ms: *at_ms,
                }));
            }
            Event::Finished {
                number,
                at_ms,
                outcome,
                caller,
                source,
                ..
            } => {
                let failure = outcome.failure();
                let took_ms = outcome.execution_time.as_secs_f64() * 1e3;
                let mut finished = CallFinished {
                    number: *number,
                    id: bounded(&outcome.call_id, NAME_BYTES_MAX),
                    tool: bounded(&outcome.tool_name, NAME_BYTES_MAX),
                    started_ms: at_ms.saturating_sub(took_ms as u64),
                    took_ms: rounded(took_ms),
                    status: outcome.status(),
                    state: state_of_outcome(outcome),
                    caller: caller
                        .as_ref()
                        .map(|caller| bounded(caller, TEXT_BYTES_MAX)),
                    source: source
                        .as_ref()
                        .map(|source| bounded(source, NAME_BYTES_MAX)),
                    code: failure.map(|failure| failure.code),
                    effect: failure.map(|failure| failure.effect),
                    attempts: outcome.attempts,
                    fallback_used: outcome.fallback.is_some(),
                };
                self.held.remove(number);
                if let Some(open) = self.open.remove(number) {
                    finished.started_ms = open.started.started_ms;
                    open.void();
                }
                ring.push(LiveEvent::CallFinished(finished));
            }
            // Its end says it all.
            Event::AttemptStarted { .. }
            | Event::AttemptDescribed { .. }
            | Event::ApprovalAsked { .. }
            | Event::Approved { .. }
            | Event::AttemptFailed { .. }
            | Event::FallbackFailed { .. } => {}
        }
    }

    fn started(&mut self, started: CallStarted, ring: &mut Ring) {
        if self.open.len() >= FOLLOWED_MAX
            && let Some(oldest) = self.open.keys().min().copied()
        {
            self.open.remove(&oldest);
            self.held.remove(&oldest);
        }
        let frame = ring.push(LiveEvent::CallStarted(started.clone()));
        let open = Open {
            started,
            told: vec![frame],
            progress: None,
        };
        self.open.insert(open.started.number, open);
    }

    /// Tells something of a call that is followed.
    fn tell(
        &mut self,
        number: u64,
        ring: &mut Ring,
        event: impl FnOnce(u64, String, String) -> LiveEvent,
    ) {
        let Some(open) = self.open.get_mut(&number) else {
            return;
        };
        let (id, tool) = (open.started.id.clone(), open.started.tool.clone());
        open.told.push(ring.push(event(number, id, tool)));
    }

    fn progress(
        &mut self,
        number: u64,
        done: f64,
        total: Option<f64>,
        message: &str,
        ring: &mut Ring,
        now: Instant,
    ) {
        let Some(open) = self.open.get_mut(&number) else {
            return;
        };
        let progress = CallProgress {
            number,
            id: open.started.id.clone(),
            tool: open.started.tool.clone(),
            done,
            total,
            message: bounded(message, TEXT_BYTES_MAX),
        };
        match &open.progress {
            Some((told_at, _)) if now < *told_at + PROGRESS_EVERY => {
                let due = *told_at + PROGRESS_EVERY;
                self.held.insert(number, (due, progress));
            }
            _ => {
                self.held.remove(&number);
                open.tell_progress(progress, ring, now);
            }
        }
    }

    pub(super) fn held_count(&self) -> usize {
        self.held.len()
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.values().map(|(due, _)| *due).min()
    }

    pub(super) fn tell_held(&mut self, ring: &mut Ring, now: Instant) {
        let due = self.held.extract_if(|_, (due, _)| *due <= now);
        for (number, (_, progress)) in due {
            if let Some(open) = self.open.get_mut(&number) {
                open.tell_progress(progress, ring, now);
            }
        }
    }

    /// The oldest of them, and how many there are.
    pub(super) fn running(&self, listed_max: usize) -> (Vec<CallStarted>, usize) {
        let mut numbers: Vec<u64> = self.open.keys().copied().collect();
        numbers.sort_unstable();
        numbers.truncate(listed_max);
        let listed = numbers
            .iter()
            .map(|number| self.open[number].started.clone());
        (listed.collect(), self.open.len())
    }
}

impl Open {
    fn tell_progress(&mut self, progress: CallProgress, ring: &mut Ring, now: Instant) {
        if let Some((_, before)) = &self.progress {
            before.supersede();
        }
        self.progress = Some((now, ring.push(LiveEvent::CallProgress(progress))));
    }

    /// Its end is told: nothing else of it need be read.
    fn void(&self) {
        let progress = self.progress.iter().map(|(_, frame)| frame);
        self.told
            .iter()
            .chain(progress)
            .for_each(|frame| frame.supersede());
    }
}

/// Microseconds are enough for people.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
