//! Fields of messages that belong to another provider's API, or to its answers: refused where they are not known.

use serde_json::{Map, Value, json};

use crate::place::escape;
use crate::problem::{Code, Log};
use crate::provider::Provider;
use crate::wire::text;

/// What chat completions have beside the role and the content: some for their own histories, some in answers only.
const OF_CHAT: &[&str] = &[
    "annotations",
    "audio",
    "function_call",
    "images",
    "name",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "tool_call_id",
    "tool_calls",
    "tool_name",
];
/// Those that Mistral refuses.
const OF_CHAT_NOT_MISTRALS: &[&str] = &[
    "annotations",
    "audio",
    "function_call",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
];

/// What Anthropic's answers and the messages of OpenAI's Responses have beside the role and the content: they say that they
/// are of type "message".
const OF_ANSWERS: &[&str] = &[
    "container",
    "id",
    "model",
    "phase",
    "status",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "type",
    "usage",
];

/// Leaves out the fields that the provider refuses. Runs after each message was looked at by itself: what they say has
/// been taken over.
pub(super) fn leave_out(provider: Provider, messages: &mut [Value], base: &str, log: &mut Log) {
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(fields) = message.as_object_mut() else {
            continue;
        };
        // Nearly all messages: a role and a content, or parts.
        if fields.len() <= 2 && fields.contains_key("role") {
            continue;
        }
        keep_refusal(provider, fields);
        let refused = refused(provider, fields);
        for key in refused {
            fields.shift_remove(&key);
            log.found(
                format!("{base}/{index}/{}", escape(&key)),
                Code::BadField,
                "this is no field of a message here",
            )
            .says(says(provider, index, &key))
            .fixed("it is left out");
        }
    }
}

fn refused(provider: Provider, fields: &Map<String, Value>) -> Vec<String> {
    let kind = fields.get("type").and_then(Value::as_str);
    let role = fields.get("role").and_then(Value::as_str);
    let is_of_an_answer = |key: &str| kind == Some("message") && OF_ANSWERS.contains(&key);
    let is_refused = |key: &str| match provider {
        Provider::Gemini => !matches!(key, "role" | "parts"),
        Provider::BedrockConverse => OF_CHAT.contains(&key) || is_of_an_answer(key),
        Provider::OpenAiResponses => match kind {
            None | Some("message") => OF_CHAT.contains(&key),
            // They are in its answers.
            Some("reasoning") => key == "status",
            Some("function_call") => key == "parsed_arguments",
            Some(_) => false,
        },
        Provider::Mistral => {
            let is_its_own = role == Some("user") && matches!(key, "name" | "tool_calls");
            is_its_own || OF_CHAT_NOT_MISTRALS.contains(&key) || is_of_an_answer(key)
        }
        Provider::OpenAi => is_of_an_answer(key),
        Provider::Anthropic | Provider::Ollama | Provider::LangChain => false,
    };
    let refused = fields.keys().filter(|key| is_refused(key));
    refused.cloned().collect()
}

/// The words of a refusal stand beside the content in chat completions; where there is no content they are it.
fn keep_refusal(provider: Provider, fields: &mut Map<String, Value>) {
    let said = fields.get("refusal").and_then(Value::as_str);
    let Some(said) = said.filter(|said| !said.is_empty()).map(str::to_owned) else {
        return;
    };
    let is_silent = |content: Option<&Value>| match content {
        None | Some(Value::Null) => true,
        Some(Value::String(said)) => said.is_empty(),
        Some(Value::Array(parts)) => parts.is_empty(),
        Some(_) => false,
    };
    match provider {
        Provider::OpenAiResponses | Provider::Mistral if is_silent(fields.get("content")) => {
            fields.insert("content".to_owned(), json!(said));
        }
        _ => {}
    }
}

fn says(provider: Provider, index: usize, key: &str) -> Option<String> {
    Some(match provider {
        Provider::Gemini => format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at 'contents[{index}]': Cannot find field."
        ),
        Provider::OpenAi => format!("Unknown parameter: 'messages[{index}].{key}'."),
        Provider::OpenAiResponses => format!("Unknown parameter: 'input[{index}].{key}'."),
        Provider::Mistral => "Extra inputs are not permitted".to_owned(),
        // Its own clients refuse it; the service says nothing about it.
        _ => return None,
    })
}

/// Anthropic takes no empty text in what the system is told.
pub(super) fn mend_system(request: &mut Value, log: &mut Log) {
    let Some(Value::Array(blocks)) = request.get_mut("system") else {
        return;
    };
    let is_empty = |block: &Value| text(block, "type") == Some("text") && block["text"] == "";
    if !blocks.iter().any(is_empty) {
        return;
    }
    let mut kept: Vec<Value> = Vec::with_capacity(blocks.len());
    for (index, mut block) in blocks.drain(..).enumerate() {
        if !is_empty(&block) {
            kept.push(block);
            continue;
        }
        log.found(
            format!("/system/{index}"),
            Code::EmptyContent,
            "this text is empty",
        )
        .says("system: text content blocks must be non-empty".to_owned())
        .fixed("it is left out");
        // Its cache mark goes to the block before it, which ends the same cached beginning.
        let mark = block.get_mut("cache_control").map(Value::take);
        let before = kept.last_mut().and_then(Value::as_object_mut);
        if let (Some(mark), Some(before)) = (mark.filter(|mark| !mark.is_null()), before) {
            before.entry("cache_control").or_insert(mark);
        }
    }
    let is_silent = kept.is_empty();
    *blocks = kept;
    if let (true, Some(fields)) = (is_silent, request.as_object_mut()) {
        fields.shift_remove("system");
    }
}
