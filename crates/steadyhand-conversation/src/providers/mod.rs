//! One folder for each provider, with all that is known of it; and the table of them. A new provider is a folder and a row.

pub(crate) mod anthropic;
mod arguments;
pub(crate) mod bedrock_converse;
mod chat;
pub(crate) mod client;
mod extra_fields;
pub(crate) mod foreign;
pub(crate) mod format;
pub(crate) mod gemini;
mod host_of_api;
pub(crate) mod ids;
mod langchain;
pub(crate) mod mender;
pub(crate) mod mistral;
pub(crate) mod names;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod openai_responses;
mod opening;
pub(crate) mod rules;
mod schema;
mod sound;
#[cfg(feature = "strict")]
pub(crate) mod strict_rules;
mod tool_checks;
pub(crate) mod wire;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) use openai_responses::is_reference;

macro_rules! providers {
    ($($(#[$doc:meta])* $provider:ident = $name:literal => $format:path,)*) => {
        /// Whose rules a conversation follows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Provider {
            $($(#[$doc])* #[serde(rename = $name)] $provider,)*
        }

        impl Provider {
            /// All of them.
            pub const ALL: [Provider; [$($name),*].len()] = [$(Provider::$provider),*];

            /// Its name in commands, addresses and JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Provider::$provider => $name,)*
                }
            }

            /// How it speaks over HTTP.
            pub fn format(self) -> &'static dyn format::ProviderFormat {
                match self {
                    $(Provider::$provider => &$format,)*
                }
            }

            /// What checks and repairs must know of it.
            pub(crate) fn rules(self) -> &'static dyn rules::Rules {
                match self {
                    $(Provider::$provider => &$format,)*
                }
            }

            /// A stand-in for it.
            #[cfg(feature = "strict")]
            pub(crate) fn strict(self) -> &'static dyn strict_rules::StrictRules {
                match self {
                    $(Provider::$provider => &$format,)*
                }
            }
        }
    };
}

providers! {
    /// Anthropic's Messages.
    Anthropic = "anthropic" => anthropic::AnthropicFormat,
    /// OpenAI's Chat Completions, and the many services that speak it.
    OpenAi = "openai" => openai::OpenAiFormat,
    /// OpenAI's Responses.
    OpenAiResponses = "openai-responses" => openai_responses::ResponsesFormat,
    /// Google's `generateContent`.
    Gemini = "gemini" => gemini::GeminiFormat,
    /// Mistral's chat completions.
    Mistral = "mistral" => mistral::MistralFormat,
    /// Ollama's own `/api/chat`.
    Ollama = "ollama" => ollama::OllamaFormat,
    /// Amazon Bedrock's Converse, whichever model is behind it.
    BedrockConverse = "bedrock-converse" => bedrock_converse::ConverseFormat,
    /// LangChain's messages, in any of its shapes.
    LangChain = "langchain" => langchain::LangChainFormat,
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No provider has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider {name:?}: use {}", known_names())]
pub struct UnknownProvider {
    /// The name that was given.
    pub name: String,
}

fn known_names() -> String {
    let names = Provider::ALL.map(Provider::as_str);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
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
