//! Puts a stream of Bedrock's Converse together: the response that it amounts to.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{StreamReader, Told};

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct ConverseStream {
    role: Option<Value>,
    blocks: BTreeMap<u64, Value>,
    /// The arguments of calls, as text.
    inputs: BTreeMap<u64, String>,
    stop_reason: Option<Value>,
    usage: Option<Value>,
}

impl StreamReader for ConverseStream {
    /// Takes an event in: its name, and its fields below it.
    fn take(&mut self, mut event: Value, _tell: &mut dyn FnMut(Told)) {
        if let Some(start) = event.get_mut("messageStart") {
            self.role = Some(start["role"].take());
        }
        if let Some(start) = event.get_mut("contentBlockStart") {
            let index = start["contentBlockIndex"].as_u64().unwrap_or_default();
            self.blocks.insert(index, start["start"].take());
        }
        if let Some(piece) = event.get_mut("contentBlockDelta") {
            let index = piece["contentBlockIndex"].as_u64().unwrap_or_default();
            self.grow(index, piece["delta"].take());
        }
        if let Some(stop) = event.get_mut("messageStop") {
            self.stop_reason = Some(stop["stopReason"].take());
        }
        if let Some(metadata) = event.get_mut("metadata") {
            self.usage = Some(metadata["usage"].take());
        }
    }

    fn is_complete(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn into_response(self: Box<Self>) -> Value {
        let mut this = *self;
        for (index, input) in this.inputs {
            let block = this.blocks.entry(index).or_insert_with(|| json!({}));
            // What is no JSON stays a text, and is found to be none.
            let read = match input.trim() {
                "" => Ok(json!({})),
                input => serde_json::from_str(input),
            };
            block["toolUse"]["input"] = read.unwrap_or(Value::String(input));
        }
        let is_known =
            |block: &Value| block.get("toolUse").is_some() || block.get("text").is_some();
        let content: Vec<Value> = this.blocks.into_values().filter(is_known).collect();
        json!({
            "output": {"message": {"role": this.role.unwrap_or(json!("assistant")), "content": content}},
            "stopReason": this.stop_reason,
            "usage": this.usage,
        })
    }
}

impl ConverseStream {
    fn grow(&mut self, index: u64, delta: Value) {
        if let Some(piece) = delta["toolUse"]["input"].as_str() {
            self.inputs.entry(index).or_default().push_str(piece);
            return;
        }
        let block = self.blocks.entry(index).or_insert_with(|| json!({}));
        match (delta["text"].as_str(), block["text"].as_str()) {
            (Some(piece), Some(said)) => block["text"] = json!(format!("{said}{piece}")),
            (Some(piece), None) => block["text"] = json!(piece),
            // Reasoning and citations are not checked.
            (None, _) => {}
        }
    }
}
