//! OpenAI's Responses.

mod client;
mod exchange;
mod items;
mod messages;
mod request;
mod response;
mod shapes;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;

pub(crate) use messages::is_reference;

/// See the first line.
pub(crate) struct ResponsesFormat;
