//! Time as it was really observed, so that keys outlive a clock that is set forward or back.

use std::fs;

use steadyhand::clock;
use tokio::time::Instant;

/// What a clock says at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// Milliseconds since 1970. Kept for people to read; nothing is forgotten because of it.
    pub wall_ms: u64,
    /// Which run of the machine this is. Readings of two runs cannot be compared.
    pub boot: String,
    /// Milliseconds since that run began. It never jumps, whoever sets the wall clock.
    pub up_ms: u64,
}

/// Where readings come from.
pub type Clock = Box<dyn FnMut() -> ClockReading + Send>;

/// How long a name of a run may be: it stands in a database.
const BOOT_CHARS_MAX: usize = 64;

/// The machine's own clock. Where the machine does not tell how long it has been up, only the time of this process counts.
pub(super) fn of_this_machine() -> Clock {
    let begun = Instant::now();
    let process = uuid::Uuid::new_v4().to_string();
    Box::new(move || {
        let (boot, up_ms) = machine_up().unwrap_or_else(|| {
            let up_ms = begun.elapsed().as_millis() as u64;
            (process.clone(), up_ms)
        });
        ClockReading {
            wall_ms: clock::wall_ms(),
            boot,
            up_ms,
        }
    })
}

/// The id of this run of the machine, and how long it has been up. Only Linux tells.
fn machine_up() -> Option<(String, u64)> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let up = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = up.split_ascii_whitespace().next()?.parse().ok()?;
    let boot: String = boot.trim().chars().take(BOOT_CHARS_MAX).collect();
    Some((boot, (seconds * 1e3) as u64))
}
