//! One request over HTTP, from its sending to its answer: a body of JSON, or a stream of events, taken up again where
//! it was cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Method, Response, StatusCode, Uri};
use steadyhand::{BudgetExceeded, CooperativeBudget};
use tokio::time::{sleep, timeout};

use super::challenge;
use super::client::{self, Body, NoAnswer};
use super::event_reader::{EventReader, NextEvent, Unreadable};
use super::listening_stream::resumable;
use super::transport_error::beginning;
use super::{
    ANSWER_BYTES_MAX, Head, Kind, LAST_EVENT_ID, Link, SESSION_ID, SessionId, TransportError, show,
};
use crate::client::connection::mux::Outlet;
use crate::client::connection::slot::{Answer, Slot};
use crate::client::credentials;
use crate::client::memory::HeldBuffer;
use crate::wire::{Incoming, RpcError, read_messages};

/// What is read of an answer that is none.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;
const REFUSAL_LIMIT: Duration = Duration::from_secs(5);
const REDIRECTS_MAX: usize = 3;
/// So often one request may be sent again because of what it showed.
const LOGINS_MAX: usize = 3;
/// The wait before a stream that was cut is taken up again, where the server names none; and the shortest and the
/// longest it may name.
const RESUME_WAIT: Duration = Duration::from_millis(1000);
const RESUME_WAIT_MIN: Duration = Duration::from_millis(50);
const RESUME_WAIT_MAX: Duration = Duration::from_secs(60);
/// A stream may be cut so often without a word of the server in between.
const RESUMES_MAX: u32 = 5;
/// What may still come when the answer is there: a connection that is read to its end can be used again.
const REST_BYTES_MAX: usize = 64 * 1024;
const REST_LIMIT: Duration = Duration::from_secs(1);

/// Sends a request and puts its answer into the slot. An error means that there is none.
pub(super) async fn run(
    link: &Arc<Link>,
    id: u64,
    slot: &Arc<Slot>,
    head: &Head,
    body: Bytes,
) -> Result<(), TransportError> {
    let (mut renewals, mut redirects, mut logins) = (0, 0, 0);
    loop {
        let session = match head.is_hello {
            true => None,
            false => link.session.load_full(),
        };
        // What was refused before was not looked at.
        slot.sent.store(false, Ordering::Release);
        let shown = link.remote.shown().await;
        let response = post(
            link,
            session.as_deref(),
            head,
            body.clone(),
            shown.as_deref(),
            &slot.sent,
        )
        .await;
        let response = response.map_err(|no| link.no_answer(slot, &no))?;
        link.mux.hear();
        let status = response.status();
        if status.is_success() {
            if head.is_hello {
                link.begin_session(response.headers().get(SESSION_ID));
            }
            return match link.is_sse {
                true => accepted(response),
                false => read(link, id, slot, response).await,
            };
        }
        let moved = matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        if status.is_redirection() {
            redirects += 1;
            link.follow(&response, moved && redirects <= REDIRECTS_MAX)?;
            continue;
        }
        // From here on apart: most requests need no room for it.
        let refusal = Box::pin(Refusal::read(response)).await;
        // The same: who asks is found out before anything is done.
        if logins < LOGINS_MAX
            && Box::pin(link.gets_other_credentials(&refusal, shown.as_deref())).await?
        {
            logins += 1;
            continue;
        }
        // The server says that it has not looked at the request: so it may be sent again, once.
        if let Some(session) = session
            && refusal.is_about_the_session()
            && renewals == 0
        {
            renewals += 1;
            Box::pin(link.renew(&session)).await?;
            continue;
        }
        return refusal.answer(link, id);
    }
}

/// Sends something that is no request.
pub(super) async fn say(link: &Link, body: Bytes) -> Result<(), TransportError> {
    let session = link.session.load_full();
    let shown = link.remote.shown().await;
    let head = Head::default();
    let sent = AtomicBool::default();
    let response = post(
        link,
        session.as_deref(),
        &head,
        body,
        shown.as_deref(),
        &sent,
    )
    .await;
    let response = response.map_err(|no| TransportError::new(Kind::Broken, no.why))?;
    match response.status().is_success() {
        true => Ok(()),
        false => Err(TransportError::status(
            response.status().as_u16(),
            response.headers(),
            "",
        )),
    }
}

async fn post(
    link: &Link,
    session: Option<&SessionId>,
    head: &Head,
    body: Bytes,
    shown: Option<&str>,
    sent: &AtomicBool,
) -> Result<Response<Body>, NoAnswer> {
    link.mux.desk.record.passes("sent", &body);
    let url = link.url.load_full();
    let mut request = link.remote.request(Method::POST, &url, body);
    show(&mut request, shown);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    link.address(&mut request, session, head);
    link.remote.client.send(&url, request, sent).await
}

/// Opens a stream of events by GET.
pub(super) async fn get(
    link: &Link,
    url: &Uri,
    session: Option<&SessionId>,
    last_event: Option<&str>,
) -> Result<Response<Body>, NoAnswer> {
    let mut request = link.remote.request(Method::GET, url, Bytes::new());
    show(&mut request, link.remote.shown().await.as_deref());
    link.address(&mut request, session, &Head::default());
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(Ok(id)) = last_event.map(HeaderValue::from_str) {
        headers.insert(LAST_EVENT_ID, id);
    }
    let sent = AtomicBool::default();
    link.remote.client.send(url, request, &sent).await
}

/// HTTP+SSE: that it was accepted is all there is to it; the answer comes on the stream.
fn accepted(response: Response<Body>) -> Result<(), TransportError> {
    rest(response.into_body());
    Ok(())
}

async fn read(
    link: &Arc<Link>,
    id: u64,
    slot: &Arc<Slot>,
    response: Response<Body>,
) -> Result<(), TransportError> {
    match content_type(response.headers()) {
        Some("text/event-stream") => Box::pin(read_events(link, id, slot, response)).await,
        // What names no type is looked at: JSON gives itself away.
        None | Some("application/json") => read_json(link, id, slot, response.into_body()).await,
        Some(other) => {
            let (status, other) = (response.status(), other.to_owned());
            let body = Refusal::read(response).await.text;
            Err(not_mcp(link, status, &other, &body))
        }
    }
}

fn not_mcp(link: &Link, status: StatusCode, content_type: &str, body: &str) -> TransportError {
    let begins = match page(body) {
        Some(page) => page,
        None => format!("it begins: {}", beginning(body)),
    };
    let text = format!(
        "answered HTTP {} with {} instead of a message; {begins}",
        status.as_u16(),
        beginning(content_type),
    );
    TransportError::new(Kind::NotMcp, link.hidden(text))
}

async fn read_json(
    link: &Arc<Link>,
    id: u64,
    slot: &Arc<Slot>,
    body: Body,
) -> Result<(), TransportError> {
    let mut held = HeldBuffer::new(&link.mux.desk.memory);
    let bytes = match collect(body, ANSWER_BYTES_MAX, &mut held).await {
        Ok(bytes) => bytes,
        Err(NotCollected::NoMemory(exceeded)) => {
            link.mux.no_memory(id, exceeded);
            return Ok(());
        }
        Err(NotCollected::TooLarge(bytes)) => {
            link.mux.too_large(id, bytes);
            return Ok(());
        }
        Err(NotCollected::Broken(why)) => return Err(TransportError::new(Kind::Broken, why)),
    };
    let text = bytes.trim_ascii();
    if text.is_empty() {
        let text = "accepted the request and gave no answer to it";
        return Err(TransportError::new(Kind::NotMcp, text));
    }
    let Some(messages) = read_messages(text) else {
        let text = format!(
            "answered with something that is no message; it begins: {}",
            beginning(&String::from_utf8_lossy(&text[..text.len().min(2000)]))
        );
        return Err(TransportError::new(Kind::NotMcp, link.hidden(text)));
    };
    let outlet: Arc<dyn Outlet> = Arc::clone(link) as _;
    let mut turn = CooperativeBudget::default();
    for message in messages {
        link.mux.take(message, Some(slot), &outlet);
        turn.spend(0).await;
    }
    match slot.is_over() {
        true => Ok(()),
        false => Err(TransportError::new(
            Kind::NotMcp,
            "answered with a message that is no answer to the request",
        )),
    }
}

/// How a stream of events ended.
enum Ended {
    /// As it should.
    Whole,
    /// It was cut, or broke.
    Broken(String),
}

/// Reads a stream until the answer is there; one that is cut is taken up again where the server allows it.
async fn read_events(
    link: &Arc<Link>,
    id: u64,
    slot: &Arc<Slot>,
    response: Response<Body>,
) -> Result<(), TransportError> {
    let mut body = response.into_body();
    let mut last_event: Option<String> = None;
    let mut wait: Option<Duration> = None;
    let mut resumes = 0;
    loop {
        let mut events = EventReader::new(link, body, &[]);
        let ended = loop {
            let event = match events.next().await {
                NextEvent::Event(event) => event,
                NextEvent::End => break Ended::Whole,
                NextEvent::Broken(why) => break Ended::Broken(why),
                NextEvent::Unreadable {
                    why,
                    is_answer: true,
                } => {
                    match why {
                        Unreadable::TooLarge(bytes) => drop(link.mux.too_large(id, bytes)),
                        Unreadable::NoMemory(exceeded) => link.mux.no_memory(id, exceeded),
                    }
                    return Ok(());
                }
                // The answer would have come behind it.
                NextEvent::Unreadable { why, .. } => {
                    let why = format!("the server sent {} before the answer", why.words());
                    return Err(TransportError::new(Kind::Broken, why));
                }
            };
            resumes = 0;
            if let Some(id) = &event.id {
                last_event = resumable(id);
            }
            wait = event.retry.or(wait);
            if !event.is_message() {
                continue;
            }
            match read_messages(&event.data) {
                Some(messages) => {
                    let outlet: Arc<dyn Outlet> = Arc::clone(link) as _;
                    for message in messages {
                        link.mux.take(message, Some(slot), &outlet);
                        events.spend().await;
                    }
                }
                // Not a message: told once in a while, and passed over, unless it was meant as the answer.
                None => {
                    link.mux.desk.record.noise(&event.data, event.data.len());
                    link.mux.unreadable(&event.data, Some(id));
                }
            }
            if slot.is_over() {
                rest(events.into_rest().0);
                return Ok(());
            }
        };
        let Some(event) = &last_event else {
            let why = match ended {
                Ended::Whole => "the stream ended before the answer".to_owned(),
                Ended::Broken(why) => format!("the stream broke before the answer: {why}"),
            };
            return Err(TransportError::new(Kind::Broken, why));
        };
        resumes += 1;
        if resumes > RESUMES_MAX {
            let why = "the stream was cut again and again before the answer";
            return Err(TransportError::new(Kind::Broken, why));
        }
        // A server that has gone is known at once; one that only closed the stream wants us to wait.
        if matches!(ended, Ended::Broken(_)) {
            link.look().await?;
        }
        let wait = wait.unwrap_or(RESUME_WAIT);
        sleep(wait.clamp(RESUME_WAIT_MIN, RESUME_WAIT_MAX)).await;
        body = resume(link, event).await?;
    }
}

async fn resume(link: &Arc<Link>, last_event: &str) -> Result<Body, TransportError> {
    let session = link.session.load_full();
    let url = link.url.load_full();
    let broken = |why: String| {
        let why =
            format!("the stream was cut before the answer and cannot be taken up again: {why}");
        TransportError::new(Kind::Broken, link.hidden(why))
    };
    let response = get(link, &url, session.as_deref(), Some(last_event)).await;
    let response = response.map_err(|no| {
        if no.is_unreachable {
            link.tell_broken(&TransportError::new(Kind::Unreachable, &no.why));
        }
        broken(no.why)
    })?;
    link.mux.hear();
    match (response.status(), content_type(response.headers())) {
        (StatusCode::OK, Some("text/event-stream")) => Ok(response.into_body()),
        (status, _) => Err(broken(format!("HTTP {}", status.as_u16()))),
    }
}

impl Link {
    /// Whether a request that was refused for what it showed can be sent again with something else. An error says
    /// what a person can do.
    async fn gets_other_credentials(
        &self,
        refusal: &Refusal,
        shown: Option<&str>,
    ) -> Result<bool, TransportError> {
        let Some(login) = &self.remote.login else {
            return Ok(false);
        };
        let challenge = bearer_challenge(&refusal.headers);
        let is_too_narrow = challenge
            .as_ref()
            .is_some_and(|text| text.contains("insufficient_scope"));
        let status = refusal.status.as_u16();
        if status != 401 && !(status == 403 && is_too_narrow) {
            return Ok(false);
        }
        let asked = credentials::Refusal {
            status,
            challenge: challenge.as_deref(),
            shown,
        };
        match login.credentials().refused(asked).await {
            Ok(()) => Ok(true),
            Err(why) => {
                let said = match refusal.text.trim() {
                    "" => why,
                    said => format!("{why}; it said: {said}"),
                };
                let said = self.hidden(said);
                Err(TransportError::status(status, &refusal.headers, &said))
            }
        }
    }

    fn no_answer(&self, slot: &Slot, no: &NoAnswer) -> TransportError {
        slot.sent.store(no.was_sent, Ordering::Release);
        let why = self.hidden(&no.why);
        match no.was_sent {
            true => TransportError::new(Kind::Broken, why),
            false => {
                let error = TransportError::new(Kind::Unreachable, why);
                if no.is_unreachable {
                    self.tell_broken(&error);
                }
                error
            }
        }
    }

    /// A connection broke: is the server still there?
    pub(super) async fn look(&self) -> Result<(), TransportError> {
        let Err(why) = client::probe(&self.url.load()).await else {
            return Ok(());
        };
        self.tell_broken(&TransportError::new(Kind::Unreachable, &why));
        let why = format!("the server is gone: {why}");
        Err(TransportError::new(Kind::Broken, why))
    }

    /// Goes where the server sends us, if that is the same place under another path: what we send may hold secrets.
    fn follow(&self, response: &Response<Body>, may_follow: bool) -> Result<(), TransportError> {
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|to| to.to_str().ok()).unwrap_or_default();
        let here = self.url.load();
        let to = joined(&here, location);
        let is_same = to.as_ref().is_some_and(|to| is_same_place(&here, to));
        if let (Some(to), true, true) = (to, is_same, may_follow) {
            self.url.store(Arc::new(to));
            return Ok(());
        }
        let shown = beginning(&self.hidden(location));
        let text =
            format!("answered HTTP {status} and redirects to {shown}, which is not followed");
        Err(TransportError::new(Kind::Redirected(shown), text))
    }
}

/// The challenge that is about tokens; a server may name other ways to log in beside it. One that says where to log in
/// comes first, then one that says what for.
fn bearer_challenge(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(WWW_AUTHENTICATE).iter();
    let all: Vec<&str> = all.filter_map(|value| value.to_str().ok()).collect();
    let worth = |text: &str| {
        let text = text.to_ascii_lowercase();
        let (bearer, says) = (text.contains("bearer"), |what: &str| text.contains(what));
        (
            says("resource_metadata"),
            bearer,
            says("scope=") || says("insufficient_scope"),
        )
    };
    // Of equals the first.
    let field = all.iter().rev().max_by_key(|text| worth(text))?;
    // What follows no rule is left to whoever can make something of it.
    Some(challenge::plain_bearer(field).unwrap_or_else(|| (*field).to_owned()))
}

/// An address given relative to another.
pub(super) fn joined(base: &Uri, relative: &str) -> Option<Uri> {
    let base = url::Url::parse(&base.to_string()).ok()?;
    base.join(relative).ok()?.as_str().parse().ok()
}

pub(super) fn is_same_place(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| {
        uri.port_u16().or(match uri.scheme_str() {
            Some("https") => Some(443),
            _ => Some(80),
        })
    };
    one.scheme_str() == other.scheme_str() && one.host() == other.host() && port(one) == port(other)
}

pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = value.split(';').next().unwrap_or_default().trim();
    let known = ["application/json", "text/event-stream"];
    let known = known
        .into_iter()
        .find(|known| kind.eq_ignore_ascii_case(known));
    Some(known.unwrap_or(kind))
}

/// An answer with a status that is no success.
struct Refusal {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
    error: Option<RpcError>,
}

impl Refusal {
    async fn read(response: Response<Body>) -> Refusal {
        let (parts, body) = response.into_parts();
        let read = timeout(REFUSAL_LIMIT, collect_some(body, REFUSAL_BYTES_MAX)).await;
        let bytes = read.unwrap_or_default();
        let error = match read_messages(bytes.trim_ascii()).as_deref() {
            Some(
                [
                    Incoming::Response {
                        result: Err(error), ..
                    },
                ],
            ) => Some(error.clone()),
            _ => None,
        };
        Refusal {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            error,
        }
    }

    /// The protocol's sign is 404; servers made from the SDKs' examples answer 400 and say so.
    fn is_about_the_session(&self) -> bool {
        match self.status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => {
                let said = self
                    .error
                    .as_ref()
                    .map_or(&self.text, |error| &error.message);
                said.to_ascii_lowercase().contains("session")
            }
            _ => false,
        }
    }

    fn answer(self, link: &Link, id: u64) -> Result<(), TransportError> {
        let code = self.status.as_u16();
        // There the status says more than the error it carries.
        let speaks_for_itself = matches!(code, 401 | 403 | 407 | 408 | 429) || code >= 500;
        if let (Some(error), false) = (&self.error, speaks_for_itself) {
            link.mux.answer_id(id, Answer::Error(error.clone()));
            return Ok(());
        }
        let text = match (&self.error, page(&self.text)) {
            (Some(error), _) => error.message.clone(),
            (None, Some(page)) => page,
            (None, None) => self.text.clone(),
        };
        let text = link.hidden(text);
        Err(TransportError::status(code, &self.headers, &text))
    }
}

/// A web page, by its title.
fn page(text: &str) -> Option<String> {
    let start = text.trim_start();
    let is_page = ["<!doctype", "<html"].iter().any(|tag| {
        start
            .get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
    });
    if !is_page {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        let end = start + lower[start..].find("</title>")?;
        Some(beginning(&text[start..end]))
    });
    Some(match title {
        Some(title) => format!("a web page titled {title:?}"),
        None => "a web page".to_owned(),
    })
}

enum NotCollected {
    TooLarge(usize),
    NoMemory(BudgetExceeded),
    Broken(String),
}

async fn collect(
    mut body: Body,
    bytes_max: usize,
    held: &mut HeldBuffer,
) -> Result<Bytes, NotCollected> {
    let mut turn = CooperativeBudget::default();
    let mut all: Option<Vec<u8>> = None;
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| NotCollected::Broken(client::words(&error)))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        // Mostly it comes in one piece.
        if first.is_empty() && all.is_none() {
            if body.is_end_stream() {
                return Ok(data);
            }
            first = data;
            continue;
        }
        let all = all.get_or_insert_with(|| first.to_vec());
        if all.len() + data.len() > bytes_max {
            return Err(NotCollected::TooLarge(all.len() + data.len()));
        }
        held.resize(all.len() + data.len())
            .map_err(NotCollected::NoMemory)?;
        turn.spend(data.len()).await;
        all.extend_from_slice(&data);
    }
    Ok(all.map_or(first, Bytes::from))
}

async fn collect_some(mut body: Body, bytes_max: usize) -> Vec<u8> {
    let mut some = Vec::new();
    while some.len() < bytes_max
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Ok(data) = frame.into_data() {
            some.extend_from_slice(&data[..data.len().min(bytes_max - some.len())]);
        }
    }
    some
}

/// Reads what is left, so that the connection can be used again; whoever waits for the answer does not wait for that.
fn rest(mut body: Body) {
    if let Some(None) = body.frame().now_or_never() {
        return;
    }
    let reading = async move {
        let mut bytes = 0;
        while bytes < REST_BYTES_MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    tokio::spawn(async move { timeout(REST_LIMIT, reading).await });
}
