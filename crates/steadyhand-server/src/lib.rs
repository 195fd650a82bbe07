//! The program `steadyhand` as a library: configuration, sources that need I/O, the command line.

pub mod access;
mod admission;
pub mod alerts;
pub mod approvals;
mod audit;
mod behind;
mod cassette;
mod chaos;
pub mod cli;
pub mod conversations;
mod dashboard;
mod http;
pub mod live;
mod logins;
pub mod models;
pub mod net;
mod overview;
pub mod pins;
mod proxy;
pub mod runtime;
mod scrub;
mod serve;
pub mod source;
pub mod telemetry;
pub mod transcriber;
mod verify;
mod views;
