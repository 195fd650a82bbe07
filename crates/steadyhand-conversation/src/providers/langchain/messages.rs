//! LangChain's messages: flat, as stored (`data`) or as constructors (`kwargs`).

mod mend;

use serde_json::{Value, json};

use crate::problem::Log;
use crate::providers::Provider;
use crate::providers::wire::{
    At, CallRef, Fault, Layout, ResultRef, Wire, content_text, id, joined, text,
};

/// See the file's first line.
pub(crate) struct LangChainWire;

impl Wire for LangChainWire {
    fn provider(&self) -> Provider {
        Provider::LangChain
    }

    fn layout(&self) -> Layout {
        Layout::FollowingMessages
    }

    fn is_model(&self, message: &Value) -> bool {
        kind(message) == Kind::Ai
    }

    fn normalise(&self, message: &mut Value, at: At<'_>, log: &mut Log, _behind: &mut Vec<Value>) {
        mend::message(message, at, log);
    }

    fn calls<'a>(&self, message: &'a Value, found: &mut Vec<CallRef<'a>>) {
        let body = body(message);
        let good = list(body, "tool_calls");
        for (part, call) in good.iter().enumerate() {
            found.push(CallRef {
                part,
                id: id(call, "id"),
                name: text(call, "name").unwrap_or_default(),
                cut_off: crate::providers::arguments::were_cut_off(call.get("args")),
                needs_result: true,
            });
        }
        // LangChain sends these to the provider like the others.
        for (index, call) in list(body, "invalid_tool_calls").iter().enumerate() {
            if id(call, "id").is_some() {
                found.push(CallRef {
                    part: good.len() + index,
                    id: id(call, "id"),
                    name: text(call, "name").unwrap_or_default(),
                    cut_off: true,
                    needs_result: true,
                });
            }
        }
    }

    fn results<'a>(&self, message: &'a Value, found: &mut Vec<ResultRef<'a>>) {
        if kind(message) == Kind::Tool {
            let body = body(message);
            found.push(ResultRef {
                part: 0,
                id: id(body, "tool_call_id"),
                name: id(body, "name"),
            });
        }
    }

    fn part_pointer(&self, message: &Value, part: usize) -> String {
        if kind(message) != Kind::Ai {
            return String::new();
        }
        let good = list(body(message), "tool_calls").len();
        let inside = inside(message);
        match part.checked_sub(good) {
            None => format!("{inside}/tool_calls/{part}"),
            Some(part) => format!("{inside}/invalid_tool_calls/{part}"),
        }
    }

    fn set_call_id(&self, message: &mut Value, part: usize, id: &str) {
        let body = body_mut(message);
        let good = list(body, "tool_calls").len();
        match part.checked_sub(good) {
            None => body["tool_calls"][part]["id"] = json!(id),
            Some(part) => body["invalid_tool_calls"][part]["id"] = json!(id),
        }
    }

    fn take_result(&self, message: &mut Value, _part: usize) -> Value {
        message.take()
    }

    fn result<'a>(&self, message: &'a Value, _part: usize) -> &'a Value {
        message
    }

    fn result_mut<'a>(&self, message: &'a mut Value, _part: usize) -> &'a mut Value {
        message
    }

    fn part_count(&self, _message: &Value) -> usize {
        1
    }

    fn has_part(&self, _message: &Value, _part: usize) -> bool {
        true
    }

    fn address(&self, result: &mut Value, id: Option<&str>, _name: &str) {
        body_mut(result)["tool_call_id"] = json!(id);
    }

    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, _name: &str) -> bool {
        result.id == id
    }

    fn result_text(&self, result: &Value) -> String {
        content_text(body(result).get("content"))
    }

    fn error(&self, id: Option<&str>, name: &str, text: &str) -> Value {
        json!({"type": "tool", "content": text, "tool_call_id": id, "name": name, "status": "error"})
    }

    fn fit(&self, result: &mut Value, of_call: &Value) {
        reshape(result, of_call, "ToolMessage");
    }

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        results
    }

    fn keep_as_text(&self, result: Value, mark: &str) -> Value {
        let mut said = match body(&result).get("content") {
            Some(Value::Array(blocks)) => {
                let mut content = vec![json!({"type": "text", "text": mark})];
                content.extend(blocks.iter().cloned());
                json!({"type": "human", "content": content})
            }
            _ => self.user(&joined(mark, &self.result_text(&result))),
        };
        reshape(&mut said, &result, "HumanMessage");
        said
    }

    fn user(&self, text: &str) -> Value {
        json!({"type": "human", "content": text})
    }

    fn finish(&self, message: &mut Value) -> bool {
        !message.is_null()
    }

    fn is_empty(&self, _message: &Value) -> bool {
        false
    }

    fn says(&self, _fault: Fault<'_>) -> Option<String> {
        // LangChain itself says nothing; the provider behind it does.
        None
    }
}

/// What kind of message it is, whichever shape it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ai,
    Human,
    System,
    Tool,
    Other,
}

fn kind(message: &Value) -> Kind {
    let own = text(message, "type").unwrap_or_default();
    let name = match own {
        "constructor" => {
            let class = message["id"].as_array().and_then(|path| path.last());
            class.and_then(Value::as_str).unwrap_or_default()
        }
        name => name,
    };
    match name.strip_suffix("Chunk").unwrap_or(name) {
        "ai" | "AIMessage" => Kind::Ai,
        "human" | "HumanMessage" => Kind::Human,
        "system" | "SystemMessage" => Kind::System,
        "tool" | "ToolMessage" => Kind::Tool,
        _ => Kind::Other,
    }
}

/// Where the fields of a message are, as the steps of a JSON Pointer.
fn inside(message: &Value) -> &'static str {
    if message.get("lc").is_some() {
        return "/kwargs";
    }
    if message.get("data").is_some() && message.get("content").is_none() {
        return "/data";
    }
    ""
}

fn body(message: &Value) -> &Value {
    match inside(message) {
        "" => message,
        inside => message.get(&inside[1..]).unwrap_or(message),
    }
}

/// The fields of a message, and where they are.
pub(crate) fn body_and_place(message: &Value) -> (&Value, &'static str) {
    (body(message), inside(message))
}

fn body_mut(message: &mut Value) -> &mut Value {
    match inside(message) {
        "" => message,
        inside => &mut message[&inside[1..]],
    }
}

fn list<'a>(body: &'a Value, key: &str) -> &'a [Value] {
    match body.get(key) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// Gives a flat message the shape of another.
fn reshape(flat: &mut Value, like: &Value, class: &str) {
    let kind = flat["type"].clone();
    match inside(like) {
        "/data" => {
            let data = flat.take();
            *flat = json!({"type": kind, "data": data});
        }
        "/kwargs" => {
            let mut kwargs = flat.take();
            if let Some(fields) = kwargs.as_object_mut() {
                fields.shift_remove("type");
            }
            let mut path = list(like, "id").to_vec();
            path.pop();
            path.push(json!(class));
            *flat = json!({"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs});
        }
        _ => {}
    }
}
