//! The program `steadyhand` as a library: configuration, sources that need I/O, the command line.

pub mod access;
pub mod alerts;
pub mod approvals;
mod behind;
pub mod cli;
pub mod config;
pub mod conversations;
mod dashboard;
pub mod documents;
pub mod history;
mod http;
pub mod live;
pub mod markdown;
pub mod models;
pub mod net;
mod overview;
pub mod pins;
pub mod progress;
mod proxy;
pub mod runtime;
mod scrub;
mod serve;
pub mod source;
pub mod telemetry;
pub mod template;
pub mod transcriber;
mod views;
