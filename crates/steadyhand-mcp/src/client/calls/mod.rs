//! One call of a tool, or one request that is passed on, from its parameters to its answer.

pub(crate) mod handler;
pub(crate) mod input_required;
pub mod parameters;
pub(crate) mod relayed_request;
pub mod result;
pub(crate) mod rpc_error;
pub(crate) mod server_request;
