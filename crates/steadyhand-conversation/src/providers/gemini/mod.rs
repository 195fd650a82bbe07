//! Google's `generateContent`.

mod declaration;
mod exchange;
mod messages;
mod request;
mod response;
mod shapes;
mod signatures;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;

/// See the first line.
pub(crate) struct GeminiFormat;
