//! Takes the secrets of a configuration out of texts and values: a service that echoes the header with the key
//! tells nobody.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// Shorter pieces occur in ordinary text by chance.
const FORM_BYTES_MIN: usize = 6;

/// Knows secrets, in all forms they may be repeated in.
pub(crate) struct Scrubber {
    secrets: Vec<SecretString>,
}

impl Scrubber {
    pub(crate) fn new(secrets: Vec<SecretString>) -> Scrubber {
        let mut secrets: Vec<SecretString> = secrets.iter().flat_map(forms).collect();
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Scrubber { secrets }
    }

    /// The text without secrets; none if it had none.
    pub(crate) fn text(&self, text: &str) -> Option<String> {
        let mut scrubbed: Option<String> = None;
        for secret in &self.secrets {
            let seen = scrubbed.as_deref().unwrap_or(text);
            if seen.contains(secret.expose_secret()) {
                scrubbed = Some(seen.replace(secret.expose_secret(), "[redacted]"));
            }
        }
        scrubbed
    }

    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(scrubbed) = self.text(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.value(field));
                if fields.keys().any(|key| self.text(key).is_some()) {
                    let scrubbed = std::mem::take(fields).into_iter();
                    *fields = scrubbed
                        .map(|(key, field)| (self.text(&key).unwrap_or(key), field))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// A secret as it is, and as it looks in a URL, in JSON and in base64: alone, or behind a user's name.
fn forms(secret: &SecretString) -> Vec<SecretString> {
    let plain = secret.expose_secret();
    let mut forms = vec![plain.to_owned()];
    forms.push(
        percent_encoding::utf8_percent_encode(plain, percent_encoding::NON_ALPHANUMERIC)
            .to_string(),
    );
    forms.extend(
        url::form_urlencoded::byte_serialize(plain.as_bytes())
            .map(str::to_owned)
            .reduce(|a, b| a + &b),
    );
    forms.extend(url::Url::parse("http://host/").ok().map(|mut url| {
        url.set_path(plain);
        url.path().trim_start_matches('/').to_owned()
    }));
    forms.push(
        serde_json::to_string(plain)
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned(),
    );
    // In base64 a text looks in three ways, by how many bytes stand before it; what its neighbours
    // share in the first and last letters is left out.
    for before in 0..3 {
        let encoded = BASE64.encode([&vec![b' '; before], plain.as_bytes()].concat());
        let start = (before * 8).div_ceil(6);
        let end = (before + plain.len()) * 8 / 6;
        forms.extend(encoded.get(start..end).map(str::to_owned));
    }
    forms.retain(|form| form.len() >= FORM_BYTES_MIN.min(plain.len()));
    forms.sort();
    forms.dedup();
    forms.into_iter().map(SecretString::from).collect()
}
