//! What is kept of a login: the client we are registered as, and the tokens.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens that are so close to their end are not shown any more.
const SPARE_SECONDS: u64 = 30;

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

#[derive(Serialize, Deserialize)]
struct Written {
    client: Option<KeptClient>,
    /// As rmcp writes it.
    credentials: Value,
}

/// What is kept, read.
pub(super) struct Kept {
    pub(super) client: Option<KeptClient>,
    pub(super) token: Arc<str>,
    pub(super) logged_in: LoggedIn,
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
    client: Arc<Mutex<Option<KeptClient>>>,
}

impl Keeping {
    pub(super) fn new(store: Arc<dyn TokenStore>) -> Keeping {
        Keeping {
            store,
            client: Arc::default(),
        }
    }

    /// The client that tokens are kept with from here on.
    pub(super) fn of_client(&self, client: Option<KeptClient>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
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
        serde_json::from_value(written.credentials)
            .map(Some)
            .map_err(failed)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let client = client.clone();
        let credentials = serde_json::to_value(&credentials).map_err(failed)?;
        let written = Written {
            client,
            credentials,
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
