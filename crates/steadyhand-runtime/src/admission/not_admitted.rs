//! Why something is not let in, for every way in to say in its own shape.

use std::time::Duration;

use steadyhand::BudgetExceeded;

/// Nothing was run, and this is why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAdmitted {
    pub reason: NotAdmittedReason,
    /// What there is too much of.
    pub message: String,
    /// What to do.
    pub help: String,
    /// When the same request may do better, if that is known.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdmittedReason {
    /// The caller calls more often than it may.
    RateLimited,
    /// This caller has too many calls running.
    CallerBusy,
    /// The server as a whole has too much to do.
    Busy,
    /// The server is about to end.
    ShuttingDown,
}

impl NotAdmitted {
    pub fn new(
        reason: NotAdmittedReason,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> NotAdmitted {
        NotAdmitted {
            reason,
            message: message.into(),
            help: help.into(),
            retry_after: None,
        }
    }

    /// There is no room in memory for what a request wants.
    pub fn no_memory(full: &BudgetExceeded) -> NotAdmitted {
        NotAdmitted::new(
            NotAdmittedReason::Busy,
            full.to_string(),
            "Send less at once, try again in a moment, or raise limits = { memory = \"…\" } under [server]",
        )
    }

    /// When the same request may do better.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> NotAdmitted {
        self.retry_after = Some(wait);
        self
    }

    /// What is wrong and what to do.
    pub fn in_words(&self) -> String {
        format!("{}. {}", self.message, self.help)
    }
}
