//! Our account at one server: its tokens, renewed by one at a time, and how to get the first ones.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, ready};
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, OAuthClientConfig,
    WWWAuthenticateParams,
};
use steadyhand::clock;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Browser;
use super::kept::{Keeping, Kept, KeptClient, LoggedIn, TokenStore};
use crate::credentials::{Credentials, Refusal};

/// What we are called where we register.
const CLIENT_NAME: &str = "Steadyhand";
/// All that is needed for new tokens, without a person's part.
const PATIENCE: Duration = Duration::from_secs(30);
/// A person is asked so often …
const LOGINS_MAX: usize = 3;
/// … within this time: a server that is never content would have them log in for ever.
const LOGINS_WITHIN: Duration = Duration::from_secs(10 * 60);

/// How we present ourselves; all of it may be left to the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The id of a client that was registered by hand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// The address of a document that describes us: an id for servers that read it there.
    pub client_metadata: Option<String>,
    /// What is asked for; what the server names if empty.
    pub scopes: Vec<String>,
}

/// Our account at one server.
pub struct Account {
    url: String,
    /// What a person does who has to log in.
    advice: String,
    settings: OAuthSettings,
    keeping: Keeping,
    browser: Option<Arc<dyn Browser>>,
    known: ArcSwap<Known>,
    turn: Mutex<Turn>,
}

/// What is known of the tokens without a look.
enum Known {
    Nothing,
    /// There is none: a look for each request would cost every server that asks nobody.
    NoToken,
    Token {
        token: Arc<str>,
        until_seconds: Option<u64>,
    },
}

/// Whose turn it is to change something.
#[derive(Default)]
struct Turn {
    /// When people were asked lately.
    logins: Vec<Instant>,
}

impl Account {
    /// `advice` is what a person does who has to log in: `run: steadyhand mcp login github`.
    pub fn new(
        url: impl Into<String>,
        settings: OAuthSettings,
        store: Arc<dyn TokenStore>,
        advice: impl Into<String>,
    ) -> Account {
        // reqwest, which rmcp uses, takes the one of the process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Account {
            url: url.into(),
            advice: advice.into(),
            settings,
            keeping: Keeping::new(store),
            browser: None,
            known: ArcSwap::from_pointee(Known::Nothing),
            turn: Mutex::default(),
        }
    }

    /// Has a person log in whenever the server wants it.
    pub fn asking(mut self, browser: Arc<dyn Browser>) -> Account {
        self.browser = Some(browser);
        self
    }

    /// What is kept of it.
    pub fn logged_in(&self) -> Result<Option<LoggedIn>, String> {
        Ok(self.keeping.read()?.map(|kept| kept.logged_in))
    }

    /// Has a person log in. More scopes may be asked for than the server names.
    pub async fn log_in(
        &self,
        browser: &dyn Browser,
        scopes: &[String],
    ) -> Result<LoggedIn, String> {
        let _turn = self.turn.lock().await;
        self.authorize(browser, None, scopes).await
    }

    /// Forgets the tokens.
    pub async fn log_out(&self) -> Result<(), String> {
        let _turn = self.turn.lock().await;
        self.known.store(Arc::new(Known::NoToken));
        self.keeping.store.clear()
    }

    async fn authorize(
        &self,
        browser: &dyn Browser,
        challenge: Option<&str>,
        scopes: &[String],
    ) -> Result<LoggedIn, String> {
        let (manager, address) = bounded(self.prepare(browser, challenge, scopes)).await?;
        let back = browser.visit(&address).await?;
        let callback = read_callback(&back)?;
        let exchange = manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        );
        bounded(async { exchange.await.map_err(|error| words(&error)) }).await?;
        let kept = self.keeping.read()?.ok_or("the tokens were not kept")?;
        self.hold(&kept);
        Ok(kept.logged_in)
    }

    /// Finds out where to log in, and as whom; the address to be visited.
    async fn prepare(
        &self,
        browser: &dyn Browser,
        challenge: Option<&str>,
        scopes: &[String],
    ) -> Result<(AuthorizationManager, String), String> {
        let told = |error: AuthError| words(&error);
        let mut manager = self.manager().await?;
        let found = manager.resolve_metadata_from_challenge(challenge).await;
        let metadata = found.map_err(told)?.metadata;
        let reads_documents = "client_id_metadata_document_supported";
        let reads_documents = metadata.additional_fields.get(reads_documents);
        let reads_documents = reads_documents.is_some_and(|reads| *reads == true);
        manager.set_metadata(metadata);
        let scopes = match scopes {
            [] if self.settings.scopes.is_empty() => manager.select_initial_scopes(&[]).await,
            [] => self.settings.scopes.clone(),
            scopes => scopes.to_vec(),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let redirect = browser.redirect_uri();
        let document = self.settings.client_metadata.as_ref();
        let client = match (&self.settings.client_id, document) {
            (Some(id), _) => {
                let client = OAuthClientConfig::new(id, &redirect);
                match &self.settings.client_secret {
                    Some(secret) => client.with_client_secret(secret),
                    None => client,
                }
            }
            (None, Some(document)) if reads_documents => {
                OAuthClientConfig::new(document, &redirect)
            }
            (None, _) => {
                let registered = manager
                    .register_client(CLIENT_NAME, &redirect, &scopes)
                    .await;
                registered.map_err(told)?
            }
        };
        self.keeping.of_client(Some(KeptClient::of(&client)));
        manager.configure_client(client).map_err(told)?;
        let address = manager.get_authorization_url(&scopes).await.map_err(told)?;
        Ok((manager, address))
    }

    async fn manager(&self) -> Result<AuthorizationManager, String> {
        let manager = AuthorizationManager::new(self.url.as_str()).await;
        let mut manager = manager.map_err(|error| words(&error))?;
        manager.set_credential_store(self.keeping.clone());
        Ok(manager)
    }

    /// Fetches new tokens for those that are kept.
    async fn renew(&self, client: Option<KeptClient>) -> Result<Kept, String> {
        let told = |error: AuthError| words(&error);
        let mut manager = self.manager().await?;
        self.keeping.of_client(client.clone());
        if !manager.initialize_from_store().await.map_err(told)? {
            return Err("the server trusts another issuer now".to_owned());
        }
        if let Some(client) = client {
            manager.configure_client(client.config()).map_err(told)?;
        }
        manager.refresh_token().await.map_err(told)?;
        let kept = self.keeping.read()?.ok_or("the tokens were not kept")?;
        tracing::info!(server = self.url, "new tokens were fetched");
        Ok(kept)
    }

    fn hold(&self, kept: &Kept) {
        self.known.store(Arc::new(Known::Token {
            token: Arc::clone(&kept.token),
            until_seconds: kept.logged_in.until_seconds,
        }));
    }

    /// What can be shown without a look: `None` means that nobody knows yet.
    fn at_hand(&self) -> Option<Option<Arc<str>>> {
        match &**self.known.load() {
            Known::Nothing => None,
            Known::NoToken => Some(None),
            Known::Token {
                token,
                until_seconds,
            } => {
                let is_over = until_seconds.is_some_and(|until| until <= now_seconds() + 30);
                (!is_over).then(|| Some(Arc::clone(token)))
            }
        }
    }

    async fn look(&self) -> Option<Arc<str>> {
        if let Some(known) = self.at_hand() {
            return known;
        }
        let _turn = self.turn.lock().await;
        // Whoever had the turn before may have found it.
        if let Some(known) = self.at_hand() {
            return known;
        }
        let kept = match self.keeping.read() {
            Ok(Some(kept)) => kept,
            Ok(None) => {
                self.known.store(Arc::new(Known::NoToken));
                return None;
            }
            Err(reason) => {
                tracing::error!(server = self.url, reason, "its tokens cannot be read");
                return None;
            }
        };
        if kept.is_fresh(now_seconds()) {
            self.hold(&kept);
            return Some(kept.token);
        }
        if !kept.logged_in.renews {
            self.known.store(Arc::new(Known::NoToken));
            return None;
        }
        match bounded(self.renew(kept.client)).await {
            Ok(kept) => {
                self.hold(&kept);
                Some(kept.token)
            }
            Err(reason) => {
                tracing::warn!(server = self.url, reason, "no new tokens were to be had");
                None
            }
        }
    }

    async fn find_others(&self, refusal: Refusal<'_>) -> Result<(), String> {
        let mut turn = self.turn.lock().await;
        let kept = self.keeping.read()?;
        let is_too_narrow = refusal.status == 403;
        if let Some(kept) = &kept {
            // Somebody logged in, or fetched new ones, since this was sent.
            let is_other = refusal.shown != Some(&*kept.token);
            if is_other && kept.is_fresh(now_seconds()) {
                self.hold(kept);
                return Ok(());
            }
            // A person who is there is asked: the server may trust another issuer by now.
            if !is_too_narrow && kept.logged_in.renews && self.browser.is_none() {
                match bounded(self.renew(kept.client.clone())).await {
                    Ok(kept) => {
                        self.hold(&kept);
                        return Ok(());
                    }
                    Err(reason) => {
                        tracing::warn!(server = self.url, reason, "no new tokens were to be had");
                    }
                }
            }
        }
        self.known.store(Arc::new(Known::NoToken));
        let granted = kept.map(|kept| kept.logged_in.scopes).unwrap_or_default();
        let wanted = self.wanted(refusal.challenge);
        let missing: Vec<&String> = wanted.iter().filter(|one| !granted.contains(one)).collect();
        let scopes: Vec<String> = match is_too_narrow {
            true if missing.is_empty() => {
                return Err("it refuses what the login is good for already".to_owned());
            }
            true => granted.iter().chain(missing).cloned().collect(),
            false => Vec::new(),
        };
        let Some(browser) = &self.browser else {
            let more: Vec<String> = scopes.iter().map(|one| format!("--scope {one}")).collect();
            let advice = format!("{} {}", self.advice, more.join(" "));
            return Err(format!(
                "it wants somebody to log in; {}",
                advice.trim_end()
            ));
        };
        let now = Instant::now();
        turn.logins.retain(|at| now - *at < LOGINS_WITHIN);
        if turn.logins.len() >= LOGINS_MAX {
            return Err(format!("it wants a login again after {LOGINS_MAX} of them"));
        }
        turn.logins.push(now);
        self.authorize(&**browser, refusal.challenge, &scopes)
            .await
            .map(drop)
    }

    /// The scopes that a challenge names.
    fn wanted(&self, challenge: Option<&str>) -> Vec<String> {
        let base = url::Url::parse(&self.url).ok();
        let parameters = challenge
            .zip(base.as_ref())
            .map(|(challenge, base)| WWWAuthenticateParams::parse(challenge, base));
        let scope = parameters.and_then(|parameters| parameters.scope);
        let scope = scope.unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }
}

impl Credentials for Account {
    fn current(&self) -> BoxFuture<'_, Option<Arc<str>>> {
        match self.at_hand() {
            Some(known) => Box::pin(ready(known)),
            None => Box::pin(self.look()),
        }
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.find_others(refusal))
    }

    fn hidden(&self, text: String) -> String {
        match &**self.known.load() {
            Known::Token { token, .. } if token.len() >= 6 => text.replace(&**token, "…"),
            _ => text,
        }
    }
}

async fn bounded<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = || "the authorization server takes too long".to_owned();
    timeout(PATIENCE, work).await.map_err(|_| late())?
}

/// What came back with the person: a code, or why there is none.
fn read_callback(back: &str) -> Result<AuthorizationCallback, String> {
    let address = url::Url::parse(back).map_err(|_| "no answer came back".to_owned())?;
    let find = |name: &str| {
        let mut pairs = address.query_pairs();
        let pair = pairs.find(|(key, _)| key == name);
        pair.map(|(_, value)| value.into_owned())
    };
    if let Some(error) = find("error") {
        let more = find("error_description").map(|more| format!(": {more}"));
        return Err(format!(
            "the login was refused: {error}{}",
            more.unwrap_or_default()
        ));
    }
    AuthorizationCallback::from_redirect_url(back).map_err(|error| words(&error))
}

fn words(error: &AuthError) -> String {
    error.to_string()
}

fn now_seconds() -> u64 {
    clock::wall_ms() / 1000
}
