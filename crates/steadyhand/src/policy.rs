//! The settings of the protection around a tool. The defaults are SPEC D4, D10, D18, R04 and V07.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fallback::Fallback;
use crate::guard::breaker::BreakerPolicy;
use crate::guard::limit::LimitPolicy;
use crate::guard::retry::RetryPolicy;
use crate::tool_error::{Category, ToolError};

/// How a tool is called: how long, how often, how many at once, and what happens when it fails.
#[derive(Clone)]
pub struct Policy {
    /// The limit for one attempt.
    pub timeout: Duration,
    /// The limit for the whole call, waits and retries included.
    pub deadline: Duration,
    /// Whether and how failed attempts are repeated.
    pub retry: RetryPolicy,
    /// When to stop calling a tool that keeps failing; `None` switches the breaker off.
    pub breaker: Option<BreakerPolicy>,
    /// How many attempts at once, and how many may wait.
    pub limit: LimitPolicy,
    /// The largest output, in bytes of JSON; more is cut, with a mark.
    pub output_bytes_max: usize,
    /// The largest arguments, in bytes of JSON; more is refused.
    pub args_bytes_max: usize,
    /// Whether running it twice is as good as running it once (SPEC D7).
    pub safe_to_repeat: bool,
    /// Mend common slips in the arguments, guided by the schema, and report it (SPEC D12).
    pub coerce: bool,
    /// Enforce the schema to the letter: surplus parameters it forbids fail the call (SPEC D6).
    pub strict: bool,
    /// What answers when the tool cannot.
    pub fallback: Option<Fallback>,
    /// Puts the tool's errors into categories, before our own reading of them.
    pub classifier: Option<Classifier>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            retry: RetryPolicy::default(),
            breaker: Some(BreakerPolicy::default()),
            limit: LimitPolicy::default(),
            output_bytes_max: 256 * 1024,
            args_bytes_max: 1024 * 1024,
            safe_to_repeat: true,
            coerce: false,
            strict: false,
            fallback: None,
            classifier: None,
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("timeout", &self.timeout)
            .field("deadline", &self.deadline)
            .field("retry", &self.retry)
            .field("breaker", &self.breaker)
            .field("limit", &self.limit)
            .field("output_bytes_max", &self.output_bytes_max)
            .field("args_bytes_max", &self.args_bytes_max)
            .field("safe_to_repeat", &self.safe_to_repeat)
            .field("coerce", &self.coerce)
            .field("strict", &self.strict)
            .field("fallback", &self.fallback)
            .field("classifier", &self.classifier.is_some())
            .finish()
    }
}

/// Reads a tool's error and says what kind it is; `None` leaves it to us.
pub type Classifier = Arc<dyn Fn(&ToolError) -> Option<Category> + Send + Sync>;

/// A change to the policy a tool would have by default.
pub(crate) type Adjustment = Arc<dyn Fn(&mut Policy) + Send + Sync>;
