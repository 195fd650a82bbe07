//! `[models]`: which models there are, how each is reached, and which one is used when nobody says.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::text::SecretText;
use super::units::{Span, TIME_LIMIT};

/// The models by name, and which one is used when nobody says.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Models(pub Map<String, Value>);

impl JsonSchema for Models {
    fn schema_name() -> Cow<'static, str> {
        "Models".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let model = generator.subschema_for::<ModelSettings>();
        schemars::json_schema!({
            "type": "object",
            "properties": {
                "default": {"type": "string", "description": "The model that is used when nobody says"}
            },
            "additionalProperties": model,
        })
    }
}

/// One model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Whose protocol it speaks
    pub provider: Provider,
    /// The name the provider knows it by
    pub model: Option<String>,
    /// The key
    pub key: Option<SecretText>,
    /// Where it is, if not at the provider's public address
    pub url: Option<SecretText>,
    /// How many rounds of tools one question may take
    #[schemars(range(min = 1, max = 1000))]
    pub max_iterations: Option<u32>,
    /// The longest answer, in tokens
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// The randomness of its answers
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// What it is told before everything else
    pub system: Option<String>,
    /// The longest one answer may take, attempts and waits included; 15m if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub timeout: Option<Span>,
    /// How often a question that got no answer is asked, the first time included; 3 if not said
    #[schemars(range(min = 1, max = 100))]
    pub attempts: Option<u32>,
    /// Ollama: how much of a conversation it can see, in tokens; 8192 if not said
    #[schemars(range(min = 256))]
    pub num_ctx: Option<u32>,
    /// Ollama: how long the model stays loaded, such as "10m", or -1 for ever
    pub keep_alive: Option<Value>,
    /// Whether and how much it thinks: Ollama's think, Anthropic's thinking, OpenAI's effort
    pub thinking: Option<Value>,
    /// Run calls that the model writes as text; small local models do
    pub recover_calls: Option<bool>,
}

impl Models {
    /// Their names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.0.keys().map(String::as_str);
        names.filter(|name| *name != "default")
    }

    /// The one that is used when nobody says.
    pub fn default_name(&self) -> Option<&str> {
        self.0.get("default").and_then(Value::as_str)
    }
}

/// Whose protocol a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// Ollama.
    Ollama,
    /// OpenAI's Chat Completions, or what speaks its protocol.
    OpenAi,
    /// OpenAI's Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// A fixed script: no key, no network.
    Scripted,
}

impl Provider {
    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::Ollama => "ollama",
            Provider::OpenAi => "openai",
            Provider::OpenAiResponses => "openai-responses",
            Provider::Scripted => "scripted",
        }
    }
}
