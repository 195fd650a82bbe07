//! The keys that an issuer signs with: fetched, kept for a while, and fetched again when a token names one that is not
//! among them – one at a time, and not as often as somebody can make up names.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jsonwebtoken::jwk::Jwk;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::net::{Client, Limits, Method, Reach, Request, Url};

/// How long they are used without another look.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How long they are used when the issuer cannot be asked: a key that was taken back must not live on.
const USABLE: Duration = Duration::from_secs(60 * 60);
/// Between two looks, whatever tokens say.
const PAUSE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
const BYTES_MAX: usize = 512 * 1024;
const KEYS_MAX: usize = 256;

/// Where the keys are, and what is known of them.
pub(super) struct Jwks {
    issuer: Url,
    /// As configured; found out from the issuer otherwise.
    address: Option<Url>,
    http: Client,
    reach: Reach,
    known: ArcSwapOption<Known>,
    fetching: Mutex<Fetching>,
}

struct Known {
    keys: Vec<Jwk>,
    at: Instant,
}

#[derive(Default)]
struct Fetching {
    last: Option<Instant>,
    problem: Option<String>,
}

/// Why there is no key.
pub(super) enum NoKey {
    /// The issuer has none of this name.
    Unknown,
    /// The issuer cannot be asked.
    Unavailable(String),
}

impl Jwks {
    pub(super) fn new(issuer: Url, address: Option<Url>, http: Client) -> Jwks {
        let mut reach = Reach::public_only().and(&issuer);
        if let Some(address) = &address {
            reach = reach.and(address);
        }
        Jwks {
            issuer,
            address,
            http,
            reach,
            known: ArcSwapOption::empty(),
            fetching: Mutex::default(),
        }
    }

    /// The keys that may have signed: the one of this name, or all of them where a token names none.
    pub(super) async fn find(&self, name: Option<&str>) -> Result<Vec<Jwk>, NoKey> {
        let known = self.known.load_full();
        let is_fresh = known
            .as_ref()
            .is_some_and(|known| known.at.elapsed() < FRESH);
        if let (Some(known), true) = (&known, is_fresh) {
            let found = named(&known.keys, name);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let problem = self.renew(known.as_ref().map(|known| known.at)).await.err();
        let known = self.known.load_full();
        let usable = known.filter(|known| known.at.elapsed() < USABLE);
        match (usable, problem) {
            (Some(known), _) => match named(&known.keys, name) {
                found if found.is_empty() => Err(NoKey::Unknown),
                found => Ok(found),
            },
            (None, problem) => {
                let unknown = || "its keys are not known yet; try again in a moment".to_owned();
                Err(NoKey::Unavailable(problem.unwrap_or_else(unknown)))
            }
        }
    }

    /// Asks the issuer, unless somebody else has since, or did a moment ago.
    async fn renew(&self, seen: Option<Instant>) -> Result<(), String> {
        let mut fetching = self.fetching.lock().await;
        let known_at = self.known.load().as_ref().map(|known| known.at);
        if known_at.is_some() && known_at != seen {
            return Ok(());
        }
        if fetching.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return fetching.problem.clone().map_or(Ok(()), Err);
        }
        fetching.last = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => {
                fetching.problem = None;
                let at = Instant::now();
                self.known.store(Some(Arc::new(Known { keys, at })));
                Ok(())
            }
            Err(problem) => {
                tracing::warn!(
                    problem,
                    "the keys of the issuer of tokens cannot be fetched"
                );
                fetching.problem = Some(problem.clone());
                Err(problem)
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let address = match &self.address {
            Some(address) => address.clone(),
            None => self.discover().await?,
        };
        let set = self.get(address).await?;
        let keys = set["keys"].as_array().ok_or("the answer has no keys")?;
        // One that we do not understand costs itself, not the others.
        let keys = keys.iter().take(KEYS_MAX);
        let keys = keys.filter_map(|key| serde_json::from_value::<Jwk>(key.clone()).ok());
        Ok(keys.collect())
    }

    /// What the issuer says of itself (RFC 8414, OpenID Connect Discovery).
    async fn discover(&self) -> Result<Url, String> {
        let mut problem = String::new();
        for address in well_known(&self.issuer) {
            let about = match self.get(address).await {
                Ok(about) => about,
                Err(why) => {
                    problem = why;
                    continue;
                }
            };
            if about["issuer"].as_str().map(same) != Some(same(self.issuer.as_str())) {
                problem = "what the issuer says of itself names another issuer".to_owned();
                continue;
            }
            let address = about["jwks_uri"].as_str().unwrap_or_default();
            return Url::parse(address).map_err(|_| "its jwks_uri is no address".to_owned());
        }
        Err(problem)
    }

    async fn get(&self, address: Url) -> Result<Value, String> {
        let limits = Limits {
            until: Instant::now() + PATIENCE,
            response_bytes_max: BYTES_MAX,
        };
        let request = Request::new(Method::GET, address);
        let sent = self.http.send_once(request, limits, &self.reach).await;
        let response = sent.map_err(|error| error.message().to_owned())?;
        if !response.status.is_success() {
            return Err(format!("{} answered {}", response.site, response.status));
        }
        response.json().map_err(|error| error.message().to_owned())
    }
}

fn named(keys: &[Jwk], name: Option<&str>) -> Vec<Jwk> {
    let is_it = |key: &&Jwk| name.is_none_or(|name| key.common.key_id.as_deref() == Some(name));
    keys.iter().filter(is_it).cloned().collect()
}

/// An issuer with or without a slash at its end is the same.
fn same(issuer: &str) -> &str {
    issuer.trim_end_matches('/')
}

fn well_known(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/').to_owned();
    let at = |path: String| {
        let mut address = issuer.clone();
        address.set_path(&path);
        address
    };
    vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}
