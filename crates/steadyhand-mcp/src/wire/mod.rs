//! The JSON-RPC wire: bytes in, messages out. Nothing is re-typed: what a message holds stays raw JSON.

mod lines;
mod members;
mod message;
mod overlong;

pub use lines::{Line, Lines};
pub use members::Members;
pub use message::{Incoming, Outgoing, RpcError};
