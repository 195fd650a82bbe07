//! The program, its configuration and its sources, tested from outside.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests tell what they saw"
)]

mod access;
mod alerts;
mod approvals;
mod architecture;
mod book;
mod chat;
mod cli;
mod command;
mod config;
mod connect;
mod dashboard;
mod doctor;
mod documents;
mod faults;
mod first_minute;
mod flex_chat;
#[path = "../../../steadyhand/tests/shared/flooding.rs"]
mod flooding;
#[path = "../../../steadyhand/tests/shared/fuzzing.rs"]
#[allow(dead_code, reason = "other crates use more of it")]
mod fuzzing;
mod gateway;
mod history;
mod hostile;
mod http;
mod import;
mod live;
mod mcp;
mod openapi;
mod operations;
mod pins;
mod proxy;
mod rehearsal;
mod requirements;
mod serve;
mod support;
mod telemetry;
