//! Handlers that stand before a tool's own: a missing secret, a pace, and the secrets
//! that no output may repeat.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use secrecy::SecretString;
use steadyhand::{Category, Handler, Invocation, Output, ToolError};
use steadyhand_mcp::{Hide, Passage, hide_in_json, hide_in_value};
use tokio::time::Instant;

use crate::scrub::Scrubber;
use steadyhand_config::units::Rate;

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

/// Takes the secrets of a tool's configuration out of whatever it gives back.
pub(super) struct Scrubbed {
    inner: Arc<dyn Handler>,
    hide: Hide,
}

impl Scrubbed {
    pub(super) fn new(inner: Arc<dyn Handler>, secrets: Vec<SecretString>) -> Scrubbed {
        let scrubber = Scrubber::new(secrets);
        Scrubbed::by(
            inner,
            Arc::new(move |text| scrubber.text(&text).unwrap_or(text)),
        )
    }

    pub(super) fn by(inner: Arc<dyn Handler>, hide: Hide) -> Scrubbed {
        Scrubbed { inner, hide }
    }

    /// The server's own answer, which goes to its client as it is, goes without them, too.
    fn scrub(&self, passage: &Passage) {
        match passage.take_answer() {
            Some(Ok(result)) => {
                let hidden = hide_in_json(&result, &self.hide);
                passage.put_result(hidden.unwrap_or(result));
            }
            Some(Err(mut error)) => {
                error.message = (self.hide)(error.message);
                if let Some(data) = &mut error.data {
                    hide_in_value(data, &self.hide);
                }
                passage.put_error(error);
            }
            None => {}
        }
    }
}

impl Handler for Scrubbed {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let ran = self.inner.run(invocation).await;
            if let Some(passage) = invocation.luggage::<Passage>() {
                self.scrub(passage);
            }
            match ran {
                Ok(output) => Ok(output.map_parts(|value| hide_in_value(value, &self.hide))),
                Err(error) => Err(error.map_texts(|text| (self.hide)(text))),
            }
        })
    }
}
