//! The program `steadyhand` as a library: configuration, sources that need I/O, the command line.

pub mod cli;
pub mod config;
pub mod documents;
pub mod live;
pub mod net;
pub mod progress;
pub mod runtime;
pub mod source;
pub mod telemetry;
pub mod template;
