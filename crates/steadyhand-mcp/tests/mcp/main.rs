//! MCP servers, real and hostile, through the crate's public surface.

mod causes;
mod definitions;
mod failures;
mod names;
mod parameters;
mod results;
mod serve;
