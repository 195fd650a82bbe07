//! The program `steadyhand` as a library: configuration, sources that need I/O, the command line.

pub mod alerts;
mod behind;
pub mod cli;
pub mod conversations;
mod dashboard;
mod http;
pub mod live;
mod overview;
mod proxy;
mod serve;
pub mod telemetry;
pub mod transcriber;
mod views;
