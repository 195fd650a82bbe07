//! MCP on a JSON wire of its own: servers started, watched over and called.
