//! Amazon Bedrock's Converse, whichever model is behind it.

mod exchange;
mod messages;
mod request;
mod response;
mod shapes;
mod stream;
#[cfg(feature = "strict")]
pub(crate) mod strict;
mod tools;
mod whole_request;

/// See the first line.
pub(crate) struct ConverseFormat;
