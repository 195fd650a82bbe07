//! How the loop behaves.

use std::time::Duration;

use steadyhand::Permission;

use crate::model::Delivery;

/// How the loop behaves. The defaults are SPEC L07's.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentSettings {
    /// How often tools may be used for one question.
    pub max_iterations: u32,
    /// What happens then.
    pub at_limit: AtLimit,
    /// Whether the model's words are told as they come.
    pub delivery: Delivery,
    /// What is done about a model that repeats itself.
    pub guard: LoopGuard,
    /// Who asks, for the history: `chat`, `transcriber`, …
    pub caller: Option<String>,
    /// The conversation that calls belong to: a yes may count for the rest of it.
    pub conversation: Option<String>,
    /// What each call may use and is counted by: a budget, for example.
    pub permit: Option<Permission>,
    /// The time for each call, in place of the tool's own deadline.
    pub call_deadline: Option<Duration>,
    /// The tools that are offered, by name; all where nobody says. A model that calls another one all the same
    /// is told that there is no such tool.
    pub tools: Option<Vec<String>>,
    /// Whether calls that a model writes as text are run. Only what names a tool, with arguments that fit.
    pub recover_calls: bool,
    /// Gives each call an idempotency key that begins so: the name of the conversation, say. Calls that a crash
    /// left without a result are then run again under their old keys, which only an executor with a key store
    /// knows: set this for no other.
    pub key_prefix: Option<String>,
}

impl Default for AgentSettings {
    fn default() -> AgentSettings {
        AgentSettings {
            max_iterations: 5,
            at_limit: AtLimit::default(),
            delivery: Delivery::default(),
            guard: LoopGuard::default(),
            caller: None,
            conversation: None,
            permit: None,
            call_deadline: None,
            tools: None,
            recover_calls: false,
            key_prefix: None,
        }
    }
}

/// What happens when tools were used as often as they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtLimit {
    /// A last answer is requested, without tools.
    #[default]
    Answer,
    /// The turn ends with [`End::LimitReached`](crate::End::LimitReached), so that somebody can be asked.
    Return,
}

/// What is done about a model that repeats itself: it is told first, then refused. Counted within one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopGuard {
    /// The same call with the same result, for the so-manieth time: the model is told.
    pub same_told: u32,
    /// The same call would be made for the so-manieth time: it is not run.
    pub same_refused: u32,
    /// Nothing but failures for so many rounds: the model is told.
    pub failing_told: u32,
    /// Nothing but failures for so many rounds: no more calls are run.
    pub failing_refused: u32,
}

impl Default for LoopGuard {
    fn default() -> LoopGuard {
        LoopGuard {
            same_told: 2,
            same_refused: 3,
            failing_told: 3,
            failing_refused: 6,
        }
    }
}

impl LoopGuard {
    /// Takes no notice of anything.
    pub fn off() -> LoopGuard {
        LoopGuard {
            same_told: u32::MAX,
            same_refused: u32::MAX,
            failing_told: u32::MAX,
            failing_refused: u32::MAX,
        }
    }
}
