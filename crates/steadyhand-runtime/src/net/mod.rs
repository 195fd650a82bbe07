//! Outgoing HTTP: one client with pooled connections, which addresses it may reach, what its errors mean.

pub mod address;
pub mod client;
mod connect_limit;
pub mod error;
pub mod fill;
pub mod redirect;
pub mod request;
pub mod response;
pub mod retry_after;
mod way_out;

pub use client::Client;
pub use request::{Limits, Reach, Request};
pub use reqwest::header;
pub use reqwest::{Method, StatusCode, Url};
pub use response::Response;
pub use way_out::{SystemWayOut, WayOut};

/// The largest answer that is read when nobody says otherwise; what a model sees of it is bounded
/// further by the tool's own limit.
pub const RESPONSE_BYTES_MAX: usize = 8 * 1024 * 1024;
