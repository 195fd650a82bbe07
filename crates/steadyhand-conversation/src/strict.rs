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

use serde_json::Value;

pub use crate::providers::strict_rules::{Refusal, StrictRules};

pub use crate::providers::anthropic::strict::anthropic;
pub use crate::providers::bedrock_converse::strict::bedrock_converse;
pub use crate::providers::gemini::strict::gemini;
pub use crate::providers::mistral::strict::mistral;
pub use crate::providers::ollama::strict::ollama;
pub use crate::providers::openai::strict::openai_chat;
pub use crate::providers::openai_responses::strict::openai_responses;

use crate::providers::Provider;

/// The request, checked by the provider that it is for. LangChain is none, and takes everything.
///
/// # Errors
///
/// What the provider would answer instead of a reply.
pub fn check(provider: Provider, request: &Value) -> Result<(), Refusal> {
    provider.strict().check(request)
}

/// The stand-in for a provider.
pub fn stand_in(provider: Provider) -> &'static dyn StrictRules {
    provider.strict()
}
