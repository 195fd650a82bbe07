//! Metrics and spans, read by those they are made for.

mod collector;
mod mcp;
mod otlp;
mod peer;
mod prometheus;
mod served;
mod trace;
