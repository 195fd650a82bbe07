//! Cassettes: calls and their outcomes in a file, one line each, to be told again without running any tool.

mod canonical;
mod line;
mod nearest;
mod recorder;
mod replay;
mod tape;

pub use recorder::{Recording, Summary};
pub use replay::{source, table};
pub use tape::Tape;

/// The version of the format; the first line of a cassette says it.
const VERSION: u32 = 1;
/// A cassette does not grow beyond this; the calls after it are counted and said to be missing.
const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// A call that takes more than this is left out, and said to be missing.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
