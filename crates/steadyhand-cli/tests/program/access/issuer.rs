//! An issuer of tokens of our own: it says what it is, has keys that come and go, and signs whatever a test wants.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use serde_json::{Value, json};

/// Whom its tokens are for, unless a test wants another.
pub(super) const AUDIENCE: &str = "http://127.0.0.1:7400/mcp";

/// An issuer that answers as long as the test runs.
pub(super) struct Issuer {
    pub(super) address: String,
    shown: Arc<Shown>,
    keys: Vec<(String, Signer)>,
}

#[derive(Default)]
struct Shown {
    address: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    fetched: AtomicUsize,
    is_away: AtomicBool,
}

enum Signer {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

impl Issuer {
    /// With one key of each kind: `ec`, `ed`, `rsa`.
    pub(super) async fn start() -> Issuer {
        Issuer::serving(Router::new()).await
    }

    /// The same, with more than its keys at its address.
    pub(super) async fn serving(more: Router) -> Issuer {
        let shown: Arc<Shown> = Arc::default();
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(about))
            .route("/keys", get(keys));
        let app = app.with_state(Arc::clone(&shown)).merge(more);
        let address = crate::support::serve(app).await;
        let address = format!("http://{address}");
        shown.address.lock().expect("whole").clone_from(&address);
        let mut issuer = Issuer {
            address,
            shown,
            keys: Vec::new(),
        };
        issuer.add_ec("ec");
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let ed = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": encoded(ed.public_key())});
        issuer.add("ed", Signer::EdDsa(ed), jwk);
        let rsa = RsaKeyPair::from_der(include_bytes!("fixtures/rsa.der")).expect("a key");
        let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa.public());
        let jwk = json!({"kty": "RSA", "kid": "rsa", "alg": "RS256", "n": encoded(&public.n), "e": encoded(&public.e)});
        issuer.add("rsa", Signer::Rs256(rsa), jwk);
        // One that nobody understands does no harm.
        issuer
            .shown
            .keys
            .lock()
            .expect("whole")
            .push(json!({"kty": "post-quantum", "kid": "odd"}));
        issuer
    }

    pub(super) fn add_ec(&mut self, name: &str) {
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let document =
            EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
        let ec = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &SystemRandom::new())
            .expect("a key");
        let point = ec.public_key().as_ref();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        let jwk = json!({"kty": "EC", "crv": "P-256", "kid": name, "x": x, "y": y});
        self.add(name, Signer::Es256(ec), jwk);
    }

    fn add(&mut self, name: &str, signer: Signer, jwk: Value) {
        self.keys.push((name.to_owned(), signer));
        self.shown.keys.lock().expect("whole").push(jwk);
    }

    /// The key is not shown any more; it can still sign.
    pub(super) fn hide(&self, name: &str) {
        self.shown
            .keys
            .lock()
            .expect("whole")
            .retain(|key| key["kid"] != name);
    }

    pub(super) fn go_away(&self) {
        self.shown.is_away.store(true, Ordering::SeqCst);
    }

    pub(super) fn fetched(&self) -> usize {
        self.shown.fetched.load(Ordering::SeqCst)
    }

    /// What a good token says.
    pub(super) fn claims(&self) -> Value {
        let now = jiff::Timestamp::now().as_second();
        json!({"iss": self.address, "aud": AUDIENCE, "sub": "alice", "jti": "t1", "iat": now, "nbf": now - 10,
               "exp": now + 600, "scope": "openid steadyhand:call"})
    }

    /// A token that says this, signed with the key of this name.
    pub(super) fn token(&self, name: &str, claims: &Value) -> String {
        let (_, signer) = self
            .keys
            .iter()
            .find(|(known, _)| known == name)
            .expect("a key");
        let algorithm = match signer {
            Signer::Es256(_) => "ES256",
            Signer::EdDsa(_) => "EdDSA",
            Signer::Rs256(_) => "RS256",
        };
        let header = json!({"alg": algorithm, "kid": name, "typ": "at+jwt"});
        self.signed(name, &header, claims)
    }

    /// The same with a header of the test's own.
    pub(super) fn signed(&self, name: &str, header: &Value, claims: &Value) -> String {
        let (_, signer) = self
            .keys
            .iter()
            .find(|(known, _)| known == name)
            .expect("a key");
        let message = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = match signer {
            Signer::Es256(key) => key
                .sign(&random, message.as_bytes())
                .expect("signed")
                .as_ref()
                .to_vec(),
            Signer::EdDsa(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            Signer::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let padding = &signature::RSA_PKCS1_SHA256;
                key.sign(padding, &random, message.as_bytes(), &mut signature)
                    .expect("signed");
                signature
            }
        };
        format!("{message}.{}", encoded(&signature))
    }

    /// What everybody can see of a key, as bytes.
    pub(super) fn public(&self, name: &str) -> Vec<u8> {
        let (_, signer) = self
            .keys
            .iter()
            .find(|(known, _)| known == name)
            .expect("a key");
        match signer {
            Signer::Es256(key) => key.public_key().as_ref().to_vec(),
            Signer::EdDsa(key) => key.public_key().as_ref().to_vec(),
            Signer::Rs256(key) => key.public_key().as_ref().to_vec(),
        }
    }
}

pub(super) fn unsigned(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encoded(header.to_string()),
        encoded(claims.to_string())
    )
}

pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64.encode(bytes)
}

async fn about(State(shown): State<Arc<Shown>>) -> Response {
    if shown.is_away.load(Ordering::SeqCst) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let address = shown.address.lock().expect("whole").clone();
    Json(json!({"issuer": address, "jwks_uri": format!("{address}/keys")})).into_response()
}

async fn keys(State(shown): State<Arc<Shown>>) -> Response {
    if shown.is_away.load(Ordering::SeqCst) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    shown.fetched.fetch_add(1, Ordering::SeqCst);
    let keys = shown.keys.lock().expect("whole").clone();
    Json(json!({"keys": keys})).into_response()
}
