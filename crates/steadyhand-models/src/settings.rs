//! How a model is reached: its protocol, its name, its address, its key, and our patience.

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};
use steadyhand_conversation::client::RequestSettings;
use steadyhand_conversation::{ClientFormat, Provider};

/// Whose protocol a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's `/api/chat`.
    Ollama,
    /// OpenAI's Chat Completions, and the many servers that speak it.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] = [
        Dialect::Anthropic,
        Dialect::Ollama,
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
    ];

    /// Whose rules its conversations follow.
    pub fn provider(self) -> Provider {
        match self {
            Dialect::Anthropic => Provider::Anthropic,
            Dialect::Ollama => Provider::Ollama,
            Dialect::OpenAi => Provider::OpenAi,
            Dialect::OpenAiResponses => Provider::OpenAiResponses,
        }
    }

    /// Its name in settings.
    pub fn as_str(self) -> &'static str {
        self.provider().as_str()
    }

    /// How it is spoken.
    pub fn client(self) -> &'static dyn ClientFormat {
        self.provider().format().client()
    }

    /// The one that speaks to this provider: its own, or OpenAI's.
    pub fn of(provider: Provider) -> Dialect {
        let spoken = provider.format().client().provider();
        let mut all = Dialect::ALL.into_iter();
        all.find(|dialect| dialect.provider() == spoken)
            .unwrap_or(Dialect::OpenAi)
    }

    /// Where its makers serve it.
    pub fn public_url(self) -> &'static str {
        self.client().public_url()
    }

    /// The environment variable that its own clients read the key from.
    pub fn key_variable(self) -> Option<&'static str> {
        self.client().key_variable()
    }

    /// The path below the base URL.
    pub(crate) fn path(self) -> &'static str {
        self.client().path()
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a model is reached. The key shows in no `Debug` and no error.
///
/// ```
/// use steadyhand_models::{Client, Dialect, ModelSettings};
///
/// let settings = ModelSettings::new(Dialect::Ollama, "qwen3:8b").url("http://127.0.0.1:11434");
/// let model = Client::new(settings).unwrap();
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelSettings {
    /// The protocol.
    pub dialect: Dialect,
    /// The name the provider knows the model by.
    pub model: String,
    /// Where it is, if not at its makers': what their own SDK takes as base URL.
    pub url: Option<SecretString>,
    /// The key, if it needs one.
    pub key: Option<SecretString>,
    /// The longest answer in tokens. Anthropic wants to know: 4096 where nobody says.
    pub max_tokens: Option<u32>,
    /// The randomness of its answers.
    pub temperature: Option<f64>,
    /// Ollama: how much of a conversation it can see, in tokens.
    pub num_ctx: u32,
    /// Ollama: how long the model stays loaded, in its own words (`"5m"`, `-1`).
    pub keep_alive: Option<Value>,
    /// Whether and how much it thinks: Ollama's `think`, Anthropic's `thinking`, OpenAI's effort.
    pub thinking: Option<Value>,
    /// Fields of the request that nothing above has a name for. They win.
    pub more: Map<String, Value>,
    /// How long we wait for what.
    pub patience: Patience,
    /// How often a request is sent at most; 1 means once.
    pub attempts: u32,
    /// The largest response that is read, in bytes.
    pub response_bytes_max: usize,
}

/// What Ollama is told when nobody says: enough for a conversation with tools, small enough for most machines.
const NUM_CTX: u32 = 8192;
const RESPONSE_BYTES_MAX: usize = 32 * 1024 * 1024;

impl ModelSettings {
    /// A model of this name at its makers' address, without a key.
    pub fn new(dialect: Dialect, model: impl Into<String>) -> ModelSettings {
        ModelSettings {
            dialect,
            model: model.into(),
            url: None,
            key: None,
            max_tokens: None,
            temperature: None,
            num_ctx: NUM_CTX,
            keep_alive: None,
            thinking: None,
            more: Map::new(),
            patience: Patience::default(),
            attempts: 3,
            response_bytes_max: RESPONSE_BYTES_MAX,
        }
    }

    /// What requests say of it.
    pub(crate) fn of_requests(&self) -> RequestSettings<'_> {
        RequestSettings {
            model: &self.model,
            is_at_makers: self.url.is_none(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            num_ctx: self.num_ctx,
            keep_alive: self.keep_alive.as_ref(),
            thinking: self.thinking.as_ref(),
        }
    }

    /// Somewhere else than at its makers'.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> ModelSettings {
        self.url = Some(SecretString::from(url.into()));
        self
    }

    /// With a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> ModelSettings {
        self.key = Some(SecretString::from(key.into()));
        self
    }

    /// With a limit for its answers, in tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> ModelSettings {
        self.max_tokens = Some(tokens);
        self
    }

    /// With this randomness.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> ModelSettings {
        self.temperature = Some(temperature);
        self
    }

    /// With other waits.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> ModelSettings {
        self.patience = patience;
        self
    }

    /// With so many attempts at most.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> ModelSettings {
        self.attempts = attempts.max(1);
        self
    }
}

/// How long is waited for what. No wait is without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the first byte: a local model may have to be loaded first.
    pub first: Duration,
    /// For the next piece, once there was one.
    pub next: Duration,
    /// For the whole answer, attempts and waits included.
    pub whole: Duration,
    /// For as long as a provider may ask us to wait before the next attempt.
    pub retry_wait_max: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(10),
            first: Duration::from_secs(300),
            next: Duration::from_secs(120),
            whole: Duration::from_secs(900),
            retry_wait_max: Duration::from_secs(60),
        }
    }
}
