//! What is mended in one LangChain message by itself.

use serde_json::{Map, Value, json};

use super::{Kind, body_mut, inside, kind};
use crate::place::escape;
use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::arguments;
use crate::providers::ids;
use crate::providers::wire::{At, text};
use crate::texts::{self, as_text};

const PROVIDER: Provider = Provider::LangChain;

/// Mends one message.
pub(super) fn message(message: &mut Value, at: At<'_>, log: &mut Log) {
    mend_shape(message, at, log);
    let kind = kind(message);
    let pointer = format!("{}{}", at.pointer(), inside(message));
    let place = Place {
        at,
        pointer: &pointer,
    };
    let Some(fields) = body_mut(message).as_object_mut() else {
        return;
    };
    match kind {
        Kind::Ai => place.mend_calls(fields, log),
        Kind::Tool => place.mend_result(fields, log),
        Kind::Human | Kind::System | Kind::Other => {}
    }
    if kind != Kind::Other {
        place.mend_content(fields, kind, log);
    }
}

fn mend_shape(message: &mut Value, at: At<'_>, log: &mut Log) {
    if message.is_object() && text(message, "type").is_some() {
        return mend_body(message, at, log);
    }
    let mut found = log.found(
        at.pointer(),
        Code::BadContent,
        "this is no LangChain message",
    );
    if let Some((kind, said)) = pair(message) {
        found.fixed(format!("it is one of type {kind:?} now"));
        *message = json!({"type": kind, "content": said});
        return;
    }
    let Value::Object(fields) = message else {
        found = found.fixed("it is kept as what the user said");
        let _ = found;
        let said = match message.take() {
            Value::Null => texts::EMPTY.to_owned(),
            other => as_text(&other),
        };
        *message = json!({"type": "human", "content": said});
        return;
    };
    let kind = match fields.get("role").and_then(Value::as_str) {
        Some("assistant" | "ai" | "model") => "ai",
        Some("system" | "developer") => "system",
        Some("tool") => "tool",
        _ => "human",
    };
    found.fixed(format!("it is one of type {kind:?} now"));
    let mut new = Map::new();
    new.insert("type".to_owned(), json!(kind));
    let is_kept = |key: &String| key != "role" && key != "type";
    new.extend(fields.iter().filter(|(key, _)| is_kept(key)).map(own));
    *message = Value::Object(new);
}

/// A message as a pair of who speaks and what is said.
fn pair(message: &Value) -> Option<(&'static str, Value)> {
    let [who, said] = message.as_array()?.as_slice() else {
        return None;
    };
    let kind = match who.as_str()? {
        "human" | "user" => "human",
        "ai" | "assistant" => "ai",
        "system" | "developer" => "system",
        _ => return None,
    };
    (said.is_string() || said.is_array()).then(|| (kind, said.clone()))
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// The fields of a stored message or a constructor must be an object.
fn mend_body(message: &mut Value, at: At<'_>, log: &mut Log) {
    let Some(key) = inside(message).strip_prefix('/') else {
        return;
    };
    if message.get(key).is_some_and(Value::is_object) {
        return;
    }
    log.found(
        at.field(key),
        Code::BadContent,
        "the fields of the message are missing",
    )
    .fixed("it has some now");
    let said = message.get(key).map_or_else(String::new, as_text);
    message[key] = json!({"content": said});
}

/// One message, and where its fields are.
struct Place<'a> {
    at: At<'a>,
    pointer: &'a str,
}

impl Place<'_> {
    fn mend_content(&self, fields: &mut Map<String, Value>, kind: Kind, log: &mut Log) {
        if let Some(Value::Array(blocks)) = fields.get_mut("content") {
            return self.mend_blocks(blocks, log);
        }
        let mended = match fields.get("content") {
            Some(Value::String(_)) => return,
            None if fields.contains_key("content_blocks") => return,
            // A constructor leaves out what is empty.
            None if kind == Kind::Ai && self.pointer.ends_with("/kwargs") => return,
            None | Some(Value::Null) if kind == Kind::Ai => json!(""),
            None | Some(Value::Null) if kind == Kind::Tool => json!(texts::NO_OUTPUT),
            None | Some(Value::Null) => json!(texts::EMPTY),
            Some(other) => json!(as_text(other)),
        };
        let code = match kind {
            Kind::Tool => Code::EmptyResult,
            _ => Code::EmptyContent,
        };
        log.found(
            format!("{}/content", self.pointer),
            code,
            "the content is neither a text nor a list of blocks",
        )
        .fixed("it is one now");
        fields.insert("content".to_owned(), mended);
    }

    /// A content is a list of texts and blocks.
    fn mend_blocks(&self, blocks: &mut [Value], log: &mut Log) {
        for (index, block) in blocks.iter_mut().enumerate() {
            let says_no_type =
                |block: &Value| block.get("type").is_some_and(|kind| !kind.is_string());
            if block.is_string() || (block.is_object() && !says_no_type(block)) {
                continue;
            }
            log.found(
                format!("{}/content/{index}", self.pointer),
                Code::BadContent,
                "this is neither a text nor a block",
            )
            .fixed("it is written as a text");
            *block = match &*block {
                Value::Null => json!(""),
                other => json!(as_text(other)),
            };
        }
    }

    fn mend_calls(&self, fields: &mut Map<String, Value>, log: &mut Log) {
        let calls = match fields.get_mut("tool_calls") {
            None => return,
            Some(Value::Array(calls)) => calls,
            Some(_) => {
                log.found(
                    format!("{}/tool_calls", self.pointer),
                    Code::BadContent,
                    "the calls are no list",
                )
                .fixed("they are left out");
                fields.insert("tool_calls".to_owned(), json!([]));
                return;
            }
        };
        for (part, call) in calls.iter_mut().enumerate() {
            self.mend_call(call, part, log);
        }
    }

    fn mend_call(&self, call: &mut Value, part: usize, log: &mut Log) {
        let at = format!("{}/tool_calls/{part}", self.pointer);
        if !call.is_object() {
            log.found(&at, Code::BadArguments, "this is no call")
                .fixed("it is written as one");
            *call = json!({"name": "", "args": call.take(), "id": null});
        }
        // OpenAI's calls have their name and arguments one level down.
        if let Some(mut function) = call.get_mut("function").map(Value::take) {
            log.found(
                &at,
                Code::BadArguments,
                "this is a call as OpenAI writes it",
            )
            .fixed("it is written as LangChain does");
            let args = function.get_mut("arguments").map(Value::take);
            *call = json!({"name": function["name"].take(), "args": args, "id": call["id"].take(), "type": "tool_call"});
        }
        keep_extras(call, &at, log);
        if text(call, "id").is_none_or(str::is_empty) {
            let new = ids::of_place(PROVIDER, self.at.index, part);
            log.found(format!("{at}/id"), Code::BadCallId, "the call has no id")
                .fixed(format!("its id is now {new}"));
            call["id"] = json!(new);
        }
        if text(call, "name").is_none_or(str::is_empty) {
            log.found(
                format!("{at}/name"),
                Code::BadCallName,
                "the call has no name",
            )
            .fixed(format!("it is called {}", texts::NO_NAME));
            call["name"] = json!(texts::NO_NAME);
        }
        let mended = arguments::as_object(call.get("args"));
        if let Some(fields) = call.as_object_mut() {
            arguments::mend(fields, "args", mended, || format!("{at}/args"), None, log);
        }
    }

    fn mend_result(&self, fields: &mut Map<String, Value>, log: &mut Log) {
        let status = fields.get("status");
        let is_known = match status {
            None => true,
            Some(status) => status == "success" || status == "error",
        };
        if !is_known {
            log.found(
                format!("{}/status", self.pointer),
                Code::BadField,
                "a status is \"success\" or \"error\"",
            )
            .fixed("it is \"success\" now");
            fields.insert("status".to_owned(), json!("success"));
        }
        let id = fields.get("tool_call_id");
        if let Some(id) = id.filter(|id| !id.is_string() && !id.is_null()) {
            let id = as_text(id);
            log.found(
                format!("{}/tool_call_id", self.pointer),
                Code::BadCallId,
                "the id is no string",
            )
            .fixed("it is one now");
            fields.insert("tool_call_id".to_owned(), json!(id));
        }
    }
}

/// LangChain fails to read a call with a field it does not know, but for what stands under `extras`.
fn keep_extras(call: &mut Value, at: &str, log: &mut Log) {
    let is_known = |key: &str| matches!(key, "name" | "args" | "id" | "type" | "extras");
    let Some(fields) = call.as_object_mut() else {
        return;
    };
    let foreign: Vec<String> = fields
        .keys()
        .filter(|key| !is_known(key))
        .cloned()
        .collect();
    for key in foreign {
        log.found(
            format!("{at}/{}", escape(&key)),
            Code::BadField,
            "this is no field of a call",
        )
        .says(format!(
            "tool_call() got an unexpected keyword argument '{key}'"
        ))
        .fixed("it is kept under extras");
        let value = fields.shift_remove(&key).unwrap_or_default();
        let extras = fields.entry("extras").or_insert_with(|| json!({}));
        if !extras.is_object() {
            *extras = json!({ "extras": extras.take() });
        }
        extras[key.as_str()] = value;
    }
}
