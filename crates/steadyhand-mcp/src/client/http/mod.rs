//! A server over HTTP: what all requests to it share. Each request is an exchange of its own, without a task.

mod challenge;
mod client;
mod event_reader;
mod exchange;
pub(crate) mod headers;
mod hello;
mod listening_stream;
mod pool;
mod sse;
mod transport_error;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, Uri};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::client::connection::mux::{Mux, Outlet};
use crate::client::connection::slot::Slot;
use crate::client::credentials::Login;
use crate::client::settings::{Hide, HttpSettings};
use crate::measures::Attributes;
use client::Client;
pub(crate) use listening_stream::keep as keep_stream;
pub(crate) use sse::{keep as keep_sse, open as open_sse};
pub(crate) use transport_error::{Kind, TransportError};

/// The largest answer, and the largest event of a stream: a result may hold pictures.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is sent beside requests (answers to questions, cancellations) may take so long …
const SAYING_LIMIT: Duration = Duration::from_secs(10);
/// … and so much of it may be on its way: what clients say and what is cancelled, and answers that the server can have as
/// many of as it asks for.
const SAYING_MAX: usize = 256;
const REPLYING_MAX: usize = 16;
/// How long the end of a session may take that nobody waits for.
const GOODBYE_LIMIT: Duration = Duration::from_secs(2);
/// Connections that break so close together broke for one reason.
const AT_ONCE: Duration = Duration::from_millis(100);

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The client of one server, with its connections; outlives a [`Link`].
#[derive(Clone)]
pub(crate) struct Remote {
    client: Client,
    url: Uri,
    headers: HeaderMap,
    /// None where a header says who we are.
    login: Option<Login>,
    hide: Arc<dyn Fn(String) -> String + Send + Sync>,
}

/// One beginning of a conversation with a server over HTTP.
pub(crate) struct Link {
    me: Weak<Link>,
    remote: Remote,
    /// Where messages are sent: a server may have it moved.
    url: ArcSwap<Uri>,
    pub(crate) mux: Arc<Mux>,
    session: ArcSwapOption<SessionId>,
    sessions: AtomicU64,
    /// The version agreed on, where there was a handshake.
    version: ArcSwapOption<HeaderValue>,
    /// What we say at a handshake.
    hello: String,
    renewing: tokio::sync::Mutex<()>,
    /// The session had to be begun anew: what the server knew of us is gone.
    renewed: Notify,
    session_changed: Notify,
    /// HTTP+SSE: answers come on the one stream.
    is_sse: bool,
    broken: CancellationToken,
    why_broken: OnceLock<TransportError>,
    last_break: Mutex<Option<Instant>>,
    saying: Arc<Semaphore>,
    replying: Arc<Semaphore>,
}

struct SessionId {
    value: HeaderValue,
    number: u64,
}

/// What stands in a request's headers beside what always does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) extra: Vec<(HeaderName, HeaderValue)>,
    /// It is the handshake itself, and belongs to no session.
    is_hello: bool,
}

impl Head {
    /// Of a request in the newer era.
    pub(crate) fn modern(method: &str, name: Option<&str>) -> Head {
        let version = HeaderValue::from_static(crate::wire::meta::MODERN_VERSION);
        let mut extra = vec![
            (PROTOCOL_VERSION, version),
            (METHOD, headers::encoded(method)),
        ];
        extra.extend(name.map(|name| (NAME, headers::encoded(name))));
        Head {
            extra,
            is_hello: false,
        }
    }
}

impl Remote {
    /// An error says what is wrong with the settings.
    pub(crate) fn new(settings: &HttpSettings, hide: Option<Hide>) -> Result<Remote, String> {
        let url: Uri = settings.checked()?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host(&url)?);
        let agent = concat!("steadyhand/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        let mut secrets = Vec::new();
        for (name, value) in &settings.headers {
            let (name, value) = header(name, value)?;
            secrets.extend(secret_parts(&value));
            headers.append(name, value);
        }
        let hide = move |text: String| {
            let text = match &hide {
                Some(hide) => hide(text),
                None => text,
            };
            secrets
                .iter()
                .fold(text, |text, secret| text.replace(secret, "…"))
        };
        let is_told = headers.contains_key(AUTHORIZATION);
        Ok(Remote {
            client: Client::new(),
            url,
            headers,
            login: settings.login.clone().filter(|_| !is_told),
            hide: Arc::new(hide),
        })
    }

    /// Whether anything listens there; an error says why not.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        client::probe(&self.url).await
    }

    /// What the next request shows.
    async fn shown(&self) -> Option<Arc<str>> {
        self.login.as_ref()?.credentials().current().await
    }

    fn request(&self, method: Method, url: &Uri, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        // Who is asked stands in a header: all addresses of a server are at the same place.
        *request.uri_mut() = url
            .path_and_query()
            .cloned()
            .map(Uri::from)
            .unwrap_or_default();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// Who is asked, as HTTP/1.1 wants it in every request.
fn host(url: &Uri) -> Result<HeaderValue, String> {
    let name = url.host().unwrap_or_default();
    let usual = match url.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let host = match url.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    };
    HeaderValue::try_from(host).map_err(|_| format!("{name:?} is no name of a host"))
}

/// Puts in who we are.
fn show(request: &mut Request<Full<Bytes>>, shown: Option<&str>) {
    let value = shown.map(|shown| HeaderValue::try_from(format!("Bearer {shown}")));
    if let Some(Ok(mut value)) = value {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
}

/// A header that is configured; an error does not show its value.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let ours = [
        ACCEPT,
        CONTENT_TYPE,
        SESSION_ID,
        LAST_EVENT_ID,
        PROTOCOL_VERSION,
    ];
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("{name:?} is no name of a header"))?;
    if ours.contains(&header) || header == HOST {
        return Err(format!("the header {name} is set by the protocol"));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of the header {name} has characters no header can have"))?;
    value.set_sensitive(true);
    Ok((header, value))
}

/// What must not be shown: the value, and what stands behind `Bearer `.
fn secret_parts(value: &HeaderValue) -> Vec<String> {
    let text = value.to_str().unwrap_or_default();
    let last = text.rsplit(' ').next().unwrap_or_default();
    let parts = [text, last].into_iter().filter(|part| part.len() >= 6);
    parts.map(str::to_owned).collect()
}

impl Link {
    pub(crate) fn new(remote: Remote, mux: Arc<Mux>, hello: String, is_sse: bool) -> Arc<Link> {
        Arc::new_cyclic(|me| Link {
            me: Weak::clone(me),
            url: ArcSwap::from_pointee(remote.url.clone()),
            remote,
            mux,
            session: ArcSwapOption::empty(),
            sessions: AtomicU64::new(0),
            version: ArcSwapOption::empty(),
            hello,
            renewing: tokio::sync::Mutex::default(),
            renewed: Notify::new(),
            session_changed: Notify::new(),
            is_sse,
            broken: CancellationToken::new(),
            why_broken: OnceLock::new(),
            last_break: Mutex::default(),
            saying: Arc::new(Semaphore::new(SAYING_MAX)),
            replying: Arc::new(Semaphore::new(REPLYING_MAX)),
        })
    }

    /// The exchange of one request: driven by whoever waits for the answer, which is put into the slot.
    pub(crate) async fn exchange(
        self: Arc<Self>,
        id: u64,
        slot: Arc<Slot>,
        head: Head,
        body: Vec<u8>,
    ) {
        let exchanged = exchange::run(&self, id, &slot, &head, Bytes::from(body)).await;
        if let Err(error) = exchanged {
            if error.kind == Kind::Broken {
                self.doubt();
            }
            self.mux.fail(id, error);
        }
    }

    /// A request broke that was on its way: is the server still there? If calls had to find out, breakers that the
    /// broken ones have opened would keep them from it (SPEC D17).
    fn doubt(self: &Arc<Self>) {
        let now = Instant::now();
        let last = self.last_break.lock().replace(now);
        if let Some(last) = last
            && now.duration_since(last) < AT_ONCE
        {
            // It has ended, even if another has taken its place already.
            let why = "several of its connections broke at once";
            return self.tell_broken(&TransportError::new(Kind::Unreachable, why));
        }
        let link = Arc::clone(self);
        tokio::spawn(async move { link.look().await });
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    /// Waits until the server cannot be reached any more; why.
    pub(crate) async fn broken(&self) -> TransportError {
        self.broken.cancelled().await;
        let why = self.why_broken.get().cloned();
        why.unwrap_or_else(|| TransportError::new(Kind::Unreachable, "it cannot be reached"))
    }

    /// Waits until the session had to be begun anew.
    pub(crate) async fn renewed(&self) {
        self.renewed.notified().await;
    }

    /// The server cannot be reached: those who come are told so from now on, until it is back.
    fn tell_broken(&self, error: &TransportError) {
        let _ = self.why_broken.set(error.clone());
        self.broken.cancel();
    }

    /// Ends the session; a server that is gone needs no goodbye.
    pub(crate) async fn goodbye(&self) {
        let Some(session) = self.session.swap(None) else {
            return;
        };
        let url = self.url.load_full();
        let mut request = self.remote.request(Method::DELETE, &url, Bytes::new());
        self.address(&mut request, Some(&session), &Head::default());
        show(&mut request, self.remote.shown().await.as_deref());
        let sent = AtomicBool::default();
        let goodbye = self.remote.client.send(&url, request, &sent);
        let _ = timeout(GOODBYE_LIMIT, goodbye).await;
    }

    /// Puts in what tells whose request it is.
    fn address(
        &self,
        request: &mut Request<Full<Bytes>>,
        session: Option<&SessionId>,
        head: &Head,
    ) {
        let headers = request.headers_mut();
        if let Some(session) = session {
            headers.insert(SESSION_ID, session.value.clone());
        }
        if let (Some(version), false) = (&*self.version.load(), head.is_hello) {
            headers.insert(PROTOCOL_VERSION, HeaderValue::clone(version));
        }
        for (name, value) in &head.extra {
            headers.insert(name.clone(), value.clone());
        }
    }

    fn begin_session(&self, value: Option<&HeaderValue>) {
        let session = value.map(|value| {
            let number = self.sessions.fetch_add(1, Ordering::Relaxed);
            let value = value.clone();
            Arc::new(SessionId { value, number })
        });
        self.session.store(session);
        self.session_changed.notify_waiters();
    }

    /// What OpenTelemetry wants to know about the way to the server.
    pub(crate) fn described(&self) -> Attributes {
        let url = self.url.load();
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let usual = match url.scheme_str() {
            Some("https") => 443,
            _ => 80,
        };
        let port = url.port_u16().unwrap_or(usual);
        vec![
            ("network.transport", "tcp".to_owned()),
            ("network.protocol.name", "http".to_owned()),
            ("network.protocol.version", "1.1".to_owned()),
            ("server.address", host.to_owned()),
            ("server.port", port.to_string()),
        ]
    }

    /// The session, where the server has begun one.
    pub(crate) fn session_id(&self) -> Option<String> {
        let session = self.session.load_full()?;
        session.value.to_str().ok().map(str::to_owned)
    }

    fn hidden(&self, text: impl Into<String>) -> String {
        let text = (self.remote.hide)(text.into());
        match &self.remote.login {
            Some(login) => login.credentials().hidden(text),
            None => text,
        }
    }
}

/// Answers to the server's questions, and cancellations.
impl Outlet for Link {
    fn say(&self, line: Vec<u8>) {
        self.send_aside(line, &self.saying);
    }

    fn reply(&self, line: Vec<u8>) {
        self.send_aside(line, &self.replying);
    }
}

impl Link {
    /// In a request of its own that nobody waits for.
    fn send_aside(&self, line: Vec<u8>, turns: &Arc<Semaphore>) {
        let (Ok(runtime), Ok(turn), Some(link)) = (
            tokio::runtime::Handle::try_current(),
            Arc::clone(turns).try_acquire_owned(),
            self.me.upgrade(),
        ) else {
            tracing::debug!("a server is told less than it asks for: too much is on its way");
            return;
        };
        runtime.spawn(async move {
            let said = timeout(SAYING_LIMIT, exchange::say(&link, Bytes::from(line))).await;
            if let Ok(Err(error)) = said {
                tracing::debug!("what was to be told was not taken: {}", error.text);
            }
            drop(turn);
        });
    }
}
