//! The stream of Responses: items grow by deltas; the last event has the whole answer, mostly.

use serde_json::{Map, Value, json};

use crate::client::{StreamReader, Told};
use crate::providers::wire::text;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    response: Map<String, Value>,
    items: Vec<(Key, Value)>,
    has_ended: bool,
}

/// llama.cpp gives no places, others change ids on the way: either will do.
#[derive(Debug, Default)]
struct Key {
    id: String,
    place: Option<u64>,
}

impl Key {
    fn is_same(&self, id: &str, place: Option<u64>) -> bool {
        match (self.place, place) {
            (Some(own), Some(place)) => own == place,
            _ => !id.is_empty() && self.id == id,
        }
    }
}

impl StreamReader for Stream {
    fn take(&mut self, mut event: Value, tell: &mut dyn FnMut(Told)) {
        let kind = text(&event, "type").unwrap_or_default().to_owned();
        let delta = text(&event, "delta").unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.created" | "response.in_progress" => self.about(event["response"].take()),
            "response.output_item.added" => {
                let item = &event["item"];
                if text(item, "type") == Some("function_call") {
                    let name = text(item, "name").unwrap_or_default();
                    tell(Told::Call(name.to_owned()));
                }
                self.put(&mut event);
            }
            "response.output_item.done" => self.put(&mut event),
            "response.output_text.delta" => {
                say(&delta, Told::Text, tell);
                self.part(&event, "output_text", "text", &delta);
            }
            "response.refusal.delta" => {
                say(&delta, Told::Text, tell);
                self.part(&event, "refusal", "refusal", &delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                say(&delta, Told::Thinking, tell);
            }
            "response.function_call_arguments.delta" => {
                if let Some(item) = self.item(&event) {
                    append(item, "arguments", &delta);
                }
            }
            "response.completed" | "response.incomplete" => {
                self.about(event["response"].take());
                self.has_ended = true;
            }
            // The rest repeats what was said, or is yet to come.
            _ => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.has_ended
    }

    fn into_response(self: Box<Self>) -> Value {
        let mut this = *self;
        let has_output = this
            .response
            .get("output")
            .and_then(Value::as_array)
            .is_some_and(|output| !output.is_empty());
        if !has_output {
            let items: Vec<Value> = this.items.into_iter().map(|(_, item)| item).collect();
            this.response
                .insert("output".to_owned(), Value::Array(items));
        }
        Value::Object(this.response)
    }
}

impl Stream {
    fn about(&mut self, response: Value) {
        if let Value::Object(response) = response {
            self.response.extend(response);
        }
    }

    /// An item that begins, or one that is whole now.
    fn put(&mut self, event: &mut Value) {
        let item = event["item"].take();
        let id = text(&item, "id").unwrap_or_default().to_owned();
        let place = event["output_index"].as_u64();
        match self
            .items
            .iter_mut()
            .find(|(key, _)| key.is_same(&id, place))
        {
            Some((_, there)) => *there = item,
            None => self.items.push((Key { id, place }, item)),
        }
    }

    fn item(&mut self, event: &Value) -> Option<&mut Value> {
        let id = text(event, "item_id").unwrap_or_default();
        let place = event["output_index"].as_u64();
        let found = self
            .items
            .iter_mut()
            .find(|(key, _)| key.is_same(id, place));
        found.map(|(_, item)| item)
    }

    /// A piece of what is said, in the part of its message that it belongs to.
    fn part(&mut self, event: &Value, kind: &str, key: &str, delta: &str) {
        let index = event["content_index"].as_u64().unwrap_or_default() as usize;
        let Some(Value::Object(item)) = self.item(event) else {
            return;
        };
        let content = item.entry("content").or_insert_with(|| json!([]));
        let Value::Array(parts) = content else { return };
        // Parts are counted without gaps; one that is far off is none.
        if index > parts.len() {
            return;
        }
        if index == parts.len() {
            parts.push(json!({"type": kind, key: ""}));
        }
        append(&mut parts[index], key, delta);
    }
}

fn append(value: &mut Value, key: &str, piece: &str) {
    let Value::Object(fields) = value else { return };
    match fields.get_mut(key) {
        Some(Value::String(said)) => said.push_str(piece),
        _ => {
            fields.insert(key.to_owned(), json!(piece));
        }
    }
}

fn say(piece: &str, how: fn(String) -> Told, tell: &mut dyn FnMut(Told)) {
    if !piece.is_empty() {
        tell(how(piece.to_owned()));
    }
}
