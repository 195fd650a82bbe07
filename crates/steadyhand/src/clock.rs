//! The wall clock, read in this file only: it names moments, it never measures or waits.
//!
//! Every wait and every measurement uses tokio's clock, so that tests can pause it.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Milliseconds since 1970, for timestamps that people and databases read.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
pub fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as u64)
}

/// A new id for a call: UUID v7, so ids sort by time. Random bits from fastrand: they must be
/// unlike each other, not unguessable, and a call must not wait for the kernel.
pub fn new_id() -> String {
    let mut random = [0u8; 10];
    fastrand::fill(&mut random);
    let id = uuid::Builder::from_unix_timestamp_millis(wall_ms(), &random).into_uuid();
    id.hyphenated().to_string()
}

/// A moment so much later; a duration that reaches beyond time means "in thirty years".
pub(crate) fn after(start: Instant, duration: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    start.checked_add(duration.min(FAR)).unwrap_or(start)
}
