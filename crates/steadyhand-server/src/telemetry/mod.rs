//! What is seen of the tools from outside: counters for Prometheus, counters and spans for OpenTelemetry.
//! Both read the engine's own counters and events; nothing here stands on the path of a call.

pub mod figures;
pub mod otlp;
pub mod prometheus;

pub use figures::{Figures, HistoryFigures, ProcessFigures, ProxyFigures, ServerFigures};
pub use otlp::Otlp;
