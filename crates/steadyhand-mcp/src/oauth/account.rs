//! Our account at one server: its tokens, renewed by one at a time, and how to get the first ones.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, ready};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig,
    OAuthClientConfig, WWWAuthenticateParams,
};
use serde_json::json;
use steadyhand::clock;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Browser;
use super::callback::{self, Expected};
use super::http::{OAuthHttp, Sender};
use super::kept::{Beside, Keeping, Kept, KeptClient, LoggedIn, TokenStore};
use crate::client::credentials::{Credentials, Refusal};
use crate::client::login_address::login_address;

/// What we are called where we register.
const CLIENT_NAME: &str = "Steadyhand";
/// All that is needed for new tokens, without a person's part.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is shorter would be found in every text.
const SECRET_BYTES_MIN: usize = 6;
/// An authorization server that refused client credentials is not asked again for so long.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// rmcp wants one for the client; nobody is sent there.
const NO_REDIRECT: &str = "http://127.0.0.1/";

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
    /// Who logs in.
    pub grant: Grant,
}

/// Who logs in.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person with a browser.
    #[default]
    AuthorizationCode,
    /// Nobody: tokens are fetched with the client's own id and secret whenever they are needed.
    ClientCredentials(ClientCredentials),
}

/// How tokens are fetched with a client's own id and secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientCredentials {
    /// How id and secret are sent; as the authorization server says if `None`.
    pub client_auth: Option<ClientAuth>,
    /// Where tokens are, for an authorization server that says nothing about itself.
    pub token_url: Option<String>,
}

/// How a client shows its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// In the header `Authorization`.
    Basic,
    /// In the body.
    Post,
}

impl ClientAuth {
    fn method(self) -> &'static str {
        match self {
            ClientAuth::Basic => "client_secret_basic",
            ClientAuth::Post => "client_secret_post",
        }
    }
}

/// Our account at one server.
pub struct Account {
    url: String,
    /// What a person does who has to log in.
    advice: String,
    settings: OAuthSettings,
    keeping: Keeping,
    http: Sender,
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
    /// When client credentials were last refused, and why.
    refused: Option<(Instant, String)>,
}

impl Account {
    /// `advice` is what a person does who has to log in: `run: steadyhand mcp login github`. Everything is asked over `http`.
    pub fn new(
        url: impl Into<String>,
        settings: OAuthSettings,
        store: Arc<dyn TokenStore>,
        advice: impl Into<String>,
        http: Arc<dyn OAuthHttp>,
    ) -> Account {
        Account {
            url: url.into(),
            advice: advice.into(),
            settings,
            keeping: Keeping::new(store),
            http: Sender::new(http),
            known: ArcSwap::from_pointee(Known::Nothing),
            turn: Mutex::default(),
        }
    }

    /// What is kept of it.
    pub fn logged_in(&self) -> Result<Option<LoggedIn>, String> {
        let kept = self.keeping.read()?;
        Ok(kept.map(|kept| self.shown(kept.logged_in)))
    }

    /// Whether nobody has to log in: tokens are fetched with client credentials.
    pub fn is_unattended(&self) -> bool {
        matches!(self.settings.grant, Grant::ClientCredentials(_))
    }

    /// Has a person log in. `challenge` is what the server says to somebody who shows nothing (`WWW-Authenticate`);
    /// without one, what it said when it last refused a request. More scopes may be asked for than the server names.
    pub async fn log_in(
        &self,
        browser: &dyn Browser,
        challenge: Option<&str>,
        scopes: &[String],
    ) -> Result<LoggedIn, String> {
        let _turn = self.turn.lock().await;
        let earlier = self.keeping.challenge();
        let scopes = match scopes {
            [] => self.further_scopes(earlier.as_deref())?,
            scopes => scopes.to_vec(),
        };
        let challenge = challenge.or(earlier.as_deref());
        self.authorize(browser, challenge, &scopes).await
    }

    /// Fetches a token with client credentials now. `challenge` as for [`Account::log_in`].
    pub async fn fetch(&self, challenge: Option<&str>) -> Result<LoggedIn, String> {
        let _turn = self.turn.lock().await;
        let earlier = self.keeping.challenge();
        let challenge = challenge.or(earlier.as_deref());
        let kept = self.bounded(self.fetch_token(challenge, &[], None)).await;
        let kept = kept.map_err(|why| self.hidden(why))?;
        self.hold(&kept);
        Ok(self.shown(kept.logged_in))
    }

    /// The scopes to ask for where the server has refused a call because the login does not reach far enough: those
    /// of the login and those it named. Empty if it was something else.
    fn further_scopes(&self, challenge: Option<&str>) -> Result<Vec<String>, String> {
        let is_too_narrow = challenge.is_some_and(|text| text.contains("insufficient_scope"));
        let kept = self.keeping.read()?;
        let Some(kept) = kept.filter(|_| is_too_narrow) else {
            return Ok(Vec::new());
        };
        Ok(union(&kept.logged_in.scopes, &self.wanted(challenge)))
    }

    fn shown(&self, logged_in: LoggedIn) -> LoggedIn {
        let renews = logged_in.renews || self.is_unattended();
        LoggedIn {
            renews,
            ..logged_in
        }
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
        let (manager, address, expected) = self
            .bounded(self.prepare(browser, challenge, scopes))
            .await?;
        let is_answer = |back: &str| expected.is_answer(back);
        let back = browser.visit(&address, &is_answer).await?;
        let callback = callback::read(&back)?;
        let exchange = manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        );
        self.bounded(async { exchange.await.map_err(|error| words(&error)) })
            .await?;
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
    ) -> Result<(AuthorizationManager, String, Expected), String> {
        let told = |error: AuthError| words(&error);
        let mut manager = self.manager().await?;
        let found = manager.resolve_metadata_from_challenge(challenge).await;
        let metadata = found.map_err(told)?.metadata;
        let reads_documents = "client_id_metadata_document_supported";
        let reads_documents = metadata.additional_fields.get(reads_documents);
        let reads_documents = reads_documents.is_some_and(|reads| *reads == true);
        let issuer = metadata.issuer.clone();
        let names_issuer = "authorization_response_iss_parameter_supported";
        let names_issuer = metadata.additional_fields.get(names_issuer);
        let names_issuer = names_issuer.is_some_and(|names| *names == true);
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
        self.keeping.keep_beside(Beside {
            client: Some(KeptClient::of(&client)),
            challenge: challenge.map(str::to_owned),
            ..Beside::default()
        });
        manager.configure_client(client).map_err(told)?;
        let address = manager.get_authorization_url(&scopes).await.map_err(told)?;
        let address = login_address(&address)?;
        let expected = Expected::of(&address, issuer, names_issuer)?;
        Ok((manager, address.into(), expected))
    }

    async fn manager(&self) -> Result<AuthorizationManager, String> {
        let http = Arc::new(self.http.clone());
        let manager =
            AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), http).await;
        let mut manager = manager.map_err(|error| words(&error))?;
        manager.set_credential_store(self.keeping.clone());
        Ok(manager)
    }

    /// Fetches new tokens for those that are kept.
    async fn renew(&self, kept: &Kept) -> Result<Kept, String> {
        let told = |error: AuthError| words(&error);
        let client = kept.client.clone();
        let mut manager = self.manager().await?;
        self.keeping.keep_beside(Beside {
            client: client.clone(),
            challenge: kept.challenge.clone(),
            requested_scopes: kept.logged_in.scopes.clone(),
        });
        let challenge = kept.challenge.as_deref();
        let found = manager.resolve_metadata_from_challenge(challenge).await;
        manager.set_metadata(found.map_err(told)?.metadata);
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

    /// Fetches a token with client credentials. `refused` is the token that the server does not take.
    async fn fetch_token(
        &self,
        challenge: Option<&str>,
        scopes: &[String],
        refused: Option<&str>,
    ) -> Result<Kept, String> {
        let told = |error: AuthError| words(&error);
        let Grant::ClientCredentials(credentials) = &self.settings.grant else {
            return Err("it is not logged in to with client credentials".to_owned());
        };
        let store = Arc::clone(&self.keeping.store);
        let locked = tokio::task::spawn_blocking(move || store.lock()).await;
        let _lock = locked.map_err(|error| error.to_string())??;
        // Another process may have fetched one while we waited.
        if let (Some(kept), Some(refused)) = (self.keeping.read()?, refused)
            && *kept.token != *refused
            && kept.is_fresh(now_seconds())
        {
            return Ok(kept);
        }
        let (Some(id), Some(secret)) = (&self.settings.client_id, &self.settings.client_secret)
        else {
            return Err("client_id and client_secret are missing".to_owned());
        };
        let mut manager = self.manager().await?;
        let mut metadata = match &credentials.token_url {
            Some(token_url) => {
                let mut metadata = AuthorizationMetadata::default();
                metadata.token_endpoint.clone_from(token_url);
                metadata.authorization_endpoint.clone_from(token_url);
                metadata
            }
            None => {
                let found = manager.resolve_metadata_from_challenge(challenge).await;
                found.map_err(told)?.metadata
            }
        };
        let methods = "token_endpoint_auth_methods_supported";
        match credentials.client_auth {
            Some(auth) => {
                let ours = json!([auth.method()]);
                metadata.additional_fields.insert(methods.to_owned(), ours);
            }
            // What a server means that says nothing (RFC 8414, 2).
            None => {
                let usual = || json!([ClientAuth::Basic.method()]);
                let fields = &mut metadata.additional_fields;
                fields.entry(methods.to_owned()).or_insert_with(usual);
            }
        }
        // These are about logins of people: a server that has none may say so.
        metadata.response_types_supported = None;
        metadata.code_challenge_methods_supported = Some(vec!["S256".to_owned()]);
        manager.set_metadata(metadata);
        let scopes = match scopes {
            [] if self.settings.scopes.is_empty() => manager.select_initial_scopes(&[]).await,
            [] => self.settings.scopes.clone(),
            scopes => scopes.to_vec(),
        };
        self.keeping.keep_beside(Beside {
            client: None,
            challenge: challenge.map(str::to_owned),
            requested_scopes: scopes.clone(),
        });
        let client = ClientCredentialsConfig::ClientSecret {
            client_id: id.clone(),
            client_secret: secret.clone(),
            scopes,
            resource: Some(resource_of(&mut manager, id).await?),
        };
        manager
            .validate_client_credentials_metadata(&client)
            .map_err(told)?;
        manager
            .configure_client_credentials(&client)
            .map_err(told)?;
        let fetched = manager.exchange_client_credentials(&client).await;
        fetched.map_err(told)?;
        let kept = self.keeping.read()?.ok_or("the tokens were not kept")?;
        tracing::info!(
            server = self.url,
            "a token was fetched with client credentials"
        );
        Ok(kept)
    }

    /// Bounds the work, and says what kept its requests from being sent.
    async fn bounded<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        self.http.take_trouble();
        let done = match timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => Err("the authorization server takes too long".to_owned()),
        };
        done.map_err(|why| match self.http.take_trouble() {
            Some(trouble) if !why.contains(&trouble) => format!("{why}: {trouble}"),
            _ => why,
        })
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
        if !kept.logged_in.renews && !self.is_unattended() {
            self.known.store(Arc::new(Known::NoToken));
            return None;
        }
        match self.bounded(self.replace(&kept)).await {
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

    /// New tokens in the place of those that are kept, without a person.
    async fn replace(&self, kept: &Kept) -> Result<Kept, String> {
        match self.is_unattended() {
            true => {
                let challenge = kept.challenge.as_deref();
                let fetched =
                    self.fetch_token(challenge, &kept.logged_in.scopes, Some(&kept.token));
                fetched.await.map_err(|why| self.hidden(why))
            }
            false => self.renew(kept).await,
        }
    }

    async fn find_others(&self, refusal: Refusal<'_>) -> Result<(), String> {
        let mut turn = self.turn.lock().await;
        if let Some(challenge) = refusal.challenge {
            self.keeping.remember_challenge(challenge).await;
        }
        let kept = self.keeping.read()?;
        let is_too_narrow = refusal.status == 403;
        if let Some(kept) = &kept {
            // Somebody logged in, or fetched new ones, since this was sent.
            let is_other = refusal.shown != Some(&*kept.token);
            if is_other && kept.is_fresh(now_seconds()) {
                self.hold(kept);
                return Ok(());
            }
            if !is_too_narrow && kept.logged_in.renews && !self.is_unattended() {
                match self.bounded(self.renew(kept)).await {
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
        let scopes: Vec<String> = match is_too_narrow {
            true if wanted.iter().all(|one| granted.contains(one)) => {
                return Err("it refuses what the login is good for already".to_owned());
            }
            true => union(&granted, &wanted),
            false => Vec::new(),
        };
        if self.is_unattended() {
            return self.fetch_after(refusal, &scopes, &mut turn).await;
        }
        let more: Vec<String> = scopes.iter().map(|one| format!("--scope {one}")).collect();
        let advice = format!("{} {}", self.advice, more.join(" "));
        Err(format!(
            "it wants somebody to log in; {}",
            advice.trim_end()
        ))
    }

    /// Fetches a token with client credentials after a refusal. An authorization server that has just said no is not
    /// asked again for every call.
    async fn fetch_after(
        &self,
        refusal: Refusal<'_>,
        scopes: &[String],
        turn: &mut Turn,
    ) -> Result<(), String> {
        if let Some((at, why)) = &turn.refused
            && at.elapsed() < REFUSED_PAUSE
        {
            return Err(why.clone());
        }
        let fetched = self
            .bounded(self.fetch_token(refusal.challenge, scopes, refusal.shown))
            .await;
        match fetched {
            Ok(kept) => {
                turn.refused = None;
                self.hold(&kept);
                Ok(())
            }
            Err(why) => {
                let why = format!("no token for client credentials: {why}; {}", self.advice);
                let why = self.hidden(why);
                turn.refused = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
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
        let secret = self.settings.client_secret.as_deref();
        let text = match secret.filter(|secret| secret.len() >= SECRET_BYTES_MIN) {
            Some(secret) => text.replace(secret, "…"),
            None => text,
        };
        match &**self.known.load() {
            Known::Token { token, .. } if token.len() >= SECRET_BYTES_MIN => {
                text.replace(&**token, "…")
            }
            _ => text,
        }
    }
}

/// What the token is for (RFC 8707): what the server's metadata says, else its address. rmcp tells it only as a part of
/// an address for people.
async fn resource_of(manager: &mut AuthorizationManager, id: &str) -> Result<String, String> {
    let told = |error: AuthError| words(&error);
    let client = OAuthClientConfig::new(id, NO_REDIRECT);
    manager.configure_client(client).map_err(told)?;
    let address = manager.get_authorization_url(&[]).await.map_err(told)?;
    let address = url::Url::parse(&address).map_err(|error| error.to_string())?;
    let mut pairs = address.query_pairs();
    let resource = pairs.find(|(key, _)| key == "resource");
    let resource = resource.map(|(_, value)| value.into_owned());
    resource.ok_or_else(|| "what the token is for cannot be told".to_owned())
}

/// The first, and what of the second is not among them.
fn union(first: &[String], second: &[String]) -> Vec<String> {
    let more = second.iter().filter(|one| !first.contains(one));
    let all = first.iter().chain(more);
    // A server that grants no scope may say so by an empty one.
    all.filter(|one| !one.is_empty()).cloned().collect()
}

fn words(error: &AuthError) -> String {
    error.to_string()
}

fn now_seconds() -> u64 {
    clock::wall_ms() / 1000
}
