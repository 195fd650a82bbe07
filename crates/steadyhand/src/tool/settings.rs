//! What a tool can say about its own policy.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Tool;
use crate::fallback::Fallback;
use crate::guard::breaker::BreakerPolicy;
use crate::guard::limit::LimitPolicy;
use crate::guard::retry::RetryPolicy;
use crate::policy::{Classifier, Policy};
use crate::tool_error::{Category, ToolError};

/// The settings a tool can carry itself; each overrides the manager's default.
macro_rules! policy_setters {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $policy:ident => $change:expr;)*) => {
        impl Tool {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(self, $($arg: $ty),*) -> Tool {
                self.adjusted(move |$policy: &mut Policy| $change)
            })*
        }
    };
}

policy_setters! {
    /// The limit for one attempt.
    timeout(limit: Duration) policy => policy.timeout = limit;
    /// The limit for the whole call, waits and retries included.
    deadline(limit: Duration) policy => policy.deadline = limit;
    /// Whether and how failed attempts are repeated.
    retry(retry: RetryPolicy) policy => policy.retry = retry.clone();
    /// One attempt per call.
    no_retry() policy => policy.retry = RetryPolicy::none();
    /// Opens after this many failed calls in a row, for this long.
    breaker(failures: u32, cooldown: Duration) policy => {
        policy.breaker = Some(BreakerPolicy { failures, cooldown_ms: cooldown.as_millis() as u64 });
    };
    /// Never refused by a breaker.
    no_breaker() policy => policy.breaker = None;
    /// At most this many attempts at once, and this many waiting.
    limit(concurrent: usize, queue: usize) policy => policy.limit = LimitPolicy { concurrent, queue };
    /// Larger outputs are cut, with a mark.
    output_bytes_max(bytes: usize) policy => policy.output_bytes_max = bytes;
    /// Larger arguments are refused.
    args_bytes_max(bytes: usize) policy => policy.args_bytes_max = bytes;
    /// It must not run twice: no retry once it may have acted.
    not_safe_to_repeat() policy => policy.safe_to_repeat = false;
    /// Mend common slips in the arguments, and report it.
    coerce() policy => policy.coerce = true;
    /// Enforce the schema to the letter.
    strict() policy => policy.strict = true;
    /// What answers when the tool cannot.
    fallback(fallback: Fallback) policy => policy.fallback = Some(fallback.clone());
    /// This value answers when the tool cannot.
    fallback_value(value: Value) policy => policy.fallback = Some(Fallback::value(value.clone()));
}

impl Tool {
    /// Puts this tool's errors into categories, before our own reading of them.
    #[must_use]
    pub fn classify_errors(
        self,
        classify: impl Fn(&ToolError) -> Option<Category> + Send + Sync + 'static,
    ) -> Tool {
        let classifier: Classifier = Arc::new(classify);
        self.adjusted(move |policy| policy.classifier = Some(Arc::clone(&classifier)))
    }
}
