//! What the configuration sends with every request: credentials and fixed headers.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use steadyhand::{Category, ToolError};

use crate::net::Request;
use steadyhand_config::SecretText;
use steadyhand_config::extensions::Fault;

/// How the service is told who calls. One of: `header` with `value`, `query` with `value`, `bearer`, `basic`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// The header that carries `value`, such as X-Api-Key
    pub header: Option<String>,
    /// The query parameter that carries `value`, such as api_key
    pub query: Option<String>,
    /// The key for `header` or `query`
    pub value: Option<SecretText>,
    /// A token, sent as Authorization: Bearer …
    pub bearer: Option<SecretText>,
    /// A user and a password
    pub basic: Option<Basic>,
}

/// A user and a password, sent as Authorization: Basic …
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Basic {
    /// The user, or the id of an account
    pub user: SecretText,
    /// The password, or a token
    pub password: SecretText,
}

/// What is added to each request. Shows nothing of its values.
#[derive(Clone, Default)]
pub(super) struct Sent {
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Option<(String, SecretText)>,
}

impl Sent {
    /// Reads the settings, or says all that is wrong with them.
    pub(super) fn read(
        auth: Option<&Auth>,
        headers: &BTreeMap<String, SecretText>,
    ) -> Result<Sent, Vec<Fault>> {
        let mut sent = Sent::default();
        let mut faults = Vec::new();
        for (name, value) in headers {
            match header(name, value.expose()) {
                Ok(pair) => sent.headers.push(pair),
                Err(message) => faults.push(fault(format!("/headers/{name}"), message, None)),
            }
        }
        if let Some(auth) = auth
            && let Err(fault) = sent.take(auth)
        {
            faults.push(fault);
        }
        match faults.is_empty() {
            true => Ok(sent),
            false => Err(faults),
        }
    }

    fn take(&mut self, auth: &Auth) -> Result<(), Fault> {
        let at = |key: &str| format!("/auth/{key}");
        match auth {
            Auth {
                header: Some(name),
                value: Some(value),
                query: None,
                bearer: None,
                basic: None,
            } => {
                let pair = header(name, value.expose())
                    .map_err(|message| fault(at("header"), message, None))?;
                self.headers.push(pair);
            }
            Auth {
                query: Some(name),
                value: Some(value),
                header: None,
                bearer: None,
                basic: None,
            } => {
                if name.is_empty() {
                    return Err(fault(at("query"), "a query parameter needs a name", None));
                }
                self.query = Some((name.clone(), value.clone()));
            }
            Auth {
                bearer: Some(token),
                header: None,
                query: None,
                value: None,
                basic: None,
            } => {
                let text = format!("Bearer {}", token.expose());
                let value = secret(&text).map_err(|message| fault(at("bearer"), message, None))?;
                self.headers.push((AUTHORIZATION, value));
            }
            Auth {
                basic: Some(basic),
                header: None,
                query: None,
                value: None,
                bearer: None,
            } => {
                if basic.user.expose().contains(':') {
                    return Err(fault(
                        at("basic/user"),
                        "a user must not hold a colon",
                        None,
                    ));
                }
                let pair = format!("{}:{}", basic.user.expose(), basic.password.expose());
                let text = format!(
                    "Basic {}",
                    base64::engine::general_purpose::STANDARD.encode(pair)
                );
                let value = secret(&text).map_err(|message| fault(at("basic"), message, None))?;
                self.headers.push((AUTHORIZATION, value));
            }
            _ => {
                return Err(fault(
                    "/auth".to_owned(),
                    "this says no way, or more than one way, to authenticate",
                    Some(
                        "Write one of { header = \"X-Api-Key\", value = \"…\" }, { query = \"api_key\", value = \"…\" }, { bearer = \"…\" }, { basic = { user = \"…\", password = \"…\" } }",
                    ),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn header_names(&self) -> Vec<String> {
        self.headers
            .iter()
            .map(|(name, _)| name.as_str().to_owned())
            .collect()
    }

    pub(super) fn query_name(&self) -> Option<&str> {
        self.query.as_ref().map(|(name, _)| name.as_str())
    }

    /// Adds them to a request; they win over anything an argument has put there.
    pub(super) fn put_into(&self, request: &mut Request) -> Result<(), ToolError> {
        for (name, value) in &self.headers {
            request.headers.insert(name.clone(), value.clone());
        }
        if let Some((name, value)) = &self.query {
            // An object's fields can become parameters; one with this name would stand beside the key.
            if request
                .url
                .query_pairs()
                .any(|(known, _)| known == name.as_str())
            {
                let message = format!("Invalid parameters: {name} is set by the configuration");
                return Err(ToolError::of(Category::Validation, message).never_started());
            }
            request
                .url
                .query_pairs_mut()
                .append_pair(name, value.expose());
        }
        Ok(())
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sent({:?}, {:?})",
            self.header_names(),
            self.query_name()
        )
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("\"{}\" is no name of a header", name.escape_debug()))?;
    Ok((name, secret(value)?))
}

fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        "its value holds a line break or another character that a header cannot carry".to_owned()
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn fault(at: String, message: impl Into<String>, help: Option<&str>) -> Fault {
    Fault {
        at,
        message: message.into(),
        help: help.map(str::to_owned),
    }
}
