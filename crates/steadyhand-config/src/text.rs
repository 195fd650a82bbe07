//! A text of the configuration that may hold a secret: nobody can print it by accident.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// A text whose references (`${env:…}`, `${file:…}`, `${keyring:…}`) have been replaced.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct SecretText(SecretString);

impl SecretText {
    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> SecretText {
        SecretText(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl JsonSchema for SecretText {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "a text; ${env:NAME}, ${env:NAME:-default}, ${file:/path} and ${keyring:service/user} stand for secrets kept elsewhere"
        })
    }
}
