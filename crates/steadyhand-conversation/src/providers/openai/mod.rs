//! OpenAI's Chat Completions, and the many services that speak it.

mod client;
mod deepseek;
mod exchange;
mod request;
mod response;
mod shapes;
mod sound;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;

pub(super) use request::{NO_MODEL, is_served_by};

/// See the first line.
pub(crate) struct OpenAiFormat;
