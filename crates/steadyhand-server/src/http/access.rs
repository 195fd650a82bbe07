//! Who may ask: requests addressed to us, from pages of our own, and with credentials where they are asked for.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};
use secrecy::ExposeSecret;

use super::status::{Refused, Why};
use steadyhand_config::text::SecretText;
use steadyhand_runtime::access::{
    By, Digested, Door, Identity, Jwt, Keys, LoginThrottle, NotAToken, NotLetIn,
};

const HOW_TO_SHOW: &str = "Send a key (steadyhand keys create) or the token that is set under [server]: Authorization: Bearer …";
/// Holds our token where the usual header is somebody else's.
pub const TOKEN_HEADER: &str = "steadyhand-token";

/// The rules in force. Made anew when the configuration is.
pub struct Access {
    token: Option<Digested>,
    /// None where the token is all there is.
    door: Option<Arc<Door>>,
    local: Option<Digested>,
    pub jwt: Option<Arc<Jwt>>,
    /// Names that requests may be addressed to, in lower case, beside our own address.
    names: Vec<String>,
    address: SocketAddr,
    throttle: LoginThrottle,
}

impl Access {
    /// An empty token is none.
    pub fn new(
        address: SocketAddr,
        token: Option<&SecretText>,
        allowed_hosts: &[String],
        jwt: Option<Arc<Jwt>>,
        door: Option<Arc<Door>>,
    ) -> Access {
        let token = token
            .map(SecretText::expose)
            .filter(|token| !token.is_empty());
        Access {
            token: token.map(Digested::of),
            local: door
                .as_ref()
                .map(|door| Digested::of(door.local.expose_secret())),
            jwt,
            door,
            names: allowed_hosts
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            address,
            throttle: LoginThrottle::default(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether anybody is let in without credentials. Never where other machines reach us, whatever becomes of the
    /// settings and the keys.
    pub fn is_open(&self) -> bool {
        let has_keys = self
            .door
            .as_ref()
            .is_some_and(|door| door.keys.are_in_force());
        let asks_nobody = self.token.is_none() && self.jwt.is_none() && !has_keys;
        asks_nobody && self.address.ip().is_loopback()
    }

    /// Whether this request is meant for us. A page that a browser shows can send requests to this machine
    /// under a name of its own (DNS rebinding) or from an origin of its own: neither is answered.
    pub fn check_address(&self, request: &Parts) -> Result<(), Refused> {
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

    /// Who asks from this address, by what they show.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<Arc<Identity>, Refused> {
        self.identify_by(bearer(headers), from).await
    }

    /// The same for who has shown it in another way.
    pub async fn identify_by(
        &self,
        shown: Option<&str>,
        from: IpAddr,
    ) -> Result<Arc<Identity>, Refused> {
        let Some(shown) = shown.filter(|shown| !shown.is_empty()) else {
            return self
                .without_credentials("this server wants credentials and the request has none");
        };
        let digest = Digested::of(shown);
        // Commands on this machine show what nobody can guess: they are never held up.
        if self.local.as_ref().is_some_and(|local| local.is(&digest)) {
            return Ok(unlimited(By::Local));
        }
        if let Some(door) = self.door.as_ref().filter(|_| Keys::are_meant(shown)) {
            let refused = match door.keys.identify(shown) {
                Ok(identity) => return Ok(identity),
                Err(refused) => refused,
            };
            // Who shows one that was taken back does not guess.
            if refused == NotLetIn::Unknown {
                self.wrong(from, &digest, Some(shown))?;
            }
            let challenge = self.challenge(Some("invalid_token"));
            return Err(not_let_in(&refused).challenged(challenge));
        }
        // Where nothing is asked for, there is nothing to guess.
        let is_known = self.throttle.knows(&digest);
        if !is_known
            && !self.is_open()
            && let Some(wait) = self.throttle.wait(from)
        {
            return Err(too_many_mistakes(wait));
        }
        let is_token = self.token.as_ref().is_some_and(|token| token.is(&digest));
        let identified = match is_token {
            true => Ok(unlimited(By::Token)),
            false if self.jwt.is_some() && Jwt::is_meant(shown) => {
                self.by_token_of_an_issuer(shown).await
            }
            // Where nothing is asked for, what is shown all the same is not looked at.
            false => self
                .without_credentials("the credentials are none that this server knows")
                .map_err(|refused| (refused, IsGuess(true))),
        };
        match identified {
            Ok(identity) => {
                if !is_known && identity.by != By::Nothing {
                    self.throttle.right(&digest);
                }
                Ok(identity)
            }
            Err((refused, IsGuess(is_guess))) => {
                if is_guess {
                    self.wrong(from, &digest, None)?;
                }
                Err(refused)
            }
        }
    }

    /// Counts wrong credentials; an error if there were too many.
    fn wrong(&self, from: IpAddr, digest: &Digested, key: Option<&str>) -> Result<(), Refused> {
        let key = key.and_then(Keys::id_of);
        match self.throttle.wrong(from, digest, key) {
            None => Ok(()),
            Some(wait) => Err(too_many_mistakes(wait)),
        }
    }

    fn without_credentials(&self, otherwise: &str) -> Result<Arc<Identity>, Refused> {
        match self.is_open() {
            true => Ok(unlimited(By::Nothing)),
            false => {
                let refused = Refused::new(Why::NoToken, otherwise, HOW_TO_SHOW);
                Err(refused.challenged(self.challenge(None)))
            }
        }
    }

    async fn by_token_of_an_issuer(
        &self,
        shown: &str,
    ) -> Result<Arc<Identity>, (Refused, IsGuess)> {
        let Some(jwt) = &self.jwt else {
            let refused = self.without_credentials("this server takes no tokens of issuers");
            return refused.map_err(|refused| (refused, IsGuess(true)));
        };
        let why = match jwt.identify(shown).await {
            Ok(identity) => return Ok(identity),
            Err(why) => why,
        };
        let is_guess = IsGuess(why.is_guess());
        let refused = match why {
            NotAToken::Wrong(what) => Refused::new(
                Why::NoToken,
                what,
                "Get another token from the issuer; the www-authenticate header says where to begin",
            )
            .challenged(self.challenge(Some("invalid_token"))),
            NotAToken::NoScope => Refused::new(
                Why::NotAllowed,
                "the token has none of the scopes that mean something here",
                "Ask for steadyhand:call, steadyhand:view, steadyhand:operate or steadyhand:admin",
            )
            .challenged(self.challenge(Some("insufficient_scope"))),
            NotAToken::Unavailable(reason) => Refused::new(
                Why::NoKeys,
                format!("the token cannot be checked: {reason}"),
                "Try again in a moment; nothing was run",
            ),
        };
        Err((refused, is_guess))
    }

    fn challenge(&self, error: Option<&str>) -> Option<String> {
        self.jwt.as_ref().map(|jwt| jwt.challenge(error))
    }

    /// The same for what is forwarded: there our credentials have a header of their own, because the usual one holds
    /// the provider's.
    pub async fn identify_forwarded(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<Arc<Identity>, Refused> {
        let own = headers
            .get(TOKEN_HEADER)
            .and_then(|value| value.to_str().ok());
        if let Some(own) = own {
            return self.identify_by(Some(own.trim()), from).await;
        }
        let is_open = self.is_open();
        let shown = bearer(headers).map(Digested::of);
        // What stands in the usual header may be a guess at our token as well as the key of a provider.
        if let Some(digest) = shown.as_ref().filter(|_| !is_open)
            && !self.throttle.knows(digest)
            && let Some(wait) = self.throttle.wait(from)
        {
            return Err(too_many_mistakes(wait));
        }
        if self.is_shown_in_the_usual_header(headers) {
            return self.identify(headers, from).await;
        }
        if is_open {
            return Ok(unlimited(By::Nothing));
        }
        if let Some(digest) = &shown {
            self.wrong(from, digest, None)?;
        }
        Err(Refused::new(
            Why::NoToken,
            "this server wants credentials of its own, and the request has none",
            "Send a key (steadyhand keys create) or the token that is set under [server] in the header steadyhand-token",
        ))
    }

    /// Whether the usual header holds credentials of ours. It must not be forwarded then.
    pub fn is_shown_in_the_usual_header(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|shown| {
            let digest = Digested::of(shown);
            let mut ours = self.token.iter().chain(&self.local);
            Keys::are_meant(shown) || ours.any(|our| our.is(&digest))
        })
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

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credential) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| credential.trim())
}

fn too_many_mistakes(wait: Duration) -> Refused {
    Refused::new(
        Why::TooFast,
        "too many wrong credentials came from this address or for this key; these were not looked at, and nothing was run",
        "Wait for as long as retry-after says, then show the right ones",
    )
    .after(wait)
}

/// Whether what was shown may have been made up, and counts as an attempt.
struct IsGuess(bool);

/// Those without limits are all alike.
fn unlimited(by: By) -> Arc<Identity> {
    static NOTHING: LazyLock<Arc<Identity>> =
        LazyLock::new(|| Arc::new(Identity::unlimited(By::Nothing)));
    match by {
        By::Nothing => Arc::clone(&NOTHING),
        by => Arc::new(Identity::unlimited(by)),
    }
}

fn not_let_in(why: &NotLetIn) -> Refused {
    match why {
        NotLetIn::Unknown => Refused::new(
            Why::NoToken,
            "the key is none of this server",
            "steadyhand keys list shows which there are; steadyhand keys create makes one",
        ),
        NotLetIn::Revoked { name } => Refused::new(
            Why::NoToken,
            format!("the key {name:?} was revoked"),
            "Ask whoever runs this server for another one",
        ),
        NotLetIn::Expired { name } => Refused::new(
            Why::NoToken,
            format!("the key {name:?} has expired"),
            "Ask whoever runs this server for another one",
        ),
        NotLetIn::Unreadable(reason) => {
            tracing::error!(reason, "keys cannot be checked");
            Refused::new(
                Why::NoKeys,
                "the keys of this server cannot be read now",
                "The output of the server says why; nothing was run",
            )
        }
    }
}
