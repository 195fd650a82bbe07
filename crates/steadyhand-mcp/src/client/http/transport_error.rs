//! What can go wrong between us and a server over HTTP, and what each of it means: to a call, to a request, to a start.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;
use serde_json::json;
use steadyhand::{Category, Effect, ToolError};

use crate::client::lifecycle::failure::What;
use crate::wire::RpcError;

/// What a person is shown of a body.
const BODY_CHARS_MAX: usize = 200;
/// Nobody means more than a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// There is no answer in the sense of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransportError {
    pub(crate) kind: Kind,
    /// In words, secrets hidden.
    pub(crate) text: String,
}

/// Which kind of trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No connection: the request was not sent.
    Unreachable,
    /// The connection broke after the request was sent.
    Broken,
    /// A status that is no success.
    Status {
        code: u16,
        retry_after: Option<Duration>,
    },
    /// A redirect that is not followed: where to.
    Redirected(String),
    /// An answer that is none of the protocol: a web page, a text, broken JSON.
    NotMcp,
}

impl TransportError {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> TransportError {
        TransportError {
            kind,
            text: text.into(),
        }
    }

    /// A status that is no success, and how its body begins.
    pub(crate) fn status(code: u16, headers: &HeaderMap, body: &str) -> TransportError {
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| {
            let seconds: f64 = value.to_str().ok()?.trim().parse().ok()?;
            let wait = Duration::try_from_secs_f64(seconds).ok()?;
            Some(wait.min(RETRY_AFTER_MAX))
        });
        let name = hyper::StatusCode::from_u16(code).ok();
        let name = name.and_then(|code| code.canonical_reason());
        let mut text = format!("HTTP {code}");
        if let Some(name) = name {
            text = format!("{text} {name}");
        }
        let body = beginning(body);
        if !body.is_empty() {
            text = format!("{text}: {body}");
        }
        TransportError::new(Kind::Status { code, retry_after }, text)
    }

    /// Whether it is certain that the server has not done anything.
    pub(crate) fn nothing_ran(&self) -> bool {
        match &self.kind {
            Kind::Unreachable | Kind::Redirected(_) => true,
            Kind::Broken | Kind::NotMcp => false,
            // A server that has looked at the request and says no. A conflict, or a request that came too slowly or
            // too early, may be told after the fact.
            Kind::Status { code, .. } => {
                (400..500).contains(code) && ![408, 409, 425].contains(code)
            }
        }
    }

    /// To a call of a tool.
    pub(crate) fn to_tool_error(&self, server: &str) -> ToolError {
        let text = &self.text;
        let error = match &self.kind {
            Kind::Unreachable => ToolError::of(
                Category::Network,
                format!("MCP server '{server}' cannot be reached: {text}"),
            ),
            Kind::Broken => ToolError::of(
                Category::Network,
                format!("the connection to MCP server '{server}' broke during the call: {text}"),
            ),
            Kind::Status { code, retry_after } => {
                let words = format!("MCP server '{server}' answered {text}");
                let error = ToolError::from_http_status(*code, words);
                match retry_after {
                    Some(wait) => error.retry_after(*wait),
                    None => error,
                }
            }
            Kind::Redirected(_) => ToolError::answer(format!("MCP server '{server}' {text}")),
            Kind::NotMcp => {
                ToolError::of(Category::Unknown, format!("MCP server '{server}' {text}"))
            }
        };
        match self.nothing_ran() {
            true => error.never_started(),
            false => error.effect(Effect::Unknown),
        }
    }

    /// To any other request.
    pub(crate) fn to_rpc_error(&self, server: &str, method: &str) -> RpcError {
        let text = &self.text;
        let (code, words, data) = match &self.kind {
            Kind::Unreachable => (
                crate::client::calls::relayed_request::AWAY,
                format!("cannot be reached: {text}"),
                None,
            ),
            Kind::Broken => {
                let words = format!("went away during {method}: {text}");
                (crate::client::calls::relayed_request::AWAY, words, None)
            }
            Kind::Status { code, .. } => {
                let words = format!("answered {method} with {text}");
                (
                    crate::client::calls::relayed_request::INTERNAL,
                    words,
                    Some(json!({ "status": code })),
                )
            }
            Kind::Redirected(_) | Kind::NotMcp => (
                crate::client::calls::relayed_request::INTERNAL,
                text.clone(),
                None,
            ),
        };
        let mut error = RpcError::new(code, format!("MCP server '{server}' {words}"));
        error.data = data;
        error
    }

    /// To a start.
    pub(crate) fn to_what(&self) -> What {
        let text = self.text.clone();
        match &self.kind {
            Kind::Unreachable => What::Unreachable(text),
            Kind::Broken => What::Broken(text),
            Kind::Status { code, .. } => What::Status { code: *code, text },
            Kind::Redirected(to) => What::Redirected { to: to.clone() },
            Kind::NotMcp => What::NotMcp(text),
        }
    }
}

/// How a body begins, as one line.
pub(crate) fn beginning(body: &str) -> String {
    let mut shown = String::new();
    for word in body.split_whitespace() {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(&steadyhand::visible::text(word));
        if let Some((end, _)) = shown.char_indices().nth(BODY_CHARS_MAX) {
            shown.truncate(end);
            shown.push('…');
            break;
        }
    }
    shown
}
