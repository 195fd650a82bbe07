//! What is kept of a login: the client we are registered as, and the tokens.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Tokens that are so close to their end are not shown any more.
const SPARE_SECONDS: u64 = 30;
/// The longest challenge that is kept.
const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

/// A place for one login, as text. It holds secrets.
pub trait TokenStore: Send + Sync {
    /// What is there.
    fn load(&self) -> Result<Option<String>, String>;
    /// Puts something else there, whole or not at all.
    fn save(&self, text: &str) -> Result<(), String>;
    /// Leaves nothing there.
    fn clear(&self) -> Result<(), String>;
    /// Waits until no other process gets new tokens for it, and keeps others from it until this goes.
    fn lock(&self) -> Result<Box<dyn Send>, String>;
}

/// A login, without what it takes to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// Who issued the tokens.
    pub issuer: Option<String>,
    /// What they are good for.
    pub scopes: Vec<String>,
    /// Until when, in seconds since 1970; then new ones are fetched, where that is possible.
    pub until_seconds: Option<u64>,
    /// Whether new ones can be fetched without a person.
    pub renews: bool,
}

/// The client we are registered as.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct KeptClient {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    pub(super) redirect_uri: String,
}

impl KeptClient {
    pub(super) fn of(config: &OAuthClientConfig) -> KeptClient {
        KeptClient {
            id: config.client_id.clone(),
            secret: config.client_secret.clone(),
            redirect_uri: config.redirect_uri.clone(),
        }
    }

    pub(super) fn config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.id, &self.redirect_uri);
        match &self.secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Written {
    #[serde(default)]
    client: Option<KeptClient>,
    /// As rmcp writes it; null while there are no tokens.
    #[serde(default)]
    credentials: Value,
    /// It names where the server's metadata is: new tokens cannot be fetched without it where that is no usual place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    challenge: Option<String>,
}

/// What is kept, read.
pub(super) struct Kept {
    pub(super) client: Option<KeptClient>,
    pub(super) token: Arc<str>,
    pub(super) logged_in: LoggedIn,
    /// What the server said about logging in (`WWW-Authenticate`) when it last refused a request.
    pub(super) challenge: Option<String>,
}

impl Kept {
    fn read(text: &str) -> Option<Kept> {
        let written: Written = serde_json::from_str(text).ok()?;
        let credentials = &written.credentials;
        let token = &credentials["token_response"];
        let received = credentials["token_received_at"].as_u64();
        let lasts = token["expires_in"].as_u64();
        let scopes = credentials["granted_scopes"].as_array();
        let scopes = scopes.into_iter().flatten().filter_map(Value::as_str);
        Some(Kept {
            client: written.client,
            token: token["access_token"].as_str()?.into(),
            logged_in: LoggedIn {
                issuer: credentials["issuer"].as_str().map(str::to_owned),
                scopes: scopes.map(str::to_owned).collect(),
                until_seconds: received.zip(lasts).map(|(from, lasts)| from + lasts),
                renews: token["refresh_token"].is_string(),
            },
            challenge: written.challenge,
        })
    }

    /// Whether the token can still be shown.
    pub(super) fn is_fresh(&self, now_seconds: u64) -> bool {
        let until = self.logged_in.until_seconds;
        until.is_none_or(|until| now_seconds + SPARE_SECONDS < until)
    }
}

/// The place, as rmcp wants it.
#[derive(Clone)]
pub(super) struct Keeping {
    pub(super) store: Arc<dyn TokenStore>,
    beside: Arc<Mutex<Beside>>,
}

/// What is kept with the tokens from here on.
#[derive(Clone, Default)]
pub(super) struct Beside {
    pub(super) client: Option<KeptClient>,
    pub(super) challenge: Option<String>,
    /// A server that does not say which scopes it granted has granted these (RFC 6749, 5.1).
    pub(super) requested_scopes: Vec<String>,
}

impl Keeping {
    pub(super) fn new(store: Arc<dyn TokenStore>) -> Keeping {
        Keeping {
            store,
            beside: Arc::default(),
        }
    }

    /// What tokens are kept with from here on.
    pub(super) fn keep_beside(&self, beside: Beside) {
        *self.beside.lock() = beside;
    }

    /// The last challenge of the server, whether there are tokens or not.
    pub(super) fn challenge(&self) -> Option<String> {
        let text = self.store.load().ok()??;
        let written: Written = serde_json::from_str(&text).ok()?;
        written.challenge
    }

    /// Keeps a challenge for whoever logs in later, perhaps in another process. That it cannot be kept is no reason
    /// to fail: the server is asked again then.
    pub(super) async fn remember_challenge(&self, challenge: &str) {
        if challenge.len() > CHALLENGE_BYTES_MAX || self.challenge().as_deref() == Some(challenge) {
            return;
        }
        let (store, challenge) = (Arc::clone(&self.store), challenge.to_owned());
        let remember = move || -> Result<(), String> {
            // Tokens that another process has just fetched must not be written over.
            let _lock = store.lock()?;
            let text = store.load()?;
            let written = text.and_then(|text| serde_json::from_str(&text).ok());
            let mut written: Written = written.unwrap_or_default();
            written.challenge = Some(challenge);
            let text = serde_json::to_string_pretty(&written).map_err(|error| error.to_string())?;
            store.save(&text)
        };
        if let Ok(Err(reason)) = tokio::task::spawn_blocking(remember).await {
            tracing::debug!(reason, "what a server said about logging in was not kept");
        }
    }

    pub(super) fn read(&self) -> Result<Option<Kept>, String> {
        let text = self.store.load()?;
        Ok(text.as_deref().and_then(Kept::read))
    }
}

fn failed(why: impl ToString) -> AuthError {
    AuthError::CredentialStoreError(why.to_string())
}

#[async_trait]
impl CredentialStore for Keeping {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(text) = self.store.load().map_err(failed)? else {
            return Ok(None);
        };
        let written: Written = serde_json::from_str(&text).map_err(failed)?;
        serde_json::from_value(written.credentials).map_err(failed)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let beside = self.beside.lock();
        let beside = beside.clone();
        let mut credentials = serde_json::to_value(&credentials).map_err(failed)?;
        let granted = credentials["granted_scopes"].as_array();
        if granted.is_none_or(Vec::is_empty) {
            credentials["granted_scopes"] = json!(beside.requested_scopes);
        }
        let written = Written {
            client: beside.client,
            credentials,
            challenge: beside.challenge,
        };
        let text = serde_json::to_string_pretty(&written).map_err(failed)?;
        self.store.save(&text).map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear().map_err(failed)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let store = Arc::clone(&self.store);
        // Another process may take its time.
        let locked = tokio::task::spawn_blocking(move || store.lock()).await;
        let guard = locked.map_err(failed)?.map_err(failed)?;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}
