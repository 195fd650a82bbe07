//! The last events, by number: bounded in count and in bytes. Readers come with the number they have.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use steadyhand::wildcard;

use super::event::{LiveEvent, Skipped};

/// Events kept, for those who come back after a pause.
pub(super) const KEPT_MAX: usize = 4096;
/// Their memory.
pub(super) const KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Events a reader takes at a time: this much is held for one that does not read.
pub(super) const BATCH_MAX: usize = 1024;
/// What an event takes beside its texts.
const EVENT_BYTES: usize = 256;

#[derive(Default)]
pub(super) struct Ring {
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
    newest: u64,
}

/// One event in the ring.
pub(super) struct Frame {
    /// Counts from 1.
    pub(super) number: u64,
    pub(super) event: LiveEvent,
    /// A later event says all that this one does: who has not read it yet need not.
    superseded: AtomicBool,
    json: OnceLock<String>,
}

impl Frame {
    pub(super) fn supersede(&self) {
        self.superseded.store(true, Ordering::Relaxed);
    }

    /// Written when the first reader asks; most events of a server nobody looks at are never written.
    pub(super) fn json(&self) -> &str {
        self.json
            .get_or_init(|| serde_json::to_string(&self.event).unwrap_or_default())
    }

    /// With what it will take once it is written.
    fn bytes(&self) -> usize {
        EVENT_BYTES + 2 * self.event.text_bytes()
    }
}

/// What a reader gets, and where it stands then.
pub(super) struct Batch {
    pub(super) frames: Vec<Arc<Frame>>,
    /// Events it should have got and that are gone.
    pub(super) missed: Option<Skipped>,
    pub(super) reached: u64,
}

impl Ring {
    pub(super) fn push(&mut self, event: LiveEvent) -> Arc<Frame> {
        self.newest += 1;
        let frame = Arc::new(Frame {
            number: self.newest,
            event,
            superseded: AtomicBool::new(false),
            json: OnceLock::new(),
        });
        self.bytes += frame.bytes();
        self.frames.push_back(Arc::clone(&frame));
        while self.frames.len() > KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            if let Some(oldest) = self.frames.pop_front() {
                self.bytes -= oldest.bytes();
            }
        }
        frame
    }

    /// 0 before the first.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    fn oldest(&self) -> u64 {
        self.newest + 1 - self.frames.len() as u64
    }

    /// Whether everything after this number is still here.
    pub(super) fn reaches_back_to(&self, number: u64) -> bool {
        number <= self.newest && number + 1 >= self.oldest()
    }

    pub(super) fn after(&self, number: u64, filter: &Filter) -> Batch {
        let mut batch = Batch {
            frames: Vec::new(),
            missed: None,
            reached: number,
        };
        let oldest = self.oldest();
        if number + 1 < oldest {
            let count = oldest - number - 1;
            batch.missed = Some(Skipped { count });
            batch.reached = oldest - 1;
        }
        let read = (batch.reached + 1 - oldest) as usize;
        for frame in self.frames.iter().skip(read) {
            if batch.frames.len() == BATCH_MAX {
                break;
            }
            batch.reached = frame.number;
            if !frame.superseded.load(Ordering::Relaxed) && filter.lets_pass(&frame.event) {
                batch.frames.push(Arc::clone(frame));
            }
        }
        batch
    }
}

/// Which events a reader wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Names of tools, or patterns; empty means all.
    pub(super) tools: Vec<String>,
    /// Types; empty means all.
    pub(super) types: Vec<&'static str>,
}

impl Filter {
    fn lets_pass(&self, event: &LiveEvent) -> bool {
        // That something is missing concerns everyone.
        if matches!(event, LiveEvent::Skipped(_)) {
            return true;
        }
        let wanted = |tool: &str| {
            self.tools
                .iter()
                .any(|pattern| wildcard::wild(pattern, tool))
        };
        (self.types.is_empty() || self.types.contains(&event.kind()))
            && (self.tools.is_empty() || event.tool().is_some_and(wanted))
    }
}

/// An id of the stream: which run of the program, which event of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) run: &'a str,
    pub(super) number: u64,
}

impl Place<'_> {
    pub(super) fn parse(id: &str) -> Option<Place<'_>> {
        let (run, number) = id.trim().split_once('-')?;
        Some(Place {
            run,
            number: number.parse().ok()?,
        })
    }
}
