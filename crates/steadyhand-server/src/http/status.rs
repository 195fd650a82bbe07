//! Which HTTP status says what, and the two shapes of every refusal. Statuses are chosen here, and for
//! answers of providers in the proxy.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};
use serde_json::{Map, Value, json};
use steadyhand::{Outcome, Status};
use steadyhand_mcp::serve::Standing;

use steadyhand_runtime::admission::{NotAdmitted, NotAdmittedReason};

/// Says in a header how a call ended, for those who do not read bodies.
pub const OUTCOME_HEADER: &str = "steadyhand-outcome";
/// The code of a failed call.
pub const CODE_HEADER: &str = "steadyhand-code";
/// Set when a failed call was answered by its fallback.
pub const FALLBACK_HEADER: &str = "steadyhand-fallback";
/// The call.
pub const CALL_ID_HEADER: &str = "steadyhand-call-id";

/// Why a request is not answered as asked. How a call ended is never a reason: that is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The body or the query is not what this address takes.
    BadRequest,
    /// The caller has shown no credentials, or none that are good.
    NoToken,
    /// The caller's role does not include this.
    NotAllowed,
    /// The caller calls more often than it may.
    TooFast,
    /// No key has this id.
    NoSuchKey,
    /// No alert has this id.
    NoSuchAlert,
    /// No approval has this id.
    NoSuchApproval,
    /// The approval is decided, or about other arguments.
    CannotDecide,
    /// A definition is another than the one that was seen.
    DefinitionChanged,
    /// Credentials cannot be checked now.
    NoKeys,
    /// The request is addressed to a name that is not ours, or comes from a page of somebody else's.
    Foreign,
    /// Nothing is at this address.
    NoSuchRoute,
    /// Something is, but not for this method.
    NoSuchMethod,
    /// No tool has this name.
    NoSuchTool,
    /// No call has this id.
    NoSuchCall,
    /// No server has this name.
    NoSuchServer,
    /// No conversation has this name.
    NoSuchConversation,
    /// The body did not come in time.
    TooSlow,
    /// Running it again could do it twice.
    NotSafeToRepeat,
    /// The call has ended: nothing is left to cancel.
    CallHasEnded,
    /// More than is taken.
    TooLarge,
    /// The configuration file has problems, and the one in force stays.
    ConfigInvalid,
    /// This caller has too many calls running.
    TooMany,
    /// The server as a whole has too much to do.
    Busy,
    /// The server is about to end.
    ShuttingDown,
    /// The history cannot be read now.
    NoHistory,
    /// The audit log cannot be read or written now.
    NoAudit,
    /// A bug of ours.
    Unexpected,
}

impl Why {
    pub fn status(self) -> StatusCode {
        match self {
            Why::BadRequest => StatusCode::BAD_REQUEST,
            Why::NoToken => StatusCode::UNAUTHORIZED,
            Why::Foreign | Why::NotAllowed => StatusCode::FORBIDDEN,
            Why::NoSuchRoute
            | Why::NoSuchTool
            | Why::NoSuchCall
            | Why::NoSuchServer
            | Why::NoSuchConversation
            | Why::NoSuchAlert
            | Why::NoSuchApproval
            | Why::NoSuchKey => StatusCode::NOT_FOUND,
            Why::NoSuchMethod => StatusCode::METHOD_NOT_ALLOWED,
            Why::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Why::NotSafeToRepeat
            | Why::CallHasEnded
            | Why::CannotDecide
            | Why::DefinitionChanged => StatusCode::CONFLICT,
            Why::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Why::ConfigInvalid => StatusCode::UNPROCESSABLE_ENTITY,
            Why::TooMany | Why::TooFast => StatusCode::TOO_MANY_REQUESTS,
            Why::Busy | Why::ShuttingDown | Why::NoHistory | Why::NoAudit | Why::NoKeys => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Why::Unexpected => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Stable, for machines.
    pub fn code(self) -> &'static str {
        match self {
            Why::BadRequest => "bad_request",
            Why::NoToken => "token_missing",
            Why::NotAllowed => "not_allowed",
            Why::TooFast => "rate_limited",
            Why::NoSuchKey => "no_such_key",
            Why::NoSuchAlert => "no_such_alert",
            Why::NoSuchApproval => "no_such_approval",
            Why::CannotDecide => "cannot_decide",
            Why::DefinitionChanged => "definition_changed",
            Why::NoKeys => "keys_unavailable",
            Why::Foreign => "foreign_request",
            Why::NoSuchRoute => "no_such_route",
            Why::NoSuchMethod => "no_such_method",
            Why::NoSuchTool => "no_such_tool",
            Why::NoSuchCall => "no_such_call",
            Why::NoSuchServer => "no_such_server",
            Why::NoSuchConversation => "no_such_conversation",
            Why::TooSlow => "too_slow",
            Why::NotSafeToRepeat => "not_safe_to_repeat",
            Why::CallHasEnded => "call_has_ended",
            Why::TooLarge => "too_large",
            Why::ConfigInvalid => "config_invalid",
            Why::TooMany => "too_many_calls",
            Why::Busy => "server_busy",
            Why::ShuttingDown => "shutting_down",
            Why::NoHistory => "history_unavailable",
            Why::NoAudit => "audit_unavailable",
            Why::Unexpected => "unexpected",
        }
    }

    /// What it is, the same for every request it is said of.
    fn title(self) -> &'static str {
        match self {
            Why::BadRequest => "The request does not fit this address",
            Why::NoToken => "Credentials are missing or not valid",
            Why::NotAllowed => "The caller's role does not include this",
            Why::TooFast => "The caller calls too often",
            Why::NoSuchKey => "There is no such key",
            Why::NoSuchAlert => "There is no such alert",
            Why::NoSuchApproval => "There is no such approval",
            Why::CannotDecide => "The approval cannot be decided",
            Why::DefinitionChanged => "The definition is another than the one that was seen",
            Why::NoKeys => "Credentials cannot be checked now",
            Why::Foreign => "The request comes from another site or is meant for another host",
            Why::NoSuchRoute => "There is nothing at this address",
            Why::NoSuchMethod => "This address does not take this method",
            Why::NoSuchTool => "There is no such tool",
            Why::NoSuchCall => "There is no such call",
            Why::NoSuchServer => "There is no such server",
            Why::NoSuchConversation => "There is no such conversation",
            Why::TooSlow => "The body did not arrive in time",
            Why::NotSafeToRepeat => "Running it again could do it twice",
            Why::CallHasEnded => "The call has ended",
            Why::TooLarge => "The request is too large",
            Why::ConfigInvalid => "The configuration file has problems",
            Why::TooMany => "The caller has too many calls running",
            Why::Busy => "The server has too much to do",
            Why::ShuttingDown => "The server is about to end",
            Why::NoHistory => "The history cannot be read now",
            Why::NoAudit => "The audit log cannot be read or written now",
            Why::Unexpected => "An unexpected fault of the server",
        }
    }

    /// Whether the same request may do better in a moment.
    fn is_passing(self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
            || self.status() == StatusCode::TOO_MANY_REQUESTS
    }

    /// Whether it says something about who asks, and belongs into the record of refusals.
    pub fn is_about_who_asks(self) -> bool {
        match self {
            Why::NoToken | Why::NotAllowed | Why::Foreign | Why::TooFast | Why::NoKeys => true,
            Why::BadRequest
            | Why::NoSuchKey
            | Why::NoSuchAlert
            | Why::NoSuchApproval
            | Why::CannotDecide
            | Why::DefinitionChanged
            | Why::NoSuchRoute
            | Why::NoSuchMethod
            | Why::NoSuchTool
            | Why::NoSuchCall
            | Why::NoSuchServer
            | Why::NoSuchConversation
            | Why::TooSlow
            | Why::NotSafeToRepeat
            | Why::CallHasEnded
            | Why::TooLarge
            | Why::ConfigInvalid
            | Why::TooMany
            | Why::Busy
            | Why::ShuttingDown
            | Why::NoHistory
            | Why::NoAudit
            | Why::Unexpected => false,
        }
    }
}

/// A request that is not answered as asked: `{"error": {code, message, help}}`.
#[derive(Debug)]
pub struct Refused(Box<Details>);

#[derive(Debug)]
struct Details {
    why: Why,
    message: String,
    help: String,
    more: Map<String, Value>,
    retry_after: Duration,
    /// What to show, where to get it: more than the scheme.
    challenge: Option<String>,
}

impl Refused {
    /// What is wrong with what, and what to do.
    pub fn new(why: Why, message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused(Box::new(Details {
            why,
            message: message.into(),
            help: help.into(),
            more: Map::new(),
            retry_after: Duration::from_secs(1),
            challenge: None,
        }))
    }

    /// With what `www-authenticate` says besides its scheme.
    #[must_use]
    pub fn challenged(mut self, challenge: Option<String>) -> Refused {
        self.0.challenge = challenge;
        self
    }

    /// When the same request may do better, if that is known.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Refused {
        self.0.retry_after = wait;
        self
    }

    pub fn wait(&self) -> Duration {
        self.0.retry_after
    }

    pub fn why(&self) -> Why {
        self.0.why
    }

    /// What is wrong with what.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do.
    pub fn help(&self) -> &str {
        &self.0.help
    }

    pub fn status(&self) -> StatusCode {
        self.0.why.status()
    }

    /// More for machines.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Refused {
        self.0.more.insert(name.to_owned(), value);
        self
    }
}

impl Refused {
    /// What is wrong and what to do, for those who read no JSON of ours.
    pub fn in_words(&self) -> String {
        format!("{}. {}", self.0.message, self.0.help)
    }
}

impl From<NotAdmitted> for Refused {
    fn from(not: NotAdmitted) -> Refused {
        let why = match not.reason {
            NotAdmittedReason::RateLimited => Why::TooFast,
            NotAdmittedReason::CallerBusy => Why::TooMany,
            NotAdmittedReason::Busy => Why::Busy,
            NotAdmittedReason::ShuttingDown => Why::ShuttingDown,
        };
        let refused = Refused::new(why, not.message, not.help);
        match not.retry_after {
            Some(wait) => refused.after(wait),
            None => refused,
        }
    }
}

/// Goes with the answer to whoever keeps a record of refusals, and to whoever writes it in another shape.
#[derive(Debug, Clone)]
pub struct WasRefused(pub Arc<Refused>);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = self.response();
        response.extensions_mut().insert(WasRefused(Arc::new(self)));
        response
    }
}

/// The media type of RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

impl Refused {
    fn error(&self) -> Value {
        let details = &*self.0;
        let mut error = json!({
            "code": details.why.code(),
            "message": details.message,
            "help": details.help,
        });
        if let Some(fields) = error.as_object_mut() {
            fields.extend(details.more.clone());
        }
        error
    }

    /// The same answer in the shape of RFC 9457: its members stand beside ours. Headers stay as they are.
    pub fn rewrite_as_problem(&self, response: &mut Response, instance: &str) {
        let why = self.0.why;
        let problem = json!({
            "type": format!("urn:steadyhand:problem:{}", why.code()),
            "title": why.title(),
            "status": why.status().as_u16(),
            "detail": self.in_words(),
            "instance": instance,
            "error": self.error(),
        });
        *response.body_mut() = Body::from(problem.to_string());
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    }

    fn response(&self) -> Response {
        let details = &*self.0;
        let body = json!({ "error": self.error() });
        let mut response = json_response(details.why.status(), &body);
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("accept"));
        if details.why.is_passing() {
            // A part of a second counts as one: too soon again would be refused again.
            let seconds = details.retry_after.as_millis().div_ceil(1000).max(1);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds as u64));
        }
        let challenge = details.challenge.as_ref();
        let challenge = challenge.and_then(|text| HeaderValue::try_from(text).ok());
        if let Some(challenge) = challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        } else if details.why == Why::NoToken {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Whether a client asks for errors in the shape of RFC 9457: it names that type, and likes it no less than plain JSON.
pub fn asks_for_problem(request: &HeaderMap) -> bool {
    let mut problem = 0.0;
    // The more exactly a range names a type, the more it counts.
    let (mut json, mut exactness) = (0.0, 0);
    let accepted = request.get_all(header::ACCEPT).into_iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("q")
                .then(|| value.trim().parse::<f32>().unwrap_or(0.0))
        });
        let quality = quality.unwrap_or(1.0);
        let exactness_here = match name.as_str() {
            PROBLEM_JSON => {
                problem = quality;
                continue;
            }
            "application/json" => 3,
            "application/*" => 2,
            "*/*" => 1,
            _ => continue,
        };
        if exactness_here >= exactness {
            (json, exactness) = (quality, exactness_here);
        }
    }
    // A range such as */* says nothing against the type that is named.
    problem > 0.0 && (problem >= json || exactness < 3)
}

/// An answer: status 200.
pub fn answer(value: &impl serde::Serialize) -> Response {
    json_response(StatusCode::OK, value)
}

/// An answer that comes piece by piece: lines of JSON, under the name some clients know no other for.
pub fn lines(
    pieces: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    is_text: bool,
) -> Response {
    let mut response = Response::new(Body::from_stream(pieces));
    let content_type = HeaderValue::from_static(match is_text {
        true => "text/plain; charset=utf-8",
        false => "application/x-ndjson",
    });
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// How an answer to an MCP client stands.
pub fn mcp(standing: Standing) -> StatusCode {
    match standing {
        Standing::Answered => StatusCode::OK,
        Standing::Accepted => StatusCode::ACCEPTED,
        Standing::Malformed => StatusCode::BAD_REQUEST,
        Standing::NoSuchMethod | Standing::NoSuchSession => StatusCode::NOT_FOUND,
        Standing::NotHere => StatusCode::METHOD_NOT_ALLOWED,
        Standing::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Standing::Busy => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Whether the server can take calls.
pub fn readiness(is_ready: bool, value: &impl serde::Serialize) -> Response {
    let status = match is_ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    json_response(status, value)
}

/// The outcome of a call is status 200, however it ended; headers say how.
pub fn outcome(outcome: &Outcome, text: Bytes) -> Response {
    let mut response = json_body(StatusCode::OK, Body::from(text));
    let headers = response.headers_mut();
    let word = match outcome.status() {
        Status::Success => "success",
        Status::Error => "error",
        Status::Timeout => "timeout",
    };
    headers.insert(OUTCOME_HEADER, HeaderValue::from_static(word));
    if let Some(failure) = outcome.failure() {
        headers.insert(CODE_HEADER, HeaderValue::from_static(failure.code.as_str()));
    }
    if outcome.fallback.is_some() {
        headers.insert(FALLBACK_HEADER, HeaderValue::from_static("used"));
    }
    // Clients do not agree on what other characters in a header are.
    if outcome.call_id.is_ascii()
        && let Ok(id) = HeaderValue::from_str(&outcome.call_id)
    {
        headers.insert(CALL_ID_HEADER, id);
    }
    response
}

/// An answer in pieces that are not copied together.
pub fn answer_in_pieces(pieces: Vec<Bytes>) -> Response {
    let bytes = pieces.iter().map(Bytes::len).sum::<usize>() as u64;
    let body = PieceBody {
        pieces: pieces.into_iter(),
        bytes,
    };
    json_body(StatusCode::OK, Body::new(body))
}

/// Something as JSON.
pub fn text(value: &impl serde::Serialize) -> Bytes {
    let mut text = Vec::with_capacity(256);
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => text.into(),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            Bytes::from_static(b"null")
        }
    }
}

fn json_response(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let mut text = Vec::with_capacity(256);
    if let Err(error) = serde_json::to_writer(&mut text, value) {
        tracing::error!(%error, "an answer could not be written as JSON");
        let refused = Refused::new(
            Why::Unexpected,
            "the answer could not be written as JSON",
            "This should not happen: please report it",
        );
        return refused.into_response();
    }
    json_body(status, Body::from(text))
}

fn json_body(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

struct PieceBody {
    pieces: std::vec::IntoIter<Bytes>,
    bytes: u64,
}

impl hyper::body::Body for PieceBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.next();
        self.bytes -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}
