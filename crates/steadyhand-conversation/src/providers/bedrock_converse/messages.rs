//! Amazon Bedrock's Converse: calls and results are blocks without a type, and the turns alternate.

mod block;

use serde_json::{Value, json};

use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::arguments;
use crate::providers::wire::{At, CallRef, Fault, Layout, ResultRef, Wire, id, joined, text};
use crate::texts::{self, as_text};

/// See the file's first line.
pub(crate) struct ConverseWire;

const PROVIDER: Provider = Provider::BedrockConverse;
const CALL: &str = "toolUse";
const RESULT: &str = "toolResult";

impl Wire for ConverseWire {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn layout(&self) -> Layout {
        Layout::LeadingParts
    }

    /// They may stand anywhere in their turn.
    fn results_lead(&self) -> bool {
        false
    }

    fn is_model(&self, message: &Value) -> bool {
        text(message, "role") == Some("assistant")
    }

    fn normalise(&self, message: &mut Value, at: At<'_>, log: &mut Log, _behind: &mut Vec<Value>) {
        mend_message(message, at, log);
        mend_role(message, at, log);
        let is_model = self.is_model(message);
        if mend_content(message, at, log) == IsLeftOut(true) {
            return;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return;
        };
        for (part, block) in blocks.iter_mut().enumerate() {
            let place = block::Block { at, part, is_model };
            place.mend(block, log);
        }
        if is_model && !blocks.is_empty() && blocks.iter().all(Value::is_null) {
            blocks.push(json!({"text": texts::EMPTY}));
        }
    }

    fn calls<'a>(&self, message: &'a Value, found: &mut Vec<CallRef<'a>>) {
        for (part, block) in blocks(message).iter().enumerate() {
            if let Some(call) = block.get(CALL).filter(|call| !is_servers(call)) {
                found.push(CallRef {
                    part,
                    id: id(call, "toolUseId"),
                    name: text(call, "name").unwrap_or_default(),
                    cut_off: arguments::were_cut_off(call.get("input")),
                    needs_result: true,
                });
            }
        }
    }

    fn results<'a>(&self, message: &'a Value, found: &mut Vec<ResultRef<'a>>) {
        let is_model = self.is_model(message);
        for (part, block) in blocks(message).iter().enumerate() {
            let result = block.get(RESULT);
            if let Some(result) = result.filter(|result| !is_model || !is_servers(result)) {
                found.push(ResultRef {
                    part,
                    id: id(result, "toolUseId"),
                    name: None,
                });
            }
        }
    }

    fn part_pointer(&self, _message: &Value, part: usize) -> String {
        format!("/content/{part}")
    }

    fn set_call_id(&self, message: &mut Value, part: usize, id: &str) {
        message["content"][part][CALL]["toolUseId"] = json!(id);
    }

    fn take_result(&self, message: &mut Value, part: usize) -> Value {
        message["content"][part].take()
    }

    fn result<'a>(&self, message: &'a Value, part: usize) -> &'a Value {
        &message["content"][part]
    }

    fn result_mut<'a>(&self, message: &'a mut Value, part: usize) -> &'a mut Value {
        &mut message["content"][part]
    }

    fn part_count(&self, message: &Value) -> usize {
        blocks(message).len()
    }

    fn has_part(&self, message: &Value, part: usize) -> bool {
        !blocks(message)[part].is_null()
    }

    fn address(&self, result: &mut Value, id: Option<&str>, _name: &str) {
        result[RESULT]["toolUseId"] = json!(id);
    }

    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, _name: &str) -> bool {
        result.id == id
    }

    fn result_text(&self, result: &Value) -> String {
        let content = result[RESULT]["content"].as_array();
        let words = |part: &Value| match text(part, "text") {
            Some(said) => said.to_owned(),
            None => as_text(part.get("json").unwrap_or(part)),
        };
        let said: Vec<String> = content.into_iter().flatten().map(words).collect();
        said.join("\n")
    }

    fn error(&self, id: Option<&str>, _name: &str, text: &str) -> Value {
        json!({RESULT: {"toolUseId": id, "content": [{"text": text}], "status": "error"}})
    }

    fn lead(&self, message: &mut Value, results: Vec<Value>) {
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            blocks.splice(0..0, results);
        }
    }

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        vec![json!({"role": "user", "content": results})]
    }

    fn keep_as_text(&self, mut result: Value, mark: &str) -> Value {
        let mut media = Vec::new();
        if let Some(Value::Array(parts)) = result[RESULT].get_mut("content") {
            let stands = |part: &Value| {
                ["image", "document", "video"]
                    .iter()
                    .any(|kind| part.get(kind).is_some())
            };
            media.extend(parts.extract_if(.., |part| stands(part)));
        }
        let said = self.result_text(&result);
        let mut blocks = vec![json!({"text": joined(mark, &said)})];
        blocks.append(&mut media);
        json!({"role": "user", "content": blocks})
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": [{"text": text}]})
    }

    fn finish(&self, message: &mut Value) -> bool {
        if !blocks(message).iter().any(Value::is_null) {
            return !message.is_null();
        }
        let is_model = self.is_model(message);
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            return !message.is_null();
        };
        blocks.retain(|block| !block.is_null());
        if is_model && blocks.is_empty() {
            blocks.push(json!({"text": texts::EMPTY}));
        }
        !blocks.is_empty()
    }

    fn is_empty(&self, message: &Value) -> bool {
        blocks(message).is_empty()
    }

    fn says(&self, fault: Fault<'_>) -> Option<String> {
        Some(match fault {
            Fault::Missing { message, ids } => format!(
                "Expected toolResult blocks at messages.{}.content for the following Ids: {}",
                message + 1,
                ids.join(", ")
            ),
            Fault::Orphan { message, .. } => format!(
                "The number of toolResult blocks at messages.{message}.content exceeds the number of toolUse blocks of previous turn."
            ),
            Fault::Duplicate { message, id, .. } => format!(
                "The toolResult blocks at messages.{message}.content contain duplicate Ids: {id}"
            ),
            Fault::DuplicateId { message, id, .. } => format!(
                "The toolUse blocks at messages.{message}.content contain duplicate Ids: {id}"
            ),
        })
    }
}

/// Whether Bedrock runs this call itself, or gave this result: both stand in the model's turn, and say what they are.
fn is_servers(block: &Value) -> bool {
    text(block, "type").is_some_and(|kind| !kind.is_empty())
}

/// Joins messages of one role that follow each other: the roles alternate. `given` says which messages were the model's
/// before anything was moved.
pub(crate) fn join_turns(
    messages: &mut Vec<Value>,
    origins: &mut Vec<usize>,
    given: &[bool],
    base: &str,
    log: &mut Log,
) {
    let mut joined: Vec<Value> = Vec::with_capacity(messages.len());
    let mut kept = Vec::with_capacity(origins.len());
    let mut last_given = None;
    for (mut message, origin) in messages.drain(..).zip(origins.drain(..)) {
        let is_model = ConverseWire.is_model(&message);
        let is_given = given.get(origin) == Some(&is_model);
        let before = joined
            .last_mut()
            .filter(|one| one["role"] == message["role"])
            .and_then(|one| one["content"].as_array_mut());
        let (Some(before), Some(Value::Array(blocks))) = (before, message.get_mut("content"))
        else {
            last_given = is_given.then_some(origin);
            joined.push(message);
            kept.push(origin);
            continue;
        };
        before.append(blocks);
        if is_given && last_given.is_some_and(|last| last != origin) {
            log.found(
                format!("{base}/{origin}"),
                Code::ConsecutiveRoles,
                "the message before it has the same role",
            )
            .says("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.".to_owned())
            .fixed("they are one message");
        }
        last_given = is_given.then_some(origin).or(last_given);
    }
    *messages = joined;
    *origins = kept;
}

fn blocks(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => &[],
    }
}

/// A message that is no object becomes one.
fn mend_message(message: &mut Value, at: At<'_>, log: &mut Log) {
    if message.is_object() {
        return;
    }
    let said = match message.take() {
        Value::Null => texts::EMPTY.to_owned(),
        other => as_text(&other),
    };
    log.found(at.pointer(), Code::BadContent, "this is no message")
        .says(format!(
            "The format of the value at messages.{} is invalid. Provide a json object for the field and try again.",
            at.index
        ))
        .fixed("it is kept as text of the user");
    *message = json!({"role": "user", "content": [{"text": said}]});
}

fn mend_role(message: &mut Value, at: At<'_>, log: &mut Log) {
    let role = match message.get("role") {
        None | Some(Value::Null) => String::new(),
        Some(role) => as_text(role),
    };
    if matches!(role.as_str(), "user" | "assistant") {
        return;
    }
    let new = match role.as_str() {
        "model" | "ai" | "bot" => "assistant",
        _ => "user",
    };
    log.found(
        at.field("role"),
        Code::WrongRole,
        format!("there is no role {role:?}"),
    )
    .says(format!(
        "1 validation error detected: Value '{role}' at 'messages.{}.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
        at.index + 1
    ))
    .fixed(format!("the role is now {new:?}"));
    message["role"] = json!(new);
}

/// Whether a message is left out, because nothing is said in it.
#[derive(PartialEq, Eq)]
struct IsLeftOut(bool);

fn mend_content(message: &mut Value, at: At<'_>, log: &mut Log) -> IsLeftOut {
    let is_model = text(message, "role") == Some("assistant");
    // As OpenAI's models say no.
    let refusal = id(message, "refusal").map(str::to_owned);
    let (mended, code) = match message.get_mut("content") {
        None | Some(Value::Null) if refusal.is_some() => {
            (json!([{ "text": refusal }]), Code::BadContent)
        }
        Some(Value::Array(blocks)) if !blocks.is_empty() => return IsLeftOut(false),
        // It goes, and a turn in which nothing else is said says so.
        Some(Value::Array(_)) if !is_model => (json!([null]), Code::EmptyContent),
        Some(Value::Array(_) | Value::Null) | None => {
            (json!([{"text": texts::EMPTY}]), Code::EmptyContent)
        }
        Some(Value::String(said)) if said.trim().is_empty() => {
            (json!([{"text": texts::EMPTY}]), Code::EmptyContent)
        }
        Some(Value::String(said)) => (json!([{"text": said}]), Code::BadContent),
        Some(block @ Value::Object(_)) => (json!([block]), Code::BadContent),
        Some(other) => (json!([{"text": as_text(other)}]), Code::BadContent),
    };
    let says = match code {
        Code::EmptyContent => format!(
            "The content field in the Message object at messages.{} is empty. Add a ContentBlock object to the content field and try again.",
            at.index
        ),
        _ => format!(
            "The format of the value at messages.{}.content is invalid. Provide a json array for the field and try again.",
            at.index
        ),
    };
    log.found(
        at.field("content"),
        code,
        "the content is no list of blocks, or an empty one",
    )
    .says(says)
    .fixed(match mended[0].is_null() {
        true => "the message is left out",
        false => "it is one now",
    });
    let is_left_out = IsLeftOut(mended[0].is_null());
    message["content"] = mended;
    is_left_out
}
