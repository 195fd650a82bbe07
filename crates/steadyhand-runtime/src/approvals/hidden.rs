//! What a person is not shown of a call's arguments: secrets, and what is too large. Each part with its size and its hash.

use std::sync::LazyLock;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

/// So many are told one by one; the last one stands for all others.
const PARTS_MAX: usize = 20;
/// How a secret is shown: see `steadyhand::redact`.
const REDACTED: &str = "[redacted]";

/// A part of the arguments that is not shown
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HiddenPart {
    /// JSON Pointer to it; of several items or members that are left out, to the first
    pub at: String,
    /// secret, or cut: it is too large
    pub why: HiddenBecause,
    /// How large it is as JSON
    pub bytes: u64,
    /// `sha256:…` of it as JSON without spaces. For a secret `hmac-sha256:…` with a key that this process alone has:
    /// equal ones are seen to be equal, and none can be guessed
    pub hash: String,
}

/// Why a part is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HiddenBecause {
    /// It is a secret.
    Secret,
    /// It is too large.
    Cut,
}

impl HiddenPart {
    /// In words: `/text: 48213 bytes, cut (sha256:…)`.
    pub fn in_words(&self) -> String {
        let place = match self.at.as_str() {
            "" => "the arguments",
            at => at,
        };
        let why = match self.why {
            HiddenBecause::Secret => "a secret",
            HiddenBecause::Cut => "too large to show",
        };
        format!("{place}: {why}, {} bytes, {}", self.bytes, self.hash)
    }
}

/// What `shown` does not show of `whole`.
pub(super) fn parts(whole: &Value, shown: &Value) -> Vec<HiddenPart> {
    let mut parts = Vec::new();
    find(whole, shown, &mut String::new(), &mut parts);
    if parts.len() > PARTS_MAX {
        parts.truncate(PARTS_MAX - 1);
        parts.push(part("", HiddenBecause::Cut, whole));
    }
    parts
}

fn find(whole: &Value, shown: &Value, at: &mut String, parts: &mut Vec<HiddenPart>) {
    if parts.len() > PARTS_MAX || whole == shown {
        return;
    }
    let length = at.len();
    match (whole, shown) {
        (Value::Object(whole), Value::Object(shown)) => {
            let mut left_out = serde_json::Map::new();
            for (name, value) in whole {
                let Some(shown) = shown.get(name) else {
                    left_out.insert(name.clone(), value.clone());
                    continue;
                };
                at.push('/');
                at.push_str(&escaped(name));
                find(value, shown, at, parts);
                at.truncate(length);
            }
            if let Some(first) = left_out.keys().next().map(|name| escaped(name)) {
                let at = format!("{at}/{first}");
                parts.push(part(&at, HiddenBecause::Cut, &Value::Object(left_out)));
            }
        }
        (Value::Array(whole), Value::Array(shown)) => {
            // Where a list is cut, its last item is the mark that says so.
            let kept = match whole.len() == shown.len() {
                true => shown.len(),
                false => shown.len().saturating_sub(1),
            };
            let (first, rest) = whole.split_at(kept.min(whole.len()));
            for (index, (item, shown)) in first.iter().zip(shown).enumerate() {
                at.push_str(&format!("/{index}"));
                find(item, shown, at, parts);
                at.truncate(length);
            }
            if !rest.is_empty() {
                let at = format!("{at}/{kept}");
                parts.push(part(&at, HiddenBecause::Cut, &Value::Array(rest.to_vec())));
            }
        }
        (whole, shown) => {
            let is_secret = shown.as_str().is_some_and(|shown| shown.contains(REDACTED));
            let why = match is_secret {
                true => HiddenBecause::Secret,
                false => HiddenBecause::Cut,
            };
            parts.push(part(at, why, whole));
        }
    }
}

fn part(at: &str, why: HiddenBecause, value: &Value) -> HiddenPart {
    let text = value.to_string();
    HiddenPart {
        at: at.to_owned(),
        why,
        bytes: text.len() as u64,
        hash: match why {
            HiddenBecause::Cut => hash_of(&text),
            HiddenBecause::Secret => format!("hmac-sha256:{}", hex(&keyed(&text))),
        },
    }
}

/// `sha256:…` of a text.
pub fn hash_of(text: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(text)))
}

/// A secret may be short: whoever sees a plain hash of it could try them all.
fn keyed(text: &str) -> [u8; 32] {
    static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
        let mut key = [0; 32];
        key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        key
    });
    let mut mac = Hmac::<Sha256>::new_from_slice(&*KEY).expect("any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadyhand::{cut, redact};

    use super::*;

    /// What a person would not see, place by place.
    fn hidden(whole: &Value) -> Vec<(String, HiddenBecause, u64)> {
        let shown = redact::value(whole);
        let shown = cut::value(&shown, 2048);
        let parts = parts(whole, &shown).into_iter();
        parts.map(|part| (part.at, part.why, part.bytes)).collect()
    }

    #[test]
    fn s03_every_part_that_is_not_shown_is_named_with_its_size() {
        let whole = json!({"door": "front", "password": "hunter22222", "lists": {"a/b": [1, 2]}});
        assert_eq!(
            hidden(&whole),
            [("/password".to_owned(), HiddenBecause::Secret, 13)]
        );
        let whole = json!({"text": "x".repeat(5000), "door": "front"});
        assert_eq!(
            hidden(&whole),
            [("/text".to_owned(), HiddenBecause::Cut, 5002)]
        );
        let numbers: Vec<u32> = (0..2000).collect();
        let many = hidden(&json!({ "numbers": numbers }));
        let [(at, HiddenBecause::Cut, bytes)] = &many[..] else {
            panic!("{many:?}");
        };
        assert!(at.starts_with("/numbers/") && *bytes > 5000, "{many:?}");
        let all_shown = json!({"said": "[redacted]", "list": [[], {}, null]});
        assert!(hidden(&all_shown).is_empty());
    }

    #[test]
    fn s03_parts_beyond_those_that_are_told_are_not_forgotten() {
        let secrets: serde_json::Map<String, Value> = (0..60)
            .map(|number| (format!("password_{number}"), json!("hunter22222")))
            .collect();
        let whole = Value::Object(secrets);
        let parts = parts(&whole, &redact::value(&whole));
        assert_eq!(parts.len(), PARTS_MAX);
        assert_eq!(parts[PARTS_MAX - 1].at, "");
        // Equal secrets are seen to be equal.
        assert_eq!(parts[0].hash, parts[1].hash);
        assert!(parts[0].hash.starts_with("hmac-sha256:"));
    }
}
