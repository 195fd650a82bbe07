//! The stream of chat completions: deltas merged, calls by index, by id, or by being the last.

use serde_json::{Map, Value, json};

use crate::client::{StreamReader, Told};
use crate::providers::wire::text;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    response: Map<String, Value>,
    message: Map<String, Value>,
    calls: Vec<Call>,
    finish_reason: Option<Value>,
    choice: Map<String, Value>,
    is_done: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    more: Map<String, Value>,
}

impl StreamReader for Stream {
    fn take(&mut self, mut chunk: Value, tell: &mut dyn FnMut(Told)) {
        let choice = chunk["choices"]
            .as_array_mut()
            .and_then(|choices| {
                choices
                    .iter_mut()
                    .find(|one| one["index"].as_u64().unwrap_or(0) == 0)
            })
            .map(Value::take);
        if let Value::Object(fields) = chunk {
            for (key, value) in fields {
                if key != "choices" && !value.is_null() {
                    self.response.insert(key, value);
                }
            }
        }
        let Some(Value::Object(mut choice)) = choice else {
            return;
        };
        // Some give a whole message in place of a delta.
        let delta = choice
            .shift_remove("delta")
            .or_else(|| choice.shift_remove("message"));
        if let Some(Value::Object(delta)) = delta {
            self.grow(delta, tell);
        }
        if let Some(reason) = choice
            .shift_remove("finish_reason")
            .filter(|why| !why.is_null())
        {
            self.finish_reason = Some(reason);
        }
        choice.retain(|key, value| key != "index" && !value.is_null());
        self.choice.extend(choice);
    }

    fn done(&mut self) {
        self.is_done = true;
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some() || self.is_done
    }

    fn into_response(self: Box<Self>) -> Value {
        let mut this = *self;
        if !this.calls.is_empty() {
            let calls: Vec<Value> = this.calls.into_iter().map(Call::into_value).collect();
            this.message
                .insert("tool_calls".to_owned(), Value::Array(calls));
        }
        this.message
            .entry("role")
            .or_insert_with(|| json!("assistant"));
        this.message.entry("content").or_insert(Value::Null);
        let mut choice = Map::new();
        choice.insert("index".to_owned(), json!(0));
        choice.insert("message".to_owned(), Value::Object(this.message));
        choice.insert(
            "finish_reason".to_owned(),
            this.finish_reason.unwrap_or(Value::Null),
        );
        choice.extend(this.choice);
        if let Some(object) = this.response.get_mut("object") {
            *object = json!("chat.completion");
        }
        this.response.insert("choices".to_owned(), json!([choice]));
        Value::Object(this.response)
    }
}

impl Stream {
    fn grow(&mut self, mut delta: Map<String, Value>, tell: &mut dyn FnMut(Told)) {
        if let Some(Value::Array(pieces)) = delta.shift_remove("tool_calls") {
            for piece in &pieces {
                self.call(piece, tell);
            }
        }
        for (key, value) in delta {
            match (key.as_str(), &value) {
                ("content" | "refusal", Value::String(said)) if !said.is_empty() => {
                    tell(Told::Text(said.clone()));
                }
                ("reasoning_content" | "reasoning", Value::String(said)) if !said.is_empty() => {
                    tell(Told::Thinking(said.clone()));
                }
                // Mistral's thinking models say lists of parts until they answer.
                ("content", Value::Array(parts)) => {
                    for part in parts {
                        tell_part(part, tell);
                    }
                }
                _ => {}
            }
            self.merge(key, value);
        }
    }

    /// Texts and lists grow, the rest is replaced.
    fn merge(&mut self, key: String, value: Value) {
        let before = self.message.get_mut(&key);
        match (before, value) {
            (Some(_), Value::Null) => {}
            (Some(Value::String(said)), Value::String(piece)) if key != "role" => {
                said.push_str(&piece);
            }
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (Some(Value::Array(all)), Value::String(piece)) if key == "content" => {
                append_text(all, piece);
            }
            (Some(said @ Value::String(_)), Value::Array(more)) if key == "content" => {
                let mut all = Vec::new();
                if let Value::String(said) = said.take() {
                    append_text(&mut all, said);
                }
                all.extend(more);
                *said = Value::Array(all);
            }
            (_, value) => {
                self.message.insert(key, value);
            }
        }
    }

    /// A piece of a call, or a whole one.
    fn call(&mut self, piece: &Value, tell: &mut dyn FnMut(Told)) {
        let function = &piece["function"];
        let name = text(function, "name").unwrap_or_default();
        let id = text(piece, "id").unwrap_or_default();
        let place = self.place_of(piece["index"].as_u64(), id, name);
        let call = match place {
            Some(place) => &mut self.calls[place],
            None => {
                tell(Told::Call(name.to_owned()));
                self.calls.push(Call {
                    index: piece["index"].as_u64(),
                    ..Call::default()
                });
                let last = self.calls.len() - 1;
                &mut self.calls[last]
            }
        };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        match function.get("arguments") {
            Some(Value::String(piece)) => call.arguments.push_str(piece),
            Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
            _ => {}
        }
        for (key, value) in piece.as_object().into_iter().flatten() {
            if !["index", "id", "type", "function"].contains(&key.as_str()) && !value.is_null() {
                call.more.insert(key.clone(), value.clone());
            }
        }
    }

    /// The call that a piece belongs to: by index, by id, or the last one. None begins a new one.
    fn place_of(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let begins = !name.is_empty();
        let same_id = |call: &Call| id.is_empty() || call.id.is_empty() || call.id == id;
        if let Some(index) = index {
            let place = self
                .calls
                .iter()
                .rposition(|call| call.index == Some(index))?;
            // Some count all calls as the first: another id and a name make another call.
            let is_same = same_id(&self.calls[place]) || !begins;
            return is_same.then_some(place);
        }
        if !id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == id);
        }
        let last = self.calls.last()?;
        let is_whole = serde_json::from_str::<Value>(&last.arguments).is_ok();
        let is_next = begins && (is_whole || last.name != name);
        (!is_next).then(|| self.calls.len() - 1)
    }
}

impl Call {
    fn into_value(self) -> Value {
        let mut call = Map::new();
        call.insert("id".to_owned(), json!(self.id));
        call.insert("type".to_owned(), json!("function"));
        call.insert(
            "function".to_owned(),
            json!({"name": self.name, "arguments": self.arguments}),
        );
        call.extend(self.more);
        Value::Object(call)
    }
}

fn tell_part(part: &Value, tell: &mut dyn FnMut(Told)) {
    match (text(part, "type"), &part["thinking"]) {
        (Some("text"), _) => {
            let said = text(part, "text").unwrap_or_default();
            if !said.is_empty() {
                tell(Told::Text(said.to_owned()));
            }
        }
        (Some("thinking"), Value::Array(parts)) => {
            let words = parts.iter().filter_map(|part| text(part, "text"));
            words.for_each(|words| tell(Told::Thinking(words.to_owned())));
        }
        (Some("thinking"), Value::String(words)) => tell(Told::Thinking(words.clone())),
        _ => {}
    }
}

/// Adds to the text at the end of a list of parts.
fn append_text(parts: &mut Vec<Value>, piece: String) {
    if piece.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some(last) if text(last, "type") == Some("text") => {
            let said = text(last, "text").unwrap_or_default();
            last["text"] = json!(format!("{said}{piece}"));
        }
        _ => parts.push(json!({"type": "text", "text": piece})),
    }
}
