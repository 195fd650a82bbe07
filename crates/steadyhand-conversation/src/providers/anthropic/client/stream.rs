//! Anthropic's stream: blocks by their index, put together from deltas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use steadyhand::{InexactInteger, RepeatedName};

use crate::client::{StreamReader, Told};
use crate::providers::wire::text;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    message: Map<String, Value>,
    blocks: BTreeMap<u64, Block>,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Block {
    fields: Map<String, Value>,
    /// The text of a call's arguments.
    input: Option<String>,
}

impl StreamReader for Stream {
    fn take(&mut self, mut event: Value, tell: &mut dyn FnMut(Told)) {
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str() {
            Some("message_start") => {
                if let Value::Object(message) = event["message"].take() {
                    self.message = message;
                }
            }
            Some("content_block_start") => self.begin(index, event["content_block"].take(), tell),
            Some("content_block_delta") => {
                let block = self.blocks.entry(index).or_default();
                block.grow(event["delta"].take(), tell);
            }
            Some("message_delta") => {
                if let Value::Object(delta) = event["delta"].take() {
                    self.has_ended |= delta.get("stop_reason").is_some_and(|why| !why.is_null());
                    self.message.extend(delta);
                }
                self.count(event["usage"].take());
                for (key, value) in event.as_object_mut().into_iter().flatten() {
                    if !["type", "delta", "usage"].contains(&key.as_str()) {
                        self.message.insert(key.clone(), value.take());
                    }
                }
            }
            Some("message_stop") => self.has_ended = true,
            // Pings, ends of blocks, and what is yet to come.
            _ => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.has_ended
    }

    fn into_response(self: Box<Self>) -> Value {
        let mut this = *self;
        let blocks: Vec<Value> = this.blocks.into_values().map(Block::into_value).collect();
        this.message
            .insert("content".to_owned(), Value::Array(blocks));
        Value::Object(this.message)
    }
}

impl Stream {
    fn begin(&mut self, index: u64, block: Value, tell: &mut dyn FnMut(Told)) {
        let Value::Object(fields) = block else { return };
        let kind = fields.get("type").and_then(Value::as_str);
        let mut input = None;
        match kind {
            // A whole text may be in its beginning.
            Some("text") => say(fields.get("text"), Told::Text, tell),
            Some("thinking") => say(fields.get("thinking"), Told::Thinking, tell),
            Some("tool_use") => {
                let name = fields.get("name").and_then(Value::as_str);
                tell(Told::Call(name.unwrap_or_default().to_owned()));
                input = Some(String::new());
            }
            _ => {}
        }
        self.blocks.insert(index, Block { fields, input });
    }

    /// Later counts are whole counts, but not of everything.
    fn count(&mut self, counts: Value) {
        let Value::Object(counts) = counts else {
            return;
        };
        let usage = self.message.entry("usage").or_insert_with(|| json!({}));
        if let Value::Object(usage) = usage {
            usage.extend(counts.into_iter().filter(|(_, count)| !count.is_null()));
        }
    }
}

impl Block {
    fn grow(&mut self, mut delta: Value, tell: &mut dyn FnMut(Told)) {
        match delta["type"].as_str() {
            Some("text_delta") => {
                say(delta.get("text"), Told::Text, tell);
                self.append("text", &delta);
            }
            Some("thinking_delta") => {
                say(delta.get("thinking"), Told::Thinking, tell);
                self.append("thinking", &delta);
            }
            Some("signature_delta") => self.append("signature", &delta),
            Some("input_json_delta") => {
                let piece = text(&delta, "partial_json").unwrap_or_default();
                self.input.get_or_insert_default().push_str(piece);
            }
            Some("citations_delta") => {
                let citation = delta["citation"].take();
                let all = self.fields.entry("citations").or_insert_with(|| json!([]));
                if !all.is_array() {
                    *all = json!([]);
                }
                if let Value::Array(all) = all {
                    all.push(citation);
                }
            }
            _ => {}
        }
    }

    fn append(&mut self, key: &str, delta: &Value) {
        let piece = text(delta, key).unwrap_or_default();
        match self.fields.get_mut(key) {
            Some(Value::String(said)) => said.push_str(piece),
            _ => {
                self.fields.insert(key.to_owned(), json!(piece));
            }
        }
    }

    /// Arguments become the object they are, or stay the text they are: then they are not run.
    fn into_value(mut self) -> Value {
        if let Some(input) = self.input.filter(|input| !input.is_empty()) {
            let input = match serde_json::from_str(&input) {
                Ok(object @ Value::Object(_))
                    if InexactInteger::first_in(&input).is_none()
                        && RepeatedName::first_in(&input).is_none() =>
                {
                    object
                }
                _ => Value::String(input),
            };
            self.fields.insert("input".to_owned(), input);
        }
        let is_call = self
            .fields
            .get("type")
            .is_some_and(|kind| kind == "tool_use");
        if is_call {
            // llama.cpp leaves it out.
            self.fields.entry("input").or_insert_with(|| json!({}));
        }
        Value::Object(self.fields)
    }
}

fn say(said: Option<&Value>, how: fn(String) -> Told, tell: &mut dyn FnMut(Told)) {
    match said {
        Some(Value::String(said)) if !said.is_empty() => tell(how(said.clone())),
        _ => {}
    }
}
