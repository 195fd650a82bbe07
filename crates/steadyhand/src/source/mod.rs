//! Where tools come from. Sources that need no I/O live here; the others in the crates that have it.

pub mod builtin;
pub mod definition;
pub mod internal;
pub mod mock;

pub use crate::tool_source::{SourceError, ToolSource};
