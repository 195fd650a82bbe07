//! The HTTP server: REST, the MCP endpoint, who asks, live events, alerts, telemetry, stored conversations.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

pub mod alerts;
pub mod behind;
pub mod conversations;
pub mod http;
pub mod live;
pub mod overview;
pub mod serve;
pub mod telemetry;
pub mod views;
