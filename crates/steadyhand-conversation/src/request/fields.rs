//! The fields every request must have, and contents a model does not take.

use serde_json::Value;

use crate::options::Options;
use crate::place;
use crate::problem::{Code, Log};
use crate::provider::Provider;
use crate::wire::text;

/// Says what is missing or of no use to the provider.
pub(super) fn check(provider: Provider, options: &Options, value: &Value, log: &mut Log) {
    let key = place::key(provider);
    let Some(request) = value.as_object() else {
        match value {
            Value::Array(messages) if messages.is_empty() => no_messages(provider, "", log),
            Value::Array(_) => {}
            _ => no_messages(provider, "", log),
        }
        return;
    };
    match request.get(key) {
        Some(Value::Array(messages)) if messages.is_empty() => {
            no_messages(provider, &format!("/{key}"), log);
        }
        Some(Value::Array(messages)) => contents(provider, options, value, messages, log),
        Some(Value::String(_)) if provider == Provider::OpenAiResponses => {}
        None if is_stored(provider, value) => {}
        // They stand under another provider's key, which is told where they are read.
        None if place::key_in(provider, value).is_some() => {}
        Some(_) | None => no_messages(provider, &format!("/{key}"), log),
    }
    let is_in_address = matches!(
        provider,
        Provider::Gemini | Provider::LangChain | Provider::BedrockConverse
    );
    let needs_model = !is_in_address && !options.served_by().names_model();
    if needs_model
        && !request.get("model").is_some_and(Value::is_string)
        && !is_stored(provider, value)
    {
        let says = match provider {
            Provider::Anthropic => "model: Field required",
            Provider::Ollama => "model is required",
            Provider::Mistral => "Model name parameter is required for serving mode",
            _ => "you must provide a model parameter",
        };
        missing("/model", says, log);
    }
    if provider == Provider::Anthropic && request.get("max_tokens").is_none() {
        missing("/max_tokens", "max_tokens: Field required", log);
    }
    if provider == Provider::OpenAi {
        tool_choice(value, log);
    }
    for key in request.keys().filter(|key| is_foreign(provider, key)) {
        let says = match provider {
            Provider::Anthropic => format!("{key}: Extra inputs are not permitted"),
            _ => format!("Unknown parameter: '{key}'."),
        };
        let at = format!("/{}", place::escape(key));
        log.found(at, Code::BadField, "the provider takes no such field")
            .says(says);
    }
}

/// Whether the provider refuses a request for this field. Only its sender knows what was meant by it.
fn is_foreign(provider: Provider, key: &str) -> bool {
    match provider {
        Provider::Anthropic => !ANTHROPICS_FIELDS.contains(&key),
        // OpenAI adds fields often: only those of its other surface are known to be refused.
        Provider::OpenAiResponses => CHATS_FIELDS.contains(&key),
        Provider::OpenAi
        | Provider::Gemini
        | Provider::Mistral
        | Provider::Ollama
        | Provider::BedrockConverse
        | Provider::LangChain => false,
    }
}

const CHATS_FIELDS: &[&str] = &["n", "messages", "functions", "function_call", "stop"];

/// Those of Anthropic itself, and those that other hosts want in the body.
const ANTHROPICS_FIELDS: &[&str] = &[
    "anthropic_beta",
    "anthropic_version",
    "betas",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];

/// A stored prompt or conversation has what the request leaves out.
fn is_stored(provider: Provider, value: &Value) -> bool {
    provider == Provider::OpenAiResponses
        && ["prompt", "conversation", "previous_response_id"]
            .iter()
            .any(|key| value.get(key).is_some_and(|value| !value.is_null()))
}

fn missing(at: &str, says: &str, log: &mut Log) {
    log.found(at, Code::MissingField, "this field is required")
        .says(says.to_owned());
}

fn no_messages(provider: Provider, at: &str, log: &mut Log) {
    let says = match provider {
        Provider::Anthropic => Some("messages: at least one message is required"),
        Provider::OpenAi => Some(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        ),
        Provider::OpenAiResponses => Some("Missing required parameter: 'input'."),
        Provider::Gemini => Some("* GenerateContentRequest.contents: contents is not specified"),
        Provider::Mistral => Some("Conversation must have at least one message"),
        Provider::BedrockConverse => Some(
            "The messages field in the request is empty. Add a message to the messages field and try again.",
        ),
        Provider::Ollama | Provider::LangChain => None,
    };
    log.found(at, Code::NoMessages, "there are no messages")
        .says(says.map(str::to_owned));
}

fn tool_choice(value: &Value, log: &mut Log) {
    match value.get("tool_choice") {
        Some(Value::String(choice)) if !matches!(choice.as_str(), "none" | "auto" | "required") => {
            log.found(
                "/tool_choice",
                Code::BadField,
                format!("there is no choice {choice:?}"),
            )
            .says(format!(
                "Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
            ));
        }
        Some(choice @ Value::Object(_)) => {
            let Some(name) = text(&choice["function"], "name") else {
                return;
            };
            let tools = value["tools"].as_array().map_or(&[][..], Vec::as_slice);
            if !tools.iter().any(|tool| tool["function"]["name"] == name) {
                log.found(
                    "/tool_choice/function/name",
                    Code::BadField,
                    format!("no tool is called {name:?}"),
                )
                .says(format!("Invalid value for 'function_call': no function named '{name}' was specified in the 'functions' parameter."));
            }
        }
        _ => {}
    }
}

fn contents(
    provider: Provider,
    options: &Options,
    request: &Value,
    messages: &[Value],
    log: &mut Log,
) {
    match provider {
        Provider::OpenAi => {
            let model = options.model_or(text(request, "model")).unwrap_or_default();
            if !model.contains("audio") && !model.is_empty() {
                audio(messages, log);
            }
        }
        Provider::OpenAiResponses => files(messages, log),
        Provider::Anthropic
        | Provider::Gemini
        | Provider::Mistral
        | Provider::Ollama
        | Provider::BedrockConverse
        | Provider::LangChain => {}
    }
}

/// Only audio models of OpenAI's hear.
fn audio(messages: &[Value], log: &mut Log) {
    for (index, message) in messages.iter().enumerate() {
        let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let heard = |part: &Value| text(part, "type") == Some("input_audio");
        if let Some(part) = parts.iter().position(heard) {
            log.found(
                format!("/messages/{index}/content/{part}"),
                Code::UnsupportedContent,
                "this model takes no audio",
            )
            .says(format!("Invalid 'messages[{index}]'. Content blocks are expected to be either text or image_url type."));
        }
    }
}

/// OpenAI's Responses take documents and images as files, not sound.
fn files(items: &[Value], log: &mut Log) {
    for (index, item) in items.iter().enumerate() {
        for key in ["content", "output"] {
            let parts = item[key].as_array().map_or(&[][..], Vec::as_slice);
            for (part, file) in parts.iter().enumerate() {
                if text(file, "type") == Some("input_file") {
                    file_type(file, index, key, part, log);
                }
            }
        }
    }
}

fn file_type(file: &Value, index: usize, key: &str, part: usize, log: &mut Log) {
    let at = format!("/input/{index}/{key}/{part}");
    let mime = text(file, "file_data")
        .and_then(|data| data.strip_prefix("data:"))
        .and_then(|data| data.split([';', ',']).next());
    if let Some(mime) = mime.filter(|mime| is_media(mime)) {
        log.found(format!("{at}/file_data"), Code::UnsupportedContent, format!("files of type {mime} are not taken"))
            .says(format!("Invalid file data: 'input[{index}].{key}[{part}].file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{mime}'."));
    }
    let ending = text(file, "file_url")
        .and_then(|url| url.split(['?', '#']).next())
        .and_then(|url| url.rsplit('.').next());
    let sounds = [
        "mp3", "wav", "ogg", "flac", "m4a", "aac", "mp4", "mov", "webm", "avi",
    ];
    if ending.is_some_and(|ending| sounds.contains(&ending.to_ascii_lowercase().as_str())) {
        log.found(
            format!("{at}/file_url"),
            Code::UnsupportedContent,
            "files of this type are not taken",
        )
        .says(
            "The file type you uploaded is not supported. Please try again with a pdf".to_owned(),
        );
    }
}

fn is_media(mime: &str) -> bool {
    mime.starts_with("audio/") || mime.starts_with("video/")
}
