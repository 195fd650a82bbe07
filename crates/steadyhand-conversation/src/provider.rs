//! Whose rules a conversation follows, and which part of an exchange is looked at.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whose rules a conversation follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Provider {
    /// Anthropic's Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// OpenAI's Chat Completions, and the many services that speak it.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Google's `generateContent`.
    #[serde(rename = "gemini")]
    Gemini,
    /// Mistral's chat completions.
    #[serde(rename = "mistral")]
    Mistral,
    /// Ollama's own `/api/chat`.
    #[serde(rename = "ollama")]
    Ollama,
    /// Amazon Bedrock's Converse, whichever model is behind it.
    #[serde(rename = "bedrock-converse")]
    BedrockConverse,
    /// LangChain's messages, in any of its shapes.
    #[serde(rename = "langchain")]
    LangChain,
}

impl Provider {
    /// All of them.
    pub const ALL: [Provider; 8] = [
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::OpenAiResponses,
        Provider::Gemini,
        Provider::Mistral,
        Provider::Ollama,
        Provider::BedrockConverse,
        Provider::LangChain,
    ];

    /// Its name in commands, addresses and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::OpenAiResponses => "openai-responses",
            Provider::Gemini => "gemini",
            Provider::Mistral => "mistral",
            Provider::Ollama => "ollama",
            Provider::BedrockConverse => "bedrock-converse",
            Provider::LangChain => "langchain",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No provider has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown provider {name:?}: use anthropic, openai, openai-responses, gemini, mistral, ollama, bedrock-converse or langchain"
)]
pub struct UnknownProvider {
    /// The name that was given.
    pub name: String,
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Provider, UnknownProvider> {
        let named = Provider::ALL
            .into_iter()
            .find(|provider| provider.as_str() == name);
        named.ok_or_else(|| UnknownProvider {
            name: name.to_owned(),
        })
    }
}

/// Which part of an exchange with a model is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A request: its fields, its tools and its messages.
    Request,
    /// A model's answer.
    Response,
    /// Only whether calls and results match, in a history or a request.
    Match,
}

impl FromStr for What {
    type Err = String;

    fn from_str(name: &str) -> Result<What, String> {
        match name {
            "request" => Ok(What::Request),
            "response" => Ok(What::Response),
            "match" | "messages" => Ok(What::Match),
            other => Err(format!(
                "unknown part {other:?}: use request, messages (the same as match) or response"
            )),
        }
    }
}
