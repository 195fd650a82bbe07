//! MCP servers, real and hostile, through the crate's public surface.

mod serve;
