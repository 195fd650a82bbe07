//! What is sent, how much may come back, and where it may go.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::time::Instant;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// One request. Its URL, headers and body may hold secrets: it shows nothing of them.
#[derive(Clone)]
pub struct Request {
    /// GET, POST …
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// Besides those that HTTP itself needs.
    pub headers: HeaderMap,
    /// The body, if there is one.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A request without headers or body.
    pub fn new(method: Method, url: Url) -> Request {
        Request {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
        }
    }

    /// What OpenTelemetry's conventions for HTTP want to know of it. Path and query may hold arguments and secrets, and
    /// are not shown.
    pub(super) fn traced(&self) -> Vec<(&'static str, Value)> {
        let url = &self.url;
        let origin = url.origin().ascii_serialization();
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let mut described = vec![
            ("http.request.method", json!(self.method.as_str())),
            ("url.full", json!(format!("{origin}/REDACTED"))),
            ("url.scheme", json!(url.scheme())),
            ("server.address", json!(host)),
            ("network.protocol.name", json!("http")),
            ("network.transport", json!("tcp")),
        ];
        let port = url.port_or_known_default();
        described.extend(port.map(|port| ("server.port", json!(port))));
        described
    }

    /// Carries this trace context on, unless the configuration sets one of its own.
    pub fn carry_trace(&mut self, traceparent: Option<&str>) {
        if let Some(Ok(trace)) = traceparent.map(HeaderValue::from_str) {
            self.headers.entry(TRACEPARENT).or_insert(trace);
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, site(&self.url))
    }
}

/// Bounds of one exchange, redirects included.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// When it is given up.
    pub until: Instant,
    /// Bytes of the answer's body that are read, after decompression; the rest is not fetched.
    pub response_bytes_max: usize,
}

/// The hosts that stand literally in the configuration: these may be private, all others must
/// be public.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    hosts: Vec<(String, Option<u16>)>,
}

impl Reach {
    /// Public hosts only.
    pub fn public_only() -> Reach {
        Reach::default()
    }

    /// The host of this URL as well.
    #[must_use]
    pub fn and(mut self, url: &Url) -> Reach {
        if let Some(host) = host_of(url) {
            self.hosts.push((host, url.port()));
        }
        self
    }

    /// Whether this URL's host stands in the configuration: with its port if one was given there,
    /// else on the ports that HTTP and HTTPS have by default.
    pub fn covers(&self, url: &Url) -> bool {
        let Some(host) = host_of(url) else {
            return false;
        };
        self.hosts
            .iter()
            .any(|(known, port)| *known == host && *port == url.port())
    }
}

/// The part of a URL that may be shown: everything after it, and everything before the host, may
/// hold a secret.
pub fn site(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(host.trim_end_matches('.').to_ascii_lowercase())
}
