//! Mistral's chat completions.

mod exchange;
mod request;
mod response;
mod roles;
mod shapes;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;

/// See the first line.
pub(crate) struct MistralFormat;
