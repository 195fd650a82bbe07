//! Handlers that stand before a tool's own: a missing secret, a missing yes, a pace, and the secrets
//! that no output may repeat.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use futures_util::future::{BoxFuture, ready};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use steadyhand::{Category, Handler, Invocation, Output, ToolError};
use tokio::time::Instant;

use crate::config::units::Rate;

/// Shorter pieces occur in ordinary text by chance.
const FORM_BYTES_MIN: usize = 6;

/// A tool that cannot run as it is configured, and says why when it is called.
pub(super) struct Disabled {
    pub(super) reason: String,
    pub(super) why: Why,
}

/// What kind of thing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// A key or another value that is kept elsewhere.
    Secret,
    /// Something in its settings.
    Settings,
}

impl Handler for Disabled {
    fn run<'a>(&'a self, _: &'a Invocation<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        let error = match self.why {
            Why::Secret => ToolError::of(Category::Authentication, &self.reason),
            Why::Settings => ToolError::answer(&self.reason),
        };
        let error = error.never_started();
        Box::pin(ready(Err(error)))
    }
}

/// A tool that only a person's yes lets run, where there is nobody to ask.
pub(super) struct NeedsApproval;

impl Handler for NeedsApproval {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let tool = invocation.tool_name;
        let error = ToolError::of(
            Category::Denied,
            format!(
                "'{tool}' needs approval and nobody was asked; allow it with --approve {tool}, or set approval = \"never\""
            ),
        );
        Box::pin(ready(Err(error)))
    }
}

/// Lets so many attempts pass in a span of time, evenly; the others wait as long as they may.
pub(super) struct Paced {
    inner: Arc<dyn Handler>,
    rate: Rate,
    /// When the bucket would be full again: one number says how many tokens are left.
    full_at: Mutex<Option<Instant>>,
}

impl Paced {
    pub(super) fn new(inner: Arc<dyn Handler>, rate: Rate) -> Paced {
        Paced {
            inner,
            rate,
            full_at: Mutex::new(None),
        }
    }

    /// The wait before the next attempt may start, if it may start before `until`.
    fn take_turn(&self, now: Instant, until: Instant) -> Result<Duration, Duration> {
        let gap = self.rate.per / self.rate.count;
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let next_full = full_at.map_or(now, |at| at.max(now)) + gap;
        // A bucket of `count` tokens: the wait is what would make it emptier than empty.
        let wait = next_full.saturating_duration_since(now + self.rate.per);
        if now + wait >= until {
            return Err(wait);
        }
        *full_at = Some(next_full);
        Ok(wait)
    }
}

impl Handler for Paced {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            match self.take_turn(Instant::now(), invocation.until) {
                Ok(wait) => tokio::time::sleep(wait).await,
                Err(wait) => {
                    let rate = format!("{} in {:?}", self.rate.count, self.rate.per);
                    return Err(ToolError::of(
                        Category::Overloaded,
                        format!(
                            "'{}' is limited to {rate}, and that is used up",
                            invocation.tool_name
                        ),
                    )
                    .retry_after(wait));
                }
            }
            self.inner.run(invocation).await
        })
    }
}

/// Takes the secrets of a tool's configuration out of whatever it gives back: a service that echoes the
/// header with the key tells nobody.
pub(super) struct Scrubbed {
    inner: Arc<dyn Handler>,
    secrets: Vec<SecretString>,
}

impl Scrubbed {
    pub(super) fn new(inner: Arc<dyn Handler>, secrets: Vec<SecretString>) -> Scrubbed {
        let mut secrets: Vec<SecretString> = secrets.iter().flat_map(forms).collect();
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Scrubbed { inner, secrets }
    }

    fn text(&self, text: &str) -> Option<String> {
        let mut scrubbed: Option<String> = None;
        for secret in &self.secrets {
            let seen = scrubbed.as_deref().unwrap_or(text);
            if seen.contains(secret.expose_secret()) {
                scrubbed = Some(seen.replace(secret.expose_secret(), "[redacted]"));
            }
        }
        scrubbed
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(scrubbed) = self.text(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
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

impl Handler for Scrubbed {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            match self.inner.run(invocation).await {
                Ok(output) => Ok(output.map_parts(|value| self.value(value))),
                Err(error) => Err(error.map_texts(|text| self.text(&text).unwrap_or(text))),
            }
        })
    }
}
