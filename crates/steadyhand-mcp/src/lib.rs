//! MCP on a JSON wire of its own: servers started, watched over and called.

pub mod causes;
pub mod definition;
pub mod failure;
pub mod names;
pub mod parameters;
pub mod result;
mod rpc_error;
