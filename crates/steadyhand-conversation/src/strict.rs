//! Providers as strict as the real ones, without a network: they refuse what those refuse, in their words.
//!
//! Each takes the JSON of a request and answers like its original: nothing, or a status and a body. They are
//! written from what the providers were seen to say, and share nothing with
//! the checks and repairs of this crate, so that each can prove the other wrong.
//!
//! ```
//! use serde_json::json;
//! use steadyhand_conversation::strict;
//!
//! let (status, body) = strict::anthropic(&json!({"model": "claude", "messages": []})).unwrap_err();
//! assert_eq!(status, 400);
//! assert_eq!(body["error"]["message"], "messages: at least one message is required");
//! ```

mod anthropic;
mod bedrock_converse;
mod gemini;
mod mistral;
mod ollama;
mod openai_chat;
mod openai_responses;

use serde_json::Value;

use crate::Provider;

pub use anthropic::anthropic;
pub use bedrock_converse::bedrock_converse;
pub use gemini::gemini;
pub use mistral::mistral;
pub use ollama::ollama;
pub use openai_chat::openai_chat;
pub use openai_responses::openai_responses;

/// A status and the body that goes with it.
pub type Refusal = (u16, Value);

/// The request, checked by the provider that it is for. LangChain is none, and takes everything.
///
/// # Errors
///
/// What the provider would answer instead of a reply.
pub fn check(provider: Provider, request: &Value) -> Result<(), Refusal> {
    match provider {
        Provider::Anthropic => anthropic(request),
        Provider::OpenAi => openai_chat(request),
        Provider::OpenAiResponses => openai_responses(request),
        Provider::Gemini => gemini(request),
        Provider::Mistral => mistral(request),
        Provider::Ollama => ollama(request),
        Provider::BedrockConverse => bedrock_converse(request),
        Provider::LangChain => Ok(()),
    }
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

/// However deep it is: a parsed value could not be.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
