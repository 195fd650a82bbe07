//! MCP servers, real and hostile, through the crate's public surface.

mod names;
mod parameters;
mod results;
