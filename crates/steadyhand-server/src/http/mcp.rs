//! `/mcp`: all tools for MCP clients, both eras of the protocol. What it means is the gateway's business; here it
//! gets its HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use hyper::body::{Frame, SizeHint};
use steadyhand_mcp::serve::{Content, Headers, Message, Post, Reply, Who};

use super::kept_body::until_answered;
use super::limits::{VALUES_MAX, Whole};
use super::status::{self, Refused, Why};
use super::who::{said_caller, said_traceparent, who};
use super::{App, rights};
use steadyhand_runtime::access::Identity;
use steadyhand_runtime::admission::CallerAccount;

/// Where it is.
pub(super) const PATH: &str = "/mcp";
const SESSION_ID: &str = "mcp-session-id";

/// Everything that comes to `/mcp`. The router is not asked: most requests come here, and finding the way took each of them
/// a fiftieth of its time.
pub(super) async fn endpoint(
    app: &Arc<App>,
    identity: &Arc<Identity>,
    account: &CallerAccount,
    request: Request,
) -> Response {
    if let Err(refused) = rights::may_pass(request.method(), PATH, Some(identity)) {
        return refused.into_response();
    }
    let who = Some(who(identity, account, app));
    let reply = match *request.method() {
        Method::POST => post(app, request, account, who).await,
        Method::GET => Ok(app.gateway.get(&Seen(request.headers()), who.as_ref())),
        Method::DELETE => Ok(app.gateway.delete(&Seen(request.headers()), who.as_ref())),
        _ => Err(Refused::new(
            Why::NoSuchMethod,
            format!("/mcp does not take {}", request.method()),
            "Send MCP messages with POST",
        )),
    };
    match reply {
        Ok(reply) if reply.is_standing => match app.admission.mcp_streams.take(account) {
            Ok(slot) => until_answered(response(reply), slot),
            Err(full) => Refused::new(
                Why::Busy,
                full.to_string(),
                "Close one of them, then try again; calls go on without it",
            )
            .into_response(),
        },
        Ok(reply) => response(reply),
        Err(refused) => refused.into_response(),
    }
}

async fn post(
    app: &Arc<App>,
    request: Request,
    account: &CallerAccount,
    who: Option<Who>,
) -> Result<Reply, Refused> {
    let (parts, body) = request.into_parts();
    let mut whole = Whole::read(body, app, account).await?;
    if !whole.make_room(VALUES_MAX)? {
        return Err(Refused::new(
            Why::TooLarge,
            format!("the message has more than {VALUES_MAX} values"),
            "Send it in parts",
        ));
    }
    let post = Post {
        headers: &Seen(&parts.headers),
        body: &whole.bytes,
        caller: said_caller(&parts.headers),
        traceparent: said_traceparent(&parts.headers),
        who,
    };
    Ok(app.gateway.post(post).await)
}

fn response(reply: Reply) -> Response {
    let mut response = Response::new(match reply.content {
        Content::Nothing => Body::empty(),
        Content::Json(message) => json_body(message),
        Content::Events(events) => {
            let pieces = events.map(Ok::<Bytes, Infallible>);
            let mut response = Response::new(Body::from_stream(pieces));
            let headers = response.headers_mut();
            let value = HeaderValue::from_static;
            headers.insert(header::CONTENT_TYPE, value("text/event-stream"));
            headers.insert(header::CACHE_CONTROL, value("no-cache"));
            // nginx would keep events to itself until it has a page of them.
            headers.insert("x-accel-buffering", value("no"));
            return response;
        }
    });
    *response.status_mut() = status::mcp(reply.standing);
    let headers = response.headers_mut();
    if !matches!(status::mcp(reply.standing).as_u16(), 202 | 405) {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
    }
    if let Some(id) = reply.session
        && let Ok(id) = HeaderValue::from_str(&id)
    {
        headers.insert(SESSION_ID, id);
    }
    if response.status() == axum::http::StatusCode::METHOD_NOT_ALLOWED {
        let allow = HeaderValue::from_static("POST");
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

fn json_body(message: Message) -> Body {
    match message.into_pieces() {
        Ok(whole) => Body::from(whole),
        Err(pieces) => Body::new(Pieces(pieces.into_iter())),
    }
}

/// A body in pieces that are not copied together: a list of thousands of tools goes out from where it is kept.
struct Pieces(std::vec::IntoIter<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.0.as_slice().iter().map(Bytes::len).sum();
        SizeHint::with_exact(bytes as u64)
    }
}

/// Headers as the gateway looks at them.
struct Seen<'a>(&'a HeaderMap);

impl Headers for Seen<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    fn count(&self, name: &str) -> usize {
        self.0.get_all(name).iter().count()
    }
}
