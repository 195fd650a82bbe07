//! The JSON-RPC wire: bytes in, messages out. Nothing is re-typed: what a message holds stays raw JSON.

mod events;
mod foreign;
mod lines;
mod members;
mod message;
pub(crate) mod meta;
mod overlong;
mod unreadable;

pub use events::{Event, Events, TooLarge};
pub use foreign::{examined, is_like_ours, rename_marks};
pub use lines::{Line, Lines};
pub use members::Members;
pub use message::{Incoming, Outgoing, RpcError, read_messages};
pub use unreadable::UnreadableAnswer;
