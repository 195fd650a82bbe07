//! Keeps secrets out of logs, events and error texts: by the name of a field, by the look of a value.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use regex::{Captures, Regex};
use serde_json::Value;

use crate::wildcard::wild;

const HIDDEN: &str = "[redacted]";
/// Shorter values occur in ordinary text by chance.
const SECRET_BYTES_MIN: usize = 4;
const DEPTH_MAX: usize = 64;

/// What keys of well-known makers look like.
macro_rules! key_shapes {
    () => {
        concat!(
            r"\b(?:sk|pk|rk)[-_](?:[a-z0-9]+[-_])*[a-z0-9_-]{12,}",
            r"|\bgh[opusr]_[a-z0-9]{20,}|\bgithub_pat_[a-z0-9_]{20,}|\bxox[abposr]-[a-z0-9-]{10,}",
            r"|\bAKIA[0-9A-Z]{12,}|\bAIza[0-9a-z_-]{20,}",
            r"|\beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]*",
        )
    };
}

/// What is secret by its look or by the name before it. The groups are what stays readable.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[a-z0-9+/=_.~-]{8,}",
        r"|(?P<scheme>[a-z][a-z0-9+.-]*://)[^/\s:@]*:[^/\s@]+@",
        r#"|(?P<name>\b(?:[a-z0-9_-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|credential)s?|(?:[a-z0-9_-]*[_-])?token|authorization|pwd)\\*["']?\s*[:=]\s*\\*["']?(?:(?:bearer|basic|digest|token)\s+)?)[^\s"',;&}]{4,}"#,
        "|",
        key_shapes!(),
    ))
    .expect("a fixed pattern")
});

/// Hides what must not be written down, in texts and in JSON.
pub fn text(text: &str) -> Cow<'_, str> {
    SHAPES.replace_all(text, |found: &Captures<'_>| {
        let at = if found.name("scheme").is_some() {
            "@"
        } else {
            ""
        };
        format!("{}{HIDDEN}{at}", readable(found))
    })
}

/// The same for a text whose places must stay where they are: as many stars as there were bytes.
pub fn mask(text: &str) -> Cow<'_, str> {
    SHAPES.replace_all(text, |found: &Captures<'_>| {
        let (whole, readable) = (&found[0], readable(found));
        let secret = &whole[readable.len()..];
        // A reference holds nothing: it says where the secret is.
        match secret.contains("${") {
            true => whole.to_owned(),
            false => format!("{readable}{}", "*".repeat(secret.len())),
        }
    })
}

/// The part of what was found that tells what it is.
fn readable<'a>(found: &Captures<'a>) -> &'a str {
    ["keep", "scheme", "name"]
        .iter()
        .find_map(|group| found.name(group))
        .map_or("", |part| part.as_str())
}

/// Fields of these names are hidden too, in the whole process; `*` stands for anything. What was set
/// before is replaced.
pub fn set_secret_names(names: Vec<String>) {
    let folded = names
        .into_iter()
        .map(|name| name.to_ascii_lowercase().replace('-', "_"));
    OWN_NAMES.store(Arc::new(folded.collect()));
}

static OWN_NAMES: LazyLock<ArcSwap<Vec<String>>> = LazyLock::new(ArcSwap::default);

fn is_own_secret(name: &str) -> bool {
    let own = OWN_NAMES.load();
    if own.is_empty() {
        return false;
    }
    let folded = name.to_ascii_lowercase().replace('-', "_");
    own.iter().any(|pattern| wild(pattern, &folded))
}

/// Whether a text holds something with the look of a key: stricter than [`text`], which may hide an
/// innocent word, because a warning about one would teach people to ignore warnings.
pub fn holds_a_key(text: &str) -> bool {
    static KEYS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?i)\b(?:bearer|basic)\s+[a-z0-9+/=_.~-]{16,}",
            r"|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@|",
            key_shapes!(),
        ))
        .expect("a fixed pattern")
    });
    KEYS.find_iter(text).any(|found| {
        let found = found.as_str();
        found.contains("://") || found.bytes().any(|byte| byte.is_ascii_digit())
    })
}

/// Hides, besides what looks like a secret, the secrets that came with the arguments: a tool that
/// repeats a password in its error text tells nobody.
pub(crate) fn text_about(message: String, arguments: &Value) -> String {
    let mut secrets = Vec::new();
    collect_secrets(arguments, false, &mut secrets, 0);
    // The longest first: one may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut shown = match text(&message) {
        Cow::Borrowed(_) => message,
        Cow::Owned(changed) => changed,
    };
    for secret in secrets {
        if shown.contains(&secret) {
            shown = shown.replace(&secret, HIDDEN);
        }
    }
    shown
}

/// Secrets that came with a call's arguments, to hide them from what repeats them. It shows none of them.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The text without them.
    pub fn hide(&self, text: String) -> String {
        self.0
            .iter()
            .fold(text, |text, secret| match text.contains(secret.as_str()) {
                true => text.replace(secret.as_str(), HIDDEN),
                false => text,
            })
    }

    /// The value as it may be written down: without them, and without what looks like a secret.
    pub fn hide_in(&self, value: &Value) -> Value {
        let mut shown = hide(value, 0, &mut Vec::new());
        if !self.0.is_empty() {
            self.strip(&mut shown);
        }
        shown
    }

    /// The same; a value with nothing to hide, as most are, is not copied.
    pub fn shown_in<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        match self.is_clean(value, 0) {
            true => Cow::Borrowed(value),
            false => Cow::Owned(self.hide_in(value)),
        }
    }

    fn is_clean(&self, value: &Value, depth: usize) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        match value {
            Value::Object(fields) => fields
                .iter()
                .all(|(name, field)| !hides(name, field) && self.is_clean(field, depth + 1)),
            Value::Array(items) => items.iter().all(|item| self.is_clean(item, depth + 1)),
            Value::String(text) => {
                let holds = |secret: &String| text.contains(secret.as_str());
                !SHAPES.is_match(text) && !self.0.iter().any(holds)
            }
            Value::Number(number) => self.0.is_empty() || !self.0.contains(&number.to_string()),
            Value::Null | Value::Bool(_) => true,
        }
    }

    fn strip(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|field| self.strip(field)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strip(item)),
            Value::String(text) => *text = self.hide(std::mem::take(text)),
            Value::Number(number) if self.0.contains(&number.to_string()) => {
                *value = Value::String(HIDDEN.to_owned());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// The arguments as a log may show them.
pub fn value(value: &Value) -> Value {
    value_and_secrets(value).0
}

/// The same, and what was hidden because of its name.
pub(crate) fn value_and_secrets(value: &Value) -> (Value, Secrets) {
    let mut secrets = Vec::new();
    let mut shown = hide(value, 0, &mut secrets);
    // The longest first: one may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let secrets = Secrets(secrets);
    // What is secret in one place is so in every other.
    if !secrets.0.is_empty() {
        secrets.strip(&mut shown);
    }
    (shown, secrets)
}

/// Whether a field of this name holds something to hide.
pub fn is_secret_name(name: &str) -> bool {
    is_always_secret(name) || is_secret_as_text(name)
}

/// Whatever its type: a numeric PIN is as secret as a spelled one.
fn is_always_secret(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "api_key",
        "apikey",
        "access_key",
        "private_key",
        "credential",
    ];
    const WHOLE: [&str; 4] = ["authorization", "pin", "pwd", "cookie"];
    let name_bytes = name.as_bytes();
    let is_it = |whole: &&str| name.len() == whole.len() && starts_with(name_bytes, whole);
    // Each field of each call comes by here: one look at each byte, since hardly any begins one of the parts.
    (0..name.len()).any(|at| match name_bytes[at] | 0x20 {
        b'a' | b'c' | b'p' | b's' => PARTS
            .iter()
            .any(|part| starts_with(&name_bytes[at..], part)),
        _ => false,
    }) || WHOLE.iter().any(is_it)
        || is_own_secret(name)
}

/// Tokens are secret as text; `max_tokens: 100` is not.
fn is_secret_as_text(name: &str) -> bool {
    let bytes = name.as_bytes();
    (0..bytes.len()).any(|at| bytes[at] | 0x20 == b't' && starts_with(&bytes[at..], "token"))
}

/// Whatever the case of the name, and `-` as `_`; nothing is copied for it.
fn starts_with(name: &[u8], part: &str) -> bool {
    let is_same = |(mine, wanted): (&u8, u8)| match mine {
        b'-' => wanted == b'_',
        other => other.to_ascii_lowercase() == wanted,
    };
    name.len() >= part.len() && name.iter().zip(part.bytes()).all(is_same)
}

fn hides(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => is_always_secret(name),
        Value::String(_) | Value::Array(_) | Value::Object(_) => is_secret_name(name),
    }
}

fn hide(value: &Value, depth: usize, secrets: &mut Vec<String>) -> Value {
    if depth > DEPTH_MAX {
        return Value::String("[too deep]".to_owned());
    }
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| {
                let shown = match hides(name, field) {
                    true => {
                        collect_secrets(field, true, secrets, depth + 1);
                        Value::String(HIDDEN.to_owned())
                    }
                    false => hide(field, depth + 1, secrets),
                };
                (name.clone(), shown)
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| hide(item, depth + 1, secrets))
            .collect(),
        Value::String(string) => Value::String(text(string).into_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Every text and number that stands somewhere below a secret name.
fn collect_secrets(value: &Value, below_secret: bool, secrets: &mut Vec<String>, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let secret = below_secret || hides(name, field);
                collect_secrets(field, secret, secrets, depth + 1);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_secrets(item, below_secret, secrets, depth + 1);
            }
        }
        Value::String(secret) if below_secret && secret.len() >= SECRET_BYTES_MIN => {
            secrets.push(secret.clone());
        }
        Value::Number(secret) if below_secret => {
            let secret = secret.to_string();
            if secret.len() >= SECRET_BYTES_MIN {
                secrets.push(secret);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
