//! The protection around a tool. Each guard is a small machine, usable by itself; the path through
//! them is in `executor/`.

pub(crate) mod attempt;
pub mod breaker;
pub(crate) mod caller_lines;
pub mod limit;
pub(crate) mod patience;
pub mod retry;
