//! Why there is no answer of the provider's, told in the provider's own shape so that its clients understand it.

use std::error::Error;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use steadyhand_conversation::Provider;

use super::aws_events;
use super::tap::Framing;
use super::upstream::Upstream;
use steadyhand_server::http::status::{Refused, Why};

/// The code of a stream that ended without its end mark: a broken answer.
pub(super) const UNFINISHED: &str = "upstream_unfinished";

/// Tells our own errors from the provider's.
pub(super) const ERROR_HEADER: &str = "steadyhand-error";

/// Why there is no answer of the provider's, or no whole one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No connection.
    Unreachable(String),
    /// The connection went away in the middle.
    BrokeOff(String),
    /// The stream ended without its end mark, though HTTP says that all has come.
    Unfinished(Provider),
    /// What came is no answer.
    Garbage(String),
    /// Nothing came for so long.
    Silent(Duration),
    /// It was not done after so long.
    TooLong(Duration),
    /// We are about to end.
    Closing,
    /// The settings do not say where it is.
    NotSetUp(String),
    /// The request itself was not taken by us.
    Refused(Why, String),
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Trouble {
        Trouble::Refused(refused.why(), refused.in_words())
    }
}

impl Trouble {
    /// The HTTP status of the answer that tells of it.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Trouble::Unreachable(_)
            | Trouble::BrokeOff(_)
            | Trouble::Unfinished(_)
            | Trouble::Garbage(_) => StatusCode::BAD_GATEWAY,
            Trouble::Silent(_) | Trouble::TooLong(_) => StatusCode::GATEWAY_TIMEOUT,
            Trouble::Closing | Trouble::NotSetUp(_) => StatusCode::SERVICE_UNAVAILABLE,
            Trouble::Refused(why, _) => why.status(),
        }
    }

    pub(super) fn of_dialling(error: &(dyn Error + 'static)) -> Trouble {
        Trouble::Unreachable(innermost(error))
    }

    /// A request was sent, and there is no answer, or not all of it.
    pub(super) fn of_exchange(error: &hyper::Error) -> Trouble {
        let words = innermost(error);
        match error.is_parse() {
            true => Trouble::Garbage(format!("not HTTP: {words}")),
            false => Trouble::BrokeOff(words),
        }
    }

    /// For machines.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Trouble::Unreachable(_) => "upstream_unreachable",
            Trouble::BrokeOff(_) => "upstream_broke_off",
            Trouble::Unfinished(_) => UNFINISHED,
            Trouble::Garbage(_) => "upstream_garbage",
            Trouble::Silent(_) => "upstream_silent",
            Trouble::TooLong(_) => "upstream_too_long",
            Trouble::Closing => Why::ShuttingDown.code(),
            Trouble::NotSetUp(_) => "proxy_not_set_up",
            Trouble::Refused(why, _) => why.code(),
        }
    }

    /// What happened where, and what to do.
    pub(super) fn words(&self, upstream: Option<&Upstream>) -> String {
        let (name, place) = match upstream {
            Some(upstream) => (upstream.site.as_str(), upstream.place.as_str()),
            None => ("the provider", "?"),
        };
        let span = |span: &Duration| humantime::format_duration(*span).to_string();
        match self {
            Trouble::Unreachable(why) => format!(
                "steadyhand: {name} does not answer at {place}: {why}. Nothing was sent. Check the network, or upstream under [proxy.{name}]"
            ),
            Trouble::BrokeOff(why) => format!(
                "steadyhand: the connection to {name} at {place} broke off before the answer was whole: {why}. Ask again"
            ),
            Trouble::Unfinished(shape) => format!(
                "steadyhand: the stream of {name} at {place} ended without its end mark ({}): the answer is not whole. Ask again",
                shape.format().end_mark()
            ),
            Trouble::Garbage(why) => format!(
                "steadyhand: what {place} sent is no answer of {name}: {why}. Check upstream under [proxy.{name}]"
            ),
            Trouble::Silent(after) => format!(
                "steadyhand: {name} at {place} sent nothing for {}. Ask again, or raise first or idle under [proxy.{name}]",
                span(after)
            ),
            Trouble::TooLong(after) => format!(
                "steadyhand: {name} at {place} was not done within {}. Raise timeout under [proxy.{name}]",
                span(after)
            ),
            Trouble::Closing => {
                "steadyhand: the server is about to end. Ask again when it is back".to_owned()
            }
            Trouble::NotSetUp(problem) => format!("steadyhand: the proxy is not set up: {problem}"),
            Trouble::Refused(_, words) => format!("steadyhand: {words}"),
        }
    }
}

/// The whole answer, where none has begun.
pub(super) fn response(shape: Provider, trouble: &Trouble, words: &str) -> Response {
    let status = trouble.status();
    let body = body(shape, trouble.code(), status, words);
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(ERROR_HEADER, HeaderValue::from_static(trouble.code()));
    if let Some((name, kind)) = shape.format().error_header(status.as_u16()) {
        headers.insert(name, HeaderValue::from_static(kind));
    }
    response
}

/// The last words of a stream that breaks off here: an error event, as the provider would send it.
pub(super) fn event(shape: Provider, framing: Framing, trouble: &Trouble, words: &str) -> Bytes {
    let body = body(shape, trouble.code(), trouble.status(), words);
    if framing == Framing::AwsEvents {
        let exception = "internalServerException";
        return aws_events::exception(exception, body.to_string().as_bytes()).into();
    }
    let event = shape.format().error_event(trouble.code(), &body, words);
    event.into()
}

fn body(shape: Provider, code: &str, status: StatusCode, words: &str) -> Value {
    shape.format().error_body(code, status.as_u16(), words)
}

/// The innermost cause says most, and names no address.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let io = innermost.downcast_ref::<io::Error>();
    match io.and_then(io::Error::get_ref) {
        Some(inner) => inner.to_string(),
        None => innermost.to_string(),
    }
}
