//! What the loop tells while it runs, for those who show it, speak it or hand it on.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use steadyhand::{Message, Outcome, ToolMessage};

use crate::model::Notice;

/// Something happened in the loop.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The model is asked.
    Asked {
        /// Counts from 1 within the turn.
        round: u32,
    },
    /// The next piece of the answer.
    Text {
        /// The piece.
        text: String,
    },
    /// The next piece of the model's thinking.
    Thinking {
        /// The piece.
        text: String,
    },
    /// The model could not be asked and will be again.
    Retry {
        /// The attempt that comes now.
        attempt: u32,
        /// How many there will be at most.
        attempts_max: u32,
        /// How long it waits first.
        wait_ms: u64,
        /// What went wrong.
        reason: String,
    },
    /// Something people should know.
    Notice(Notice),
    /// A call was handed to the executor.
    CallStarted {
        /// The call's id, which the engine's own events have, too.
        call_id: String,
        /// The tool.
        name: String,
        /// What it was called with.
        args: Value,
    },
    /// A call has its result. Results come as calls end; the conversation gets them in the order asked.
    CallFinished {
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// How long it took.
        elapsed_ms: f64,
        /// What the model gets to read.
        result: ToolMessage,
        /// How it ended; none for a call that was not run, because the loop refused it.
        outcome: Option<Arc<Outcome>>,
    },
    /// The conversation grew by this message. Who stores conversations writes it down now: an answer with calls
    /// comes before they run, each result after all of its turn have ended.
    Message {
        /// The message.
        message: Message,
    },
}
