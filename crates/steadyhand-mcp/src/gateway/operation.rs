//! One request of a client, as OpenTelemetry's conventions for MCP count it: how long it took, and the span of it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadyhand::{Traceparent, clock};
use tokio::time::Instant;
use uuid::Uuid;

use super::dispatch::{Inner, Origin};
use super::inquiry::{Answer, Sink};
use super::request::{Meta, Params, Request};
use crate::client::connection::operation::{CANCELLED, TOOL_ERROR, about};
use crate::measures::{self, Attributes, Measure};

/// What a request of a method that nobody knows is counted as.
const OTHER_METHOD: &str = "_OTHER";
/// The longest request id that is shown.
const ID_CHARS_MAX: usize = 128;

/// A request of a client that is over.
#[derive(Debug, Clone)]
pub struct ServedOperation {
    /// `tools/call NAME`, or the method alone.
    pub name: String,
    /// Under the names of the conventions.
    pub attributes: Attributes,
    /// Its span, and the one above it.
    pub span: ServerSpan,
    /// When it came in, in milliseconds since 1970.
    pub began_ms: u64,
    /// How long it took.
    pub took: Duration,
    /// Whether it failed; the text of the error, where one was answered.
    pub failed: Option<String>,
}

/// Where a request stands in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSpan {
    /// Its own.
    pub own: Traceparent,
    /// The client's, if it named one.
    pub parent: Option<u64>,
}

/// A request of a client that is being worked on.
pub(super) struct Operation {
    inner: Arc<Inner>,
    method: &'static str,
    target: Option<String>,
    /// Told of spans only: they would make a series of metrics for each request.
    request_id: String,
    session: Option<Arc<str>>,
    way: Attributes,
    span: Option<ServerSpan>,
    began: Instant,
    began_ms: u64,
    tool_failed: Mutex<Option<&'static str>>,
}

impl Operation {
    pub(super) fn begin(
        inner: &Arc<Inner>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: &Origin<'_>,
    ) -> Operation {
        let target = match request.method {
            // A name that nobody has would make a series for each mistake.
            "tools/call" => params
                .name()
                .filter(|name| inner.host.tools().find(name).is_some()),
            "prompts/get" => params.name(),
            _ => None,
        };
        let is_stdio = matches!(origin.sink, Sink::Out(_));
        let mut way = vec![(
            "mcp.protocol.version",
            origin.client.era.version().to_owned(),
        )];
        way.extend(transport(is_stdio));
        let parent = meta.traceparent.as_deref().or(origin.traceparent);
        let session = origin.conversation.clone().filter(|_| !is_stdio);
        Operation {
            inner: Arc::clone(inner),
            method: known_method(request.method),
            target: target.map(|target| target.into_owned()),
            request_id: shown_id(request.id.get()),
            session,
            way,
            span: inner.host.records_spans().then(|| span_below(parent)),
            began: Instant::now(),
            began_ms: clock::wall_ms(),
            tool_failed: Mutex::default(),
        }
    }

    /// What a call that is made for it hands on; none where its span is not recorded.
    pub(super) fn traceparent(&self) -> Option<String> {
        let span = self.span.filter(|span| span.own.sampled);
        span.map(|span| span.own.to_string())
    }

    /// The call that was made for it failed, with this code of ours; it is answered all the same.
    pub(super) fn tool_failed(&self, code: &'static str) {
        let mut failed = self.tool_failed.lock();
        *failed = Some(code);
    }

    /// It is over. None: nobody waits for the answer.
    fn end(&self, answer: Option<&Answer>) {
        let took = self.began.elapsed();
        let failed = self.tool_failed.lock();
        let mut error: Attributes = Vec::new();
        let mut own_code = None;
        let message = match (answer, *failed) {
            (None, _) => {
                error.push(("error.type", CANCELLED.to_owned()));
                Some("nobody waits for the answer any more".to_owned())
            }
            (Some(Err(rpc)), _) => {
                let code = rpc.code.to_string();
                error.push(("error.type", code.clone()));
                error.push(("rpc.response.status_code", code));
                Some(rpc.message.clone())
            }
            (Some(Ok(_)), Some(code)) => {
                error.push(("error.type", TOOL_ERROR.to_owned()));
                own_code = Some(("steadyhand.error.code", code.to_owned()));
                Some(String::new())
            }
            (Some(Ok(_)), None) => None,
        };
        let mut attributes = about(self.method, self.target.as_deref());
        attributes.extend(self.way.iter().cloned());
        attributes.extend(error);
        if let Some(span) = self.span.filter(|span| span.own.sampled) {
            let mut more = attributes.clone();
            more.extend(own_code);
            more.push(("jsonrpc.request.id", self.request_id.clone()));
            let session = self.session.as_ref();
            more.extend(session.map(|id| ("mcp.session.id", id.to_string())));
            self.inner.host.operation_ended(ServedOperation {
                name: match &self.target {
                    Some(target) => format!("{} {target}", self.method),
                    None => self.method.to_owned(),
                },
                attributes: more,
                span,
                began_ms: self.began_ms,
                took,
                failed: message,
            });
        }
        measures::record(Measure::ServerOperation, attributes, took);
    }
}

/// An operation that ends exactly once, even if nobody waits for its end.
pub(super) struct Following {
    operation: Arc<Operation>,
    is_over: bool,
}

impl Following {
    pub(super) fn new(operation: Arc<Operation>) -> Following {
        Following {
            operation,
            is_over: false,
        }
    }

    pub(super) fn end(mut self, answer: &Answer) {
        self.is_over = true;
        self.operation.end(Some(answer));
    }

    /// It was answered with a page of a list.
    pub(super) fn end_well(self) {
        self.end(&Ok(bytes::Bytes::new()));
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if !self.is_over {
            self.operation.end(None);
        }
    }
}

/// The way to us.
pub(super) fn transport(is_stdio: bool) -> Attributes {
    match is_stdio {
        true => vec![("network.transport", "pipe".to_owned())],
        false => vec![
            ("network.transport", "tcp".to_owned()),
            ("network.protocol.name", "http".to_owned()),
        ],
    }
}

/// A session of a client is over.
pub(super) fn session_ended(version: &str, is_stdio: bool, took: Duration) {
    let mut attributes = vec![("mcp.protocol.version", version.to_owned())];
    attributes.extend(transport(is_stdio));
    measures::record(Measure::ServerSession, attributes, took);
}

/// A handshake: it is answered at once, and opens what other requests are part of.
pub(super) fn greeted(version: &str, is_stdio: bool, took: Duration) {
    let mut attributes = about("initialize", None);
    attributes.push(("mcp.protocol.version", version.to_owned()));
    attributes.extend(transport(is_stdio));
    measures::record(Measure::ServerOperation, attributes, took);
}

fn span_below(parent: Option<&str>) -> ServerSpan {
    let parent = parent.and_then(Traceparent::parse);
    let random = || Uuid::new_v4().as_u128();
    ServerSpan {
        own: Traceparent {
            trace_id: parent.map_or_else(random, |parent| parent.trace_id),
            span_id: (random() as u64).max(1),
            sampled: parent.is_none_or(|parent| parent.sampled),
        },
        parent: parent.map(|parent| parent.span_id),
    }
}

/// A client may ask for anything: what nobody knows is counted together.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 14] = [
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "tools/call",
        "tools/list",
    ];
    let known = KNOWN.into_iter().find(|known| *known == method);
    known.unwrap_or(OTHER_METHOD)
}

/// An id as text: a string without its quotes, a number as it is written.
fn shown_id(raw: &str) -> String {
    let text = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
    text.chars().take(ID_CHARS_MAX).collect()
}
