//! A stream that is written: what has been said so far. How it looks is the provider's (`providers/*/exchange.rs`).

use serde_json::Value;

/// What a stream of ours has said so far.
#[derive(Debug)]
pub struct StreamState {
    pub(crate) id: String,
    pub(crate) model: Value,
    /// Blocks or items that have begun.
    pub(crate) index: usize,
    /// A text is open.
    pub(crate) is_speaking: bool,
    /// All words so far, where the end repeats them.
    pub(crate) said: String,
    /// Whole items so far, where the end repeats them.
    pub(crate) items: Vec<Value>,
    pub(crate) sequence: u64,
    /// It is one JSON array that grows.
    pub(crate) is_array: bool,
}

impl StreamState {
    /// A stream of which nothing was said, with the id of its answer.
    pub fn new(id: String, model: Value, is_array: bool) -> StreamState {
        StreamState {
            id,
            model,
            index: 0,
            is_speaking: false,
            said: String::new(),
            items: Vec::new(),
            sequence: 0,
            is_array,
        }
    }
}
