//! Logins at MCP servers over HTTP: each in a file of its own that only its owner may read.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{Request, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};
use steadyhand_mcp::oauth::{
    Account, ClientAuth, ClientCredentials, Grant, OAuthHttp, OAuthSettings, TokenStore,
};
use steadyhand_process::private;
use tokio::time::Instant;
use url::Host;

use crate::access::private_file;
use crate::net::{self, Client, Limits, Reach, Url};
use crate::scrub::{self, KnownSecrets};
use crate::source::mcp::{ClientAuthSetting, GrantSetting, LoginSettings, OAuthTable};
use steadyhand_config::document::plain;

/// Folder in the state folder.
const FOLDER: &str = "logins";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Our account at a server of this name, and the secrets that come with it. What it needs is asked over this client.
pub fn account(
    name: &str,
    settings: &LoginSettings,
    state: &Path,
    http: Client,
) -> (Account, KnownSecrets) {
    let url = settings.url.expose();
    let oauth = &settings.oauth;
    let login = OAuthSettings {
        client_id: oauth.client_id.clone(),
        client_secret: oauth
            .client_secret
            .as_ref()
            .map(|secret| secret.expose().to_owned()),
        client_metadata: oauth.client_metadata.clone(),
        scopes: oauth.scopes.clone(),
        grant: grant(oauth),
    };
    let tokens = KnownSecrets::default();
    tokens.learn(login.client_secret.as_deref());
    let file = LoginFile {
        path: state.join(FOLDER).join(format!("{}.json", key(name, url))),
        tokens: tokens.clone(),
    };
    // What is kept of the server is looked through for them before it is spoken with.
    let _ = file.load();
    let advice = match &login.grant {
        Grant::AuthorizationCode => format!("run: steadyhand mcp login {name}"),
        Grant::ClientCredentials(_) => {
            format!("check [mcp.{name}.oauth], then try it: steadyhand mcp login {name}")
        }
    };
    let http = CheckedHttp::of(url, oauth, http);
    let account = Account::new(url, login, Arc::new(file), advice, Arc::new(http));
    (account, tokens)
}

/// An answer of an authorization server that is larger says nothing about a login.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// The one client for outgoing requests. Which addresses a login needs is said by its server: only those that stand in
/// the configuration may be private.
struct CheckedHttp {
    client: Client,
    reach: Reach,
    /// The server is one of this machine.
    is_on_this_machine: bool,
}

impl CheckedHttp {
    fn of(server: &str, oauth: &OAuthTable, client: Client) -> CheckedHttp {
        let configured = [server].into_iter();
        let configured = configured.chain(oauth.token_url.as_deref());
        let configured = configured.chain(oauth.authorization_servers.iter().map(String::as_str));
        let configured = configured.filter_map(|address| Url::parse(address).ok());
        CheckedHttp {
            client,
            is_on_this_machine: Url::parse(server).is_ok_and(|url| is_loopback(&url)),
            reach: configured.fold(Reach::public_only(), |reach, url| reach.and(&url)),
        }
    }
}

impl CheckedHttp {
    /// Where a request may go. A server on this machine may have its authorization server beside it, at another port.
    fn reach_to(&self, url: &Url) -> Reach {
        match self.is_on_this_machine && is_loopback(url) {
            true => self.reach.clone().and(url),
            false => self.reach.clone(),
        }
    }
}

/// Whether an address says itself that it is this machine's: what a name resolves to does not count.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

impl OAuthHttp for CheckedHttp {
    fn send(
        &self,
        request: Request<Vec<u8>>,
        follows: bool,
    ) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let url = Url::parse(&parts.uri.to_string());
            let url = url.map_err(|_| "the address that it names is none".to_owned())?;
            let reach = self.reach_to(&url);
            let request = net::Request {
                method: parts.method,
                url,
                headers: parts.headers,
                body: (!body.is_empty()).then_some(body),
            };
            let limits = Limits {
                until: Instant::now() + ANSWER_PATIENCE,
                response_bytes_max: ANSWER_BYTES_MAX,
            };
            let answer = match follows {
                true => self.client.send(request, limits, &reach).await,
                false => self.client.send_once(request, limits, &reach).await,
            };
            let answer = answer.map_err(|error| error.message().to_owned())?;
            if answer.truncated {
                let max = ANSWER_BYTES_MAX >> 20;
                return Err(format!("{} answers with more than {max} MiB", answer.site));
            }
            let mut response = Response::new(answer.body);
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}

fn grant(oauth: &OAuthTable) -> Grant {
    match oauth.grant.unwrap_or_default() {
        GrantSetting::AuthorizationCode => Grant::AuthorizationCode,
        GrantSetting::ClientCredentials => Grant::ClientCredentials(ClientCredentials {
            client_auth: oauth.client_auth.map(|auth| match auth {
                ClientAuthSetting::Basic => ClientAuth::Basic,
                ClientAuthSetting::Post => ClientAuth::Post,
            }),
            token_url: oauth.token_url.clone(),
        }),
    }
}

/// A name and an address: tokens for one address are never shown at another.
fn key(name: &str, url: &str) -> String {
    let digest = Sha256::digest(format!("{name}\n{url}"));
    let hex: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let plain: String = name
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
        .take(40)
        .collect();
    format!("{plain}-{hex}")
}

/// Whose login it is, told apart by what it is made of.
pub fn identity(name: &str, settings: &LoginSettings) -> String {
    let oauth = &settings.oauth;
    let secret = oauth.client_secret.as_ref().map(|secret| secret.expose());
    let made_of = format!(
        "{name}\n{}\n{:?}\n{secret:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        settings.url.expose(),
        oauth.client_id,
        oauth.client_metadata,
        oauth.scopes,
        oauth.grant,
        oauth.client_auth,
        oauth.token_url,
        oauth.authorization_servers,
    );
    let digest = Sha256::digest(made_of);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct LoginFile {
    path: PathBuf,
    tokens: KnownSecrets,
}

impl LoginFile {
    /// Everything in it that must be shown to nobody is known from here on.
    fn learn(&self, text: &str) {
        let Ok(login) = serde_json::from_str::<Value>(text) else {
            return;
        };
        let token = &login["credentials"]["token_response"];
        let names = ["access_token", "refresh_token", "id_token"];
        let secrets = names.iter().map(|name| &token[name]);
        let secrets = secrets.chain([&login["client"]["secret"]]);
        let secrets: Vec<&str> = secrets.filter_map(Value::as_str).collect();
        self.tokens.learn(secrets.iter().copied());
        scrub::known().learn(secrets);
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("{}: {}", self.path.display(), plain(error))
    }
}

impl TokenStore for LoginFile {
    fn load(&self) -> Result<Option<String>, String> {
        match private::read(&self.path, FILE_BYTES_MAX) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.learn(&text);
                Ok(Some(text))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn save(&self, text: &str) -> Result<(), String> {
        self.learn(text);
        private_file::replace(&self.path, text.as_bytes()).map_err(|error| self.failed(&error))
    }

    fn clear(&self) -> Result<(), String> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn lock(&self) -> Result<Box<dyn Send>, String> {
        let file = private_file::lock(&self.path).map_err(|error| self.failed(&error))?;
        Ok(Box::new(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_login_are_public_or_configured_or_beside_a_server_of_this_machine() {
        let reaches = |server: &str, oauth: &OAuthTable, address: &str| {
            let url = Url::parse(address).expect("an address");
            let http = CheckedHttp::of(server, oauth, Client::new());
            http.reach_to(&url).covers(&url)
        };
        let plain = OAuthTable::default();
        for (server, address, is_reached) in [
            ("https://mcp.example/mcp", "https://mcp.example/token", true),
            (
                "https://mcp.example/mcp",
                "http://127.0.0.1:7400/v1/keys",
                false,
            ),
            ("https://mcp.example/mcp", "http://localhost/", false),
            ("https://mcp.example/mcp", "http://10.0.0.1/", false),
            ("http://10.0.0.5/mcp", "http://10.0.0.5/token", true),
            ("http://10.0.0.5/mcp", "http://10.0.0.5:8080/token", false),
            ("http://10.0.0.5/mcp", "http://10.0.0.6/token", false),
            ("http://10.0.0.5/mcp", "http://127.0.0.1/", false),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token", true),
            ("http://localhost:1/mcp", "http://[::1]:2/token", true),
            ("http://127.0.0.1:1/mcp", "http://10.0.0.1/", false),
            (
                "http://127.0.0.1:1/mcp",
                "http://127.0.0.1.evil.example/",
                false,
            ),
            ("http://127.0.0.1:1/mcp", "http://169.254.169.254/", false),
        ] {
            let found = reaches(server, &plain, address);
            assert_eq!(found, is_reached, "{server} {address}");
        }
        let named = OAuthTable {
            authorization_servers: vec!["https://sso.corp".to_owned()],
            ..OAuthTable::default()
        };
        assert!(reaches(
            "http://10.0.0.5/mcp",
            &named,
            "https://sso.corp/token"
        ));
        assert!(!reaches("http://10.0.0.5/mcp", &named, "http://10.0.0.6/"));
    }
}
