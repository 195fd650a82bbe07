//! `[proxy.anthropic]` and its like: where the proxy forwards to, and what it may do on the way.

use schemars::JsonSchema;
use serde::Deserialize;
use steadyhand_conversation::Host;
use url::Url;

use super::text::SecretText;
use super::units::{Size, Span, TIME_LIMIT};

/// The providers that the proxy knows, as they stand in its addresses.
pub const PROXIES: [&str; 7] = [
    "anthropic",
    "openai",
    "ollama",
    "gemini",
    "mistral",
    "bedrock",
    "vertex",
];

/// Where the proxy forwards to, and what it may do on the way.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProxySettings {
    /// The provider's address, if not its public one
    pub upstream: Option<SecretText>,
    /// Whose rules conversations follow there: by its address if not said; where that is not known, compatible
    pub host: Option<ProxyHost>,
    /// Keys of Amazon's; requests that come signed are signed anew with them
    pub aws: Option<AwsSettings>,
    /// false forwards conversations as they are; they are repaired if not said
    pub repair: Option<bool>,
    /// Offer the tools registered here to the model, run their calls and answer with what it says in the end
    pub execute: Option<bool>,
    /// With execute: names or patterns of the tools that are offered; all if not said
    pub tools: Vec<String>,
    /// With execute: how many rounds of tools one request may take; 5 if not said
    #[schemars(range(min = 1, max = 1000))]
    pub max_iterations: Option<u32>,
    /// Keep the conversations that pass, secrets removed, for the dashboard; they are not kept if not said
    pub keep_conversations: Option<bool>,
    /// The largest conversation; 32MiB if not said
    pub body: Option<Size>,
    /// How long the provider may take to begin its answer; 10m if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub first: Option<Span>,
    /// How long it may be silent in the middle of one; 5m if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub idle: Option<Span>,
    /// How long the whole exchange may take; 1h if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub timeout: Option<Span>,
}

/// Who serves a provider's API. A rule that only the provider itself enforces is not applied elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyHost {
    /// The provider itself, or something as strict
    Original,
    /// Azure OpenAI
    Azure,
    /// DeepSeek
    DeepSeek,
    /// Any other service that speaks the provider's language
    Compatible,
}

impl From<ProxyHost> for Host {
    fn from(host: ProxyHost) -> Host {
        match host {
            ProxyHost::Original => Host::Original,
            ProxyHost::Azure => Host::Azure,
            ProxyHost::DeepSeek => Host::DeepSeek,
            ProxyHost::Compatible => Host::Compatible,
        }
    }
}

/// Keys of Amazon's, for Bedrock.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsSettings {
    /// The name of the key
    pub access_key_id: SecretText,
    /// The key itself
    pub secret_access_key: SecretText,
    /// The token of temporary keys
    pub session_token: Option<SecretText>,
    /// The region; that of the upstream's name if not said
    pub region: Option<String>,
}

/// A place to forward to: no user, no query, no fragment, which would get lost on the way.
pub fn is_base(url: &str) -> bool {
    Url::parse(url.trim()).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}
