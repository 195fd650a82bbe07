//! Takes the secrets of a configuration out of texts and values: a service that echoes the header with the key
//! tells nobody, in whatever way it writes it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use aho_corasick::AhoCorasick;
use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// Shorter pieces occur in ordinary text by chance.
const FORM_BYTES_MIN: usize = 6;
/// A secret of another table is looked for from this length on.
const FOREIGN_BYTES_MIN: usize = 8;
const REDACTED: &str = "[redacted]";

/// Knows secrets, in all forms they may be repeated in.
pub struct Scrubber {
    /// As they are, escaped or in base64.
    forms: Option<AhoCorasick>,
    /// In hexadecimal digits of either case.
    hex: Option<AhoCorasick>,
    /// As they are, to be looked for in what is behind escapes.
    plain: Option<AhoCorasick>,
}

impl Scrubber {
    pub fn new(secrets: Vec<SecretString>) -> Scrubber {
        let secrets = secrets.iter().map(SecretString::expose_secret);
        let secrets: BTreeSet<&str> = secrets.filter(|secret| !secret.is_empty()).collect();
        let forms: BTreeSet<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        let hex = secrets.iter().map(|secret| hex(secret));
        let hex: BTreeSet<String> = hex.filter(|hex| hex.len() >= FORM_BYTES_MIN).collect();
        Scrubber {
            forms: searcher(&forms, false),
            hex: searcher(&hex, true),
            plain: searcher(&secrets, false),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_none()
    }

    /// The text without secrets; none if it had none.
    pub fn text(&self, text: &str) -> Option<String> {
        let plain = self.plain.as_ref()?;
        let mut found: Vec<Range<usize>> = Vec::new();
        for searcher in [&self.forms, &self.hex].into_iter().flatten() {
            let all = searcher.find_overlapping_iter(text);
            found.extend(all.map(|one| one.range()));
        }
        for marks in [Marks::PERCENT, Marks::BACKSLASH] {
            if let Some(decoded) = marks.decoded(text) {
                let hidden = plain.find_overlapping_iter(&decoded.bytes);
                found.extend(
                    hidden.map(|one| decoded.places[one.start()]..decoded.places[one.end()]),
                );
            }
        }
        if found.is_empty() {
            return None;
        }
        // Of two that overlap nothing may stay.
        found.sort_by_key(|range| range.start);
        let mut scrubbed = String::with_capacity(text.len());
        let mut end = 0;
        for range in found {
            let start = text.floor_char_boundary(range.start);
            let until = text.ceil_char_boundary(range.end);
            if start >= end {
                scrubbed.push_str(&text[end..start]);
                scrubbed.push_str(REDACTED);
            }
            end = end.max(until);
        }
        scrubbed.push_str(&text[end..]);
        Some(scrubbed)
    }

    pub fn value(&self, value: &mut Value) {
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
            Value::Number(number) => {
                if let Some(scrubbed) = self.text(&number.to_string()) {
                    *value = Value::String(scrubbed);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Secrets that become known while the program runs. Cheap to clone: clones are the same.
#[derive(Clone)]
pub struct KnownSecrets(Arc<Known>);

struct Known {
    all: Mutex<BTreeSet<String>>,
    scrubber: ArcSwap<Scrubber>,
}

impl Default for KnownSecrets {
    fn default() -> KnownSecrets {
        KnownSecrets(Arc::new(Known {
            all: Mutex::default(),
            scrubber: ArcSwap::from_pointee(Scrubber::new(Vec::new())),
        }))
    }
}

impl KnownSecrets {
    /// So many are known at most: what a person has configured, and the last tokens.
    const MAX: usize = 4096;

    pub fn learn<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) {
        let mut all = self.0.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_changed = false;
        for secret in secrets {
            if secret.len() >= FOREIGN_BYTES_MIN && all.len() < Self::MAX {
                is_changed |= all.insert(secret.to_owned());
            }
        }
        if is_changed {
            let secrets = all.iter().map(|secret| SecretString::from(secret.as_str()));
            self.0
                .scrubber
                .store(Arc::new(Scrubber::new(secrets.collect())));
        }
    }

    pub fn hide(&self, text: String) -> String {
        self.0.scrubber.load().text(&text).unwrap_or(text)
    }
}

/// What this process knows of: what configurations hold, and the tokens of logins.
pub fn known() -> &'static KnownSecrets {
    static KNOWN: LazyLock<KnownSecrets> = LazyLock::new(KnownSecrets::default);
    &KNOWN
}

fn searcher<P: AsRef<[u8]>>(patterns: &BTreeSet<P>, ignores_case: bool) -> Option<AhoCorasick> {
    if patterns.is_empty() {
        return None;
    }
    let built = AhoCorasick::builder()
        .ascii_case_insensitive(ignores_case)
        .build(patterns);
    built.ok()
}

fn hex(secret: &str) -> String {
    secret.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret as it is, and as it looks in a form, in a URL, in JSON and in base64: alone, or behind a user's name.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    forms.extend(
        url::form_urlencoded::byte_serialize(secret.as_bytes())
            .map(str::to_owned)
            .reduce(|a, b| a + &b),
    );
    forms.push(
        serde_json::to_string(secret)
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned(),
    );
    // In base64 a text looks in three ways, by how many bytes stand before it; what its neighbours
    // share in the first and last letters is left out.
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.push(engine.encode(secret));
        for before in 0..3 {
            let encoded = engine.encode([&vec![b' '; before], secret.as_bytes()].concat());
            let start = (before * 8).div_ceil(6);
            let end = (before + secret.len()) * 8 / 6;
            forms.extend(encoded.get(start..end).map(str::to_owned));
        }
    }
    forms.retain(|form| form.len() >= FORM_BYTES_MIN.min(secret.len()));
    forms
}

/// A way to write single characters as numbers.
struct Marks(u8);

/// A text with the numbers read, and where each byte of it stood.
struct Decoded {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Marks {
    /// `%2F`
    const PERCENT: Marks = Marks(b'%');
    /// `\u002f`, `\/`, `\x2f`
    const BACKSLASH: Marks = Marks(b'\\');

    /// None if nothing in it is written in this way.
    fn decoded(&self, text: &str) -> Option<Decoded> {
        let bytes = text.as_bytes();
        if !bytes.contains(&self.0) {
            return None;
        }
        let mut decoded = Decoded {
            bytes: Vec::with_capacity(bytes.len()),
            places: Vec::with_capacity(bytes.len() + 1),
        };
        let mut at = 0;
        while at < bytes.len() {
            let (character, length) = match bytes[at] == self.0 {
                true => self.read(&bytes[at..]).unwrap_or((u32::from(bytes[at]), 1)),
                false => (0, 0),
            };
            let mut utf8 = [0; 4];
            let written: &[u8] = match (length, self.0) {
                (0, _) => &bytes[at..=at],
                // A byte of a character, or a character.
                (_, b'%') => {
                    utf8[0] = u8::try_from(character).unwrap_or_default();
                    &utf8[..1]
                }
                (_, _) => char::from_u32(character)
                    .unwrap_or(char::REPLACEMENT_CHARACTER)
                    .encode_utf8(&mut utf8)
                    .as_bytes(),
            };
            decoded.bytes.extend_from_slice(written);
            decoded.places.resize(decoded.bytes.len(), at);
            at += length.max(1);
        }
        decoded.places.push(bytes.len());
        Some(decoded)
    }

    /// The character that begins a text, and how many bytes it takes there.
    fn read(&self, text: &[u8]) -> Option<(u32, usize)> {
        let number = |range: Range<usize>| {
            let length = range.end;
            let digits = std::str::from_utf8(text.get(range)?).ok()?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok()?;
            is_hex.then_some((number, length))
        };
        match (self.0, text.get(1)?) {
            (b'%', _) => number(1..3),
            (_, b'u') => number(2..6),
            (_, b'x') => number(2..4),
            (_, b'n') => Some((u32::from(b'\n'), 2)),
            (_, b't') => Some((u32::from(b'\t'), 2)),
            (_, b'r') => Some((u32::from(b'\r'), 2)),
            (_, other @ (b'"' | b'\\' | b'/' | b'\'')) => Some((u32::from(*other), 2)),
            (_, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use secrecy::SecretString;

    use super::Scrubber;

    const SECRET: &str = "s3cr€t/+\"key?>~ü";

    #[test]
    fn s07_a_secret_is_taken_out_in_every_way_it_is_written() {
        let scrubber = Scrubber::new(vec![
            SecretString::from(SECRET),
            SecretString::from("hunter22"),
        ]);
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        let every: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let json: String = SECRET
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect();
        let mut written = vec![
            SECRET.to_owned(),
            hex.clone(),
            hex.to_uppercase(),
            every.to_uppercase(),
            every,
            json,
            percent_encoding::utf8_percent_encode(SECRET, percent_encoding::CONTROLS).to_string(),
            serde_json::to_string(SECRET).expect("JSON"),
            url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect(),
            "%68unter22 and h\\u0075nter22".to_owned(),
        ];
        for before in ["", "u:", "us:", "user:"] {
            for after in ["", "x", "xy"] {
                let text = format!("{before}{SECRET}{after}");
                written.extend([STANDARD.encode(&text), URL_SAFE.encode(&text)]);
            }
        }
        for text in written {
            let text = format!("before {text} after");
            let scrubbed = scrubber.text(&text);
            let scrubbed = scrubbed.unwrap_or_else(|| panic!("nothing is found in {text}"));
            assert!(scrubbed.starts_with("before "), "{scrubbed}");
            assert!(scrubbed.ends_with(" after"), "{scrubbed}");
            assert!(scrubbed.contains("[redacted]"), "{scrubbed}");
            assert!(
                scrubbed.len() <= "before [redacted] and [redacted] after".len() + 8,
                "{scrubbed}"
            );
        }
        assert_eq!(scrubber.text("100 % of it, \\o/ %2F \\u0041"), None);
    }

    #[test]
    fn what_overlaps_leaves_nothing_behind() {
        let scrubber = Scrubber::new(vec!["abcdef".into(), "defghi".into()]);
        assert_eq!(
            scrubber.text("-abcdefghi-").as_deref(),
            Some("-[redacted]-")
        );
    }
}
