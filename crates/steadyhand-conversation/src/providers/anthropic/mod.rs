//! Anthropic's Messages.

mod client;
mod exchange;
mod messages;
mod request;
mod response;
mod shapes;
mod sound;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;
mod turns;
mod whole_request;

pub(super) use tools::dialect;
pub(super) use whole_request::{ENDS_WITH_SPACE, refuses_prefill, trim_last};

/// See the first line.
pub(crate) struct AnthropicFormat;
