//! What runs the tools of a configuration: where tools come from, the outgoing network, who is let in, approvals, pinned definitions, logins, record and replay, fault injection.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

pub mod access;
pub mod admission;
pub mod approvals;
pub mod audit;
pub mod cassette;
pub mod chaos;
pub mod logins;
pub mod models;
pub mod net;
pub mod pins;
pub mod runtime;
pub mod scrub;
pub mod source;
pub mod verify;
