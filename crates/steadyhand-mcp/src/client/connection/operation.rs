//! One request to a server, as OpenTelemetry's conventions for MCP count it.

use std::time::Duration;

use serde::Deserialize;

use crate::client::connection::Connection;
use crate::client::connection::slot::Answer;
use crate::client::http::Kind;
use crate::measures::{self, Attributes, Measure};

/// What the conventions call a tool's own "no".
pub(crate) const TOOL_ERROR: &str = "tool_error";
/// Nobody waited for it any more.
pub(crate) const CANCELLED: &str = "cancelled";

/// What a request is about.
pub(crate) struct Operation {
    method: String,
    target: Option<String>,
}

impl Operation {
    pub(crate) fn new(method: &str, target: Option<&str>) -> Operation {
        Operation {
            method: method.to_owned(),
            target: target.map(str::to_owned),
        }
    }

    /// It was answered, or will not be.
    pub(crate) fn ended(&self, connection: &Connection, answer: &Answer, took: Duration) {
        self.count(connection.described(), error_of(&self.method, answer), took);
    }

    /// Nobody waits for it any more.
    pub(crate) fn given_up(&self, connection: &Connection, took: Duration) {
        let error = vec![("error.type", CANCELLED.to_owned())];
        self.count(connection.described(), error, took);
    }

    /// The same where there is no connection yet.
    pub(crate) fn count(&self, way: Attributes, error: Attributes, took: Duration) {
        // One that stays open is no operation that takes its time.
        if self.method == "subscriptions/listen" {
            return;
        }
        let mut attributes = about(&self.method, self.target.as_deref());
        attributes.extend(way);
        attributes.extend(error);
        measures::record(Measure::ClientOperation, attributes, took);
    }
}

/// What a request is about, under the names of the conventions.
pub(crate) fn about(method: &str, target: Option<&str>) -> Attributes {
    let mut about = vec![("mcp.method.name", method.to_owned())];
    if method == "tools/call" {
        about.push(("gen_ai.operation.name", "execute_tool".to_owned()));
    }
    let name = match method {
        "tools/call" => Some("gen_ai.tool.name"),
        "prompts/get" => Some("gen_ai.prompt.name"),
        _ => None,
    };
    about.extend(name.zip(target.map(str::to_owned)));
    about
}

/// How an answer is an error, under the names of the conventions; empty if it is none.
pub(crate) fn error_of(method: &str, answer: &Answer) -> Attributes {
    let error = |kind: &str| vec![("error.type", kind.to_owned())];
    match answer {
        Answer::Result(result) if method == "tools/call" && is_error(result.get()) => {
            error(TOOL_ERROR)
        }
        Answer::Result(_) => Vec::new(),
        Answer::Error(rpc) => {
            let code = rpc.code.to_string();
            vec![
                ("error.type", code.clone()),
                ("rpc.response.status_code", code),
            ]
        }
        Answer::TooLarge(_) | Answer::NoMemory(_) => error("response_too_large"),
        Answer::Unreadable(_) => error("invalid_response"),
        Answer::Lost(_) => error("connection_lost"),
        Answer::Unanswered(_) => error("input_required"),
        Answer::TransportError(trouble) => match &trouble.kind {
            Kind::Unreachable => error("unreachable"),
            Kind::Broken => error("connection_lost"),
            Kind::Status { code, .. } => error(&code.to_string()),
            Kind::Redirected(_) => error("redirected"),
            Kind::NotMcp => error("invalid_response"),
        },
    }
}

/// Whether a result says that the tool failed. Most do not have the word in them.
fn is_error(result: &str) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    let has_the_word = memchr::memmem::find(result.as_bytes(), b"\"isError\"").is_some();
    has_the_word && serde_json::from_str::<Marked>(result).is_ok_and(|it| it.is_error)
}
