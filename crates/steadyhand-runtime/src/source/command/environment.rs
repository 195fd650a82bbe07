//! The environment of a program: little of ours, and what the configuration adds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use steadyhand_config::SecretText;

/// What every program gets of our own environment: where things are and how to speak, no keys.
const MINIMAL: [&str; 9] = [
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];
/// And the finer points of how to speak.
const MINIMAL_PREFIX: &str = "LC_";
/// Where programs are looked for when we have no PATH ourselves.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a program gets of our own environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inherit {
    /// The minimal set and these.
    Names(Vec<String>),
    /// All of it, keys included.
    All,
}

impl Default for Inherit {
    fn default() -> Inherit {
        Inherit::Names(Vec::new())
    }
}

/// The whole environment of a program.
pub fn environment(
    inherit: &Inherit,
    own: &BTreeMap<String, SecretText>,
) -> Vec<(OsString, OsString)> {
    let inherited = std::env::vars_os().filter(|(name, _)| {
        let Some(name) = name.to_str() else {
            return *inherit == Inherit::All;
        };
        let minimal = MINIMAL.contains(&name) || name.starts_with(MINIMAL_PREFIX);
        match inherit {
            Inherit::All => true,
            Inherit::Names(names) => minimal || names.iter().any(|wanted| wanted == name),
        }
    });
    let mut all: BTreeMap<OsString, OsString> = inherited.collect();
    all.entry("PATH".into()).or_insert_with(|| PATH.into());
    all.extend(
        own.iter()
            .map(|(name, text)| (name.into(), text.expose().into())),
    );
    all.into_iter().collect()
}

/// Hides the values of variables with a secret's name, should the program repeat them.
pub(super) fn hide_secrets(text: String, own: &BTreeMap<String, SecretText>) -> String {
    /// Shorter values occur in ordinary text by chance.
    const SECRET_BYTES_MIN: usize = 4;
    let mut secrets: Vec<&str> = own
        .iter()
        .filter(|(name, value)| is_secret_name(name) && value.expose().len() >= SECRET_BYTES_MIN)
        .map(|(_, value)| value.expose())
        .collect();
    // The longest first: one may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
        .into_iter()
        .fold(text, |text, secret| match text.contains(secret) {
            true => text.replace(secret, "[redacted]"),
            false => text,
        })
}

fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 8] = [
        "TOKEN",
        "SECRET",
        "PASS",
        "KEY",
        "CREDENTIAL",
        "AUTH",
        "PWD",
        "COOKIE",
    ];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part))
}

impl<'de> Deserialize<'de> for Inherit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Inherit, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Inherit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names of variables, or \"all\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Inherit, E> {
                match text {
                    "all" => Ok(Inherit::All),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Inherit, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = items.next_element()? {
                    names.push(name);
                }
                Ok(Inherit::Names(names))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Inherit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Inherit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [{"const": "all"}, {"type": "array", "items": {"type": "string"}}]
        })
    }
}
