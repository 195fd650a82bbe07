//! `kind = "openapi"`: many tools from one OpenAPI 3.0 or 3.1 document.
//!
//! The document is walked as it is written, not read into a typed model: one odd operation must not cost
//! the others (`docs/decisions/0008`). What becomes of parameters and bodies is told in [`read`].

mod arguments;
mod auth;
mod body;
mod bytes;
mod circle;
mod definitions;
mod document;
mod load;
mod mend;
mod name;
mod operation;
mod parameter;
pub mod pick;
mod read;
mod request;
mod schema;
mod server;
mod style;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

pub use self::auth::{Auth, Basic};
pub use self::document::{DOCUMENT_BYTES_MAX, Document};
pub use self::load::LOAD_TIMEOUT;
pub use self::operation::{Operation, Skipped};
pub use self::read::{Choice, Prepared, Reading, read};
pub use self::tools::{OpenapiSource, Report};

use self::auth::Sent;
use self::load::Spec;
use super::{Context, Fault, Settings, Source};
use crate::net::Reach;
use steadyhand_config::SecretText;

const PREFIX_LENGTH_MAX: usize = 32;

/// Many tools from one OpenAPI document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenapiSettings {
    /// The document: a file relative to this one, or an http(s) address. A private host is allowed where
    /// it is written here
    pub spec: SecretText,
    /// Where the service is; without it the document's servers count. A private host is allowed where it
    /// is written here
    pub base: Option<SecretText>,
    /// Only these operations: "GET /pets", an operationId or a tool's name; * stands for anything
    #[serde(default)]
    pub include: Vec<String>,
    /// Not these operations, written as in include; wins over it
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Stands before the name of every tool
    #[serde(default)]
    pub prefix: String,
    /// How the service is told who calls
    pub auth: Option<Auth>,
    /// Headers sent with every request
    #[serde(default)]
    pub headers: BTreeMap<String, SecretText>,
}

impl OpenapiSettings {
    /// The source, as a type that can tell more than its tools; see [`OpenapiSource::report`].
    pub fn open(self, name: &str, context: &Context) -> Result<OpenapiSource, Fault> {
        let first = |mut faults: Vec<Fault>| faults.swap_remove(0);
        if let Some(fault) = self.plain_faults().into_iter().next() {
            return Err(fault);
        }
        let sent = Sent::read(self.auth.as_ref(), &self.headers).map_err(first)?;
        let spec = Spec::read(&self.spec, &context.folder).map_err(|text| fault("/spec", text))?;
        let base = self.base_url()?;
        let mut reach = Reach::public_only();
        if let Spec::Url(url) = &spec {
            reach = reach.and(url);
        }
        if let Some(url) = &base {
            reach = reach.and(url);
        }
        let choice = Choice {
            include: self.include,
            exclude: self.exclude,
            prefix: self.prefix,
            base,
            sent_headers: sent.header_names(),
            sent_query: sent.query_name().map(str::to_owned),
        };
        Ok(OpenapiSource::new(name, spec, choice, reach, sent, context))
    }

    fn base_url(&self) -> Result<Option<Url>, Fault> {
        let Some(base) = &self.base else {
            return Ok(None);
        };
        let url = Url::parse(base.expose()).map_err(|error| {
            let mut fault = fault(
                "/base",
                format!(
                    "this is no address: {}",
                    steadyhand::plain_words::address(&error)
                ),
            );
            fault.help = Some("Write it in full, such as https://petstore.example/api".to_owned());
            fault
        })?;
        server::check(&url).map_err(|text| fault("/base", format!("this address {text}")))?;
        Ok(Some(url))
    }

    fn plain_faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !self.prefix.chars().all(fits) || self.prefix.len() > PREFIX_LENGTH_MAX {
            faults.push(fault(
                "/prefix",
                format!(
                    "a prefix has letters, digits, _ and -, and at most {PREFIX_LENGTH_MAX} of them"
                ),
            ));
        }
        for (key, patterns) in [("include", &self.include), ("exclude", &self.exclude)] {
            for (place, pattern) in patterns.iter().enumerate() {
                if pattern.trim().is_empty() {
                    faults.push(fault(
                        &format!("/{key}/{place}"),
                        "an empty pattern means nothing",
                    ));
                }
            }
        }
        faults
    }
}

impl Settings for OpenapiSettings {
    const KIND: &'static str = "openapi";
    const BRINGS_MANY: bool = true;

    fn check(&self) -> Vec<Fault> {
        let mut faults = self.plain_faults();
        if let Err(text) = Spec::read(&self.spec, "".as_ref()) {
            faults.push(fault("/spec", text));
        }
        faults.extend(self.base_url().err());
        faults.extend(
            Sent::read(self.auth.as_ref(), &self.headers)
                .err()
                .into_iter()
                .flatten(),
        );
        faults
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault> {
        Ok(Arc::new(self.open(name, context)?))
    }
}

fn fault(at: &str, message: impl Into<String>) -> Fault {
    Fault {
        at: at.to_owned(),
        message: message.into(),
        help: None,
    }
}
