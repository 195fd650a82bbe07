//! Tokens of an issuer (JWT, RFC 9068): signed by one of its keys, for us, not yet expired. With it this server is an
//! OAuth 2.0 resource server as the MCP specification wants one.

mod crypto;
mod jwks;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::identity::{By, Identity};
use super::pace::Pace;
use super::tools::Tools;
use crate::net::{Client, Url};
use jwks::{Jwks, NoKey};
use steadyhand_config::extensions::Fault;
use steadyhand_config::role::Role;
use steadyhand_config::settings::JwtSettings;
use steadyhand_config::words::dotted;

/// What clocks may differ by.
const LEEWAY_SECONDS: u64 = 60;
/// A token is a header, not a document.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
const NAME_BYTES_MAX: usize = 256;
/// Those whose pace is followed.
const PACES_MAX: usize = 10_000;
/// Keys that are tried for a token that names none.
const TRIED_MAX: usize = 8;

/// Checks tokens.
pub struct Jwt {
    settings: JwtSettings,
    audience: Url,
    algorithms: Vec<Algorithm>,
    keys: Jwks,
    paces: Mutex<HashMap<String, Arc<Pace>>>,
}

/// Why a token does not let anybody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAToken {
    /// It is none that is good here; in words that give nothing away.
    Wrong(&'static str),
    /// It is good, and its scopes include nothing here.
    NoScope,
    /// Whether it is good cannot be found out now.
    Unavailable(String),
}

/// Of a key that its issuer has taken back, or has made a moment ago.
const OF_NO_KEY: &str = "the token is signed with a key that its issuer does not have";
const EXPIRED: &str = "the token has expired";

impl NotAToken {
    /// Whether it may have been made up. One that was good until lately, or will be in a moment, is no guess: its owner
    /// comes again and again.
    pub fn is_guess(&self) -> bool {
        match self {
            NotAToken::Wrong(why) => *why != OF_NO_KEY && *why != EXPIRED,
            NotAToken::NoScope | NotAToken::Unavailable(_) => false,
        }
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    client_id: Option<String>,
    azp: Option<String>,
    jti: Option<String>,
    scope: Option<String>,
    /// The same in the words of others: a list.
    scp: Option<Value>,
}

/// The scopes, and the role that each stands for; the strongest first.
const SCOPES: [(&str, Role); 4] = [
    ("steadyhand:admin", Role::Admin),
    ("steadyhand:operate", Role::Operator),
    ("steadyhand:call", Role::Caller),
    ("steadyhand:view", Role::Viewer),
];

impl Jwt {
    /// The error says what is wrong with the settings.
    pub fn new(settings: &JwtSettings, http: Client) -> Result<Jwt, String> {
        crypto::install();
        let checked = Checked::of(settings).map_err(|faults| {
            let words = faults.iter();
            let words = words.map(|fault| format!("{}: {}", dotted(&fault.at), fault.message));
            words.collect::<Vec<_>>().join("; ")
        })?;
        Ok(Jwt {
            keys: Jwks::new(checked.issuer, checked.jwks, http),
            audience: checked.audience,
            algorithms: checked.algorithms,
            settings: settings.clone(),
            paces: Mutex::default(),
        })
    }

    /// Everything that is wrong with settings. What a reference stands for is not known before it is replaced.
    pub fn check(settings: &JwtSettings) -> Vec<Fault> {
        let mut faults = Checked::of(settings).err().unwrap_or_default();
        let jwks = settings.jwks.iter().map(|jwks| ("/jwks", jwks));
        let addresses = [
            ("/issuer", &settings.issuer),
            ("/audience", &settings.audience),
        ];
        for (at, text) in addresses.into_iter().chain(jwks) {
            faults.retain(|fault| fault.at != at || !text.contains("${"));
        }
        faults
    }

    pub fn is_of(&self, settings: &JwtSettings) -> bool {
        self.settings == *settings
    }

    /// Whether a credential means to be one of these.
    pub fn is_meant(credential: &str) -> bool {
        credential.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Who has this token.
    pub async fn identify(&self, token: &str) -> Result<Arc<Identity>, NotAToken> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(NotAToken::Wrong("the token is too long"));
        }
        check_header(token)?;
        let header = decode_header(token).map_err(|_| NotAToken::Wrong("the token is no JWT"))?;
        // Ours, not the token's, is the choice of how it may be signed.
        if !self.algorithms.contains(&header.alg) {
            return Err(NotAToken::Wrong(
                "the token is signed in a way that is not taken",
            ));
        }
        let keys = self.keys.find(header.kid.as_deref()).await;
        let keys = keys.map_err(|none| match none {
            NoKey::Unknown => NotAToken::Wrong(OF_NO_KEY),
            NoKey::Unavailable(why) => NotAToken::Unavailable(why),
        })?;
        let mut refused = NotAToken::Wrong("the token is signed with a key of another kind");
        for key in keys
            .iter()
            .filter(|key| may_sign(key, header.alg))
            .take(TRIED_MAX)
        {
            match self.read(token, key, header.alg) {
                Ok(claims) => return self.identity(&claims),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// `WWW-Authenticate`, with where to learn the rest.
    pub fn challenge(&self, error: Option<&str>) -> String {
        let mut challenge = format!(
            "Bearer resource_metadata=\"{}\", scope=\"steadyhand:call\"",
            self.metadata_address()
        );
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{error}\""));
        }
        challenge
    }

    /// RFC 9728.
    pub fn metadata(&self) -> Value {
        json!({
            "resource": self.settings.audience,
            "resource_name": "Steadyhand",
            "authorization_servers": [self.settings.issuer],
            "scopes_supported": SCOPES.map(|(scope, _)| scope),
            "bearer_methods_supported": ["header"],
        })
    }

    /// Between the host and the path of what it is about.
    fn metadata_address(&self) -> Url {
        let mut address = self.audience.clone();
        let path = self.audience.path().trim_end_matches('/');
        address.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        address.set_query(None);
        address
    }

    fn read(&self, token: &str, key: &Jwk, algorithm: Algorithm) -> Result<Claims, NotAToken> {
        let unusable = NotAToken::Wrong("the key of the token cannot be used");
        let key = DecodingKey::from_jwk(key).map_err(|_| unusable)?;
        let mut rules = Validation::new(algorithm);
        rules.leeway = LEEWAY_SECONDS;
        rules.validate_nbf = true;
        rules.set_audience(&[&self.settings.audience]);
        let issuer = self.settings.issuer.trim_end_matches('/');
        rules.set_issuer(&[issuer.to_owned(), format!("{issuer}/")]);
        rules.set_required_spec_claims(&["exp", "iss", "aud"]);
        let read = decode::<Claims>(token, &key, &rules);
        read.map(|read| read.claims).map_err(|error| {
            NotAToken::Wrong(match error.kind() {
                ErrorKind::ExpiredSignature => EXPIRED,
                ErrorKind::ImmatureSignature => "the token is not valid yet",
                ErrorKind::InvalidIssuer => "the token is of another issuer",
                ErrorKind::InvalidAudience => "the token is for another audience",
                ErrorKind::MissingRequiredClaim(_) => {
                    "the token does not say of whom, for whom and until when it is"
                }
                ErrorKind::InvalidSignature => "the signature of the token is not right",
                _ => "the token cannot be read",
            })
        })
    }

    fn identity(&self, claims: &Claims) -> Result<Arc<Identity>, NotAToken> {
        let subject = claims
            .sub
            .as_ref()
            .or(claims.client_id.as_ref())
            .or(claims.azp.as_ref());
        let is_name = |subject: &&String| (1..=NAME_BYTES_MAX).contains(&subject.len());
        let Some(subject) = subject.filter(is_name) else {
            return Err(NotAToken::Wrong("the token does not say who it is for"));
        };
        let is_revoked =
            |revoked: &String| revoked == subject || Some(revoked) == claims.jti.as_ref();
        if self.settings.revoked.iter().any(is_revoked) {
            return Err(NotAToken::Wrong("the token was revoked"));
        }
        let role = role(claims)
            .or(self.settings.role)
            .ok_or(NotAToken::NoScope)?;
        let pace = self.settings.rate.map(|rate| {
            let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
            if paces.len() >= PACES_MAX && !paces.contains_key(subject) {
                paces.clear();
            }
            let pace = paces.entry(subject.clone());
            Arc::clone(pace.or_insert_with(|| Arc::new(Pace::new(rate))))
        });
        Ok(Arc::new(Identity {
            name: Some(name(subject).into()),
            by: By::Jwt,
            role,
            tools: Tools {
                allow: self.settings.tools.clone(),
                deny: self.settings.deny.clone(),
            },
            pace,
        }))
    }
}

/// Settings that can be used.
struct Checked {
    issuer: Url,
    audience: Url,
    jwks: Option<Url>,
    algorithms: Vec<Algorithm>,
}

impl Checked {
    fn of(settings: &JwtSettings) -> Result<Checked, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut address = |name: &str, text: &str| {
            let url = Url::parse(text).ok();
            let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if url.is_none() {
                faults.push(fault(
                    format!("/{name}"),
                    format!("{text:?} is no web address"),
                ));
            }
            url
        };
        let issuer = address("issuer", &settings.issuer);
        let audience = address("audience", &settings.audience);
        let jwks = settings
            .jwks
            .as_ref()
            .and_then(|jwks| address("jwks", jwks));
        let default = ["RS256", "PS256", "ES256", "ES384", "EdDSA"].map(str::to_owned);
        let named = match settings.algorithms.is_empty() {
            true => default.as_slice(),
            false => &settings.algorithms,
        };
        let mut algorithms = Vec::new();
        for (index, name) in named.iter().enumerate() {
            let algorithm: Option<Algorithm> = name.parse().ok();
            let known =
                algorithm.filter(|algorithm| !name.starts_with("HS") && can_check(*algorithm));
            match known {
                Some(known) => algorithms.push(known),
                None => faults.push(fault(
                    format!("/algorithms/{index}"),
                    format!("{name:?} is not taken; there are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA"),
                )),
            }
        }
        match (issuer, audience, faults.is_empty()) {
            (Some(issuer), Some(audience), true) => Ok(Checked {
                issuer,
                audience,
                jwks,
                algorithms,
            }),
            _ => Err(faults),
        }
    }
}

/// Members of a header that change what the rest of a token means. Whoever does not understand one must not take the
/// token (RFC 7515, 4.1.11; RFC 7797; RFC 7516); none is understood here.
const CHANGES_ITS_MEANING: [&str; 5] = ["crit", "b64", "zip", "enc", "epk"];

/// Whether the header of a token says that it is to be read in a way that is not ours.
fn check_header(token: &str) -> Result<(), NotAToken> {
    let no_jwt = || NotAToken::Wrong("the token is no JWT");
    let header = token.split('.').next().unwrap_or_default();
    let header = BASE64_URL_SAFE_NO_PAD.decode(header);
    let header: Map<String, Value> = header
        .ok()
        .and_then(|header| serde_json::from_slice(&header).ok())
        .ok_or_else(no_jwt)?;
    // Case is folded: what a lenient reader elsewhere takes for the same name is the same name.
    let mut names = header.keys().map(|name| name.to_ascii_lowercase());
    if names.any(|name| CHANGES_ITS_MEANING.contains(&&*name)) {
        return Err(NotAToken::Wrong(
            "the token wants to be read by an extension that is not known here",
        ));
    }
    let kind = header.get("cty").and_then(Value::as_str);
    let is_nested = kind.is_some_and(|kind| {
        let kind = kind.to_ascii_lowercase();
        matches!(
            kind.trim_start_matches("application/"),
            "jwt" | "jose" | "jose+json"
        )
    });
    match is_nested {
        true => Err(NotAToken::Wrong("there is another token in the token")),
        false => Ok(()),
    }
}

fn fault(at: String, message: String) -> Fault {
    Fault {
        at,
        message,
        help: None,
    }
}

fn can_check(algorithm: Algorithm) -> bool {
    !matches!(
        algorithm,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    )
}

/// Whether a key is one for signatures of this kind.
fn may_sign(key: &Jwk, algorithm: Algorithm) -> bool {
    let common = &key.common;
    let is_for_signing = common
        .public_key_use
        .as_ref()
        .is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let said = common.key_algorithm.map(Algorithm::try_from);
    is_for_signing && said.is_none_or(|said| said.is_ok_and(|said| said == algorithm))
}

fn role(claims: &Claims) -> Option<Role> {
    let mut scopes: Vec<&str> = claims
        .scope
        .iter()
        .flat_map(|scope| scope.split(' '))
        .collect();
    match &claims.scp {
        Some(Value::String(text)) => scopes.extend(text.split(' ')),
        Some(Value::Array(items)) => scopes.extend(items.iter().filter_map(Value::as_str)),
        _ => {}
    }
    let granted = SCOPES.into_iter().find(|(scope, _)| scopes.contains(scope));
    granted.map(|(_, role)| role)
}

/// What would end a name early, or hide in it.
const ESCAPED: &AsciiSet = &percent_encoding::CONTROLS.add(b'/').add(b'%');

/// `@jwt:alice`: no key has such a name, and no two subjects have the same.
fn name(subject: &str) -> String {
    format!("@jwt:{}", utf8_percent_encode(subject, ESCAPED))
}
