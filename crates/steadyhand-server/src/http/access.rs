//! Who may ask: requests addressed to us, from pages of our own, and with the token where one is set.

use std::net::{IpAddr, SocketAddr};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};

use super::status::{Refused, Why};
use crate::config::text::SecretText;

/// Holds our token where the usual header is somebody else's.
pub(crate) const TOKEN_HEADER: &str = "steadyhand-token";

/// The rules in force. Made anew when the configuration is.
pub(crate) struct Access {
    /// Only its digest is kept: two digests can be compared in any time without telling anything.
    token: Option<[u8; 32]>,
    /// Names that requests may be addressed to, in lower case, beside our own address.
    names: Vec<String>,
    address: SocketAddr,
}

impl Access {
    /// An empty token is none.
    pub(crate) fn new(
        address: SocketAddr,
        token: Option<&SecretText>,
        allowed_hosts: &[String],
    ) -> Access {
        let token = token
            .map(SecretText::expose)
            .filter(|token| !token.is_empty());
        Access {
            token: token.map(digest),
            names: allowed_hosts
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            address,
        }
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether this request is meant for us. A page that a browser shows can send requests to this machine
    /// under a name of its own (DNS rebinding) or from an origin of its own: neither is answered.
    pub(crate) fn check_address(&self, request: &Parts) -> Result<(), Refused> {
        let headers = &request.headers;
        let host = match (only(headers, header::HOST)?, request.uri.authority()) {
            (_, Some(authority)) => authority.as_str(),
            (Some(host), None) => host,
            (None, None) => {
                return Err(Refused::new(
                    Why::BadRequest,
                    "the request has no Host header",
                    "Send one, as HTTP/1.1 wants it",
                ));
            }
        };
        if !self.is_ours(host) {
            return Err(Refused::new(
                Why::Foreign,
                format!("the request is addressed to {host:?}, which is not a name of this server"),
                format!(
                    "Use http://{}, or add the name to allowed_hosts under [server]",
                    self.address
                ),
            ));
        }
        match only(headers, header::ORIGIN)? {
            Some(origin) => self.check_origin(origin, host),
            None => check_site(headers),
        }
    }

    /// Whether the token is there, if there must be one.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        match bearer(headers).map(digest) {
            Some(shown) if shown == *token => Ok(()),
            Some(_) => Err(Refused::new(
                Why::NoToken,
                "the token is not the one of this server",
                "Send the token that is set under [server]: Authorization: Bearer …",
            )),
            None => Err(Refused::new(
                Why::NoToken,
                "this server wants a token and the request has none",
                "Send the token that is set under [server]: Authorization: Bearer …",
            )),
        }
    }

    /// The same for what is forwarded: there the token has a header of its own, because the usual one is the
    /// provider's.
    pub(crate) fn check_proxy_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let own = headers
            .get(TOKEN_HEADER)
            .and_then(|value| value.to_str().ok());
        match (&self.token, own) {
            (None, _) => Ok(()),
            (Some(token), Some(own)) if digest(own.trim()) == *token => Ok(()),
            (Some(_), _) if self.is_token(headers) => Ok(()),
            (Some(_), _) => Err(Refused::new(
                Why::NoToken,
                "this server wants its token, and the request has none, or another",
                "Send the token that is set under [server] in the header steadyhand-token",
            )),
        }
    }

    /// Whether the usual header holds our token. It must not be forwarded then.
    pub(crate) fn is_token(&self, headers: &HeaderMap) -> bool {
        let shown = bearer(headers).map(digest);
        self.token.is_some() && shown == self.token
    }

    /// The page must be of the very address it asks, or of a host that is allowed by name.
    fn check_origin(&self, origin: &str, host: &str) -> Result<(), Refused> {
        let from = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        let is_ours = from.is_some_and(|from| {
            from.eq_ignore_ascii_case(host)
                || self.is_named(host_of(from).unwrap_or_default(), from)
        });
        match is_ours {
            true => Ok(()),
            false => Err(Refused::new(
                Why::Foreign,
                format!("the request comes from a page of {origin:?}, which is not of this server"),
                "Call from a program, or add the page's host to allowed_hosts under [server]",
            )),
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        let Some(name) = host_of(host) else {
            return false;
        };
        if name.eq_ignore_ascii_case("localhost") || self.is_named(name, host) {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']');
        match address.parse::<IpAddr>() {
            // No name stands behind a number, so nobody can make it lead here by a trick.
            Ok(ip) => {
                ip.is_loopback() || ip == self.address.ip() || self.address.ip().is_unspecified()
            }
            Err(_) => false,
        }
    }

    /// By name, or by name and port where the settings give both.
    fn is_named(&self, name: &str, host: &str) -> bool {
        let is = |allowed: &String| {
            allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host)
        };
        self.names.iter().any(is)
    }
}

/// What is shown as a token in the usual header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The header, if it is there once. Two of them are read by each program on the way as it likes.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Refused> {
    let mut all = headers.get_all(&name).iter();
    let first = all.next().map(|value| value.to_str().unwrap_or_default());
    match all.next() {
        None => Ok(first),
        Some(_) => Err(Refused::new(
            Why::BadRequest,
            format!("the request has more than one {name} header"),
            "Send one",
        )),
    }
}

/// What a page embeds (an image, a script) is asked for without an origin, but browsers say that it is another's. A
/// person who follows a link may come from anywhere.
fn check_site(headers: &HeaderMap) -> Result<(), Refused> {
    let says = |name: &str, word: &str| headers.get(name).is_some_and(|value| value == word);
    if !says("sec-fetch-site", "cross-site") || says("sec-fetch-mode", "navigate") {
        return Ok(());
    }
    Err(Refused::new(
        Why::Foreign,
        "the request comes from a page of another site",
        "Call from a program, or from a page of this server",
    ))
}

/// `localhost` of `localhost:7400`; none where that is no host and port.
fn host_of(text: &str) -> Option<&str> {
    // The usual forms, before the parser is asked.
    if let Some((name, port)) = text.rsplit_once(':')
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-')
    {
        return Some(name);
    }
    let authority: Authority = text.parse().ok()?;
    // A user before the host is no part of a Host header, and what stands behind it is a port.
    let has_port = text.len() > authority.host().len();
    if authority.as_str().contains('@') || (has_port && authority.port_u16().is_none()) {
        return None;
    }
    text.get(..authority.host().len())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
