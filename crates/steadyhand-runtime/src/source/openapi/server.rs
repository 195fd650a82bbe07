//! Where an operation's service is: the configuration's `base`, or the document's `servers`.

use serde_json::Value;
use url::Url;

use super::document::{At, Document};
use super::read::Choice;

/// Finds the address of each operation.
pub(super) struct Servers<'d> {
    document: &'d Document,
    base: Option<Url>,
    /// Something is sent that only the configured hosts may see.
    has_credentials: bool,
}

impl<'d> Servers<'d> {
    pub(super) fn new(document: &'d Document, choice: &Choice) -> Servers<'d> {
        Servers {
            document,
            base: choice.base.clone(),
            has_credentials: !choice.sent_headers.is_empty() || choice.sent_query.is_some(),
        }
    }

    /// The operation's own server, else its path's, else the document's.
    pub(super) fn of(&self, operation: At<'d>, item: At<'d>) -> Result<Url, String> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let first = [operation, item, self.document.root()]
            .into_iter()
            .find_map(|owner| {
                let list = owner.get("servers")?;
                list.value
                    .as_array()?
                    .first()
                    .map(|server| list.with(server))
            });
        let written = match first.map(filled).transpose()? {
            Some(written) => written,
            None => "/".to_owned(),
        };
        let url = match (Url::parse(&written), &self.document.url) {
            (Ok(url), _) => url,
            (Err(url::ParseError::RelativeUrlWithoutBase), Some(document)) => document
                .join(&written)
                .map_err(|error| not_an_address(&written, &error))?,
            (Err(url::ParseError::RelativeUrlWithoutBase), None) => {
                return Err(format!(
                    "the document does not say where the service is (its server is \"{written}\"): set `base`"
                ));
            }
            (Err(error), _) => return Err(not_an_address(&written, &error)),
        };
        check(&url).map_err(|fault| format!("its server {fault}: set `base`"))?;
        // A document that comes over the network must not be able to send our keys to a host of its choice.
        if let Some(document) = &self.document.url
            && self.has_credentials
            && document.host_str() != url.host_str()
        {
            return Err(format!(
                "the document sends it to {}, and `auth` and `headers` go only to hosts that the configuration names: set `base`",
                url.host_str().unwrap_or_default()
            ));
        }
        Ok(url)
    }
}

/// An address of a service must be one that requests can be made to.
pub(super) fn check(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "begins with {}:, and only http: and https: can be called",
            url.scheme()
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("has no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or password; those belong into `auth`".to_owned());
    }
    Ok(())
}

fn not_an_address(written: &str, error: &url::ParseError) -> String {
    format!(
        "its server \"{written}\" is no address ({}): set `base`",
        steadyhand::plain_words::address(error)
    )
}

/// The server's URL with the usual values of its variables.
fn filled(server: At<'_>) -> Result<String, String> {
    let template = server.text("url").unwrap_or("/");
    let mut filled = template.to_owned();
    let variables = server.get("variables").and_then(|it| it.value.as_object());
    for (name, variable) in variables.into_iter().flatten() {
        let usual = variable
            .get("default")
            .or_else(|| variable.get("enum")?.get(0))
            .map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
        if let Some(usual) = usual {
            filled = filled.replace(&format!("{{{name}}}"), &usual);
        }
    }
    match filled.contains('{') {
        true => Err(format!(
            "its server {template} has a variable without a usual value: set `base`"
        )),
        false => Ok(filled),
    }
}
