//! What a client is told that asks for something that cannot be: the codes of JSON-RPC and MCP, chosen here alone.

use serde_json::json;

use super::era::{Era, MODERN_VERSIONS};
use crate::wire::RpcError;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// There is no room for it now.
const BUSY: i64 = -32000;
/// What the SDKs say of a session they do not know.
const NO_SESSION: i64 = -32001;
/// Of the older protocols alone.
pub(super) const NO_SUCH_RESOURCE: i64 = -32002;
const HEADER_MISMATCH: i64 = -32020;
pub(super) const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
/// Of the older protocols alone: a person has to visit a page first.
pub(super) const VISIT_NEEDED: i64 = -32042;

/// How an answer stands, for transports that say it beside the answer: HTTP has its statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Answered, be it with an error.
    Answered,
    /// Taken, and there is nothing to answer.
    Accepted,
    /// Not what the protocol wants.
    Malformed,
    /// There is no such method.
    NoSuchMethod,
    /// There is no such session (any more): the client has to begin anew.
    NoSuchSession,
    /// Not for this kind of request.
    NotHere,
    /// The client does not take what would be answered.
    NotAcceptable,
    /// No room for it now.
    Busy,
}

impl Standing {
    /// Of an error. Only the newer protocol tells errors apart by it.
    pub(super) fn of(error: &RpcError, era: Era) -> Standing {
        match (era, error.code) {
            (Era::Legacy(_), _) => Standing::Answered,
            (Era::Modern, METHOD_NOT_FOUND) => Standing::NoSuchMethod,
            (Era::Modern, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => {
                Standing::Malformed
            }
            (Era::Modern, _) => Standing::Answered,
        }
    }
}

pub(super) fn not_json() -> RpcError {
    RpcError::new(PARSE_ERROR, "this is no JSON")
}

pub(super) fn no_message() -> RpcError {
    RpcError::new(INVALID_REQUEST, "this is no JSON-RPC 2.0 message")
}

pub(super) fn too_large(bytes: usize) -> RpcError {
    RpcError::new(
        INVALID_REQUEST,
        format!("a message of {bytes} bytes is too large"),
    )
}

pub(super) fn invalid(text: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_PARAMS, text)
}

pub(super) fn invalid_request(text: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_REQUEST, text)
}

pub(super) fn no_such_method(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("there is no method {method}"))
}

pub(super) fn busy(text: impl Into<String>) -> RpcError {
    RpcError::new(BUSY, text)
}

pub(super) fn no_session() -> RpcError {
    RpcError::new(
        NO_SESSION,
        "Session not found: it has ended, or this server was started anew; send initialize again",
    )
}

pub(super) fn header_mismatch(text: impl Into<String>) -> RpcError {
    RpcError::new(HEADER_MISMATCH, text)
}

pub(super) fn unsupported_version(requested: &str) -> RpcError {
    let mut error = RpcError::new(
        UNSUPPORTED_VERSION,
        format!("protocol version {requested:?} is not supported"),
    );
    error.data = Some(json!({"supported": MODERN_VERSIONS, "requested": requested}));
    error
}

pub(super) fn no_such_resource(uri: &str, era: Era) -> RpcError {
    let code = match era {
        Era::Modern => INVALID_PARAMS,
        Era::Legacy(_) => NO_SUCH_RESOURCE,
    };
    let mut error = RpcError::new(code, "Resource not found");
    error.data = Some(json!({ "uri": uri }));
    error
}

/// A question nobody will answer.
pub(super) fn unanswered(text: impl Into<String>) -> RpcError {
    RpcError::new(INTERNAL, text)
}
