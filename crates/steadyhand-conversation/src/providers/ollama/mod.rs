//! Ollama's own `/api/chat`.

mod client;
mod exchange;
mod request;
mod response;
mod shapes;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;

/// See the first line.
pub(crate) struct OllamaFormat;
