//! Metrics and spans, read by those they are made for.

mod peer;
mod prometheus;
