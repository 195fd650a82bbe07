//! The keys that a request brings. They are remembered while it lasts, so that nothing that quotes them is written down.

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use secrecy::SecretString;

use steadyhand_runtime::scrub::Scrubber;

const HEADERS: [&str; 5] = [
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "x-amz-security-token",
    "cookie",
];
/// Google's clients may write the key into the address.
const QUERY: &str = "key";

/// What a request authenticates itself with.
pub(super) struct Keys {
    headers: Vec<HeaderValue>,
    uri: Uri,
}

impl Keys {
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Keys {
        let usual = headers.get_all(header::AUTHORIZATION).iter();
        let others = HEADERS.iter().flat_map(|name| headers.get_all(*name));
        Keys {
            headers: usual.chain(others).cloned().collect(),
            uri: uri.clone(),
        }
    }

    /// Takes them out of texts.
    pub(super) fn scrubber(&self) -> Scrubber {
        let mut secrets: Vec<SecretString> = Vec::new();
        for value in &self.headers {
            let Ok(text) = value.to_str() else { continue };
            let token = text.split_once(' ').map_or(text, |(_, token)| token);
            secrets.push(token.trim().into());
        }
        let query = self.uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let of_query = pairs.filter(|(name, _)| name == QUERY);
        secrets.extend(of_query.map(|(_, key)| SecretString::from(key.into_owned())));
        secrets.retain(|secret| !secrecy::ExposeSecret::expose_secret(secret).is_empty());
        Scrubber::new(secrets)
    }
}
