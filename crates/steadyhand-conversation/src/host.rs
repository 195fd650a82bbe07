//! Who serves a provider's API: hosts that speak the same language refuse different things.

use std::fmt;
use std::str::FromStr;

/// Who serves a provider's API. A rule that only the provider itself enforces is not applied elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Host {
    /// The provider itself.
    #[default]
    Original,
    /// Azure OpenAI: OpenAI's rules, and the deployment in the address names the model.
    Azure,
    /// Amazon Bedrock with Anthropic's body: `anthropic_version` in it, and the model in the address.
    Bedrock,
    /// Google Vertex AI with Anthropic's body: `anthropic_version` in it, and the model in the address.
    Vertex,
    /// DeepSeek, which wants results directly behind their calls in every format.
    DeepSeek,
    /// Any other service that speaks the provider's language: OpenRouter, Groq, vLLM, a gateway.
    Compatible,
}

impl Host {
    /// All of them.
    pub const ALL: [Host; 6] = [
        Host::Original,
        Host::Azure,
        Host::Bedrock,
        Host::Vertex,
        Host::DeepSeek,
        Host::Compatible,
    ];

    /// Its name in commands, addresses and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Host::Original => "original",
            Host::Azure => "azure",
            Host::Bedrock => "bedrock",
            Host::Vertex => "vertex",
            Host::DeepSeek => "deepseek",
            Host::Compatible => "compatible",
        }
    }

    /// The host with this name in an address, without scheme, port and path: `api.deepseek.com`.
    ///
    /// An unknown name is [`Host::Compatible`]: nothing is known of its rules.
    pub fn of_domain(domain: &str) -> Host {
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        let is_of = |parent: &str| {
            domain
                .strip_suffix(parent)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_bedrock = domain.starts_with("bedrock-runtime") && is_of("amazonaws.com");
        let is_vertex = domain.ends_with("aiplatform.googleapis.com");
        let of_the_maker = [
            "api.openai.com",
            "api.anthropic.com",
            "generativelanguage.googleapis.com",
            "mistral.ai",
        ];
        match () {
            () if of_the_maker.iter().any(|maker| is_of(maker)) => Host::Original,
            () if is_bedrock => Host::Bedrock,
            () if is_vertex => Host::Vertex,
            () if is_of("openai.azure.com")
                || is_of("cognitiveservices.azure.com")
                || is_of("services.ai.azure.com") =>
            {
                Host::Azure
            }
            () if is_of("deepseek.com") => Host::DeepSeek,
            () => Host::Compatible,
        }
    }

    /// Whether it enforces what the provider itself enforces.
    pub(crate) fn is_strict(self) -> bool {
        match self {
            Host::Original | Host::Azure | Host::Bedrock | Host::Vertex => true,
            Host::DeepSeek | Host::Compatible => false,
        }
    }

    /// Whether the address names the model, so that the request need not.
    pub(crate) fn names_model(self) -> bool {
        matches!(self, Host::Azure | Host::Bedrock | Host::Vertex)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(name: &str) -> Result<Host, String> {
        let named = Host::ALL.into_iter().find(|host| host.as_str() == name);
        named.ok_or_else(|| {
            format!(
                "unknown host {name:?}: use original, azure, bedrock, vertex, deepseek or compatible"
            )
        })
    }
}
