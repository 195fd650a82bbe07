//! Google's contents: calls and results are parts, matched by id where there is one, else by name and order.

use serde_json::{Map, Value, json};

use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::arguments;
use crate::providers::foreign;
use crate::providers::wire::{
    At, CallRef, Fault, Layout, ResultRef, Wire, content_text, id, joined, legal_name, name_fault,
    text,
};
use crate::texts::{self, as_text};

/// See the file's first line.
pub(crate) struct GeminiWire;

const PROVIDER: Provider = Provider::Gemini;
/// Google writes JSON in camel case and reads both.
const CALL: [&str; 2] = ["functionCall", "function_call"];
const RESULT: [&str; 2] = ["functionResponse", "function_response"];

impl Wire for GeminiWire {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn layout(&self) -> Layout {
        Layout::LeadingParts
    }

    fn matches_by_name(&self) -> bool {
        true
    }

    fn is_model(&self, message: &Value) -> bool {
        text(message, "role") == Some("model")
    }

    fn normalise(&self, message: &mut Value, at: At<'_>, log: &mut Log, _behind: &mut Vec<Value>) {
        mend_message(message, at, log);
        mend_role(message, at, log);
        let is_model = self.is_model(message);
        mend_parts(message, at, log);
        let Some(Value::Array(parts)) = message.get_mut("parts") else {
            return;
        };
        for (index, part) in parts.iter_mut().enumerate() {
            let place = Part {
                at,
                index,
                is_model,
            };
            place.mend(part, log);
        }
    }

    fn calls<'a>(&self, message: &'a Value, found: &mut Vec<CallRef<'a>>) {
        for (part, value) in parts(message).iter().enumerate() {
            if let Some(call) = of(value, &CALL) {
                found.push(CallRef {
                    part,
                    id: id(call, "id"),
                    name: text(call, "name").unwrap_or_default(),
                    cut_off: arguments::were_cut_off(call.get("args")),
                    needs_result: true,
                });
            }
        }
    }

    fn results<'a>(&self, message: &'a Value, found: &mut Vec<ResultRef<'a>>) {
        for (part, value) in parts(message).iter().enumerate() {
            if let Some(result) = of(value, &RESULT) {
                found.push(ResultRef {
                    part,
                    id: id(result, "id"),
                    name: id(result, "name"),
                });
            }
        }
    }

    fn part_pointer(&self, _message: &Value, part: usize) -> String {
        format!("/parts/{part}")
    }

    fn set_call_id(&self, message: &mut Value, part: usize, id: &str) {
        if let Some(call) = of_mut(&mut message["parts"][part], &CALL) {
            call["id"] = json!(id);
        }
    }

    fn take_result(&self, message: &mut Value, part: usize) -> Value {
        message["parts"][part].take()
    }

    fn result<'a>(&self, message: &'a Value, part: usize) -> &'a Value {
        &message["parts"][part]
    }

    fn result_mut<'a>(&self, message: &'a mut Value, part: usize) -> &'a mut Value {
        &mut message["parts"][part]
    }

    fn part_count(&self, message: &Value) -> usize {
        parts(message).len()
    }

    fn has_part(&self, message: &Value, part: usize) -> bool {
        !parts(message)[part].is_null()
    }

    fn address(&self, result: &mut Value, id: Option<&str>, name: &str) {
        let Some(result) = of_mut(result, &RESULT) else {
            return;
        };
        result["name"] = json!(name);
        let fields = result.as_object_mut();
        match (id, fields) {
            (Some(id), Some(fields)) => {
                fields.insert("id".to_owned(), json!(id));
            }
            (None, Some(fields)) => {
                fields.shift_remove("id");
            }
            (_, None) => {}
        }
    }

    fn is_addressed(&self, result: ResultRef<'_>, id: Option<&str>, name: &str) -> bool {
        result.name == Some(name) && (result.id.is_none() || id.is_none() || result.id == id)
    }

    fn result_text(&self, result: &Value) -> String {
        let response = of(result, &RESULT).and_then(|result| result.get("response"));
        let Some(response) = response else {
            return String::new();
        };
        let only = ["output", "result", "error"]
            .iter()
            .find_map(|key| response.get(key))
            .filter(|_| response.as_object().is_some_and(|all| all.len() == 1));
        as_text(only.unwrap_or(response))
    }

    fn error(&self, id: Option<&str>, name: &str, text: &str) -> Value {
        let mut result = json!({"name": name, "response": {"error": text}});
        if let Some(id) = id {
            result = json!({"id": id, "name": name, "response": {"error": text}});
        }
        json!({"functionResponse": result})
    }

    fn lead(&self, message: &mut Value, results: Vec<Value>) {
        if let Some(Value::Array(parts)) = message.get_mut("parts") {
            parts.splice(0..0, results);
        }
    }

    fn pack(&self, results: Vec<Value>) -> Vec<Value> {
        vec![json!({"role": "user", "parts": results})]
    }

    fn keep_as_text(&self, mut result: Value, mark: &str) -> Value {
        let said = self.result_text(&result);
        let mut parts = vec![json!({"text": joined(mark, &said)})];
        let media = of_mut(&mut result, &RESULT).and_then(|result| result.get_mut("parts"));
        if let Some(Value::Array(media)) = media {
            parts.append(media);
        }
        json!({"role": "user", "parts": parts})
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "parts": [{"text": text}]})
    }

    fn finish(&self, message: &mut Value) -> bool {
        if !parts(message).iter().any(Value::is_null) {
            return !message.is_null();
        }
        let is_model = self.is_model(message);
        let Some(Value::Array(parts)) = message.get_mut("parts") else {
            return !message.is_null();
        };
        let before = parts.len();
        parts.retain(|part| !part.is_null());
        if is_model && parts.is_empty() {
            parts.push(json!({"text": texts::EMPTY}));
        }
        before == 0 || !parts.is_empty()
    }

    fn is_empty(&self, message: &Value) -> bool {
        parts(message).is_empty()
    }

    fn says_to_nameless(&self, message: usize, part: usize) -> Option<String> {
        Some(format!(
            "* GenerateContentRequest.contents[{message}].parts[{part}].function_response.name: Name cannot be empty."
        ))
    }

    fn says(&self, fault: Fault<'_>) -> Option<String> {
        Some(match fault {
            Fault::Missing { .. } | Fault::Duplicate { .. } => "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned(),
            Fault::Orphan { .. } => "Please ensure that function response turn comes immediately after a function call turn.".to_owned(),
            Fault::DuplicateId { .. } => return None,
        })
    }
}

fn parts(message: &Value) -> &[Value] {
    match message.get("parts") {
        Some(Value::Array(parts)) => parts,
        _ => &[],
    }
}

/// The call or result in a part.
fn of<'a>(part: &'a Value, keys: &[&str; 2]) -> Option<&'a Value> {
    let found = keys.iter().find_map(|key| part.get(key));
    found.filter(|found| !found.is_null())
}

fn of_mut<'a>(part: &'a mut Value, keys: &[&str; 2]) -> Option<&'a mut Value> {
    let is_there = |key: &&&str| part.get(**key).is_some_and(|found| !found.is_null());
    let key = keys.iter().find(is_there)?;
    part.get_mut(*key)
}

/// A content that is no object becomes one.
fn mend_message(message: &mut Value, at: At<'_>, log: &mut Log) {
    if message.is_object() {
        return;
    }
    let said = match message.take() {
        Value::Null => texts::EMPTY.to_owned(),
        other => as_text(&other),
    };
    log.found(at.pointer(), Code::BadContent, "this is no content")
        .says(format!(
            "Invalid value at 'contents[{}]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)",
            at.index
        ))
        .fixed("it is kept as text of the user");
    *message = json!({"role": "user", "parts": [{"text": said}]});
}

fn mend_role(message: &mut Value, at: At<'_>, log: &mut Log) {
    let role = match message.get("role") {
        None => return,
        Some(Value::String(role)) if matches!(role.as_str(), "user" | "model" | "function") => {
            return;
        }
        Some(other) => as_text(other),
    };
    let new = match role.as_str() {
        "assistant" | "ai" | "bot" => "model",
        _ => "user",
    };
    log.found(
        at.field("role"),
        Code::WrongRole,
        format!("there is no role {role:?}"),
    )
    .says("Please use a valid role: user, model.".to_owned())
    .fixed(format!("the role is now {new:?}"));
    message["role"] = json!(new);
}

fn mend_parts(message: &mut Value, at: At<'_>, log: &mut Log) {
    let mended = match message.get("parts") {
        Some(Value::Array(parts)) if !parts.is_empty() => return,
        Some(part @ Value::Object(_)) => json!([part]),
        None | Some(Value::Null | Value::Array(_)) => {
            // As other providers write it.
            let mut said = content_text(message.get("content"));
            if said.is_empty() {
                said.push_str(text(message, "refusal").unwrap_or_default());
            }
            match said.is_empty() {
                true => json!([{"text": texts::EMPTY}]),
                false => json!([{"text": said}]),
            }
        }
        Some(other) => json!([{"text": as_text(other)}]),
    };
    log.found(
        at.field("parts"),
        Code::EmptyContent,
        "the content has no list of parts",
    )
    .says(format!(
        "* GenerateContentRequest.contents[{}].parts: contents.parts must not be empty.",
        at.index
    ))
    .fixed("it has one now");
    message["parts"] = mended;
    if let Some(fields) = message.as_object_mut() {
        fields.shift_remove("content");
    }
}

/// One part of a content.
struct Part<'a> {
    at: At<'a>,
    index: usize,
    is_model: bool,
}

impl Part<'_> {
    fn pointer(&self) -> String {
        format!("{}/parts/{}", self.at.pointer(), self.index)
    }

    fn place(&self) -> String {
        format!("contents[{}].parts[{}]", self.at.index, self.index)
    }

    fn mend(&self, part: &mut Value, log: &mut Log) {
        let says_something = |part: &Map<String, Value>| part.values().any(|one| !one.is_null());
        if !part.as_object().is_some_and(says_something) {
            return self.mend_shape(part, log);
        }
        self.mend_foreign(part, log);
        if part.is_null() {
            return;
        }
        self.mend_text(part, log);
        if of(part, &RESULT).is_some() {
            return self.mend_result(part, log);
        }
        if of(part, &CALL).is_none() {
            return;
        }
        if self.is_model {
            return self.mend_call(part, log);
        }
        let call = of(part, &CALL).unwrap_or(&Value::Null);
        let name = text(call, "name").unwrap_or_default();
        let said = texts::stray_call(name, call.get("args").unwrap_or(&Value::Null));
        log.found(
            self.pointer(),
            Code::WrongRole,
            "a call stands in the user's turn",
        )
        .says("Please ensure that function call turn comes immediately after a user turn or after a function response turn.".to_owned())
        .fixed("it is kept as text");
        *part = json!({"text": said});
    }

    /// A block of somebody else's among the parts: Google's have no type.
    fn mend_foreign(&self, part: &mut Value, log: &mut Log) {
        if part.get("type").is_none_or(Value::is_null) {
            return;
        }
        let Some(native) = foreign::block(PROVIDER, part, self.is_model) else {
            return;
        };
        log.found(
            self.pointer(),
            Code::BadContent,
            "this part is written as another provider does",
        )
        .says(format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{}': Cannot find field.",
            self.place()
        ))
        .fixed("it is written as Google reads it");
        *part = native;
    }

    fn mend_shape(&self, part: &mut Value, log: &mut Log) {
        let said = match &*part {
            Value::Object(_) | Value::Null => None,
            other => Some(as_text(other)),
        };
        log.found(self.pointer(), Code::BadContent, "this part says nothing")
            .says(format!("* GenerateContentRequest.{}.data: required oneof field 'data' must have one initialized field", self.place()))
            .fixed("it is a text now, or gone if it said nothing");
        let said = said.filter(|said| !said.is_empty());
        *part = said.map_or(Value::Null, |said| json!({"text": said}));
    }

    fn mend_text(&self, part: &mut Value, log: &mut Log) {
        let Some(odd) = part.get("text") else {
            return;
        };
        if odd.is_string() || odd.is_null() {
            return;
        }
        log.found(
            format!("{}/text", self.pointer()),
            Code::BadContent,
            "this text is no string",
        )
        .says(format!(
            "Invalid value at '{}.text' (TYPE_STRING), {odd}",
            self.place()
        ))
        .fixed("it is written as one");
        part["text"] = json!(as_text(odd));
    }

    /// An id is a string, or not there.
    fn mend_id(&self, holder: &mut Value, what: &str, log: &mut Log) {
        let Some(odd) = holder.get("id") else {
            return;
        };
        if odd.is_string() || odd.is_null() {
            return;
        }
        let place = self.place();
        log.found(self.pointer(), Code::BadCallId, "the id is no string")
            .says(format!(
                "Invalid value at '{place}.{what}.id' (TYPE_STRING), {odd}"
            ))
            .fixed("it is one now");
        holder["id"] = json!(as_text(odd));
    }

    fn mend_call(&self, part: &mut Value, log: &mut Log) {
        let Some(call) = of_mut(part, &CALL) else {
            return;
        };
        if !call.is_object() {
            *call = json!({"args": call.take()});
        }
        self.mend_id(call, "function_call", log);
        let name = text(call, "name").unwrap_or_default();
        if !crate::providers::names::is_legal_name(PROVIDER, name) {
            let new = match name {
                "" => texts::NO_NAME.to_owned(),
                name => legal_name(PROVIDER, name).into_owned(),
            };
            log.found(
                self.pointer(),
                Code::BadCallName,
                format!("the call {}", name_fault(name)),
            )
            .says(format!(
                "* GenerateContentRequest.{}.function_call.name: Name cannot be empty.",
                self.place()
            ))
            .fixed(format!("it is called {new}"));
            call["name"] = json!(new);
        }
        let mended = match call.get("args") {
            // No arguments are no fault here.
            None | Some(Value::Null) => None,
            args => arguments::as_object(args),
        };
        let says = Some(format!(
            "Invalid value at '{}.function_call.args' (type.googleapis.com/google.protobuf.Struct)",
            self.place()
        ));
        if let Some(fields) = call.as_object_mut() {
            arguments::mend(fields, "args", mended, || self.pointer(), says, log);
        }
    }

    fn mend_result(&self, part: &mut Value, log: &mut Log) {
        let Some(result) = of_mut(part, &RESULT) else {
            return;
        };
        if !result.is_object() {
            *result = json!({"response": result.take()});
        }
        self.mend_id(result, "function_response", log);
        if let Some(name) = id(result, "name")
            && !crate::providers::names::is_legal_name(PROVIDER, name)
        {
            let new = legal_name(PROVIDER, name).into_owned();
            log.found(
                self.pointer(),
                Code::BadCallName,
                format!("the result {}", name_fault(name)),
            )
            .fixed(format!("its tool is called {new}, like its call's"));
            result["name"] = json!(new);
        }
        let mended = match result.get("response") {
            Some(Value::Object(_)) => return,
            None | Some(Value::Null) => json!({"output": texts::NO_OUTPUT}),
            Some(other) => json!({ "output": other }),
        };
        log.found(
            self.pointer(),
            Code::BadContent,
            "the response of a tool must be an object",
        )
        .says(format!(
            "Invalid value at '{}.function_response.response' (type.googleapis.com/google.protobuf.Struct)",
            self.place()
        ))
        .fixed("it is the output of one now");
        result["response"] = mended;
    }
}
