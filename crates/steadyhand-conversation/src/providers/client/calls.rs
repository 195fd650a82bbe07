//! The calls of an answer: ids made where there are none, arguments read, and none run that may not be whole.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use steadyhand::{AiMessage, Extra, InexactInteger, InvalidToolCall, RepeatedName, ToolCall};

use crate::client::{Stop, Usage};
use crate::converted::Converted;
use crate::providers::Provider;
use crate::providers::wire::text;
use crate::texts::UNREADABLE;

/// Collects the calls of one answer.
#[derive(Default)]
pub(crate) struct Calls {
    valid: Vec<ToolCall>,
    invalid: Vec<InvalidToolCall>,
    ids: HashSet<String>,
}

/// One call as it was found.
pub(crate) struct Found<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) args: Option<&'a Value>,
    /// What else the provider said about it.
    pub(crate) extra: Map<String, Value>,
    /// It is the last thing in an answer that ran out of tokens.
    pub(crate) may_be_cut: bool,
}

impl Calls {
    /// Takes one call in, and gives the id it has from now on.
    pub(crate) fn take(&mut self, found: Found<'_>, tools: &Converted) -> String {
        let name = tools.original(found.name).to_owned();
        let given = found.id.filter(|id| !id.is_empty());
        let id = match given {
            Some(id) if !self.ids.contains(id) => id.to_owned(),
            // None, or that of another call of this answer.
            _ => ToolCall::new("", Map::new()).id,
        };
        self.ids.insert(id.clone());
        let extra = Extra(found.extra);
        match read(found.args, found.may_be_cut) {
            Ok(args) => self.valid.push(ToolCall {
                id: id.clone(),
                name,
                args,
                extra,
            }),
            Err(error) => self.invalid.push(InvalidToolCall {
                id: Some(id.clone()),
                name: Some(name),
                args: Some(as_text(found.args)),
                error: Some(error),
                extra,
            }),
        }
        id
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.valid.is_empty() && self.invalid.is_empty()
    }

    /// Puts them into their message.
    pub(crate) fn into(self, message: &mut AiMessage) {
        message.tool_calls = self.valid;
        message.invalid_tool_calls = self.invalid;
    }
}

/// The arguments, or why they are not run.
fn read(args: Option<&Value>, may_be_cut: bool) -> Result<Map<String, Value>, String> {
    let text = match args {
        None | Some(Value::Null) => return whole(Map::new(), may_be_cut),
        Some(Value::Object(fields)) => return whole(fields.clone(), may_be_cut),
        Some(Value::String(text)) => text,
        Some(other) => return Err(not_an_object(other)),
    };
    // A call without arguments; when the answer was cut, they may just not have come.
    if text.trim().is_empty() {
        return whole(Map::new(), may_be_cut);
    }
    if let Some(repeated) = RepeatedName::first_in(text) {
        return Err(repeated.message());
    }
    if let Some(inexact) = InexactInteger::first_in(text) {
        return Err(inexact.message());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        // An object that was turned to text twice.
        Ok(Value::String(inner)) if let Some(repeated) = RepeatedName::first_in(&inner) => {
            Err(repeated.message())
        }
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(fields)) => Ok(fields),
            _ => Err(not_an_object(&Value::String(inner))),
        },
        Ok(other) => Err(not_an_object(&other)),
        Err(error) => {
            let kind = match error.is_eof() {
                true => "unfinished JSON",
                false => "not valid JSON",
            };
            let (line, column) = (error.line(), error.column());
            let fault = steadyhand::plain_words::json_fault(&error);
            Err(format!("{kind} at line {line}, column {column}: {fault}"))
        }
    }
}

/// What came as an object cannot show where it broke off.
fn whole(fields: Map<String, Value>, may_be_cut: bool) -> Result<Map<String, Value>, String> {
    match may_be_cut {
        false => Ok(fields),
        true => Err("the answer reached its length limit while this call was written, so its arguments may not be whole".to_owned()),
    }
}

fn not_an_object(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("the arguments must be an object, got {kind}")
}

fn as_text(args: Option<&Value>) -> String {
    match args {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The arguments of a call that could not be read, as the object that providers want.
pub(crate) fn unreadable(call: &InvalidToolCall) -> Map<String, Value> {
    let text = call.args.clone().unwrap_or_default();
    if let Ok(Value::Object(fields)) = serde_json::from_str(&text) {
        return fields;
    }
    let mut kept = Map::new();
    kept.insert(UNREADABLE.to_owned(), Value::String(text));
    kept
}

/// All calls of a message as they go back to a provider: id, name, arguments, what else was said.
pub(crate) fn sent(
    ai: &AiMessage,
) -> impl Iterator<Item = (&str, &str, Map<String, Value>, &Extra)> {
    let valid = ai.tool_calls.iter().map(|call| {
        (
            call.id.as_str(),
            call.name.as_str(),
            call.args.clone(),
            &call.extra,
        )
    });
    let invalid = ai.invalid_tool_calls.iter().map(|call| {
        let id = call.id.as_deref().unwrap_or_default();
        let name = call.name.as_deref().unwrap_or_default();
        (id, name, unreadable(call), &call.extra)
    });
    valid.chain(invalid)
}

/// What LangChain has beside an answer: who gave it, why it ended, what it took.
pub(crate) fn metadata(
    message: &mut AiMessage,
    provider: Provider,
    response: &Value,
    stop: &Stop,
    usage: Usage,
) {
    let mut about = Map::new();
    about.insert("model_provider".to_owned(), json!(provider.as_str()));
    if let Some(model) = text(response, "model") {
        about.insert("model_name".to_owned(), json!(model));
    }
    about.insert("stop_reason".to_owned(), json!(stop.as_str()));
    let extra = &mut message.extra;
    extra.insert("response_metadata".to_owned(), Value::Object(about));
    if let Some(id) = text(response, "id") {
        extra.insert("id".to_owned(), json!(id));
    }
    if usage != Usage::default() {
        let counts = json!({
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total(),
        });
        extra.insert("usage_metadata".to_owned(), counts);
    }
}

/// Whether a message came from a model of this dialect: only then is what only it understands sent back.
pub(crate) fn is_from(ai: &AiMessage, provider: Provider) -> bool {
    let about = ai.extra.get("response_metadata");
    about.is_some_and(|about| about["model_provider"] == provider.as_str())
}
