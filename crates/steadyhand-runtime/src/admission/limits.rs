//! The limits in force: what the settings say, or what holds if they say nothing.

use std::time::Duration;

use steadyhand_config::settings::RequestLimits;
use steadyhand_config::units::Size;

const BODY_BYTES: usize = 16 * 1024 * 1024;
/// What is held for all callers and servers at the same time.
const MEMORY_BYTES: usize = 512 * 1024 * 1024;
/// A body may take one part in so many of the memory, where nobody says how large it may be.
const BODY_PART: usize = 4;
const CALLS: usize = 16_384;
/// The part of `limits.calls` that may run beyond them, for callers that do not have their share.
const CALLS_RESERVE_PART: usize = 4;
const CONNECTIONS: usize = 1_024;
const PATIENCE: Duration = Duration::from_secs(30);

/// The limits in force.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub body_bytes: usize,
    /// What is held for all callers and servers at the same time.
    pub memory_bytes: usize,
    /// Calls that run at the same time, over all tools and callers.
    pub calls: usize,
    pub calls_per_caller: usize,
    /// The configuration says how many one caller may have.
    pub is_per_caller_said: bool,
    /// Connections that one caller may have in use at the same time. Some more may be open.
    pub connections: usize,
    /// How long a client may take to send a request, and to take a piece of an answer.
    pub patience: Duration,
}

impl Limits {
    /// The limits that the settings say; `largest_body` is the largest that the proxy takes.
    pub fn of(settings: &RequestLimits, largest_body: usize) -> Limits {
        let count =
            |setting: Option<u32>, default: usize| setting.map_or(default, |count| count as usize);
        let size = |setting: Option<Size>| setting.map(|size| size.0 as usize);
        let memory = size(settings.memory);
        let body_bytes = size(settings.body)
            .unwrap_or_else(|| BODY_BYTES.min(memory.unwrap_or(MEMORY_BYTES) / BODY_PART));
        // A configuration that takes large bodies and says nothing about memory has memory for them.
        let largest_body = body_bytes.max(largest_body);
        let memory_bytes =
            memory.unwrap_or_else(|| MEMORY_BYTES.max(largest_body.saturating_mul(BODY_PART)));
        let calls = count(settings.calls, CALLS);
        // Where nobody says what one caller may have, there is some room beyond it for the others.
        let calls_in_all = match settings.per_caller {
            Some(_) => calls,
            None => calls.saturating_add(calls.div_ceil(CALLS_RESERVE_PART)),
        };
        Limits {
            body_bytes,
            memory_bytes,
            calls: calls_in_all,
            calls_per_caller: count(settings.per_caller, calls),
            is_per_caller_said: settings.per_caller.is_some(),
            connections: count(settings.connections, CONNECTIONS),
            patience: settings.patience.map_or(PATIENCE, |span| span.0),
        }
    }
}
