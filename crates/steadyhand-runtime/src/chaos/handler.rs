//! The handler that stands before a tool's own and lets the plan strike. Guards stand before it: what hangs here is
//! ended by the tool's time limit, what fails here is counted, repeated and answered as any failure is.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use steadyhand::{Category, Effect, Handler, Invocation, Output, ToolError};
use steadyhand_mcp::Passage;

use super::plan::Way;
use super::{Blow, Chaos, MARK, Strike};

/// A tool under a plan of chaos.
pub struct Chaotic {
    inner: Arc<dyn Handler>,
    chaos: Arc<Chaos>,
}

impl Chaotic {
    pub fn new(inner: Arc<dyn Handler>, chaos: Arc<Chaos>) -> Chaotic {
        Chaotic { inner, chaos }
    }
}

impl Handler for Chaotic {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match self.chaos.next(invocation.tool_name) {
            None => self.inner.run(invocation),
            Some(strike) => Box::pin(self.struck(strike, invocation)),
        }
    }
}

impl Chaotic {
    async fn struck(
        &self,
        strike: Strike,
        invocation: &Invocation<'_>,
    ) -> Result<Output, ToolError> {
        let told = strike.in_words();
        let (tool, call_id) = (invocation.tool_name, invocation.call_id);
        tracing::warn!(tool, call_id, attempt = invocation.attempt, "{told}");
        invocation.progress(0.0, None, told.clone());
        if !strike.delay.is_zero() {
            tokio::time::sleep(strike.delay).await;
        }
        match strike.way {
            None => self.inner.run(invocation).await,
            Some(Blow::Hang) => std::future::pending().await,
            // The tool is not started: nothing happened out there, and that is what is said.
            Some(Blow::Fail {
                way,
                words,
                ran: false,
            }) => Err(error(way, words, &told).effect(Effect::None)),
            Some(Blow::Fail {
                way,
                words,
                ran: true,
            }) => {
                self.inner.run(invocation).await?;
                forget(invocation);
                Err(error(way, words, &told).effect(Effect::Unknown))
            }
            Some(Blow::Garbage(garbage)) => {
                let output = self.inner.run(invocation).await?;
                forget(invocation);
                Ok(garbage.in_place_of(&output))
            }
        }
    }
}

/// A server's own answer would go to an MCP client as it is.
fn forget(invocation: &Invocation<'_>) {
    if let Some(passage) = invocation.luggage::<Passage>() {
        drop(passage.take_answer());
    }
}

impl Strike {
    /// `[chaos] delayed by 2s, then failed: network (rule 1)`
    pub(super) fn in_words(&self) -> String {
        let mut what = Vec::new();
        if !self.delay.is_zero() {
            let delay = std::time::Duration::from_millis(self.delay.as_millis() as u64);
            what.push(format!("delayed by {}", humantime::format_duration(delay)));
        }
        match &self.way {
            None => {}
            Some(Blow::Hang) => what.push("hangs until its time limit".to_owned()),
            Some(Blow::Fail { way, ran, .. }) => what.push(match ran {
                false => format!("not started, fails: {}", way.in_words()),
                true => format!("runs, and its answer is lost: {}", way.in_words()),
            }),
            Some(Blow::Garbage(garbage)) => {
                what.push(format!("runs, and answers {}", garbage.in_words()));
            }
        }
        format!("{MARK} {}, by {} of the plan", what.join(", "), self.rules)
    }
}

impl Way {
    fn in_words(self) -> &'static str {
        match self {
            Way::Network => "network",
            Way::Timeout => "timeout",
            Way::RateLimit => "rate limit",
            Way::Authentication => "authentication",
            Way::Refusal => "refusal",
            Way::Unknown => "an unknown error",
        }
    }
}

fn error(way: Way, words: Option<String>, told: &str) -> ToolError {
    let message = match words {
        Some(words) => format!("{MARK} {words}"),
        None => told.to_owned(),
    };
    match way {
        Way::Network => ToolError::of(Category::Network, message),
        Way::Timeout => ToolError::of(Category::Timeout, message),
        Way::RateLimit => ToolError::of(Category::RateLimit, message),
        Way::Authentication => ToolError::of(Category::Authentication, message),
        Way::Refusal => ToolError::answer(message),
        Way::Unknown => ToolError::new(message),
    }
}
