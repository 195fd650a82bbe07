//! LangChain's messages, in any of its shapes.

mod exchange;
mod messages;
mod request;
mod response;
mod shapes;
#[cfg(feature = "strict")]
mod strict;
mod tools;

pub(crate) use messages::body_and_place;

/// See the first line.
pub(crate) struct LangChainFormat;
