//! The providers' JSON, both ways: pure, tested from recordings. Requests are repaired before they are sent.
//!
//! A stream is put together to the response that it amounts to, and read like one that came at once: so both
//! ways of delivery cannot differ.

mod events;
mod refusal;
mod stream;

pub use events::{Line, Lines, TooLong};
pub use stream::Assembler;

pub(crate) use refusal::refusal;

use memchr::memmem;
use serde_json::Value;
use steadyhand::RepeatedName;
use steadyhand_conversation::{Converted, Fix, convert_tools, repair};

use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Delivery, ModelRequest, Reply};
use crate::settings::{Dialect, ModelSettings};

/// A request as its provider takes it.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The body.
    pub body: Value,
    /// The tools in it, and the names they have there.
    pub tools: Converted,
    /// What had to be mended in the conversation.
    pub fixes: Vec<Fix>,
}

/// Writes a request. It is always one that the provider takes, whatever the conversation looks like.
pub fn encode(settings: &ModelSettings, request: &ModelRequest<'_>) -> Encoded {
    let provider = settings.dialect.provider();
    let tools = convert_tools(provider, request.tools);
    let client = settings.dialect.client();
    let mut body = client.encode(&settings.of_requests(), request, &tools);
    body["stream"] = Value::Bool(request.delivery == Delivery::Streaming);
    if let Some(fields) = body.as_object_mut() {
        for (key, value) in &settings.more {
            fields.insert(key.clone(), value.clone());
        }
    }
    let (body, fixes) = repair(provider, body);
    Encoded { body, tools, fixes }
}

/// Reads a whole response; `tools` are those of the request.
///
/// # Errors
///
/// Where the response is an error, or is not of this protocol.
pub fn decode(dialect: Dialect, response: Value, tools: &Converted) -> Result<Reply, ModelError> {
    if let Some(said) = refusal::in_body(dialect, &response) {
        let message = format!("{dialect} answered with an error: {said}");
        return Err(ModelError::new(ModelErrorKind::Provider, message));
    }
    let read = dialect.client().decode(response, tools);
    read.map_err(|what| unreadable(dialect, what))
}

/// A name that is there twice in an answer that has tool calls: what would be run can be read in two ways.
pub fn repeated_name_beside_calls(answer: &[u8]) -> Option<RepeatedName> {
    // How providers call them; behind an escape anything may be written.
    const CALLS: [&[u8]; 6] = [
        b"tool_call",
        b"tool_use",
        b"toolUse",
        b"function_call",
        b"functionCall",
        b"\\u",
    ];
    let repeated = RepeatedName::first_in_bytes(answer)?;
    let has_calls = CALLS
        .iter()
        .any(|mark| memmem::find(answer, mark).is_some());
    has_calls.then_some(repeated)
}

/// Refuses an answer, or an event of one, whose tool calls can be read in two ways.
pub(crate) fn refuse_repeated_name(dialect: Dialect, text: &str) -> Result<(), ModelError> {
    let repeated = repeated_name_beside_calls(text.as_bytes());
    repeated.map_or(Ok(()), |repeated| {
        let message = format!(
            "{dialect} answered with JSON that can be read in two ways, and no tool was run: {}",
            repeated.message()
        );
        Err(ModelError::new(ModelErrorKind::Unreadable, message))
    })
}

fn unreadable(dialect: Dialect, what: &str) -> ModelError {
    let message = format!("what came is no answer of {dialect}'s protocol: {what}");
    ModelError::new(ModelErrorKind::Unreadable, message)
        .help("check the url and the provider of this model")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s03_an_answer_whose_tool_calls_can_be_read_in_two_ways_is_not_used() {
        for (answer, place) in [
            (
                r#"{"content":[{"type":"tool_use","name":"read","input":{"path":1,"p\u0061th":2}}]}"#,
                Some("/content/0/input/path"),
            ),
            (
                r#"{"message":{"tool_calls":[{"function":{"arguments":{"a":1,"a":2}}}]}}"#,
                Some("/message/tool_calls/0/function/arguments/a"),
            ),
            (
                r#"{"parts":[{"functionCall":{"args":{"a":{"b":1,"b":1}}}}]}"#,
                Some("/parts/0/functionCall/args/a/b"),
            ),
            // Nothing is run for an answer of words.
            (r#"{"text":"hello","usage":{"a":1,"a":2}}"#, None),
            (
                r#"{"tool_calls":[{"input":{"a":1}},{"input":{"a":1}}]}"#,
                None,
            ),
        ] {
            let found = repeated_name_beside_calls(answer.as_bytes());
            let found = found.as_ref().map(RepeatedName::pointer);
            assert_eq!(found, place, "{answer}");
            let refused = refuse_repeated_name(Dialect::Anthropic, answer);
            assert_eq!(refused.is_err(), place.is_some(), "{answer}");
        }
    }
}
